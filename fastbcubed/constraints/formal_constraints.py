"""Formal constraints on scores (homogeneity, completeness, rag bag, …), and small clusterings that test them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from fastbcubed.errors import OptionError, quoted
from fastbcubed.runtime.arguments import is_one_of, seed_of, whole_number
from fastbcubed.types import Int64s

#: Maximum number of items in a part of an instance.
MOST = 1 << 20
#: Clusterings of more items than this are described by their cluster sizes.
SPELLED_OUT = 26
#: Maximum sizes of instances: tried exhaustively, alone and in Amigó's context; exhaustively with up to two other
#: items; and with random other items.
SMALL, CROWDED, LARGE = 5, 3, 12


def partitions(n: int, known: int = 0) -> Iterator[Int64s]:
    """Yield every partition of n items once, as labels (n,); items may also join `known` existing clusters.

    Examples
    --------
    >>> [as_text(labels) for labels in partitions(3)]
    ['abc', 'ab|c', 'ac|b', 'a|bc', 'a|b|c']
    >>> [labels.tolist() for labels in partitions(1, known=2)]
    [[0], [1], [2]]
    """
    if n == 0:
        yield np.empty(0, np.int64)
        return
    for rest in partitions(n - 1, known):
        for label in range(max(rest.max(initial=-1) + 1, known) + 1):
            yield np.append(rest, label)


def same_clustering(first: ArrayLike, second: ArrayLike) -> bool:
    """Return whether two labelings describe the same clustering.

    Examples
    --------
    >>> same_clustering([1, 1, 2], [5, 5, 4]), same_clustering([1, 1, 2], [1, 2, 2])
    (True, False)
    """
    return bool(np.array_equal(_renamed(first), _renamed(second)))


def as_text(labels: ArrayLike) -> str:
    """Return a clustering as a string: its items a, b, c, ... by cluster, or its cluster sizes if there are many.

    Examples
    --------
    >>> as_text([7, 7, 2, 7])
    'abd|c'
    >>> as_text([0] * 30 + [1, 2])
    '32 items in clusters of 30, 1, 1'
    """
    codes = _renamed(labels)
    if codes.size > SPELLED_OUT:
        sizes = np.sort(np.bincount(codes))[::-1]
        shown = ", ".join(map(str, sizes[:6]))
        return f"{codes.size} items in clusters of {shown}{', …' if sizes.size > 6 else ''}"
    clusters = [""] * (codes.max(initial=-1) + 1)
    for item, code in enumerate(codes):
        clusters[code] += chr(ord("a") + item)
    return "|".join(clusters)


def _renamed(labels: ArrayLike) -> Int64s:
    """Return labels renumbered 0, 1, ... in order of first appearance."""
    _, first, codes = np.unique(np.asarray(labels, np.int64), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def labels_of(text: str) -> Int64s:
    """Return the labels of a clustering of at most 26 items from a string written by `as_text`.

    Examples
    --------
    >>> labels_of("abd|c")
    array([0, 0, 1, 0])
    """
    where = {item: number for number, cluster in enumerate(text.split("|")) for item in cluster}
    return np.array([where[item] for item in sorted(where)], np.int64)


Context = Literal["bare", "amigo", "random"]
Parts = Callable[..., tuple[ArrayLike, ...]]


@dataclass(frozen=True, eq=False)
class Instance:
    """A truth and two predictions, the first of which is worse according to a constraint.

    Attributes
    ----------
    constraint : str
        Name of the constraint.
    truth, worse, better : ndarray of int64 (n_items,)
        Nonnegative cluster labels; the items that the constraint is not about ("elsewhere") come last.
    sizes : tuple of int
        Sizes of the clusters that the constraint is about.
    elsewhere : ndarray of int64 (n_elsewhere, 2)
        True and predicted labels of the items elsewhere. Labels are negative, except those of classes that also have
        items in the constraint's clusters.
    """

    constraint: str
    truth: Int64s
    worse: Int64s
    better: Int64s
    sizes: tuple[int, ...] = ()
    elsewhere: Int64s = field(default_factory=lambda: np.empty((0, 2), np.int64))

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.truth.size

    def smaller(self) -> Iterator[Instance]:
        """Yield the instances that are one step smaller: a size is reduced by one, or an item elsewhere is removed."""
        own = CONSTRAINTS[self.constraint]
        for at, size in enumerate(self.sizes):
            if size > own.least[at]:
                sizes = (*self.sizes[:at], size - 1, *self.sizes[at + 1 :])
                yield own.build(sizes, self.elsewhere)
        for row in range(len(self.elsewhere)):
            rest = np.delete(self.elsewhere, row, axis=0)
            if own.admits(rest):
                yield own.build(self.sizes, rest)

    def __str__(self) -> str:
        sides = (("truth", self.truth), ("worse", self.worse), ("better", self.better))
        return "; ".join(f"{name} {as_text(labels)}" for name, labels in sides)


@dataclass(frozen=True)
class Constraint:
    """A constraint: its statement, and how its instances are made."""

    name: str
    statement: str
    least: tuple[int, ...]  # minimum sizes that are checked
    parts: Parts  # returns truth, worse and better prediction for given sizes
    continued: int = 0  # this many of its first classes may have items elsewhere
    whole: bool = False  # all items are elsewhere, and none in a part of the constraint's own

    def build(self, sizes: Sequence[int], elsewhere: Int64s) -> Instance:
        """Return the instance of these sizes with these items elsewhere."""
        true, pred = elsewhere.T
        others = true, pred, true if self.whole else pred
        parts = zip(self.parts(*sizes), others, strict=True)
        whole = [np.concatenate([np.asarray(part, np.int64), rest]) for part, rest in parts]
        truth, worse, better = (labels - labels.min(initial=0) for labels in whole)
        return Instance(self.name, truth, worse, better, tuple(sizes), elsewhere)

    def admits(self, elsewhere: Int64s) -> bool:
        """Return whether the constraint still applies with these items elsewhere."""
        return not self.whole or not same_clustering(*elsewhere.T)

    def instance(
        self, sizes: Sequence[int], context: Context = "bare", n_elsewhere: int = 0, seed: int = 0
    ) -> Instance:
        """Return an instance of these sizes in a context.

        Raises
        ------
        OptionError
            If a size is too small, or an argument is invalid.
        """
        for size in sizes:
            whole_number(size, f"a size of {self.name}", "items", least=1, most=MOST)
        if not is_one_of(context, ("bare", "amigo", "random")):
            raise OptionError(f'context must be "bare", "amigo" or "random", not {quoted(context)}.')
        n, seed = whole_number(n_elsewhere, "n_elsewhere", "items", most=MOST), seed_of(seed)
        if context == "bare":
            return self.build(sizes, np.empty((0, 2), np.int64))
        if context == "amigo":
            # a pure cluster larger than all parts together, of their class if `continued`; and a noise cluster
            pure = [(0 if self.continued else -1, -1)] * (sum(sizes) + 1)
            return self.build(sizes, np.array(pure + [(-2 - k, -2) for k in range(3)], np.int64))
        return self.build(sizes, self.anything(n, np.random.default_rng(seed)))

    def cases(self, n_random: int, rng: np.random.Generator) -> Iterator[Instance]:
        """Yield small instances, then random ones of increasing size."""
        if self.whole:
            for n in range(2, 5):
                for true, pred in product(partitions(n), repeat=2):
                    if not np.array_equal(true, pred):
                        yield self.build((), np.column_stack([true, pred]))
            for n in sorted(rng.integers(5, 13, size=n_random)):
                elsewhere = self.anything(n, rng)
                if self.admits(elsewhere):
                    yield self.build((), elsewhere)
            return
        for context in ("bare", "amigo"):
            for sizes in self._sizes_up_to(SMALL):
                yield self.instance(sizes, context)
        for sizes in self._sizes_up_to(CROWDED):
            yield from (self.build(sizes, each) for n in (1, 2) for each in self._contexts(n))
        for n in sorted(rng.integers(1, 13, size=n_random)):
            sizes = tuple(int(rng.integers(least, LARGE + 1)) for least in self.least)
            yield self.build(sizes, self.anything(n, rng))

    def _sizes_up_to(self, most: int) -> Iterator[tuple[int, ...]]:
        return product(*(range(least, most + 1) for least in self.least))

    def _contexts(self, n: int) -> Iterator[Int64s]:
        """Yield all possible labels of n items elsewhere."""
        for true, pred in product(partitions(n, self.continued), partitions(n)):
            classes = np.where(true < self.continued, true, self.continued - 1 - true)
            yield np.column_stack([classes, -1 - pred])

    def anything(self, n: int, rng: np.random.Generator) -> Int64s:
        """Return random labels of n items elsewhere, which may be in continued classes."""
        classes, clusters = rng.integers(1, max(1, n) + 1, size=2)
        true = rng.integers(-classes, self.continued, size=n)
        return np.column_stack([true, -rng.integers(1, clusters + 1, size=n)]).astype(np.int64)


#: Every constraint by name, in the order of the papers.
CONSTRAINTS: dict[str, Constraint] = {}


def constraint(statement: str, least: tuple[int, ...], **how: Any) -> Callable[[Parts], Parts]:
    """Declare a constraint with the name of the decorated function, which makes its parts."""

    def declare(parts: Parts) -> Parts:
        name = parts.__name__.lstrip("_")
        CONSTRAINTS[name] = Constraint(name, statement, least, parts, **how)
        return parts

    return declare


@constraint("a cluster of two classes is worse than its two pure parts", (1, 1), continued=2)
def _homogeneity(first: int, second: int) -> tuple[ArrayLike, ...]:
    truth = np.repeat([0, 1], [first, second])
    return truth, np.zeros_like(truth), truth


@constraint("two pure clusters of one class are worse than both as one", (1, 1), continued=1)
def _completeness(first: int, second: int) -> tuple[ArrayLike, ...]:
    worse = np.repeat([0, 1], [first, second])
    return np.zeros_like(worse), worse, np.zeros_like(worse)


@constraint(
    "adding an unrelated item to a pure cluster is worse than adding it to one where no two items belong "
    "together",
    (2,),
)
def _rag_bag(n: int) -> tuple[ArrayLike, ...]:
    truth = [*[0] * n, *range(1, n + 1), n + 1]
    clean, noisy = [0] * n, [1] * n
    return truth, [*clean, *noisy, 0], [*clean, *noisy, 1]


@constraint("splitting n classes of two items is worse than splitting one item off a class of n + 1", (2,))
def _size_versus_quantity(n: int) -> tuple[ArrayLike, ...]:
    pairs = np.repeat(np.arange(1, n + 1), 2)
    large = np.zeros(n + 1, np.int64)
    cut_off = np.repeat([0, n + 1], [n, 1])
    return tuple(map(np.concatenate, ([large, pairs], [large, np.arange(1, 2 * n + 1)], [cut_off, pairs])))


@constraint("an item of a small class in a large class's cluster is worse than the reverse", (2, 1))
def _unbalanced(small: int, more: int) -> tuple[ArrayLike, ...]:
    large = small + more
    truth = np.repeat([0, 1], [large, small])
    from_small, from_large = truth.copy(), truth.copy()
    from_small[large] = 0
    from_large[large - 1] = 1
    return truth, from_small, from_large


@constraint("every prediction but the truth is worse than the truth", (), whole=True)
def _perfect_match() -> tuple[ArrayLike, ...]:
    return [], [], []


def homogeneity(
    first: int = 3, second: int = 2, *, context: Context = "bare", n_elsewhere: int = 12, seed: int = 0
) -> Instance:
    """Make an instance in which a cluster of exactly two classes should score worse than its two pure parts.

    Parameters
    ----------
    first, second : int
        Number of items of each class in the cluster.
    context : {"bare", "amigo", "random"}
        The other items: none ("bare"); a larger pure cluster of the first class and a noise cluster, as in Amigó et
        al. ("amigo"); or random items in any classes and clusters ("random").
    n_elsewhere : int
        Number of other items in a random context.
    seed : int
        Seed of a random context.

    Returns
    -------
    Instance

    Raises
    ------
    OptionError
        If a size is too small, or the context is unknown.

    Examples
    --------
    >>> print(homogeneity(2, 1))
    truth ab|c; worse abc; better ab|c
    """
    return CONSTRAINTS["homogeneity"].instance((first, second), context, n_elsewhere, seed)


def completeness(
    first: int = 3, second: int = 2, *, context: Context = "bare", n_elsewhere: int = 12, seed: int = 0
) -> Instance:
    """Make an instance in which two pure clusters of one class are worse than the same clusters merged.

    The parameters and errors are those of `homogeneity`. In the context "amigo", the class has a third cluster that is
    larger than the other two together.

    Examples
    --------
    >>> print(completeness(2, 1, context="amigo"))
    truth abcdefg|h|i|j; worse ab|c|defg|hij; better abc|defg|hij
    """
    return CONSTRAINTS["completeness"].instance((first, second), context, n_elsewhere, seed)


def rag_bag(n: int = 4, *, context: Context = "bare", n_elsewhere: int = 12, seed: int = 0) -> Instance:
    """Make an instance in which a stray item is worse in a cluster of one class than in a cluster of n classes.

    For n = 1, both predictions are equally bad, so checks begin with n = 2. None of the classes has items outside the
    constraint's clusters. The other parameters and errors are those of `homogeneity`.

    Examples
    --------
    >>> print(rag_bag(2))
    truth ab|c|d|e; worse abe|cd; better ab|cde
    """
    return CONSTRAINTS["rag_bag"].instance((n,), context, n_elsewhere, seed)


def size_versus_quantity(
    n: int = 4, *, context: Context = "bare", n_elsewhere: int = 12, seed: int = 0
) -> Instance:
    """Make an instance in which splitting n pairs is worse than splitting one item off a class of n + 1 items.

    For n = 1, both predictions are equally bad, so checks begin with n = 2. None of the classes has items outside the
    constraint's clusters. The other parameters and errors are those of `homogeneity`.

    Examples
    --------
    >>> print(size_versus_quantity(2))
    truth abc|de|fg; worse abc|d|e|f|g; better ab|c|de|fg
    """
    return CONSTRAINTS["size_versus_quantity"].instance((n,), context, n_elsewhere, seed)


def unbalanced(
    large: int = 10, small: int = 2, *, context: Context = "bare", n_elsewhere: int = 12, seed: int = 0
) -> Instance:
    """Make an instance in which a small class's item in a large class's cluster is worse than the reverse.

    Few item-based scores satisfy the constraint; Moreno and Dias adapted BCubed to satisfy it. None of the classes
    has items outside the constraint's clusters. The other parameters and errors are those of `homogeneity`.

    Examples
    --------
    >>> print(unbalanced(4, 2))
    truth abcd|ef; worse abcde|f; better abc|def
    """
    if whole_number(large, "large", "items", most=MOST) <= whole_number(small, "small", "items", least=1):
        raise OptionError(f"The large class of {large} items must be larger than the small one of {small}.")
    return CONSTRAINTS["unbalanced"].instance((small, large - small), context, n_elsewhere, seed)


def perfect_match(n: int = 8, *, seed: int = 0) -> Instance:
    """Make an instance in which a random prediction is worse than the truth, which is a random clustering.

    Parameters
    ----------
    n : int
        Number of items, at least two.
    seed : int
        Seed of the truth and the prediction.

    Raises
    ------
    OptionError
        If there are fewer than two items.

    Examples
    --------
    >>> print(perfect_match(4, seed=1))
    truth acd|b; worse ab|cd; better acd|b
    """
    n = whole_number(n, "n", "items", least=2, most=MOST)  # a single item has only one clustering
    own, rng = CONSTRAINTS["perfect_match"], np.random.default_rng(seed_of(seed))
    while True:
        elsewhere = own.anything(n, rng)
        if own.admits(elsewhere):
            return own.build((), elsewhere)


#: The examples of Amigó et al., one per constraint: the first two were read off their figure 11, the others follow
#: their definitions.
AMIGO_TEST_CASES = {
    name: Instance(name, labels_of(truth), labels_of(worse), labels_of(better))
    for name, truth, worse, better in (
        ("homogeneity", "abcde|fgilmn|h|j|k", "abcd|efg|hijklmn", "abcd|e|fg|hijklmn"),
        ("completeness", "abcdefg|h|ilmn|j|k", "abcd|e|fg|hijklmn", "abcd|efg|hijklmn"),
        ("rag_bag", "a|b|c|d|e|fghi", "abcd|efghi", "abcde|fghi"),
        ("size_versus_quantity", "abcde|fg|hi|jk|lm", "abcde|f|g|h|i|j|k|l|m", "abcd|e|fg|hi|jk|lm"),
    )
}
