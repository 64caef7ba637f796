"""What is on a page: the figures of the result, nothing that asks for more, and no more than fits."""

from __future__ import annotations

import json
import re
import shlex
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documents import lines, notices, of_section, parts, table
from hostile_names import LONG, SCRIPT, hostile_case

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import ColumnError, MissingPackageError, NotKeptError, OptionError
from fastbcubed.render.document import as_data
from fastbcubed.render.html import LARGEST
from fastbcubed.render.json import halved, shortened
from fastbcubed.render.plots import drawn
from fastbcubed.results import chart_data, page, repairs, standard_errors
from fastbcubed.results.chart_data import extremes
from fastbcubed.results.evaluation_document import slicing_charts
from fastbcubed.results.page import Asked

DATA = Path(fb.__file__).parent / "data" / "patentsview"
TRUTH, OLD, NEW = (DATA / f"{name}.parquet" for name in ("truth", "pred_20200929", "pred_20211230"))


class Page(HTMLParser):
    """What a browser would find: elements with attributes, and the text of the data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self._in_data = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_data = tag == "script" and dict(attrs).get("id") == "data"

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._in_data = False

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data


def small() -> Any:
    rng = np.random.default_rng(5)
    attributes = {"part": rng.integers(0, 4, 300).astype(str), "kind": rng.integers(0, 2, 300).astype(str)}
    return fb.evaluate(
        rng.integers(0, 60, 300),
        rng.integers(0, 60, 300),
        attributes=attributes,
        slices=["part", ("part", "kind")],
    )


@pytest.fixture(scope="module")
def patents() -> Any:
    return fb.evaluate(TRUTH, NEW, slices=["country"])


@pytest.fixture(scope="module")
def embedded(patents: Any) -> Any:
    return json.loads(json.dumps(patents.report(columns=["first_name"], worst=3).content))


def chart_of(found: Any, name: str) -> dict[str, Any]:
    """Return the first chart that a function draws."""
    return next(chart for chart in parts(found, "Chart") if chart["draws"] == name)


# -- Figures ---------------------------------------------------------------------------------------


def test_scores_are_those_of_the_result(patents: Any, embedded: Any) -> None:
    scores = {row["score"]: row for row in table(of_section(embedded, "definitions"))}
    for name, row in scores.items():
        assert (row[""], row["_low"], row["_high"]) == (patents.overall[name], *patents.interval(name))
    assert "f1" in scores
    for row in chart_of(embedded, "scores")["data"][0]["scores"]:
        low, high = patents.interval(row["score"])
        assert row["value"] == patents.overall[row["score"]]
        assert (row["low"], row["high"]) == (low, high)


def test_coverage_warnings_and_manifest_are_those_of_the_result(patents: Any, embedded: Any) -> None:
    told = json.loads(patents.to_json())
    codes = [row["code"] for row in notices(embedded, "Before you rely on this")]
    assert codes == [row["code"] for row in told["warnings"]]
    facts = dict(parts(of_section(embedded, "origin"), "Facts")[0]["facts"])
    assert facts["fastbcubed"] == told["manifest"]["versions"]["fastbcubed"]
    for side, row in zip(("true", "pred"), table(of_section(embedded, "sides")), strict=True):
        own = told["summary"][side]
        assert [row[name] for name in ("items", "clusters", "singletons", "largest")] == [
            own[name] for name in ("items", "clusters", "singletons", "largest")
        ]
    assert chart_of(embedded, "outcomes")["data"][0] == told["outcomes"]


def test_slices_are_those_of_the_result(patents: Any, embedded: Any) -> None:
    slicing = chart_of(of_section(embedded, "slices"), "slices")["data"][0]
    wanted = {row["country"]: row for row in patents.slices("country", errors=True).to_pylist()}
    assert slicing["n"] == len(wanted) == len(slicing["rows"])
    for row in slicing["rows"]:
        same = wanted[row["slice"][0]]
        assert row["n_items"] == same["n_items"] and row["n_units"] == same["n_units"]
        for score in ("precision", "recall", "f1"):
            assert row[score] == pytest.approx(same[score], abs=1e-12)


def test_clusters_are_those_that_cost_most_with_their_members(patents: Any, embedded: Any) -> None:
    for side in ("pred", "true"):
        listed = patents.clusters(side, limit=3).to_pylist()
        (clusters,) = (each for each in parts(embedded, "Clusters") if each["about"].startswith(side))
        shown = clusters["rows"]
        assert [row["name"] for row in shown] == [row["cluster"] for row in listed]
        lossy = f"{patents.concentration[side]['n_lossy']} of "
        assert any(line.startswith(lossy) for line in lines(of_section(embedded, "clusters")))
        opened = patents.cluster(side, shown[0]["name"], columns="first_name", members=10)
        groups = [group for group in parts(shown[0], "Group") if group["name"] is not None]
        assert [group["n"] for group in groups] == [part["n_items"] for part in opened["parts"]]
        members = [[values[0] for values, _ in group["rows"]] for group in groups]
        assert members == [[member["item"] for member in part["members"]] for part in opened["parts"]]


def test_lorenz_curves_and_repairs_are_those_of_the_result(patents: Any, embedded: Any) -> None:
    for side in ("true", "pred"):
        curve = chart_of(embedded, "lorenz")["data"][0][side]
        assert curve["n_half"] == patents.concentration[side]["n_half"]
        assert curve["curve"] == patents.lorenz(side, limit=120).to_pylist()
    assert chart_of(embedded, "repairs")["data"][0] == patents.repairs(limit=3).to_pylist()


def test_sizes_add_up_to_all_clusters_and_items(patents: Any, embedded: Any) -> None:
    for side, own in patents.summary.items():
        rows = [row for row in chart_of(embedded, "sizes")["data"][0] if row["side"] == side]
        assert sum(row["n_clusters"] for row in rows) == own["clusters"]
        assert sum(row["n_items"] for row in rows) == own["items"]
        assert sum(row["share_items"] for row in rows) == pytest.approx(1)
        assert next(row["n_clusters"] for row in rows if row["size"] == "1") == own["singletons"]


@pytest.mark.parametrize("weighting", [None, "pointwise", "outer"])
def test_extremes_are_the_scores_of_trivial_predictions(weighting: str | None) -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 9, 60)
    how = {} if weighting is None else {"weight": rng.random(60) + 0.1, "weighting": weighting}
    found = extremes(fb.evaluate(truth, rng.integers(0, 9, 60), **how))
    for name, prediction in (("alone", np.arange(60)), ("one", np.zeros(60, np.int64))):
        trivial = fb.evaluate(truth, prediction, **how)
        for score in ("precision", "recall", "f1"):
            assert found[name][score] == pytest.approx(trivial.overall[score], abs=1e-12)


def test_sizes_of_cells_give_the_slices_of_items(monkeypatch: pytest.MonkeyPatch) -> None:
    ev = small()
    with_errors = chart_data.by_size(ev)
    monkeypatch.setattr(standard_errors, "ALWAYS", 0)
    for key, slicing in chart_data.by_size(ev).items():
        (score,) = slicing["scores"]
        pairs = zip(slicing["rows"], with_errors[key]["rows"], strict=True)
        for row, same in pairs:
            assert (row["slice"], row["n_items"]) == (same["slice"], same["n_items"])
            assert row[score] == pytest.approx(same[score], abs=1e-12)


@pytest.mark.parametrize("keep", ["scores", "cells", "items"])
def test_a_saved_result_has_a_page(tmp_path: Path, keep: str) -> None:
    ev = small()
    ev.save(tmp_path / "result", keep=keep)
    content = as_data(fb.load(tmp_path / "result")._document(Asked(worst=2)))
    scores = {row["score"]: row[""] for row in table(of_section(content, "definitions"))}
    assert scores == {name: ev.overall[name] for name in scores}
    assert bool(parts(content, "Clusters")) == (keep != "scores")
    if keep == "cells":
        assert not parts(content, "Members")
        with pytest.raises(NotKeptError, match='keep="items"'):
            fb.load(tmp_path / "result").report(columns="part")


@pytest.mark.slow
def test_both_engines_give_the_same_figures(tmp_path: Path) -> None:
    found = [
        as_data(fb.evaluate(TRUTH, NEW, engine=engine, keep="items", **how)._document(Asked(worst=2)))
        for engine, how in (("memory", {}), ("disk", {"memory_limit": "512MiB", "out": tmp_path / "out"}))
    ]
    scores = [table(of_section(content, "definitions")) for content in found]
    for row, same in zip(*scores, strict=True):
        assert row["score"] == same["score"] and row[""] == pytest.approx(same[""], abs=1e-12)
    ids = [[row["id"] for row in parts(content, "Opened")] for content in found]
    assert ids[0] == ids[1]


@pytest.mark.slow
def test_a_comparison_and_a_diff_have_pages() -> None:
    cmp = fb.compare(TRUTH, {"old": OLD, "new": NEW}, slices=["cpc_section"])
    content = cmp.report(worst=2, columns="city").content
    deltas = {row["score"]: row for row in cmp.deltas().to_pylist()}
    for row in chart_of(content, "deltas")["data"][0]:
        assert row["delta"] == deltas[row["score"]]["delta"] and row["holds"] == deltas[row["score"]]["holds"]
    flow = table(of_section(content, "clusters"))
    assert sum(row["true clusters"] for row in flow) == cmp.clusters().num_rows
    assert table(of_section(content, "slices"))
    diff = fb.diff(OLD, NEW, truth=TRUTH)
    content = diff.report(worst=2, by="baseline_size").content
    assert chart_of(content, "changes")["data"][0] == diff.changes().to_pylist()
    assert parts(content, "Group")[0]["title"] == "Experiment cluster"


# -- One file that asks for nothing ---------------------------------------------------------------


@pytest.mark.slow
def test_same_result_same_bytes() -> None:
    first, again = small(), small()
    assert first.report().html == first.report().html == again.report().html


@pytest.fixture(scope="module")
def hostile() -> str:
    case = hostile_case()
    ev = fb.evaluate(case.pop("truth"), case.pop("prediction"), **case)
    html: str = ev.report(title=SCRIPT, columns=[SCRIPT, LONG], by={SCRIPT: [SCRIPT]}).html
    return html


def test_nothing_of_a_name_is_markup(hostile: str) -> None:
    found = Page(hostile)
    scripts = [attributes for tag, attributes in found.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert not [
        a for _, attributes in found.elements for a in attributes if a.startswith("on") or a == "style"
    ]
    assert "document.title" not in hostile.rpartition("<script>")[2]
    data = hostile.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(data) and not set("<>&") & set(data)  # "</script " would end the element, too
    assert "\u202e" not in hostile.replace("\\u202e", "").partition('id="data"')[0]
    assert LONG[:300] not in hostile


#: Characters that a terminal obeys, that turn others around, or that end lines.
HIDDEN = "\x1b\x9b\x85\x7f\u202e\u2066\u200f\u2028"


def test_hidden_characters_are_shown_as_what_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In labels, attributes, their names, titles, names of runs and files: nothing of them is raw."""
    names = [f"{k}{c}" for k, c in enumerate(HIDDEN)]
    by = "by" + HIDDEN.replace("\x85", "")
    truth = pa.table({"item": names, "cluster": [names[k // 2] for k in range(8)], by: names})
    pred = pa.table({"item": names, "cluster": [names[k // 3] for k in range(8)]})
    ev = fb.evaluate(truth, pred, slices=[by, (by, "true_size")])
    cmp = fb.compare(truth, {"a": truth.drop_columns(by), HIDDEN: pred}, slices=[by])
    diff = fb.diff(truth.drop_columns(by), pred, truth=truth)
    pages = [ev.report(title=HIDDEN, columns=[by]), cmp.report(title=HIDDEN), diff.report(title=HIDDEN)]
    for report in pages:
        assert not set(HIDDEN) & set(report.html)
        assert "\\x1b\\x9b\\x85\\x7f\\u202e" in report.html
        assert json.loads(Page(report.html).data) == report.content
    path = tmp_path / f"{HIDDEN}.parquet"
    pq.write_table(truth, path)
    page, job = tmp_path / "page.html", tmp_path / "job.md"
    assert (
        main(["evaluate", str(path), str(path), "--report", str(page), "--summary", str(job), "--json"]) == 0
    )
    for file in (page, job):
        assert not set(HIDDEN) & set(file.read_text(encoding="utf-8"))


def test_names_are_isolated_and_cut(hostile: str) -> None:
    assert "<bdi>" + LONG[:200] + "… (10,040 more characters)</bdi>" in hostile
    data = json.loads(Page(hostile).data)
    assert data["title"] == SCRIPT


def test_nothing_is_asked_for(hostile: str) -> None:
    for tag, attributes in Page(hostile).elements:
        for name in ("src", "href", "data", "action", "poster", "srcset", "xlink:href"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:,")), (tag, target)
    style = re.search(r"<style>(.*?)</style>", hostile, re.S)
    assert style and "url(" not in style[1] and "@import" not in style[1]
    (policy,) = [
        a["content"] for _, a in Page(hostile).elements if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy and policy.startswith("default-src 'none'; ") and "unsafe" not in policy


def test_ids_are_unique(hostile: str) -> None:
    ids = [a["id"] for _, a in Page(hostile).elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = {a["href"][1:] for _, a in Page(hostile).elements if (a.get("href") or "").startswith("#")}
    assert links <= set(ids)


@pytest.mark.slow
def test_a_page_stays_small_whatever_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 400
    names = [f"{k}{'<&>' * 60}" for k in range(n)]
    rng = np.random.default_rng(0)
    labels = [dict(zip(names, rng.integers(0, 90, n).tolist(), strict=True)) for _ in range(2)]
    ev = fb.evaluate(*labels, attributes={"item": names, **{f"c{k}": names for k in range(6)}})
    report = ev.report(worst=90, members=50, columns=[f"c{k}" for k in range(6)])
    assert len(report.html.encode()) < LARGEST < 2_000_000
    assert report.content["halved"] > 0 and "was shortened to" in report.html
    assert f"of {ev.summary['pred']['clusters']} clusters" in " ".join(lines(report.content))


def test_attributes_appear_only_if_named() -> None:
    ev = fb.evaluate([0, 0, 1], [0, 1, 1], attributes={"secret": ["hush-a", "hush-b", "hush-c"]})
    assert "hush" not in ev.report().html
    assert "hush-a" in ev.report(columns="secret").html


def test_a_diff_needs_no_truth(tmp_path: Path) -> None:
    pq.write_table(pa.table({"item": [1, 2, 3], "cluster": [1, 1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"item": [1, 2, 3], "cluster": [1, 2, 2]}), tmp_path / "b.parquet")
    report = fb.diff(tmp_path / "a.parquet", tmp_path / "b.parquet").report(worst=2)
    assert "From a to b" in report.html
    assert sum(row["share"] for row in parts(report.content, "Opened")[:2]) <= 1
    plain = fb.diff([0, 0, 1], [0, 0, 1]).report()
    assert not parts(plain.content, "Code") and not parts(plain.content, "Clusters")


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "given",
    [
        {"truth": [0], "prediction": [1]},
        {"truth": [0, 0, 0], "prediction": [1, 1, 1]},
        {"truth": {"a": 1, "b": None}, "prediction": {"a": 1, "b": 2}, "nulls": "singleton"},
        {"truth": {"a": {1, 2}, "b": {1}}, "prediction": {"a": {3}, "b": {3, 4}}, "overlapping": True},
        {"truth": [0, 0, 1], "prediction": [0, 1, 1], "metrics": ["adjusted_rand"]},
        {"truth": {"a": 1, "b": 1}, "prediction": {"a": 1, "c": 2},
         "unmatched": {"truth": "singleton", "prediction": "outside"}},
    ],
    ids=["one item", "one cluster", "null", "overlapping", "no score of items", "outside"],
)  # fmt: skip
def test_odd_results_have_pages(given: dict[str, Any]) -> None:
    ev = fb.evaluate(given.pop("truth"), given.pop("prediction"), **given)
    data = json.loads(Page(ev.report().html).data)
    for row in table(of_section(data, "definitions")):
        assert row[""] == (
            None if ev.overall[row["score"]] != ev.overall[row["score"]] else ev.overall[row["score"]]
        )


def test_labels_have_room_in_a_wide_font() -> None:
    """Where Arial is not installed: DejaVu Sans is wider, and labels were laid out for Arial."""
    # advance widths of DejaVu Sans, in parts of 2048 of an em
    widths = {
        "d": 1300,
        "i": 569,
        "s": 1067,
        "c": 1126,
        "a": 1255,
        "r": 842,
        "e": 1260,
        "t": 803,
        "n": 1298,
        "_": 1024,
    }
    name = "discarded_distance"
    ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1], attributes={"by": [name, "x", "x", name]}, slices="by")
    svg = ElementTree.fromstring(drawn(slicing_charts(chart_data.slicing_of(ev, "by"), "chart")[0]))
    labels = []

    def visit(element: Any, x: float) -> None:
        moved = re.search(r"translate\(([-\d.]+)", element.get("transform") or "")
        x += float(moved[1]) if moved else 0.0
        if element.text == name:
            labels.append((x, element))
        for each in element:
            visit(each, x)

    visit(svg, 0.0)
    ((x, label),) = labels
    assert label.get("text-anchor") == "end" and label.get("font-size") == "11px"
    assert x >= 11 * sum(widths[letter] for letter in name) / 2048


# -- How it is asked for ---------------------------------------------------------------------------


def test_a_page_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As out= and save() write: it was looked for in a directory called "~"."""
    monkeypatch.setenv("HOME", str(tmp_path))
    small().report("~/page.html")
    assert (tmp_path / "page.html").exists()


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("mine")
    with pytest.raises(OptionError, match="overwrite=True"):
        small().report(file)
    assert file.read_text() == "mine"
    report = small().report(file, overwrite=True)
    assert repr(report).endswith(f"kB of HTML; in {file}") and "give report() a path" in repr(
        small().report()
    )
    assert file.read_text(encoding="utf-8") == report.html
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("asked", "error"),
    [({"worst": -1}, OptionError), ({"members": 5000}, OptionError), ({"title": 3}, OptionError),
     ({"columns": "nonsense"}, ColumnError), ({"by": "nonsense"}, ColumnError), ({"path": 3}, OptionError)],
)  # fmt: skip
def test_wrong_arguments_are_refused(asked: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        small().report(**asked)


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("fastbcubed.results.page.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"Jinja2.*\[report\]"):
        small().report()
    with pytest.raises(MissingPackageError, match=r"\.\[report\]"):
        fb.charts.sizes(small())


def test_shown_in_a_notebook() -> None:
    shown = small().report()._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "allow-same-origin" not in shown
    inner: list[str] = []

    class Frame(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            inner.append(dict(attrs)["srcdoc"] or "")

    Frame().feed(shown)
    assert inner[0].rstrip().endswith("</html>"), "the quotes of the page do not end the attribute"


def test_halving_keeps_the_numbers_of_what_there_is() -> None:
    content = {"n": 8, "groups": [{"rows": list(range(5))} for _ in range(4)]}
    assert halved(content) == {"n": 8, "groups": [{"rows": [0, 1]}, {"rows": [0, 1]}]}


def test_texts_are_cut_and_odd_values_are_texts() -> None:
    assert shortened({"a": b"\x01", "b": float("nan"), "c": ("x" * 300,)}) == {
        "a": "01", "b": None, "c": ["x" * 200 + "… (100 more characters)"],
    }  # fmt: skip


def test_gates_are_on_the_page() -> None:
    from fastbcubed.results.gates import as_bounds, try_bound

    ev = small()
    gates = [try_bound(bound, ev) for bound in as_bounds(["f1>=0.99", "recall>=0"], {})]
    content = as_data(ev._document(Asked()).with_gates(page.gate_notices(gates)))
    assert [row["level"] for row in notices(content, "Gates")] == ["failed", "passed"]


@pytest.mark.slow
def test_charts_are_saved(tmp_path: Path) -> None:
    ev = small()
    cmp = fb.compare(TRUTH, {"old": OLD, "new": NEW})
    sweep = fb.sweep({"a": 1, "b": 1, "c": 2}, [("a", "b", 0.9), ("b", "c", 0.4)])
    charts = [fb.charts.slices(ev, "part"), fb.charts.slices(ev, "part", score="recall"), fb.charts.sizes(ev),
              fb.charts.slices(ev, ("part", "kind")), fb.charts.lorenz(ev), fb.charts.deltas(cmp),
              fb.charts.thresholds(sweep)]  # fmt: skip
    for k, chart in enumerate(charts):
        chart.save(tmp_path / f"{k}.svg")
        assert (tmp_path / f"{k}.svg").read_text().startswith("<svg")
    charts[2].save(tmp_path / "sizes.png")
    assert (tmp_path / "sizes.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(OptionError, match="not Comparison"):
        fb.charts.sizes(cmp)  # type: ignore[arg-type]


def test_charts_have_the_figures_of_the_result() -> None:
    ev = small()
    (rows,) = fb.charts.sizes(ev).to_dict()["datasets"].values()
    found = sum(row["share"] for row in rows if row["side"] == "truth")
    assert found == pytest.approx(1)


# -- On the command line ---------------------------------------------------------------------------


@pytest.mark.slow
def test_pages_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page_of_gates, result = tmp_path / "page.html", tmp_path / "result"
    gate, kept = ("--fail-under", "f1=0.99"), ("--out", result, "--keep", "items")
    flags = ["--report", page_of_gates, "--report-columns", "city", *gate, *kept]
    assert main([str(each) for each in ("evaluate", TRUTH, NEW, *flags)]) == 1, capsys.readouterr().err
    capsys.readouterr()
    data = json.loads(Page(page_of_gates.read_text(encoding="utf-8")).data)
    assert [row["level"] for row in notices(data, "Gates")] == ["failed"]
    assert parts(data, "Members")[0]["header"] == ["item", "city"]
    again = tmp_path / "again.html"
    flags = ["--out", again, "--worst", 2, "--by", "year:10", "--title", "Again"]
    assert main([str(each) for each in ("report", result, *flags)]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out == ""
    content = json.loads(Page(again.read_text(encoding="utf-8")).data)
    assert (
        content["title"] == "Again"
        and parts(of_section(content, "slices"), "Heading")[0]["title"] == "By year:10"
    )
    assert of_section(content, "definitions") == of_section(data, "definitions")


@pytest.mark.slow
def test_a_page_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "nonsense.parquet", "nonsense.parquet", "--report", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err
    for command in (
        ("evaluate", "nonsense.parquet", "nonsense.parquet", "--report"),
        ("report", "nonsense", "--out"),
    ):
        assert main([*command, str(tmp_path / "page.pdf")]) == 2
        assert "ends in .html, not in .pdf" in capsys.readouterr().err
    with pytest.raises(OptionError, match=r"page\.html"):
        small().report(tmp_path / "page.docx")
    assert small().report(tmp_path / "page.HTM").content["title"]


@pytest.mark.slow
def test_pages_of_runs_have_gates_charts_of_slices_and_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(DATA)  # where the files are that the command names
    runs = [str(tmp_path / f"{name}.html") for name in ("compare", "diff")]
    how = ["--slice", "country", "--report"]
    old, new, truth = map(str, (OLD, NEW, TRUTH))
    commands = [
        ["compare", truth, f"old={old}", f"new={new}", *how, runs[0], "--fail-worse", "f1=0.01"],
        ["diff", old, new, "--truth", truth, *how, runs[1], "--fail-over", "split_rate=0.001"],
    ]
    codes = [main([*command, "--no-progress"]) for command in commands]
    pages = [Page(Path(run).read_text(encoding="utf-8")) for run in runs]
    contents = [json.loads(page.data) for page in pages]
    assert codes == [0, 1]
    assert [[gate["level"] for gate in notices(content, "Gates")] for content in contents] == [
        ["passed"],
        ["failed"],
    ]
    for each in pages:
        labels = [attrs.get("aria-label") or "" for tag, attrs in each.elements if tag == "svg"]
        assert any("by country" in label for label in labels)
    told = parts(contents[0], "Code")[0]["text"]
    assert told.startswith(f"fastbcubed compare {TRUTH.name} old={OLD.name} new={NEW.name}")
    assert main([*shlex.split(told)[1:], "--json", "--no-progress"]) == 0
    told = parts(contents[1], "Code")[0]["text"]
    assert told.startswith(f"fastbcubed diff {OLD.name} {NEW.name}") and told.endswith(
        f"--truth {TRUTH.name}"
    )
    assert main([*shlex.split(told)[1:], "--json", "--no-progress"]) == 0


@pytest.mark.slow
def test_a_column_has_one_number_of_decimals_and_losses_are_shares() -> None:
    """They were written one by one: 0.00044544 below 0.023, 1 below 0.97, and 1.2e-05."""
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 900, 3000)
    new, old = (
        np.where(rng.random(3000) < share, rng.integers(0, 900, 3000), truth) for share in (0.01, 0.05)
    )
    by = {"attributes": {"part": np.repeat(list("aabc"), 750)}, "slices": "part"}
    pages = [
        fb.evaluate(truth, new, **by).report(),
        fb.compare(truth, {"old": old, "new": new}, **by).report(),
    ]
    n_columns = 0
    for report in pages:
        html = re.sub(
            r'<section id="definitions".*?</section>', "", report.html, flags=re.S
        )  # of scores of all kinds
        for found in re.findall(r'<table class="sortable">(.*?)</table>', html, re.S):
            heads = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", found.partition("<tbody>")[0])
            body = re.findall(r"<tr.*?</tr>", found.partition("<tbody>")[2], re.S)
            rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S) for row in body]
            for head, column in zip(heads, zip(*rows, strict=True), strict=True):
                figures = [text for text in column if re.fullmatch(r"[<>+−-]*[\d,]+\.\d+( %)?", text)]
                assert len({len(text.partition(".")[2]) for text in figures}) <= 1, (head, column)
                assert not any(re.fullmatch(r"[\d.]+e-?\d+", text) for text in column), (head, column)
                assert all(text.endswith(" %") for text in column if head.endswith(" lost")), (head, column)
                n_columns += bool(figures)
    assert n_columns > 20


# -- Where files are -------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return files in folders of a home; the working directory is elsewhere."""
    rows = {"item": list("abcdef"), "cluster": [1, 1, 2, 2, 3, 3], "kind": list("xxyyxy")}
    tables = {
        "truth": rows, "old/run": {**rows, "cluster": [1, 2, 3, 3, 4, 4]},
        "new/run": {**rows, "cluster": [1.0, 1.0, 2.0, 3.0, 4.0, 4.0]},
        "weights": {"item": rows["item"], "weight": [1.0, 2.0, 1.0, 1.0, 1.0, 1.0]},
        "more": {"item": rows["item"], "more": list("uuvvww")},
        "both": {"true id": [1, 1, 2], "pred id": [1, 2, 2]},
        "odd": {"id": rows["item"], "cluster": [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]},
        "links": {"left": ["a", "c", "e"], "right": ["b", "d", "f"], "score": [0.9, 0.8, 0.7]},
    }  # fmt: skip
    for name, columns in tables.items():
        file = tmp_path / "whereabouts home" / f"{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), file)
    (tmp_path / "whereabouts work").mkdir()
    monkeypatch.chdir(tmp_path / "whereabouts work")
    monkeypatch.setenv("HOME", str(tmp_path / "whereabouts home"))
    return {name: str(tmp_path / "whereabouts home" / f"{name}.parquet") for name in tables}


@pytest.mark.slow
def test_no_output_says_where_files_are(
    places: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pages, Markdown, JSON, text and saved results, of files given by absolute paths, from a home, or relative."""
    truth, old, new, links = (places[name] for name in ("truth", "old/run", "new/run", "links"))
    page, out = ["--report", "page.html"], ["--out", "result", "--keep", "items"]
    commands = [
        ["evaluate", truth, new, *page, *out, "--summary", "job.md", "--slice", "kind", "--weight", places["weights"],
         "--attributes", places["more"]],
        ["evaluate", "~/truth.parquet", "../whereabouts home/old/run.parquet", *page, "--json"],
        ["evaluate", places["odd"], old, "--engine", "disk", "--json", "--out", "on_disk", "--keep", "items"],
        ["evaluate", "true id", "pred id", "--table", places["both"], *page, "--summary", "job.md", "--json"],
        ["evaluate", truth, links, "--links", "prediction", *page, "--json"],
        ["evaluate", truth, new, "--weight", places["weights"], "--baseline", str(Path("result").absolute()),
         "--fail-worse", "f1=0.1", "--summary", "job.md"],
        ["compare", truth, f"old={old}", f"new={new}", *page, "--json"],
        ["compare", truth, f"old={old}", f"new={new}"],
        ["diff", old, new, "--truth", truth, *page, "--out", "diff"],
        ["diff", "true id", "pred id", "--table", places["both"], *page, "--json"],
        ["sweep", places["odd"], links, "--json", "--out", "sweep"],
        ["estimate", places["odd"], new, "--json"],
        ["estimate", truth, new],
        ["sample-pairs", old, new, "--out", "pairs.csv"],
        ["report", "result", "--out", "again.html"],
    ]  # fmt: skip
    for number, command in enumerate(commands):
        assert main(command) == 0, command
        assert "whereabouts" not in capsys.readouterr().out, command
        for file in Path.cwd().rglob("*"):
            assert file.is_dir() or b"whereabouts" not in file.read_bytes(), (command, file)
        if "page.html" in command:
            Path("page.html").rename(f"{number}.html")
    assert "<title>pred id against true id</title>" in Path("3.html").read_text(encoding="utf-8")
    content = json.loads(Page(Path("6.html").read_text(encoding="utf-8")).data)
    assert [name for _, name in parts(content["head"], "Facts")[0]["facts"][:2]] == [
        "old/run.parquet",
        "new/run.parquet",
    ]


def test_paths_are_shown_on_request(places: dict[str, str], tmp_path: Path) -> None:
    ev = fb.evaluate(places["truth"], places["old/run"], paths=True)
    assert ev.names == {"truth": places["truth"], "prediction": places["old/run"]}
    assert parts(ev.report().content, "Code")[0]["text"] == shlex.join(
        ["fastbcubed", "evaluate", places["truth"], places["old/run"], "--paths"]
    )
    diff = fb.diff(places["old/run"], places["new/run"], truth=places["truth"], paths=True)
    assert list(diff.names.values()) == [places["old/run"], places["new/run"], places["truth"]]


def test_labels_of_items_are_no_paths() -> None:
    """They are as many as the items, and to compare each with all others would take minutes."""
    attributes = {"item": [0, 1], "old/label": ["x", "y"]}
    sides = {0: "old/label", 1: "b"}, {0: "a", 1: "a"}
    ev = fb.evaluate(*sides, attributes=attributes, slices="old/label")
    assert ev.manifest["arguments"]["slices"] == "old/label"


def test_a_saved_result_is_sliced_though_it_has_no_paths(places: dict[str, str], tmp_path: Path) -> None:
    """By columns of either side, and by attributes: they are in its own files."""
    fb.evaluate(places["truth"], places["new/run"], attributes=places["more"], out="result", keep="items")
    for file in Path(places["truth"]).parent.rglob("*.parquet"):
        file.unlink()
    loaded = fb.load("result")
    assert loaded.names == {"truth": "truth.parquet", "prediction": "run.parquet"}
    assert loaded.slices("truth.kind")["n_items"].to_pylist() == [3, 3]
    assert loaded.slices("more")["n_items"].to_pylist() == [2, 2, 2]
    assert parts(loaded.report(columns="more").content, "Members")


def test_a_page_within_the_memory_limit_has_no_repairs_where_these_have_no_room(
    tmp_path, monkeypatch
) -> None:
    """2 true clusters, 3 predicted, 4 cells: 5 * 12 + 4 * 4 = 76 MiB; half the limit and 32 may be."""
    for name, each in {"CLUSTER_BYTES": 12 << 20, "CELL_BYTES": 4 << 20, "BESIDE": 32 << 20}.items():
        monkeypatch.setattr(repairs, name, each)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"t": [0, 0, 1, 1], "p": [0, 1, 1, 2]}), path)
    for limit, has in (("64MiB", False), ("89MiB", True)):
        ev = fb.evaluate("t", "p", table=path, engine="disk", memory_limit=limit)
        assert bool(of_section(ev.report().content, "repairs")["blocks"]) is has
        if has:
            assert ev.repairs().num_rows
        else:
            with pytest.raises(
                OptionError, match=r"repairs would take .* at least 89 MiB suffices, or save the result"
            ):
                ev.repairs()
