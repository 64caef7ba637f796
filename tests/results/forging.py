"""Forges saved results, with right checksums, and uses them; run by test_damaged_results in a process of its own.

    python forging.py DIRECTORY SEED SHARE

A table or a manifest that says what no result says has to be refused when it is loaded, or to give answers, or a
FastBCubedError.
Prints a line for each forgery; only a share of them is made, drawn by the seed.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import saved_results

import fastbcubed as fb
from fastbcubed.errors import FastBCubedError
from fastbcubed.results.saved_files import MANIFEST, _checksum
from fastbcubed.runtime.output_files import stamp_of

#: The share of forged manifests, of which there are ten times as many as of tables.
OF_MANIFESTS = 0.2
#: What numbers become.
NUMBERS: dict[str, Any] = {
    "-1": -1,
    "-2": -2,
    "huge": 1 << 62,
    "1e300": 1e300,
    "NaN": float("nan"),
    "inf": float("inf"),
}


#: What any value in a manifest becomes.
VALUES: dict[str, Any] = {
    **NUMBERS,
    "null": None,
    "true": True,
    "text": "x",
    "a list": [],
    "an object": {"a": 1},
}
#: Entries that tell how the files belong together.
SEALS = ("crc32", "files", "staged_in", "marked", "layout")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all values in a manifest, but of no more than three elements of a list."""
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:3] if isinstance(value, list) else [])
    )
    for key, each in inner:
        if at or key not in SEALS:
            yield (*at, key)
            yield from places(each, (*at, key))


def forged_manifests(head: dict[str, Any]) -> Iterator[tuple[str, Callable[[dict[str, Any]], None]]]:
    """Yield what is done to a value of a manifest, and a function that does it."""

    def change(what: str, at: tuple[Any, ...]) -> Callable[[dict[str, Any]], None]:
        def done(whole: Any) -> None:
            for key in at[:-1]:
                whole = whole[key]
            if what == "missing":
                del whole[at[-1]]
            elif what == "in a list":
                whole[at[-1]] = [whole[at[-1]]]
            else:
                whole[at[-1]] = VALUES[what]

        return done

    for at in places(head):
        for what in ("missing", "in a list", *VALUES):
            yield f"{'.'.join(map(str, at))} {what}", change(what, at)


def changed(column: pa.ChunkedArray, value: Any) -> pa.Array | None:
    """Return a column of numbers that is this number everywhere; None where that cannot be."""
    try:
        return pa.array([value] * len(column), column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
        return None


def forged_columns(column: pa.ChunkedArray) -> Iterator[tuple[str, pa.Array]]:
    n, kind = len(column), column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        for name, value in NUMBERS.items():
            made = changed(column, value)
            if made is not None:
                yield name, made
        yield "last alone is -1", pa.array([*column.to_pylist()[:-1], *[-1][: n > 0]], kind)
        other = pa.float64() if pa.types.is_integer(kind) else pa.int64()
        yield f"as {other}", pa.array([k + (0.5 if other == pa.float64() else 0) for k in range(n)], other)
    if pa.types.is_large_list(kind) and pa.types.is_integer(kind.value_type):
        for name, value in (
            ("codes of -1", -1),
            ("huge codes", 1 << 62 if kind.value_type.bit_width == 64 else 1 << 30),
        ):
            yield name, pa.array([[value] for _ in range(n)], kind)
        yield "empty lists", pa.array([[] for _ in range(n)], kind)
        yield "flat", pa.array(range(n), pa.int64())
    yield "null", pa.nulls(n, kind)
    yield "null, of no type", pa.nulls(n)
    yield "as text", pa.array([f"x{k}" for k in range(n)])
    yield "as booleans", pa.array([True] * n)
    yield "as lists", pa.array([[1]] * n)


def forgeries(path: Path) -> Iterator[tuple[str, str, pa.Table]]:
    """Yield what is done to which file, and the table that results."""
    for file in sorted(path.glob("*.parquet")):
        table = pq.read_table(file)
        for at, name in enumerate(table.column_names):
            for what, made in forged_columns(table[name]):
                yield f"{name} {what}", file.name, table.set_column(at, name, made)
            yield f"without {name}", file.name, table.remove_column(at)
        for rows in {0, 1, table.num_rows - 1} - {table.num_rows}:
            yield f"{rows} rows", file.name, table.slice(0, max(0, rows))
        yield "rows twice", file.name, pa.concat_tables([table, table])


def sealed_anew(path: Path, change: Callable[[dict[str, Any]], Any] = lambda head: None) -> None:
    """Write the manifest with the stamps of the files as they are now, and its checksum."""
    head = json.loads((path / MANIFEST).read_text())
    for name in filter(lambda name: (path / name).is_file(), head["files"]):
        with open(path / name, "rb") as file:
            head["files"][name] = stamp_of(file)._asdict()
    change(head)
    del head["crc32"]
    (path / MANIFEST).write_text(json.dumps({**head, "crc32": _checksum(head)}))


def answers(result: Any) -> Iterator[Callable[[], Any]]:
    """Yield what can be asked of any saved result."""
    yield lambda: repr(result)
    yield lambda: result.to_json()
    yield lambda: result.warnings
    yield lambda: result._document()
    if isinstance(result, fb.Evaluation):
        yield lambda: result.summary
        yield lambda: result.interval("f1")
        yield lambda: result.metric("omega")
        for score in ("pair_f1", "f1", "extended_bcubed_f1", "nmi"):
            yield lambda score=score: result.metric(score)
        for side in ("true", "pred"):
            yield lambda side=side: result.clusters(side)
        yield lambda: result.slices("true_size")
        yield lambda: result.slices("country")
        yield lambda: result.items()
        yield lambda: result.item("c")
        yield lambda: result.repairs(limit=3)
    for name in (
        "scores",
        "deltas",
        "slice_deltas",
        "curve",
        "best",
        "merges",
        "estimates",
        "sliced",
        "ranking",
        "ranks",
        "coverage",
        "stages",
        "weakest_links",
        "split",
        "merged",
    ):
        yield lambda name=name: found() if callable(found := getattr(result, name, None)) else found


def outcome(path: Path) -> str:
    """Return how a forged result ended: refused, or used; raise what no user should see."""
    try:
        result = fb.load(path)
    except FastBCubedError as error:
        assert str(error) and len(str(error)) < 2000
        return "refused"
    for ask in answers(result):
        try:
            ask()
        except FastBCubedError:
            pass
        except (AttributeError, TypeError) as error:  # what this kind of result does not have or take
            own = (
                f"'{type(result).__name__}' object has no",
                "required positional argument",
                "there is no estimate",
                "'pyarrow.lib.Table' object has no",
            )
            if not any(each in str(error) for each in own):
                raise
    return "used"


def main(directory: Path, seed: int, share: float) -> None:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    for kind, save in saved_results.KINDS.items():
        path, at = directory / kind, directory / "forged"
        save(path)
        for what, name, table in forgeries(path):
            if rng.random() > share:
                continue
            shutil.copytree(path, at)
            try:
                pq.write_table(table, at / name)
                sealed_anew(at)
                found = outcome(at)
            except Exception as error:
                found = f"FAILED with {error!r}"
                if len(sys.argv) > 4:
                    found += "".join(traceback.format_exception(error)[-3:])
            print(found, kind, name, what, flush=True)
            shutil.rmtree(at)
        shutil.copytree(path, at)
        for what, change in forged_manifests(json.loads((path / MANIFEST).read_text())):
            if rng.random() > share * OF_MANIFESTS:
                continue
            shutil.copy(path / MANIFEST, at)
            try:
                sealed_anew(at, change)
                found = outcome(at)
            except Exception as error:
                frame = [
                    each
                    for each in traceback.extract_tb(error.__traceback__)
                    if "/fastbcubed/" in each.filename
                ]
                found = f"FAILED with {error!r} in {frame[-1].name if frame else ''}"
            print(found, kind, MANIFEST, what, flush=True)
        shutil.rmtree(at)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
