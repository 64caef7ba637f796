"""Generated pairs of clusterings and weights: shapes, labels and scales that break naive code."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from hypothesis import strategies as st

__all__ = ["LABELS", "POLICIES", "Pair", "aligned_pairs", "label_arrays", "pairs", "weights"]

Label = Callable[[int], Any]


def _scrambled(k: int) -> int:
    """Return a signed 64-bit number for a small one, one to one (splitmix64)."""
    h = (k + 1) * 0x9E3779B97F4A7C15 % 2**64
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB % 2**64
    h ^= h >> 31
    return h - 2**64 if h >= 2**63 else h


#: Ways to write the numbers 0, 1, ... as ids or labels.
LABELS: dict[str, Label] = {
    "small": lambda k: k,
    "scrambled": _scrambled,
    "negative": lambda k: -1 - k,
    "around -2**63": lambda k: -(2**63) + k,
    "above 2**53": lambda k: 2**53 + k,
    "uint64": lambda k: 2**64 - 1 - k,
    "short": lambda k: "abcdefghijklmnopqrstuvwxyz"[k % 26] * (1 + k // 26),
    "long": lambda k: f"a cluster with a name of more than sixteen bytes, no. {k}",
}

#: Every pair of policies, as `unmatched` takes them.
POLICIES: list[Any] = [
    "drop",
    "singleton",
    "outside",
    {"truth": "singleton"},
    {"prediction": "singleton"},
    {"truth": "drop", "prediction": "outside"},
]


class Pair(NamedTuple):
    """Two clusterings as dicts from item to cluster; they have an item in common."""

    truth: dict[Hashable, Hashable]
    prediction: dict[Hashable, Hashable]

    @property
    def items(self) -> list[Hashable]:
        return list(self.truth | self.prediction)


@st.composite
def _codes(draw: st.DrawFn, n: int) -> list[int]:
    """Draw a partition of n items: a code below n for each."""
    shape = draw(st.sampled_from(["few", "few", "any", "one", "singletons", "one big"]))
    if shape == "one":
        return [0] * n
    if shape == "singletons":
        return list(range(n))
    if shape == "one big":
        return [k if draw(st.integers(0, 3)) == 0 else 0 for k in range(n)]
    most = min(n, 3) if shape == "few" else n
    return draw(st.lists(st.integers(0, most - 1), min_size=n, max_size=n))


def _numbered(keys: list[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


@st.composite
def aligned_pairs(draw: st.DrawFn, min_size: int = 1, max_size: int = 9) -> tuple[list[int], list[int]]:
    """Draw codes of the same items on both sides: unrelated, identical, refined or merged."""
    n = draw(st.integers(min_size, max_size))
    true, other = draw(_codes(n)), draw(_codes(n))
    relation = draw(st.sampled_from(["unrelated", "unrelated", "identical", "refined", "merged"]))
    if relation == "identical":
        return true, list(true)
    if relation == "refined":  # predicted clusters lie within true ones
        return true, _numbered(list(zip(true, other, strict=True)))
    if relation == "merged":
        return _numbered(list(zip(true, other, strict=True))), true
    return true, other


@st.composite
def pairs(draw: st.DrawFn, max_size: int = 9, unmatched: bool = True) -> Pair:
    """Draw a pair of clusterings; with `unmatched`, often items that only one side has."""
    true, pred = draw(aligned_pairs(max_size=max_size))
    item = LABELS[draw(st.sampled_from(list(LABELS)))]
    true_label, pred_label = (LABELS[draw(st.sampled_from(list(LABELS)))] for _ in range(2))
    n = len(true)
    where = ["both"] * n
    if unmatched and draw(st.booleans()):
        sides = st.sampled_from(["both", "both", "truth", "prediction"])
        where = ["both", *draw(st.lists(sides, min_size=n - 1, max_size=n - 1))]
    order = draw(st.permutations(range(n)))  # the rows of the prediction have their own order
    truth = {item(k): true_label(true[k]) for k in range(n) if where[k] != "prediction"}
    prediction = {item(k): pred_label(pred[k]) for k in order if where[k] != "truth"}
    return Pair(truth, prediction)


def weights(n: int, *, zeros: bool = False) -> st.SearchStrategy[list[float] | None]:
    """Draw n weights, or None: equal ones, small integers, floats over 30 orders of magnitude."""
    wide = st.builds(lambda m, e: m * 10.0**e, st.floats(1.0, 9.99), st.integers(-15, 15))
    kinds = [st.integers(1, 4).map(float), wide, st.sampled_from([1e-15, 1.0, 3.0, 1e15])]
    if zeros:
        kinds.append(st.sampled_from([0.0, 0.0, 1.0, 2.5]))
    lists = [st.lists(kind, min_size=n, max_size=n).filter(any) for kind in kinds]
    equal = st.sampled_from([1.0, 3.0, 0.1, 1e-15, 7e14]).map(lambda w: [w] * n)
    return st.one_of(st.none(), equal, *lists)


@st.composite
def label_arrays(draw: st.DrawFn, max_size: int = 40) -> tuple[list[int], list[int]]:
    """Draw codes of more items, for properties that need no twin."""
    return draw(aligned_pairs(max_size=max_size))
