"""The naive twin of opening a cluster: the raw rows of its members, grouped by the clusters of the other side."""

from __future__ import annotations

from typing import Any

from naive import Alone, Naive

LOSSES = {"precision_loss": "over_merge_rate", "recall_loss": "under_merge_rate"}


def open_cluster(naive: Naive, side: str, label: Any) -> dict[str, Any]:
    """Return what a cluster comes to, its parts and its members, all of them and in order."""
    own, other = (naive.true, naive.pred) if side == "true" else (naive.pred, naive.true)
    raw = naive.truth if side == "true" else naive.prediction
    members = [e for e, cluster in own.items() if cluster == label]
    parts: dict[Any, list[Any]] = {}
    for e in members:
        parts.setdefault(other[e], []).append(e)
    total = sum(naive.weight[e] for e in naive.true)
    found = [
        {
            "cluster": None if isinstance(cluster, Alone) else cluster,
            "n_items": len(items),
            "weight": float(sum(naive.weight[e] for e in items)),
            "n_items_of_cluster": sum(each == cluster for each in other.values()),
            "members": in_order(naive, items),
        }
        | {
            name: float(sum(naive.weight[e] * naive.score(score, e) for e in items) / total)
            for name, score in LOSSES.items()
        }
        for cluster, items in parts.items()
    ]
    found.sort(key=lambda part: (-part["n_items"], -part["weight"], *_last_if_none(part)))
    alone = [e for e, cluster in raw.items() if cluster == label and e not in own]
    return {
        "n_items": len(members),
        "weight": sum(part["weight"] for part in found),
        "n_parts": len(found),
        **{name: sum(part[name] for part in found) for name in LOSSES},
        "parts": found,
        "one_sided": sorted(alone),
    }


def in_order(naive: Naive, items: list[Any]) -> list[Any]:
    """Return items by weight, heaviest first, then by id."""
    return sorted(items, key=lambda e: (-naive.weight[e], e))


def _last_if_none(part: dict[str, Any]) -> tuple[Any, ...]:
    """Return a key that sorts clusters by label, those without one last and by their item."""
    return (1, part["members"][0]) if part["cluster"] is None else (0, part["cluster"])


def outcome(naive: Naive, side: str, label: Any) -> str | None:
    """Return what became of a cluster, by the words of the library; None if none of its items is scored."""
    own, other = (naive.true, naive.pred) if side == "true" else (naive.pred, naive.true)
    members = {e for e in own if own[e] == label}
    if not members:
        return None
    whole = {e for e in other if other[e] in {other[m] for m in members}}
    strangers = {e for e, cluster in naive.outside.items() if cluster in {naive.pred[m] for m in members}}
    in_one = len({other[m] for m in members}) == 1
    if side == "true":
        merged = bool(whole - members or strangers)
        return (
            ("exact" if in_one else "split") if not merged else ("merged" if in_one else "split and merged")
        )
    pure = in_one and not strangers
    if whole <= members and not strangers:
        return "exact" if pure else "union"
    return "fragment" if pure else "mixed"
