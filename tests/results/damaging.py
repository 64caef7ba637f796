"""Edits saved results, and loads them; run by test_damaged_results in a process of its own, which must not crash.

    python damaging.py DIRECTORY SEED SHARE

Damage (flipped bytes, files cut short, lost, swapped, replaced by pipes) has to end in a FastBCubedError or in the
result that was saved. Prints a line for each edit; only a share of them is made, drawn by the seed.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from test_kept_results import answers, text_of

import fastbcubed as fb
from fastbcubed.errors import FastBCubedError

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


#: Manifests that are none.
MANIFESTS: list[Edit] = [
    (
        f"overall.json: {what}",
        lambda at, data=data: (at / "overall.json").write_bytes(data),
        True,
    )
    for what, data in {
        "deep": b"[" * 100_000,
        "not a number": b'{"layout": NaN}',
        "digits": b'{"layout": ' + b"9" * 5000 + b"}",
        "a list": b"[]",
        "no text": b"\xff",
    }.items()
]

# -- Loading ----------------------------------------------------------------------------------------


def outcome(path: Path, expected: Any) -> str:
    try:
        ev = fb.load(path)
    except FastBCubedError as error:
        assert str(error) and len(str(error)) < 2000
        return "refused"
    assert text_of(answers(ev)) == expected
    return "equal"


def main(directory: Path, seed: int, share: float) -> None:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    other = directory / "other"
    fb.evaluate([0, 0, 1], [0, 1, 1], slices={"a": [True, False, False]}).save(other)
    for kind, ev in results().items():
        path = directory / kind
        ev.save(path)
        expected = text_of(answers(fb.load(path)))
        for told, edit, refused in [*damages(path, other, rng), *MANIFESTS]:
            if rng.random() > share:
                continue
            at = directory / "edited"
            shutil.copytree(path, at)
            try:
                edit(at)
                found = outcome(at, expected)
                assert not refused or found in ("refused", "equal"), found
            except Exception as error:
                found = f"FAILED with {error!r}:"
            print(found, kind, told, flush=True)
            shutil.rmtree(at)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
