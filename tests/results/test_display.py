"""How evaluations look: numbers that do not mislead, what the text and the HTML say."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.render.document import Grid
from fastbcubed.render.number_formats import amount, label, percent, score_text
from fastbcubed.render.text import aligned


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.0, "0"),
        (-1.0, "-1"),
        (0.5, "0.50000"),
        (0.8072038, "0.80720"),
        (0.99994, "0.99994"),
        (0.99996, "0.99996"),
        (0.999996, "0.999996"),
        (0.99999999994, "0.99999999994"),
        (1 - 2**-53, "0.99999999999999989"),
        (1.00000002, "1.00000002"),
        (-0.9999999, "-0.9999999"),
        (0.0093724709, "0.0093725"),
        (0.00001234567, "0.000012346"),
        (1.5e-12, "<0.000000001"),
        (29.1462, "29.146"),
        (1234.5, "1,234.5"),
        (98765.4321, "98,765"),
        (12345678.9, "12,345,679"),
        (12345678.0, "12,345,678"),
        (1e300, "1e+300"),
        (float("nan"), "n/a"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
    ],
)
def test_a_score_is_readable_and_only_1_reads_as_1(value: float, text: str) -> None:
    assert score_text(value) == text


@pytest.mark.parametrize("exponent", range(1, 54))
def test_no_score_near_1_is_rounded_to_it(exponent: int) -> None:
    text = score_text(1 - 2.0**-exponent)
    assert text != "1" and 0 < 1 - float(text) < 2.0 * 2.0**-exponent


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (1.0, "100 %"),
        (0.0, "0 %"),
        (0.8767, "87.7 %"),
        (0.9996, "99.96 %"),
        (0.9999997, "99.99997 %"),
        (0.0000002, "0.00002 %"),
        (float("nan"), "n/a"),
    ],
)
def test_only_everything_reads_as_100_percent(part: float, text: str) -> None:
    assert percent(part) == text


@pytest.mark.parametrize(
    ("weight", "text"),
    [(3.0, "3"), (1234567.0, "1,234,567"), (0.25, "0.25"), (1234.5678, "1,234.57"), (7654321.5, "7,654,322")],
)
def test_weights(weight: float, text: str) -> None:
    assert amount(weight) == text


def test_a_label_cannot_command_a_terminal() -> None:
    assert label("a\x1b[31mred\r\n") == "a\\x1b[31mred\\r\\n"
    assert label("日本 Zoë") == "日本 Zoë"
    assert label("\ud800") == "\\ud800"
    assert label(b"\x00\xff") == "00ff"
    assert label({"source": "x", "id": None}) == "x, (null)"


def _table(clusters: dict[object, object], **columns: list[object]) -> pa.Table:
    return pa.table({"item": list(clusters), "cluster": list(clusters.values()), **columns})


#: For evaluations in which the truth does not label all.
unlabelled = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
TRUTH = {"a": 1, "b": 1, "c": 2, "d": 2}
PREDICTION = {"a": "x", "b": "y", "c": "z", "d": "z"}


def test_text_says_what_was_compared_and_what_it_means() -> None:
    text = repr(fb.evaluate(TRUTH, PREDICTION))
    assert text.startswith("Evaluation of 4 items\n")
    sides = [line.split() for line in text.splitlines() if line.startswith(("truth", "prediction"))]
    assert sides == [["truth", "4", "2", "0", "2"], ["prediction", "4", "3", "2", "2"]]
    assert "Of 2 true clusters 1 (50.0 %) is exact, 1 split." in text
    assert "Of 3 predicted clusters 1 (33.3 %) is exact, 2 fragments." in text
    scores = {
        line.split()[0]: line.split()[1] for line in text.splitlines() if " of " in line and "  " in line
    }
    assert scores["precision"] == "1.000" and scores["recall"] == "0.750"
    assert "counts equally" not in text
    assert "Coverage" not in text and "Warning" not in text
    assert '.clusters("pred", limit=5)' in text and '.slices("true_size")' in text


def test_text_names_tables_attributes_and_coverage(tmp_path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(_table(TRUTH, country=["A", "A", "B", "B"]), tmp_path / "truth.parquet")
    pq.write_table(_table({"a": 1, "b": 1, "c": 2}), tmp_path / "pred.parquet")
    ev = fb.evaluate(tmp_path / "truth.parquet", tmp_path / "pred.parquet")
    text = repr(ev)
    assert " truth.parquet" in text and str(tmp_path) not in text and '.slices("country")' in text
    said = " ".join(text.split())
    assert "Coverage: 3 items on both sides, 75.0 % of the truth's 4 and 100 % of the prediction's 3." in said
    assert "1 item only in the truth: left out (drop)." in text


@pytest.mark.parametrize(
    ("policy", "fate"),
    [
        ("singleton", "singletons on the other side"),
        ("outside", "false positives for the items they are clustered with"),
    ],
)
def test_text_says_what_the_policies_did(policy: str, fate: str) -> None:
    ev = fb.evaluate({"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}, unmatched={"prediction": policy})
    text = " ".join(repr(ev).split())
    assert "1 item only in the prediction" in text and fate in text


def test_text_counts_nulls_noise_and_duplicates() -> None:
    truth = pa.table({"item": [1, 2, 3, 3, 4], "cluster": [None, -1, 5, 5, 5]})
    prediction = pa.table({"item": [1, 2, 3, 4], "cluster": [5, 5, 5, 5]})
    ev = fb.evaluate(truth, prediction, nulls="singleton", noise=-1, duplicates="drop")
    text = repr(ev)
    assert "1 row with a null cluster: each in a cluster of its own (singleton)." in text
    assert "1 row labelled -1 (noise): each in a cluster of its own." in text
    assert "1 row repeated an earlier one: left out" in text


@unlabelled
@pytest.mark.parametrize(
    ("options", "fate"),
    [
        ({"nulls": "drop"}, "taken as missing on that side (drop)"),
        ({"table": True, "nulls": "drop"}, "taken as missing on that side (drop)"),
    ],
)
def test_text_says_where_a_null_counts(options: dict, fate: str) -> None:
    table = pa.table({"item": [1, 2, 3], "t": [None, 1, 1], "p": [1, 1, 1]})
    if options.pop("table", False):
        ev = fb.evaluate("t", "p", table=table, **options)
    else:
        ev = fb.evaluate(table.select(["item", "t"]), table.select(["item", "p"]), **options)
    assert f"1 row with a null cluster: {fate}" in repr(ev)
    assert "raise" not in repr(ev)


@unlabelled
def test_the_table_of_sides_counts_scored_items_alone(tmp_path) -> None:
    """Of the truth's five items, two are predicted, with 98 others: the truth covers 2 % of the prediction."""
    truth = dict.fromkeys(range(5), "t")
    prediction = {item: item // 2 for item in (0, 1, *range(5, 103))}
    ev = fb.evaluate(truth, prediction)
    for shown in (ev, _saved(ev, tmp_path)):
        text = repr(shown)
        sides = [line.split() for line in text.splitlines() if line.startswith(("truth", "prediction"))]
        assert sides[0][:5] == ["truth", "2", "1", "0", "2"]
        assert sides[1][:5] == ["prediction", "2", "1", "0", "2"]
        for said in (text, shown._repr_html_()):
            assert (
                "2 items on both sides, 40.0 % of the truth's 5 and 2.0 % of the prediction's 100."
                in " ".join(unescape(said).split())
            )
        found = shown.to_dict()["coverage"]
        assert (found["truth_coverage"], found["prediction_coverage"]) == (0.4, 0.02)


@unlabelled
def test_coverage_of_weights_is_said_where_they_are_known() -> None:
    weight = {"a": 1.0, "b": 2.0, "c": 5.0}
    ev = fb.evaluate({"a": 1, "b": 1}, {"a": 1, "c": 1}, weight=weight)
    said = " ".join(repr(ev).split())
    assert "50.0 % of the truth's 2 (33.3 % of their weight)" in said
    assert "50.0 % of the prediction's 2 (16.7 % of their weight)" in said
    truth = pa.table({"item": ["a", "b"], "cluster": [1, 1], "w": [1.0, 2.0]})
    ev = fb.evaluate(truth, {"a": 1, "c": 1}, weight="w")
    assert "50.0 % of the prediction's 2." in " ".join(repr(ev).split())


def _saved(ev: fb.Evaluation, path: Path) -> fb.Evaluation:
    ev.save(path)
    return fb.load(path)


def test_text_and_html_carry_the_warnings_and_bounds() -> None:
    with pytest.warns(fb.EvaluationWarning):
        ev = fb.evaluate({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 2})
    for text in (repr(ev), ev._repr_html_()):
        assert text.count("Warning:") == 1
        assert "precision would be between 0.75000 and 1." in " ".join(text.split())


def test_text_states_weighting_beta_and_what_is_not_computed() -> None:
    weight = [1.0, 2.0, 0.5]
    text = " ".join(repr(fb.evaluate([0, 0, 1], [0, 1, 1], weight=weight, beta=2, metrics="all")).split())
    assert "inside each item's confusion matrix and in the mean" in text and "Beta is 2." in text
    assert "Not computed: " in text and "chance_bcubed_precision" in text
    text = repr(fb.evaluate([0, 0, 1], [0, 1, 1], weight=weight, weighting="outer"))
    assert "Weights count in the mean alone" in text


@pytest.mark.slow
def test_a_nearly_perfect_clustering_is_not_shown_as_perfect() -> None:
    n = 100_000
    truth = [0, *range(n - 1)]
    prediction = [0, 0, 0, *truth[3:]]
    text = repr(fb.evaluate(truth, prediction))
    precision = next(line.split()[1] for line in text.splitlines() if line.startswith("precision"))
    assert precision == "0.999987"  # (n - 3 + 3 * 5/9) / n
    assert "99.998 %" in text


def test_text_fits_a_terminal() -> None:
    ev = fb.evaluate(TRUTH, PREDICTION, metrics="all")
    assert max(map(len, repr(ev).splitlines())) <= 100
    assert max(map(len, repr(fb.evaluate(TRUTH, PREDICTION)).splitlines())) <= 80


def test_what_was_saved_without_items_has_a_text_too(tmp_path) -> None:
    fb.evaluate(TRUTH, PREDICTION).save(tmp_path, keep="cells")
    text = repr(fb.load(tmp_path))
    assert ".clusters(" in text and ".slices(" not in text


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_well_formed_and_escaped() -> None:
    def sneaky(tp, fp, fn, tn):
        return tp

    sneaky.__name__ = "<script>alert(1)</script>"
    truth = pa.table({"item": [1, 2], "cluster": [1, 2], "<b>": ["x", "y"]})
    ev = fb.evaluate(truth, {1: 1, 2: 2}, metrics=["precision", sneaky])
    ev.names["truth"] = "<img src=x>"
    parsed = _Balanced()
    parsed.feed(ev._repr_html_())
    assert not parsed.open and parsed.seen <= {
        "div",
        "p",
        "b",
        "br",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "pre",
    }
    assert "<script>alert(1)</script>" in parsed.text and "<img src=x>" in parsed.text
    assert "<script>" not in ev._repr_html_()


def test_outcomes_that_no_cluster_has_are_left_out() -> None:
    """Of one cluster the sentence has no number, no share and no list; of several, no zeros."""
    text = repr(fb.evaluate([0, 0, 0], [1, 1, 2]))
    assert "The only true cluster is split." in text
    assert "Of 2 predicted clusters 0 (0 %) are exact, 2 fragments." in text
    text = repr(fb.evaluate([0, 0, 1], [5, 5, 5]))
    assert "Of 2 true clusters 0 (0 %) are exact, 2 merged." in text
    assert "The only predicted cluster is a union." in text
    text = repr(fb.evaluate([0, 0], [5, 5]))
    assert "The only true cluster is exact." in text and "The only predicted cluster is exact." in text
    text = repr(fb.diff({"a": 1, "b": 1}, {"a": 1, "b": 2}))
    assert "The only baseline cluster is split." in text


def test_figures_are_never_cut() -> None:
    """Ten columns of 11 characters and their gaps need 133 of a line's 80: the last five are named below."""
    names = [f"column_{k:04}" for k in range(10)]
    lines = aligned(Grid(["run", *names], [["a", *["0.123456789"] * 10]])).split("\n")
    assert lines[1].split() == ["a", *["0.123456789"] * 5]
    assert lines[2] == "(no room for " + ", ".join(names[5:]) + ")"
    forms = ("text", "figure", "text")
    long = aligned(Grid(["score", "", "definition"], [["f1", "0.5", "word " * 40]], 1, forms)).split("\n")
    assert len(long) == 5 and " ".join(long[1:]).split()[2:] == ["word"] * 40
    # a text of 5,000 letters in lines of any length: 13 of 400 letters at most, two spaces and the figure
    wide = aligned(Grid(["slice", "f1"], [["v" * 5000, "0.5"], ["w", "0.5"]]), None).split("\n")
    assert (len(wide), max(map(len, wide))) == (15, 405) and "".join(wide[1:14]).count("v") == 5000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_one_thing_is_not_several() -> None:
    one = {"a": 1}
    for found in (
        fb.evaluate(one, one),
        fb.compare(one, {"old": one, "new": one}),
        fb.diff(one, one, truth=one),
        fb.estimate(one, one),
        fb.sweep(one, [("a", "a", 0.5)]),
    ):
        for text in (repr(found), unescape(found.report().html)):
            text = " ".join(text.split())
            assert not re.search(r"(?<![\d.,])1 (true |predicted )?(item|cluster|link|row|run)s\b", text)
