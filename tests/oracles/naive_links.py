"""The clusters that links connect, found by spreading labels until nothing changes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

__all__ = ["naive_components", "naive_reached"]


def naive_reached(
    links: Sequence[tuple[Hashable, Hashable, float]], threshold: float, ascending: bool = False
) -> list[tuple[Hashable, Hashable]]:
    """Return the pairs of the links that reach a threshold."""
    return [(a, b) for a, b, score in links if (score <= threshold if ascending else score >= threshold)]


def naive_components(
    pairs: Sequence[tuple[Hashable, Hashable]], items: Iterable[Hashable]
) -> set[frozenset[Hashable]]:
    """Return the sets of items that pairs connect; an item in no pair is alone."""
    label = {item: item for item in items}
    changed = True
    while changed:
        changed = False
        for a, b in pairs:
            if label[a] != label[b]:
                old, new = label[a], label[b]
                label = {item: new if own == old else own for item, own in label.items()}
                changed = True
    return {frozenset(item for item in label if label[item] == own) for own in label.values()}
