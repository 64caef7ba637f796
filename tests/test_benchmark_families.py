"""The benchmark of the families runs, on tiny data."""

from benchmarks import families


def test_tables(capsys):
    assert families.main(["--items", "2000", "--slow"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in (*families.SCORES, *families.FAMILIES, "cells"))
