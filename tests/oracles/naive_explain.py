"""The naive twin of explanations: losses of items, figures of slices, and tests by component, from raw rows.

It restates the definitions in the notes of `Evaluation.explain` with loops, and shares no code with the package. Rows
are dicts with item, true, pred, weight and attributes.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from naive_errors import connected

Row = Mapping[str, object]


def scores_of_items(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Return precision and recall of each item, by weight."""
    found = []
    for row in rows:
        own = sum(r["weight"] for r in rows if r["true"] == row["true"] and r["pred"] == row["pred"])
        pred = sum(r["weight"] for r in rows if r["pred"] == row["pred"])
        true = sum(r["weight"] for r in rows if r["true"] == row["true"])
        found.append((own / pred, own / true))
    return found


def score(
    rows: Sequence[Row], items: Sequence[tuple[float, float]], loss: str, which: Sequence[int]
) -> float:
    """Return the score of some rows: the F1 of means, or a mean."""
    whole = sum(rows[k]["weight"] for k in which)
    p, r = (sum(rows[k]["weight"] * items[k][at] for k in which) / whole for at in (0, 1))
    return {"precision": p, "recall": r, "f1": 2 * p * r / (p + r)}[loss]


def losses(rows: Sequence[Row], items: Sequence[tuple[float, float]], loss: str) -> list[float]:
    """Return the loss of each item to first order: 1 - p, 1 - r, or the slopes of F1 times these."""
    every = range(len(rows))
    p, r = (score(rows, items, name, every) for name in ("precision", "recall"))
    slopes = {
        "precision": (1, 0),
        "recall": (0, 1),
        "f1": (2 * r**2 / (p + r) ** 2, 2 * p**2 / (p + r) ** 2),
    }[loss]
    return [slopes[0] * (1 - a) + slopes[1] * (1 - b) for a, b in items]


def is_in(row: Row, conditions: Sequence[Mapping[str, object]]) -> bool:
    """Return whether a row meets all conditions of a slice."""

    def meets(value: object, condition: Mapping[str, object]) -> bool:
        if condition.get("null") or value is None:
            return bool(condition.get("null")) and value is None
        if "value" in condition:
            return value == condition["value"]
        if "values" in condition:
            return value in condition["values"]
        return condition.get("low", value) <= value <= condition.get("high", value)

    return all(meets(row[each["attribute"]], each) for each in conditions)


def components(rows: Sequence[Row]) -> list[int]:
    """Return the component of each row."""
    by_cluster = defaultdict(set)
    for row in rows:
        by_cluster["true", row["true"]].add(row["item"])
        by_cluster["pred", row["pred"]].add(row["item"])
    mates = {row["item"]: by_cluster["true", row["true"]] | by_cluster["pred", row["pred"]] for row in rows}
    found = connected(mates)
    return [found[row["item"]] for row in rows]


def figures(rows: Sequence[Row], conditions: Sequence[Mapping[str, object]], loss: str) -> dict[str, float]:
    """Return the figures of a slice that are of all items."""
    items = scores_of_items(rows)
    lost = losses(rows, items, loss)
    inside = [k for k, row in enumerate(rows) if is_in(row, conditions)]
    outside = [k for k in range(len(rows)) if k not in set(inside)]
    of, units = components(rows), len({components(rows)[k] for k in inside})

    def total(which: Sequence[int], values: Sequence[float]) -> float:
        return sum(rows[k]["weight"] * values[k] for k in which)

    ones, every = [1.0] * len(rows), range(len(rows))
    share = total(inside, ones) / total(every, ones)
    mean, other = (total(which, lost) / total(which, ones) for which in (inside, outside))
    assert units == len({of[k] for k in inside})
    return {
        "n_items": len(inside), "n_units": units, "share": share, "inside": score(rows, items, loss, inside),
        "outside": score(rows, items, loss, outside), "excess": share * (mean - other),
        "share_of_loss": total(inside, lost) / total(every, lost),
    }  # fmt: skip


def claim(
    rows: Sequence[Row],
    lost: Sequence[float],
    units: Sequence[int],
    inside: set[int],
    of: set[int],
    half: set[int],
) -> list[float]:
    """Return what each unit of a half adds to the claim that a slice loses more than the rows that it is one of."""
    every, of = half, half & of
    weight = {k: rows[k]["weight"] for k in every}
    middle = sum(weight[k] * lost[k] for k in of) / sum(weight[k] for k in of)
    share = sum(weight[k] for k in inside & of) / sum(weight[k] for k in of)
    moved: dict[int, float] = defaultdict(float)
    for k in every:
        if k in of:
            moved[units[k]] += ((k in inside) - share) * weight[k] * (lost[k] - middle)
        else:
            moved[units[k]] += 0.0
    return list(moved.values())


def p_value(moved: Sequence[float]) -> float:
    """Return the p-value, of one side, by Student's t with the degrees of freedom of Satterthwaite."""
    from scipy import stats

    squares, fourths, n = sum(x**2 for x in moved), sum(x**4 for x in moved), len(moved)
    df = min(max(2 * squares**2 / (fourths - squares**2 / n), 1), n - 1)
    return float(stats.t.sf(sum(moved) / math.sqrt(squares), df))
