"""Properties of scores that equal values show: of doubled items, swapped sides, triangles, far changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fastbcubed.constraints.notation import as_text, partitions

Labels = NDArray[np.int64]
Score = Callable[[Labels, Labels], float]


@dataclass(frozen=True, eq=False)
class Case:
    """Clusterings of some items on which a property is tried.

    Attributes
    ----------
    of : str
        Name of the property.
    groups : tuple of ndarray of int64 (n_items, n_clusterings)
        Labels; the groups have no cluster in common.
    """

    of: str
    groups: tuple[Labels, ...]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return sum(len(group) for group in self.groups)

    def smaller(self) -> Iterator[Case]:
        """Yield the cases with one item less."""
        for at, group in enumerate(self.groups):
            for row in range(len(group) if len(group) > 1 else 0):
                less = np.delete(group, row, axis=0)
                yield Case(self.of, (*self.groups[:at], less, *self.groups[at + 1 :]))

    def __str__(self) -> str:
        names = PROPERTIES[self.of].clusterings
        shown = [labels for group in self.groups for labels in group.T]
        return "; ".join(f"{name} {as_text(labels)}" for name, labels in zip(names, shown, strict=True))


@dataclass(frozen=True)
class Property:
    """A property: what it says, its clusterings, and by how much a score misses it."""

    name: str
    statement: str
    clusterings: tuple[str, ...]  # their names, over all groups
    columns: tuple[int, ...]  # how many of them each group has
    gap: Callable[..., float]  # of the score, its direction (1 or -1), and the groups

    def cases(self, n_random: int, rng: np.random.Generator) -> Iterator[Case]:
        """Yield all cases of up to three items a group (two, if there are two), then larger random ones."""
        most = 3 if len(self.columns) == 1 else 2
        for n in range(1, most + 1):
            for chosen in product(partitions(n), repeat=sum(self.columns)):
                groups = np.split(np.column_stack(chosen), np.cumsum(self.columns)[:-1], axis=1)
                yield Case(self.name, tuple(groups))
        for n in sorted(rng.integers(most + 1, 9, size=n_random)):
            groups = [rng.integers(0, rng.integers(1, n + 1, size=c), size=(n, c)) for c in self.columns]
            yield Case(self.name, tuple(groups))


#: Every property by name.
PROPERTIES: dict[str, Property] = {}
Gap = Callable[..., float]


def holds(statement: str, clusterings: tuple[str, ...], columns: tuple[int, ...]) -> Callable[[Gap], Gap]:
    """Declare a property by the function that says how far a score misses it, whose name it has."""

    def declare(gap: Gap) -> Gap:
        name = gap.__name__.lstrip("_")
        PROPERTIES[name] = Property(name, statement, clusterings, columns, gap)
        return gap

    return declare


@holds("the score stays when every item is doubled", ("truth", "prediction"), (2,))
def _n_invariance(score: Score, sign: int, pair: Labels) -> float:
    true, pred = pair.T
    return abs(score(np.repeat(true, 2), np.repeat(pred, 2)) - score(true, pred))


@holds("the score stays when truth and prediction change places", ("truth", "prediction"), (2,))
def _symmetry(score: Score, sign: int, pair: Labels) -> float:
    true, pred = pair.T
    return abs(score(true, pred) - score(pred, true))


@holds(
    "no way round is shorter, where the distance is what the score loses against equality",
    ("first", "second", "third"),
    (3,),
)
def _triangle(score: Score, sign: int, three: Labels) -> float:
    """How much longer the way from a to c is than by b; the distance is the loss against equality."""
    a, b, c = three.T

    def distance(first: Labels, second: Labels) -> float:
        return sign * (score(first, first) - score(first, second))

    return distance(a, c) - distance(a, b) - distance(b, c)


@holds(
    "a change counts the same, whatever the other items are like",
    ("truth", "before", "after", "other truth", "other prediction", "or truth", "or prediction"),
    (3, 4),
)
def _locality(score: Score, sign: int, here: Labels, there: Labels) -> float:
    """How much the effect of a change here depends on what the other items are like."""
    true, before, after = here.T
    changes = [
        score(_beside(true, other_true), _beside(after, other_pred))
        - score(_beside(true, other_true), _beside(before, other_pred))
        for other_true, other_pred in (there.T[:2], there.T[2:])
    ]
    return abs(changes[0] - changes[1])


def _beside(labels: Labels, others: Labels) -> Labels:
    return np.concatenate([labels, others + labels.max() + 1])
