"""Ids that the two sides spell in different ways: the error says in which, also where none matches."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import EmptyInputError

COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "Zo\u00eb") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        ([COMPOSED], [DECOMPOSED], "in one Unicode normal form (NFC)"),
        (["007", "x"], ["7", "y"], "without leading zeros"),
        (["crm:1"], ["1"], "without everything up to the last : / _ # or -"),
        (["a/b/1"], ["1"], "without everything up to the last : / _ # or -"),
        (["1.0"], ["1"], "without the .0 of whole numbers"),
        (["CRM:A1"], ["a1"], "without everything up to the last : / _ # or -, in lower case"),
        ([("s", "01")], [("s", "1")], "without leading zeros"),
    ],
)
def test_it_is_said_how_ids_would_match(first: list[Any], second: list[Any], how: str) -> None:
    for sides in ((first, second), (second, first)):
        with pytest.raises(EmptyInputError) as caught:
            fb.evaluate(*(dict.fromkeys(own, 1) for own in sides))
        assert f"would match {how}: write them alike on both sides." in str(caught.value)


def test_the_same_where_few_match(tmp_path: Path) -> None:
    ids = [f"{k:04}" for k in range(1, 41)]
    paths = [tmp_path / name for name in ("truth.parquet", "prediction.parquet")]
    for path, own in zip(paths, (ids, [item.lstrip("0") for item in ids]), strict=True):
        pq.write_table(pa.table({"item": [*own, "both"], "cluster": [1] * 41}), path)
    with pytest.warns(fb.EvaluationWarning, match="Ids such as '0001' would match without leading zeros"):
        fb.evaluate(*paths, unmatched="singleton")
    for engine in ("memory", "disk"):
        with pytest.raises(EmptyInputError, match="would match without leading zeros"):
            fb.evaluate({ids[0]: 1}, pa.table({"item": ["1"], "cluster": [1]}), engine=engine)


def test_values_of_flags_may_begin_with_a_minus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Weights of matches are negative every day; argparse took "-8,0,5" for a flag."""
    pq.write_table(
        pa.table({"item": ["a", "b", "c"], "cluster": ["-1_x", "-1_x", "y"]}), tmp_path / "t.parquet"
    )
    links = pa.table({"left": ["a", "b"], "right": ["b", "c"], "match_weight": [6.0, -9.0]})
    pq.write_table(links, tmp_path / "links.parquet")
    sides = [str(tmp_path / name) for name in ("t.parquet", "links.parquet")]
    assert cli.main(["sweep", *sides, "--thresholds", "-8,0,5"]) == 0
    assert cli.main(["evaluate", *sides, "--links", "--threshold", "-8.5"]) == 0
    assert "1 of 2 links" in " ".join(capsys.readouterr().err.split())
    assert cli.main(["evaluate", sides[0], sides[0], "--noise", "-1_x", "--item", "item"]) == 0
    assert cli.main(["evaluate", sides[0], sides[0], "--noise", "--json"]) == 2
    assert "--noise: expected one argument" in capsys.readouterr().err
