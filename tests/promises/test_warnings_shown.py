"""All warnings and intervals of a result stand in its text, HTML, Markdown, page and JSON, whatever the verb."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.render import markdown

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")

#: 40 items in pairs, of which a run splits every other pair; the last pairs have no label, or are in one run alone.
TRUTH = {f"i{k}": k // 2 for k in range(40)}
RUN = {f"i{k}": k // 2 + 100 * (k % 4 == 3) for k in range(36)}
LINKS = [(f"i{2 * k}", f"i{2 * k + 1}", 0.5 + k / 50) for k in range(18)]
FEW = {item: cluster for item, cluster in TRUTH.items() if cluster < 6}


def results() -> dict[str, Any]:
    return {
        "evaluate": fb.evaluate(TRUTH, RUN),
        "compare": fb.compare(TRUTH, {"old": RUN, "new": dict(list(RUN.items())[:30])}),
        "of a few labels": fb.compare(FEW, {"old": RUN, "new": TRUTH}),
        "sweep": fb.sweep(TRUTH, LINKS),
        "diff": fb.diff(RUN, TRUTH, truth=FEW),
        "estimate": fb.estimate(FEW, dict(list(RUN.items())[2:])),
    }


def shown(result: Any) -> dict[str, str]:
    """Return what a result shows to people, in each place."""
    drawn = markdown.drawn(list(result._document().blocks))
    return {
        "text": str(result), "html": result._repr_html_(), "markdown": drawn, "page": result.report().html
    }  # fmt: skip


def test_all_outputs_have_all_warnings() -> None:
    for verb, result in results().items():
        codes = {each["code"] for each in result.warnings} - {"made-of-links"}  # as the first sentence says
        assert codes, verb
        written = {"json": json.dumps(json.loads(result.to_json())["warnings"])}
        for place, text in (shown(result) | written).items():
            assert {code for code in codes if code not in text} == set(), (verb, place)


#: A figure of a text, and the ends of its interval.
INTERVAL = re.compile(r"([+-]?\d+\.\d+) \(([+-]?\d+(?:\.\d+)?) to ([+-]?\d+(?:\.\d+)?)\)")


def numbers(value: Any) -> Iterator[float]:
    """Yield all numbers of a JSON document."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)
    elif isinstance(value, int | float):
        yield float(value)


def test_all_outputs_have_the_same_intervals() -> None:
    for verb, result in results().items():
        plain = {
            place: re.sub(r"<[^>]+>|\\", " ", text).replace("\u2212", "-")
            for place, text in shown(result).items()
        }
        plain = {place: " ".join(text.split()) for place, text in plain.items()}
        found = set(INTERVAL.findall(plain["text"]))
        assert found, verb
        for place, text in plain.items():
            assert {each for each in found if f"{each[1]} to {each[2]}" not in text} == set(), (verb, place)
        known = np.array([*numbers(json.loads(result.to_json()))])
        for figure in {figure for each in found for figure in each}:
            rounding = 0.5000001 * 10.0 ** -len(figure.partition(".")[2])
            assert np.abs(known - float(figure)).min() <= rounding, (verb, figure)


def test_precision_that_cannot_fall_is_no_equal_precision() -> None:
    """Twelve of forty items are labelled and none is merged: precision is 1, recall of the run (9 + 3 / 2) / 12."""
    cmp = fb.compare(FEW, {"old": RUN, "new": TRUTH})
    assert [cmp[run].precision for run in cmp] == [1, 1]
    text = " ".join(str(cmp).split())
    assert "precision 1 by construction, because items without a true label are left out; recall" in text
    assert "precision the same" not in text
    assert 'pass unmatched={"prediction": "outside"}, or use fb.estimate if they are a random sample' in text
    both = fb.compare(FEW, {"old": RUN, "new": TRUTH}, metrics="precision")
    assert str(both).startswith("new against old: no difference in any score. Precision is 1 by construction")
    merged = {item: min(cluster, 3) for item, cluster in TRUTH.items()}
    assert np.isclose(fb.compare(FEW, {"old": merged, "new": merged})["old"].precision, 8 / 12)
    assert "by construction" not in str(fb.compare(FEW, {"old": merged, "new": merged}))
    complete = fb.compare(TRUTH, {"old": RUN, "new": RUN}, unmatched="drop")
    assert "by construction" not in str(complete)
