"""The demo: two releases of inventors named on US patents, evaluated step by step and explained."""

from __future__ import annotations

import argparse
import textwrap
import warnings
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.output import Terminal
from fastbcubed.render.document import Grid
from fastbcubed.render.number_formats import count, fixed, label, percent, with_interval

if TYPE_CHECKING:
    from fastbcubed.results.evaluation import Evaluation


RELEASES = {"2020": "pred_20200929.parquet", "2021": "pred_20211230.parquet"}
SCORES = ("precision", "recall", "f1")
#: Descriptions of the four sets that the other items form, relative to one item.
SETS = {
    "tp": "correctly with it",
    "fp": "with it, but not in its true cluster",
    "fn": "in its true cluster, but elsewhere",
    "tn": "correctly separate",
}

INTRODUCTION = """\
PatentsView: inventors named on US patents, 1976 to 2022
  Items are mentions of inventors on patents, clusters are persons. The release
  of June 2022 is taken as the truth: how good are those of September 2020 and
  of December 2021, and where are they bad?
"""
OVERALL = """\
  Precision: what share of the mentions clustered with a mention belong with
  it. Recall: what share of the mentions that belong with it were put together
  with it. Both are means over mentions (BCubed). Where precision is low,
  persons are merged; where recall is low, they are split.
"""
COUNTRIES = """\
  Compare the shares of loss with the share of items. China (CN) has 8 % of the
  mentions, but 22 % of the precision loss: namesakes were merged.
"""
DECADES = """\
  Old patents have low recall, recent ones low precision. The decade comes from
  a separate table (--attributes). Slices can be crossed, too.
"""
MERGED = """\
  The first merges "parts" of 18 persons; all of its mentions read Yong Li.
"""
SPLIT = """\
  Was one Yasuo Suzuki with all these firms? The truth is a system's output,
  too, and seems to have merged namesakes here.
"""
MORE = """\
On your own data
  fastbcubed evaluate truth.parquet prediction.parquet --slice country
  fastbcubed evaluate --help     weights, items that one side lacks, gates
  fastbcubed metrics             what each score means
In Python
  ev = fb.evaluate("truth.parquet", "prediction.parquet", slices=["country"])
  ev.f1, ev.slices("country"), ev.clusters("pred", limit=20), ev.save("results")
Data: PatentsView (patentsview.org), CC BY 4.0; rows and columns were selected."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add no flags; the demo has none."""


def run(options: argparse.Namespace) -> int:
    """Show the demo."""
    from fastbcubed.runtime.progress_bar import announcing_compilation

    with announcing_compilation():
        show(Terminal(80))
    return 0


def show(terminal: Terminal) -> None:
    """Run the demo."""
    terminal.line(INTRODUCTION.rstrip())
    terminal.flush()  # the following imports take time
    with ExitStack() as stack:
        folder = files("fastbcubed") / "data" / "patentsview"
        names = ("truth.parquet", *RELEASES.values())
        paths = {name: stack.enter_context(as_file(folder / name)) for name in names}
        _show(terminal, paths)


def _show(terminal: Terminal, paths: dict[str, Path]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    import fastbcubed as fb
    from fastbcubed.inputs.files import read_table
    from fastbcubed.results.evaluation_document import cluster_grid, slicing_blocks
    from fastbcubed.results.page import Asked

    truth = read_table(paths["truth.parquet"])
    decade = pc.multiply(pc.divide(truth["year"], 10), 10)
    decades = pa.table({"item": truth["item"], "decade": decade})
    evaluations = {}
    for release, name in RELEASES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fb.EvaluationWarning)
            evaluations[release] = fb.evaluate(
                truth, paths[name], attributes=decades, slices=["country", "decade"]
            )
    mentions, costliest = _Mentions(truth), Asked(page=False, whole=6, slices=4)
    old = evaluations["2020"]
    terminal.title("1. Overall: fastbcubed evaluate truth.parquet pred_20200929.parquet")
    terminal.grid(_overall(evaluations))
    terminal.line(OVERALL.rstrip())
    terminal.title("2. For whom is it bad? --slice country --slice decade, release 2020")
    terminal.show(slicing_blocks(old, "country", "country", costliest))
    terminal.line(f"{COUNTRIES}")
    terminal.show(slicing_blocks(old, "decade", "decade", costliest))
    terminal.line(DECADES.rstrip())
    terminal.title("3. What was merged? The predicted clusters that cost most precision")
    merged = old.clusters("pred", limit=3)
    terminal.grid(cluster_grid(old, "pred", merged.to_pylist()))
    terminal.line(MERGED.rstrip())
    terminal.title("4. What was split? The true clusters that cost most recall")
    split = old.clusters("true", limit=3)
    terminal.grid(cluster_grid(old, "true", split.to_pylist()))
    terminal.line("  Some mentions of the first:")
    terminal.grid(mentions.grid(_members(old, "true", split["cluster"][0].as_py())))
    terminal.line(SPLIT.rstrip())
    _show_item(old, terminal, mentions, _members(old, "pred", merged["cluster"][0].as_py())[0])
    terminal.title(MORE)


def _overall(evaluations: dict[str, Evaluation]) -> Grid:
    rows = [
        ["mentions scored", *(count(ev.contingency.n_items) for ev in evaluations.values())],
        ["share of the truth", *(percent(ev.coverage.truth_coverage) for ev in evaluations.values())],
        ["predicted persons", *(count(ev.summary["pred"]["clusters"]) for ev in evaluations.values())],
        ["exactly recovered", *(count(ev.summary["true"]["exact"]) for ev in evaluations.values())],
    ]
    for name in SCORES:
        ends = (ev.standard_errors.intervals_at_hand()[name] for ev in evaluations.values())
        values = (ev.overall[name] for ev in evaluations.values())
        rows.append([name, *(with_interval(value, *own) for value, own in zip(values, ends, strict=True))])
    return Grid(["", *(f"release {release}" for release in evaluations)], rows)


def _show_item(ev: Evaluation, terminal: Terminal, mentions: _Mentions, item: Any) -> None:
    found = ev.item(item, members=1)
    terminal.title(f'5. One mention: ev.item("{label(item)}")')
    terminal.line(f"  {mentions.text(item)}")
    shown = ", ".join(f"{name} {fixed(found[name], 3)}" for name in ("precision", "recall"))
    terminal.line(f"  true {label(found['true_cluster'])}, predicted {label(found['pred_cluster'])}: {shown}")
    for name, meaning in SETS.items():
        members = found["members"][name]
        first = "".join(f": {mentions.text(each)}" for each in members["first"] if each != item)
        text = f"  {name}  {count(members['n_items'])} {meaning}{first}"
        terminal.line(textwrap.shorten(text.strip(), 76, placeholder=" …").join(("  ", "")))


def _members(ev: Evaluation, side: str, cluster: Any) -> list[Any]:
    import pyarrow.compute as pc

    items = ev.items()
    same = items.filter(pc.equal(items[f"{side}_cluster"], cluster))
    found: list[Any] = same["item"].slice(0, 3).to_pylist()
    return found


class _Mentions:
    """The attributes of mentions in the truth table, by item id."""

    COLUMNS = ("first_name", "last_name", "city", "country", "year", "assignee")

    def __init__(self, truth: Any) -> None:
        columns = [truth[name].to_pylist() for name in self.COLUMNS]
        self._by_item = dict(zip(truth["item"].to_pylist(), zip(*columns, strict=True), strict=True))

    def text(self, item: Any) -> str:
        """Return a mention as one line of text."""
        first, last, city, country, year, assignee = self._by_item[item]
        firm = textwrap.shorten(assignee or "", 32, placeholder=" …")
        parts = [f"{first} {last}", city, country, str(year), firm]
        return f"{item:<13}{', '.join(label(part) for part in parts if part)}"

    def grid(self, items: list[Any]) -> Grid:
        """Return mentions as a table."""
        rows = []
        for item in items:
            first, last, *rest = self._by_item[item]
            known = ["" if value is None else label(value) for value in rest]
            rows.append([label(item), label(f"{first} {last}"), *known])
        return Grid(["mention", "name", "city", "country", "year", "assignee"], rows, 6)
