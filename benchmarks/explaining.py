"""The false and true discoveries of `explain`, and its speed.

    python -m benchmarks.explaining nulls FOLDER [runs]     # nothing planted: false discoveries
    python -m benchmarks.explaining power FOLDER [runs]     # planted slices: share found, by size of the effect
    python -m benchmarks.explaining speed [rows] [columns]  # against a group-by of every pair of columns

FOLDER has data sets as folders with truth.parquet and predictions; the patents' inventors are available without it.
Attributes are drawn by true cluster, so all items of an entity have the same values. All runs are in this process.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import fastbcubed as fb
from fastbcubed.results.explain_items import (
    Options,
    Question,
    RowScore,
    columns_of,
    explain_rows,
    explained,
)

#: The data sets, and the prediction of each.
NULLS = {
    "patentsview": "pred_20211230",
    "historical_people": "pred_splink_p95",
    "inspire_wang": "pred_name_affiliation",
}
#: Shares of the components of a planted slice that lose half of their recall or more, and data sets to plant them in.
EFFECTS, PLANTED = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5), ("patentsview", "historical_people")
#: One of so many runs is repeated with items treated as independent, which reports something every time.
FEWER = 5
#: The planted value, which a sixth of the entities have.
ATTRIBUTE, VALUE = "kind", "a"

Labels = NDArray[np.int64]


def clusterings(name: str, folder: Path) -> tuple[Labels, Labels]:
    """Return the true and predicted labels of the common items of a data set."""
    if name == "patentsview":
        data = fb.example(name)
        sides: list[Any] = [data.truth, data.predictions[NULLS[name].removeprefix("pred_")]]
    else:
        sides = [str(folder / name / f"{which}.parquet") for which in ("truth", NULLS[name])]
    listed = fb.evaluate(*sides).items().to_arrow()
    true, pred = (
        np.unique(listed[f"{side}_cluster"].to_numpy(), return_inverse=True)[1].astype(np.int64)
        for side in ("true", "pred")
    )
    return true, pred


def attributes(true: Labels, rng: np.random.Generator) -> dict[str, Any]:
    """Return attributes drawn by true cluster: few values, many values, numbers, years, and one with nulls."""
    n = int(true.max()) + 1
    usual = 1 / np.arange(1, 31)
    few = rng.integers(0, 3, n)
    found: dict[str, Any] = {
        ATTRIBUTE: rng.choice(list("abcdef"), n), "place": rng.choice(list("abcdef"), n),
        "source": rng.choice([f"s{k}" for k in range(30)], n, p=usual / usual.sum()),
        "number": rng.normal(size=n), "year": rng.integers(1960, 2020, n),
    }  # fmt: skip
    columns = {name: pa.array(values[true]) for name, values in found.items()}
    return columns | {"nulls": pa.array(few[true], mask=(rng.random(n) < 0.2)[true])}


def explain(ev: fb.Evaluation, columns: dict[str, Any], *, by_item: bool = False) -> fb.Explanation:
    """Return the explanation of F1 by component, or with items treated as independent."""
    table = pa.table(columns)
    if not by_item:
        return ev.explain(table)
    metric = explained(ev.contingency, "f1", ev.beta, ev.metrics)
    question = Question([RowScore.of(ev.contingency, metric, ev.beta)], "f1")
    options = Options.of(2, 50, 0.05, 20, 0)
    return explain_rows(
        ev.kept,
        question,
        columns_of(ev.kept, table),
        lambda: np.arange(len(table), dtype=np.int32),
        options,
        {},
    )


def rows_of(table: list[list[str]]) -> None:
    """Print a Markdown table whose first row is the header."""
    head, *rows = table
    print("|", " | ".join(head), "|")
    print("|", " | ".join(["---", *("---:" for _ in head[1:])]), "|")
    for row in rows:
        print("|", " | ".join(row), "|", flush=True)


def nulls(folder: Path, n_runs: int) -> None:
    """Print the share of runs that report a slice although none was planted."""
    found = [
        [
            "data",
            "items",
            "components",
            "by component",
            "slices per run",
            "items independent",
            "slices per run",
        ]
    ]
    for name in NULLS:
        true, pred = clusterings(name, folder)
        ev = fb.evaluate(true, pred)
        numbers: dict[bool, list[int]] = {False: [], True: []}
        for run in range(n_runs):
            columns = attributes(true, np.random.default_rng([1, run]))
            for by_item, own in numbers.items():
                if not by_item or run % FEWER == 0:
                    own.append(len(explain(ev, columns, by_item=by_item).slices))
        row = [name, f"{true.size:,}", f"{ev.units.n:,}"]
        for own in numbers.values():
            row += [f"{100 * np.mean(np.array(own) > 0):.1f} %", f"{np.mean(own):.2f}"]
        found.append(row)
        print(row, file=sys.stderr)
    rows_of(found)


def planted(
    true: Labels, pred: Labels, units: Labels, chosen: NDArray[np.bool_], rng: Any, effect: float
) -> Labels:
    """Return a prediction in which a share of the components with several chosen items is split up.

    The chosen items of such a component become singletons, so that those of true clusters of two or more items lose at
    least half of their recall.
    """
    size = np.bincount(units[chosen], minlength=units.max() + 1)
    several = np.flatnonzero(size > 1)
    hit = np.zeros(size.size, np.bool_)
    hit[rng.choice(several, round(effect * several.size), replace=False)] = True
    alone = chosen & hit[units]
    return np.where(alone, pred.max() + 1 + np.arange(true.size), pred)


def power(folder: Path, n_runs: int) -> None:
    """Print the share of planted slices that are found, and the share of found slices that were not planted."""
    found = [
        ["data", "components hit", "recall lost inside", "recall lost outside", "found", "false discoveries"]
    ]
    for name in PLANTED:
        true, pred = clusterings(name, folder)
        ev = fb.evaluate(true, pred)
        units = ev.standard_errors.components.by_cell()[ev.kept.rows.cell].astype(np.int64)
        for effect in EFFECTS:
            hits, false, losses = 0, 0.0, []
            for run in range(n_runs):
                rng = np.random.default_rng([2, run])
                columns = attributes(true, rng)
                chosen = np.asarray(columns[ATTRIBUTE].to_numpy(zero_copy_only=False) == VALUE)
                own = fb.evaluate(true, planted(true, pred, units, chosen, rng, effect))
                slices = explain(own, columns)
                said = [slices.conditions[one] for one in slices.slices["slice"].to_pylist()]
                right = [{"attribute": ATTRIBUTE, "value": VALUE} in each for each in said]
                hits += any(right)
                false += right.count(False) / max(1, len(right))
                recall = own.items()["recall"].to_numpy()
                losses.append([1 - recall[chosen].mean(), 1 - recall[~chosen].mean()])
            inside, outside = np.mean(losses, axis=0)
            found.append([
                name, f"{100 * effect:.0f} %", f"{inside:.3f}", f"{outside:.3f}", f"{100 * hits / n_runs:.0f} %",
                f"{100 * false / n_runs:.1f} %",
            ])  # fmt: skip
            print(found[-1], file=sys.stderr)
    rows_of(found)


def made(n_items: int, n_columns: int) -> tuple[pa.Table, pa.Table]:
    """Return a truth with columns of few values, half of them constant by entity, and a prediction with errors."""
    rng = np.random.default_rng(0)
    sizes = rng.geometric(0.4, n_items)
    true = np.repeat(np.arange(n_items), sizes)[:n_items]
    n = int(true[-1]) + 1
    split, merged = rng.random(n) < 0.1, rng.random(n) < 0.05
    apart = split[true] & (rng.random(n_items) < 0.5)
    pred = np.where(
        apart, n + np.arange(n_items), np.where(merged, np.arange(n) // 2 * 2, np.arange(n))[true]
    )
    columns = {"item": pa.array(np.arange(n_items)), "cluster": pa.array(true)}
    for k in range(n_columns):
        codes = rng.integers(0, (5, 8, 12, 30)[k % 4], n if k % 2 else n_items).astype(np.int8)
        own = codes[true] if k % 2 else codes
        columns[f"c{k}"] = pa.DictionaryArray.from_arrays(own, [f"v{value}" for value in range(30)])
    return pa.table(columns), pa.table({"item": columns["item"], "cluster": pa.array(pred)})


def in_polars(table: pa.Table) -> Callable[[], None]:
    """Return a Polars group-by of every pair of columns: numbers of items, sums of losses, and of their squares."""
    import polars as pl

    frame = pl.DataFrame(table)
    sums = [pl.len(), pl.col("loss").sum().alias("sum"), (pl.col("loss") ** 2).sum().alias("squares")]

    def run() -> None:
        for pair in itertools.combinations(frame.columns[1:], 2):
            frame.group_by(pair).agg(sums)

    return run


def in_duckdb(table: pa.Table) -> Callable[[], None]:
    """Return the group-by of `in_polars` in DuckDB, on a native table."""
    import duckdb

    own = duckdb.connect()
    own.execute("set threads = 2")
    own.register("given", table)
    own.execute("create table rows as select * from given")

    def run() -> None:
        for a, b in itertools.combinations(table.column_names[1:], 2):
            own.execute(
                f"select {a}, {b}, count(*), sum(loss), sum(loss * loss) from rows group by {a}, {b}"
            ).fetchall()

    return run


def timed(work: Callable[[], Any]) -> Iterator[float]:
    """Yield the wall time, then the processor time, of the second of two calls."""
    work()
    wall, processor = time.perf_counter(), time.process_time()
    work()
    yield from (time.perf_counter() - wall, time.process_time() - processor)


def speed(n_items: int, n_columns: int) -> None:
    """Print the time of an explanation, and of a group-by of every pair of columns."""
    truth, prediction = made(n_items, n_columns)
    ev = fb.evaluate(truth, prediction)
    lost = pa.array(1 - ev.items(columns=()).to_arrow().sort_by("item")["recall"].to_numpy())
    columns = truth.drop_columns(["item", "cluster"])
    table = pa.table({"loss": lost, **dict(zip(columns.column_names, columns.columns, strict=True))})
    works = {
        "explain": lambda: ev.explain(columns), "Polars": in_polars(table), "DuckDB": in_duckdb(table),
    }  # fmt: skip
    found = [["", "items", "columns", "pairs", "time", "processor time"]]
    for name, work in works.items():
        wall, processor = timed(work)
        pairs = n_columns * (n_columns - 1) // 2
        row = [name, f"{n_items:,}", str(n_columns), f"{pairs:,}", f"{wall:.1f} s", f"{processor:.1f} s"]
        found.append(row)
        print(row, file=sys.stderr)
    rows_of(found)


def main(arguments: list[str]) -> None:
    """Print the tables of the requested part."""
    warnings.simplefilter("ignore")
    part, given = arguments[0], arguments[1:]
    if part == "speed":
        sizes = [int(float(each)) for each in given]
        speed(*(sizes + [10**6, 50][len(sizes) :]))
    else:
        {"nulls": nulls, "power": power}[part](Path(given[0]), int(given[1]) if len(given) > 1 else 500)


if __name__ == "__main__":
    main(sys.argv[1:])
