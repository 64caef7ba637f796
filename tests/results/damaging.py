"""Edits saved results, and loads them; run by test_damaged_results in a process of its own, which must not crash.

    python damaging.py DIRECTORY SEED SHARE

Damage (flipped bytes, files cut short, lost, swapped, replaced by pipes) has to end in a FastBCubedError or in the
result that was saved. Forgery, where sizes and checksums are made to fit again, has to end in a FastBCubedError or in
a result that can be asked anything; where cells or margins are edited, in an error. Prints a line for each edit; only a
share of them is made, drawn by the seed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from test_kept_results import answers, text_of

import fastbcubed as fb
from fastbcubed.errors import FastBCubedError
from fastbcubed.results.saved import sealed
from fastbcubed.runtime.output_files import open_regular, stamp_of

N_FLIPS = 40
Edit = tuple[str, Callable[[Path], Any], bool]  #: what it does; the edit; whether it has to be refused
WEIGHT = dict(zip("abcdefgh", (1.0, 2.0, 0.5, 4.0, 1.5, 3.0, 2.5, 1.25), strict=True))


def results() -> dict[str, fb.Evaluation]:
    truth = pa.table({"item": list("abcdefg"), "cluster": list("xxyyyzz"), "country": list("nnnmmmm")})
    prediction = pa.table({"item": list("bcdefgh"), "cluster": [1, 1, 1, 2, 2, 3, 3]})
    several = pa.table({"item": list("aabcdd"), "cluster": [1, 2, 1, 2, 2, 3]})
    others = pa.table({"item": list("abbcde"), "cluster": [1, 1, 2, 2, 3, 3]})
    how: dict[str, Any] = {"unmatched": "outside"}
    return {
        "plain": fb.evaluate(truth, prediction, slices=["country"], **how),
        "weighted": fb.evaluate(truth, prediction, weight=WEIGHT, unmatched="singleton", slices=["country"]),
        "outer": fb.evaluate(truth, prediction, weight=WEIGHT, weighting="outer", **how),
        "overlapping": fb.evaluate(several, others, overlapping=True, **how),
    }


# -- Damage -----------------------------------------------------------------------------------------


def damages(path: Path, other: Path, rng: random.Random) -> Iterator[Edit]:
    names = sorted(os.listdir(path))
    for name in names:
        whole = (path / name).read_bytes()

        def content(data: bytes, name: str = name) -> Callable[[Path], Any]:
            return lambda path: (path / name).write_bytes(data)

        for _ in range(N_FLIPS):
            at, bit = rng.randrange(len(whole)), rng.randrange(8)
            flipped = whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
            yield f"{name}: flip bit {bit} of byte {at}", content(flipped), False
        for n in (0, 1, 7, len(whole) // 2, len(whole) - 1):
            yield f"{name}: cut to {n} bytes", content(whole[:n]), False
        yield f"{name}: longer", content(whole + b"\0"), False
        yield f"{name}: zeros", content(bytes(len(whole))), False
        yield f"{name}: of another result", content((other / name).read_bytes()), True
        for neighbour in names:
            if neighbour != name:
                yield f"{name}: {neighbour} instead", content((path / neighbour).read_bytes()), True
        for what, make in SPECIAL.items():
            yield (
                f"{name}: {what}",
                lambda at, name=name, make=make: (os.unlink(at / name), make(at / name)),
                True,
            )


SPECIAL: dict[str, Callable[[Path], Any]] = {
    "nothing": lambda file: None,
    "a pipe": os.mkfifo,
    "a directory": os.mkdir,
    "a link to itself": lambda file: file.symlink_to(file),
    "a link to a device": lambda file: file.symlink_to("/dev/zero"),
    "a link to a pipe": lambda file: (os.mkfifo(f"{file}.pipe"), file.symlink_to(f"{file}.pipe")),
}


# -- Forgery ----------------------------------------------------------------------------------------

#: Columns whose values hang together: where one changes, the result is refused.
BOUND = {
    "cells.parquet": ("true", "pred", "n", "weight", "fp", "fn", "true_clusters", "pred_clusters"),
    "true_clusters.parquet": ("n_items", "n_parts"),
    "pred_clusters.parquet": ("n_items", "n_parts"),
    "items.parquet": ("cell",),
}
NUMBERS = (-1, 0, 1, 7, 1 << 31, (1 << 62) + 1, -(1 << 63), None)
FLOATS = (-1.0, 0.0, 0.25, 1e300, float("inf"), float("nan"), None)
ODD = {
    "strings": lambda n: pa.array([str(k) for k in range(n)]),
    "doubles": lambda n: pa.array(np.arange(n) + 0.5),
    "flags": lambda n: pa.array([True] * n),
    "lists": lambda n: pa.array([[k] for k in range(n)]),
    "structs": lambda n: pa.array([{"a": k} for k in range(n)]),
    "nulls": lambda n: pa.nulls(n),
    "times": lambda n: pa.array(np.arange(n).astype("datetime64[s]")),
    "bytes": lambda n: pa.array([b"\xff"] * n),
    "large": lambda n: pa.array(np.full(n, 2**64 - 1, np.uint64)),
}


def write(at: Path, name: str, table: pa.Table) -> None:
    """Write a table so that size and checksum fit."""
    pq.write_table(table, at / name)
    seal(at, read_head(at))


def read_head(at: Path) -> dict[str, Any]:
    return json.loads((at / "overall.json").read_text())


def seal(at: Path, head: dict[str, Any]) -> None:
    """Write a manifest whose checksum fits, and the sizes and checksums of the files."""
    for key in ("crc32", "layout"):
        head.pop(key, None)
    files = head.pop("files", {})
    if not isinstance(files, dict):
        raise TypeError("files are no dict")
    stamps = {}
    for name in files:
        with open_regular(at / name) as file:
            stamps[name] = stamp_of(file)
    (at / "overall.json").write_text(sealed(head, stamps, head.pop("staged_in", "")))


def forgeries(path: Path) -> Iterator[Edit]:
    for name in sorted(os.listdir(path)):
        if name == "overall.json":
            yield from of_heads(read_head(path))
            continue
        table = pq.read_table(path / name)
        n = table.num_rows
        bound = BOUND.get(name, ())
        for k, column in enumerate(table.column_names):
            values, kind = table[column].to_pylist(), table[column].type
            told = f"{name}: {column}"
            for value in (
                NUMBERS if pa.types.is_integer(kind) else FLOATS if pa.types.is_floating(kind) else ()
            ):
                for row in (0, n - 1):
                    if values[row] != value:
                        wide = pa.int64() if pa.types.is_integer(kind) else kind
                        edited = pa.array([*values[:row], value, *values[row + 1 :]], wide)
                        yield (
                            f"{told} of row {row} becomes {value}",
                            put(name, table, k, edited),
                            column in bound,
                        )
            if pa.types.is_large_list(kind) and pa.types.is_integer(kind.value_type):
                for codes in ([-1], [1 << 30], [1, 1], [2, 1], [None], None, []):
                    edited = pa.array([codes, *values[1:]], pa.large_list(pa.int64()))
                    yield (
                        f"{told} begins with {codes}",
                        put(name, table, k, edited),
                        column in bound and codes != [],
                    )
            for what, make in ODD.items():
                yield f"{told} becomes {what}", put(name, table, k, make(n)), column in bound
            yield (
                f"{told} is lost",
                lambda at, n=name, t=table, k=k: write(at, n, t.remove_column(k)),
                column in bound,
            )
            again = table.append_column(column, table[column])
            yield (
                f"{told} is there twice",
                lambda at, n=name, t=again: write(at, n, t),
                name != "slices.parquet",
            )
        more = table.append_column("more", pa.nulls(n))
        for what, other in {
            "one row less": table.slice(1),
            "one row more": pa.concat_tables([table, table.slice(0, 1)]),
            "no row": table.slice(0, 0),
            "other order": table.take(list(range(n))[::-1]),
            "a column more": more,
            "a strange attribute": table.append_column("nobody.x", pa.nulls(n)),
        }.items():
            yield (
                f"{name}: {what}",
                lambda at, name=name, other=other: write(at, name, other),
                what == "no row" and bool(bound),
            )


def put(name: str, table: pa.Table, k: int, column: pa.Array) -> Callable[[Path], None]:
    return lambda at: write(at, name, table.set_column(k, table.column_names[k], column))


VALUES = (None, True, -1, 0, 1 << 70, 0.5, 1e308, "x", "\ud800", "../x", [], [[]], {}, {"a": 1}, [{"a": [1]}])


def of_heads(head: dict[str, Any]) -> Iterator[Edit]:
    def places(value: Any, keys: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        if keys:
            yield keys
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            yield from places(value[key], (*keys, key))

    def edit(keys: tuple[Any, ...], change: Callable[[Any, Any], Any]) -> Callable[[Path], None]:
        def run(at: Path) -> None:
            copy = read_head(at)
            target = copy
            for key in keys[:-1]:
                target = target[key]
            change(target, keys[-1])
            try:
                seal(at, copy)
            except (FastBCubedError, OSError, TypeError, ValueError):  # the forger gives up on the checksum
                (at / "overall.json").write_text(json.dumps(copy))

        return run

    for keys in places(head, ()):
        told = "overall.json: " + ".".join(map(str, keys))
        yield f"{told} is lost", edit(keys, lambda target, key: target.__delitem__(key)), False
        for value in VALUES:
            change = lambda target, key, value=value: target.__setitem__(key, value)  # noqa: E731
            yield f"{told} becomes {value!r}", edit(keys, change), False
    for what, text in {
        "deep": "[" * 100_000,
        "not a number": '{"layout": NaN}',
        "digits": '{"layout": ' + "9" * 5000 + "}",
        "a list": "[]",
        "no text": "\udcff",
    }.items():
        data = text.encode("utf-8", "surrogateescape")
        yield f"overall.json: {what}", lambda at, data=data: (at / "overall.json").write_bytes(data), True


# -- Loading ----------------------------------------------------------------------------------------


def outcome(path: Path, expected: Any, *, same: bool) -> str:
    try:
        ev = fb.load(path)
    except FastBCubedError as error:
        assert str(error) and len(str(error)) < 2000
        return "refused"
    try:
        found = text_of(answers(ev))
    except FastBCubedError as error:
        assert not same, error
        return "refused later"
    assert not same or found == expected
    return "equal" if found == expected else "accepted"


def main(directory: Path, seed: int, share: float) -> None:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    other = directory / "other"
    fb.evaluate([0, 0, 1], [0, 1, 1], slices={"a": [True, False, False]}).save(other)
    for kind, ev in results().items():
        path = directory / kind
        ev.save(path)
        expected = text_of(answers(fb.load(path)))
        for group, same in ((damages(path, other, rng), True), (forgeries(path), False)):
            for told, edit, refused in group:
                if rng.random() > share:
                    continue
                at = directory / "edited"
                shutil.copytree(path, at)
                try:
                    edit(at)
                    found = outcome(at, expected, same=same)
                    assert not refused or found in ("refused", "equal"), found
                except Exception as error:
                    found = f"FAILED with {error!r}:"
                print(found, kind, told, flush=True)
                shutil.rmtree(at)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
