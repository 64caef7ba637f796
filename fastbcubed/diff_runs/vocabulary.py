"""The vocabulary of a diff: its names for sides, columns, slices and words of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from fastbcubed.errors import (
    Argument,
    ColumnError,
    Message,
    MetricError,
    OptionError,
    Word,
    arg,
    quoted,
    rewording,
)
from fastbcubed.inputs.pair import default_for_truth_only
from fastbcubed.results.slice_bins import Bins
from fastbcubed.results.slices import OURS, Element, Renamed, SliceKey, check_key, name_columns
from fastbcubed.results.table import LOSS, Table
from fastbcubed.runtime.arguments import is_one_of

#: The sides of a diff, and their names in an evaluation: in tables, and in policies and attributes.
SIDES = {"baseline": "true", "experiment": "pred"}
PLACES = {"baseline": "truth", "experiment": "prediction"}
OF_PLACES = {place: side for side, place in PLACES.items()}
#: The names of sides that were not read from files.
NAMES = ("the baseline", "the experiment")
#: The outcomes of clusters in a diff, by side and by outcome in an evaluation.
OUTCOMES: dict[str, dict[str, str]] = {
    "true": {
        "exact": "unchanged",
        "split": "split",
        "merged": "merged",
        "split and merged": "split and merged",
    },
    "pred": {"exact": "unchanged", "fragment": "fragment", "union": "union", "mixed": "mixed"},
}
#: The outcomes of clusters that only one side has.
GONE: str = "gone"
APPEARED: str = "appeared"
#: Columns of listings by their names in an evaluation; columns with None are left out.
COLUMNS: dict[str, str | None] = {
    "true_cluster": "baseline_cluster",
    "pred_cluster": "experiment_cluster",
    "true_mates": "baseline_mates",
    "pred_mates": "experiment_mates",
    "recall_loss": "split_change",
    "precision_loss": "merge_change",
    "tp": "stable",
    "fn": "split",
    "fp": "merged",
    "tn": None,
}
#: The attribute that has an item's true cluster if a truth judges the diff.
TRUE_CLUSTER = "true_cluster"
#: The names of columns in an evaluation, by those in a diff.
BACK = {new: old for old, new in COLUMNS.items() if new is not None}
#: Slices by size, which every diff has.
SIZES = {"true_size": "baseline_size", "pred_size": "experiment_size"}
OF_SIZES = (*SIZES, *SIZES.values())
#: The order by the sum of split and merge change.
CHANGE = "change"
#: Names that mean different scores in ABCDE and in this library; within a diff, they mean those of ABCDE.
MEANT = {"merge_distance": "merge_jaccard_distance", "split_distance": "split_jaccard_distance"}


def side_of(side: Any) -> str:
    """Return an evaluation's name for a side of a diff."""
    if not isinstance(side, str) or side not in SIDES:
        raise OptionError(f'the side of a cluster must be "baseline" or "experiment", not {quoted(side)}')
    return SIDES[side]


def meant(name: Any) -> Any:
    """Return the registry's name for a score that has another name in a diff; other names are unchanged."""
    return MEANT.get(name, name) if isinstance(name, str) else name


def as_policies(unmatched: Any, baseline: Any, experiment: Any) -> Any:
    """Return policies for missing items by an evaluation's sides; by default, items without links are singletons."""
    if unmatched is None:
        return {"truth": default_for_truth_only(experiment), "prediction": default_for_truth_only(baseline)}
    return by_place(unmatched, "unmatched", "policy")


def by_place(given: Any, name: str, what: str) -> Any:
    """Return a mapping from sides of a diff with an evaluation's names of the sides; anything else as given."""
    if not isinstance(given, Mapping):
        return given
    if strange := [side for side in given if side not in PLACES]:
        raise OptionError(
            f"{arg(name, ...)} has a {what} for {strange[0]!r}, but the sides are named baseline and experiment"
        )
    return {PLACES[side]: value for side, value in given.items()}


# -- Listings --------------------------------------------------------------------------------------


def renamed(table: pa.Table | Table, known: Iterable[str] = ()) -> Table:
    """Return a listing of an evaluation with a diff's names of columns, splits before merges.

    Attributes, whose columns are `known`, keep their names, with the prefix ``attribute.`` if a figure has that name.
    """
    arrow = table.to_arrow() if isinstance(table, Table) else table
    own, known = list(COLUMNS.values()), set(known)
    columns: dict[str, Any] = {}
    names = list(arrow.column_names)
    for merge, split in (("precision_loss", "recall_loss"), ("fp", "fn")):
        if merge in names and split in names:
            at = names.index(merge), names.index(split)
            names[min(at)], names[max(at)] = split, merge
    for name in names:
        if name in known:
            new: str | None = f"attribute.{name}" if name in own else name
        else:
            new = COLUMNS.get(name, name)
        if new is not None:
            columns[new] = arrow[name]
    return Table(pa.table(columns))


def renamed_slices(table: pa.Table | Table) -> Table:
    """Return slices of an evaluation with a diff's names of columns."""
    names = list(map(called_as_slices, name_columns(table.column_names)))

    def change(arrow: pa.Table) -> pa.Table:
        return renamed(arrow.rename_columns([*names, *arrow.column_names[len(names) :]]), names).to_arrow()

    return table._changed(change) if isinstance(table, Table) else Table(change(table))


def asked_order(order_by: str | None) -> str:
    """Return the evaluation's sort column for an order of a diff; None means the largest change first."""
    if is_one_of(order_by, (None, CHANGE)):
        return LOSS
    if not isinstance(order_by, str):
        raise MetricError(
            f"a listing must be ordered by the name of a score or another column, not {quoted(order_by)}"
        )
    if order_by in COLUMNS or order_by == LOSS:
        raise MetricError(
            f"cannot order by {quoted(order_by)}; a diff calls it {COLUMNS.get(order_by, CHANGE)!r}"
        )
    order_by = MEANT.get(order_by, order_by)
    return BACK.get(order_by, order_by)


# -- Slices ----------------------------------------------------------------------------------------


def asked_slices(key: SliceKey, *, judged: bool) -> SliceKey:
    """Return a slicing with an evaluation's names; `judged` means that the diff has a truth, with attributes."""

    def asked(element: Element) -> Element:
        if isinstance(element, Bins):
            return replace(element, name=asked_name(element.name, judged=judged))
        return asked_name(element, judged=judged)

    if isinstance(key, tuple):
        return check_key(tuple(map(asked, key)))
    return check_key(asked(key)) if isinstance(key, Element) else key


def asked_name(name: str, *, judged: bool) -> str:
    """Return an evaluation's name for an attribute of a diff."""
    if name in SIZES:
        raise ColumnError(
            f"there is no attribute {name!r}; a diff has {' and '.join(SIZES.values())}. For a column of "
            f"that name, write 'baseline.{name}', 'experiment.{name}' or 'attributes.{name}'"
        )
    own = name.removeprefix(OURS)
    if own in SIZES.values():
        return Renamed(next(old for old, new in SIZES.items() if new == own), name)
    if judged and own == TRUE_CLUSTER:
        return own
    side, dot, own = name.partition(".")
    if dot and side == "truth" and judged:
        return own
    return f"{PLACES[side]}.{own}" if dot and side in PLACES else name


def called(name: str) -> str:
    """Return a diff's name for an attribute of an evaluation."""
    side, dot, own = name.partition(".")
    return f"{OF_PLACES[side]}.{own}" if dot and side in OF_PLACES else name


def called_as_slices(name: str) -> str:
    """Return a diff's name for an attribute or size by which an evaluation is sliced."""
    return SIZES.get(name.removeprefix(OURS)) or called(name)


def in_a_diff(table: pa.Table, attributes: Iterable[str]) -> pa.Table:
    """Return a table whose columns of attributes have a diff's names."""
    return table.rename_columns({name: called(name) for name in attributes if name in table.column_names})


# -- Messages --------------------------------------------------------------------------------------

#: Words of messages in an evaluation, and the corresponding words in a diff.
WORDS = {
    "truth": "baseline",
    "prediction": "experiment",
    "true cluster": "baseline cluster",
    "predicted cluster": "experiment cluster",
    **SIZES,
    **{old: new for old, new in COLUMNS.items() if new is not None and "_" in old},
    LOSS: CHANGE,
}


def in_diff(message: str) -> Message:
    """Return a message of an evaluation in the words of a diff.

    Examples
    --------
    >>> from fastbcubed.errors import TRUTH
    >>> in_diff(Message(f"3 items of the {TRUTH} are in no {Word('predicted cluster')}"))
    '3 items of the baseline are in no experiment cluster'
    >>> in_diff(Message(f"Pass {arg('unmatched', {'prediction': 'drop'})}."))
    'Pass unmatched={"experiment": "drop"}.'
    """
    return Message(message).replaced(_in_diff)


def _in_diff(part: Any) -> Any:
    if isinstance(part, Word):
        return WORDS.get(part.name, part.name)
    if isinstance(part, Argument) and part.name in ("unmatched", "noise"):
        values = (
            {WORDS.get(k, k): own for k, own in value.items()} if isinstance(value, Mapping) else value
            for value in part.values
        )
        return replace(part, values=tuple(values))
    return part


def in_words_of_a_diff() -> AbstractContextManager[None]:
    """Make errors of an evaluation speak of baseline and experiment."""
    return rewording(_in_diff)
