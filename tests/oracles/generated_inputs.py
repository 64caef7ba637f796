"""Generated clusterings given in every way in: each gives the scores, or the kind of error, that Arrow tables give."""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import fastbcubed as fb

#: A table as columns: texts of items, and clusters of one type; None is missing.
Columns = dict[str, list[Any]]
#: Scores of each family that is compared.
SCORES = ["precision", "recall", "mean_f1", "pair_f1", "v_measure", "conll_f1"]
OPTIONS: dict[str, list[Any]] = {
    "unmatched": [None, "drop", "singleton", {"truth": "drop", "prediction": "singleton"}],
    "nulls": ["raise", "drop", "singleton"],
    "duplicates": ["raise", "drop"],
    "overlapping": [False, False, True],
}
ENGINES: list[dict[str, Any]] = [
    {}, {"engine": "memory"}, {"engine": "disk"}, {"engine": "disk", "memory_limit": "64MiB"}, {"memory_limit": "1GiB"},
    {"threads": 1}, {"threads": 3}, {"keep": "items"}, {"keep": "scores"},
]  # fmt: skip


def _arrow(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _parquet(columns: Columns, path: Path) -> Path:
    pq.write_table(_arrow(columns), path.with_suffix(".parquet"), row_group_size=2)
    return path.with_suffix(".parquet")


def _parts(columns: Columns, path: Path) -> Path:
    path.mkdir()
    table = _arrow(columns)
    for k, start in enumerate(range(0, len(table), 3)):
        pq.write_table(table.slice(start, 3), path / f"{k}.parquet")
    return path


def _ipc(columns: Columns, path: Path) -> Path:
    table = _arrow(columns)
    with pa.ipc.new_file(path.with_suffix(".arrow"), table.schema) as file:
        file.write_table(table, max_chunksize=2)
    return path.with_suffix(".arrow")


def _csv(columns: Columns, path: Path) -> Path:
    pyarrow.csv.write_csv(_arrow(columns), path.with_suffix(".csv"))
    return path.with_suffix(".csv")


def _json_lines(columns: Columns, path: Path) -> Path:
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path.with_suffix(".jsonl")


#: Each way in: it takes columns, and a path to write to.
WAYS: dict[str, Callable[[Columns, Path], Any]] = {
    "Arrow": lambda columns, _: _arrow(columns),
    "Arrow in chunks": lambda columns, _: pa.concat_tables(
        [_arrow(columns).slice(0, 1), _arrow(columns).slice(1)]
    ),
    "reader": lambda columns, _: _arrow(columns).to_reader(max_chunksize=2),
    "pandas": lambda columns, _: pd.DataFrame({n: pd.Series(v, dtype=object) for n, v in columns.items()}),
    "pandas of Arrow": lambda columns, _: _arrow(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": lambda columns, _: pl.DataFrame(columns),
    "lazy Polars": lambda columns, _: pl.LazyFrame(columns),
    "arrays": lambda columns, _: fb.Clustering.from_table(
        {name: pa.array(values) for name, values in columns.items()}
    ),
    "Parquet": _parquet,
    "directory": _parts,
    "Arrow IPC": _ipc,
    "CSV": _csv,
    "JSON lines": _json_lines,
}


def drawn(pick: random.Random) -> tuple[Columns, Columns, dict[str, Any]]:
    """Return two sides and options."""
    named = pick.random() < 0.5
    universe = [f"{k}{'é' * (k % 3)}" for k in range(9)]

    def side() -> Columns:
        items = pick.sample(universe, pick.randrange(1, 10))
        if pick.random() < 0.2:
            items.append(pick.choice(items))
        clusters: list[Any] = [pick.randrange(4) for _ in items]
        clusters = [f"c {k}" for k in clusters] if named else clusters
        for values, share in ((items, 0.05), (clusters, 0.2)):
            if pick.random() < share:
                values[pick.randrange(len(values))] = None
        return {"item": items, "cluster": clusters}

    options = {name: pick.choice(values) for name, values in OPTIONS.items() if pick.random() < 0.6}
    return side(), side(), options


def outcome(*sides: Callable[[], Any], **options: Any) -> Any:
    """Return scores, or the name of the error; a side may raise it when it is made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fb.EvaluationWarning)
        try:
            scores = None if options.get("overlapping") else SCORES
            ev = fb.evaluate(*(side() for side in sides), metrics=scores, **options)
        except fb.FastBCubedError as error:
            return type(error).__name__
    return {name: round(float(ev.overall[name]), 10) for name in ev.overall}


def differences(seed: int, n: int, folder: Path) -> Iterator[str]:
    """Yield what differs from the outcome of Arrow tables in memory, for n draws."""
    pick = random.Random(seed)
    for k in range(n):
        truth, prediction, options = drawn(pick)
        expected = outcome(partial(_arrow, truth), partial(_arrow, prediction), engine="memory", **options)
        ways, engine = pick.choices(list(WAYS), k=2), pick.choice(ENGINES)
        if options.get("overlapping") and engine.get("engine") == "disk":  # is refused
            engine = {}
        given = [
            partial(WAYS[way], columns, folder / f"{side} {k}")
            for way, columns, side in zip(ways, (truth, prediction), ("truth", "prediction"), strict=True)
        ]
        found = outcome(*given, **options, **engine)
        if str(found) != str(expected):  # NaN is equal to itself
            yield f"{ways} {engine} {options}\n  {truth}\n  {prediction}\n  {found}\n  {expected}"


if __name__ == "__main__":  # python tests/oracles/generated_inputs.py SEED N, in an empty directory
    print("\n".join(differences(int(sys.argv[1]), int(sys.argv[2]), Path())))
