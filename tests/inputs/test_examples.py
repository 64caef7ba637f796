"""The data that come with the package."""

from __future__ import annotations

import pytest

import fastbcubed as fb
from fastbcubed.errors import OptionError


def test_inventors() -> None:
    found = fb.example("patentsview")
    assert list(found.predictions) == ["20200929", "20211230"]
    assert (found.attributes, found.overlapping) == (None, False)
    assert {"item", "cluster", "country", "year"} <= set(found.truth.column_names)
    assert "predictions['20200929']" in repr(found)
    assert "PatentsView" in repr(found)
    ev = fb.evaluate(found.truth, found.predictions["20200929"], slices=["country", fb.bins("year", 10)])
    years = ev.sliced["year:10"]["year:10"].to_pylist()
    assert (years[0], years[-1]) == ("1970-1979", "2020-2029")


@pytest.mark.slow
def test_verbs_overlap() -> None:
    found = fb.example("wordnet_verbs")
    assert list(found.predictions) == ["first_sense", "hypernym"]
    assert found.overlapping
    ev = fb.evaluate(
        found.truth, found.predictions["first_sense"], overlapping=True, attributes=found.attributes
    )
    assert ev.precision == pytest.approx(1)
    assert "topic" in repr(found)
    assert ev.slices("in_corpus").num_rows == 2


def test_no_such_example() -> None:
    with pytest.raises(
        OptionError,
        match=r"no example 'patents'; the examples are 'patentsview', 'wordnet_verbs'\. Did you mean",
    ):
        fb.example("patents")
    with pytest.raises(OptionError, match="no example 5"):
        fb.example(5)  # type: ignore[arg-type]
