"""Slices that are asked for: which columns they take, and the tables of their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from fastbcubed.engines.request import Request
from fastbcubed.engines.spark.adding_up import Sums
from fastbcubed.engines.spark.frames import FrameRows, FrameSide, item_names
from fastbcubed.engines.spark.joined_items import Table
from fastbcubed.engines.spark.streamed_cells import Question
from fastbcubed.errors import OptionError, SliceError
from fastbcubed.results.slices.bins import Bins
from fastbcubed.results.slices.slice_sums import SliceSums
from fastbcubed.results.slices.slicing import (
    ID,
    Element,
    SliceKey,
    attribute_home,
    elements,
    size_named,
    slice_name,
)

#: Why an attribute of both sides needs a prefix here.
NOT_COMPARED = "the Spark engine does not look whether they are equal"


@dataclass(frozen=True)
class Slicing:
    """The slices of a request: what has to go with the rows, and what attributes are called there."""

    keys: list[SliceKey]
    names: list[dict[str, Element]]
    carried: tuple[Mapping[str, str], Mapping[str, str]]
    tables: tuple[Table, ...]
    parts: Mapping[str, str]  #: parts of ids, by new name

    def tables_of(self, sums: Sums, question: Question, total: float) -> dict[str, pa.Table]:
        """Return the slices by name."""
        found = {}
        for key, names, part in zip(self.keys, self.names, sums.slices, strict=True):
            own = SliceSums(names, question.grouped, question.beta, None)
            own.add(part)
            found[slice_name(key)] = own.result(total)
        return found


def find(request: Request, sides: tuple[FrameSide, FrameSide]) -> Slicing:
    """Find the attributes that are asked for; unknown ones raise before the work."""
    truth, prediction = sides
    given = request.given
    for key in request.slices:
        if isinstance(key, Mapping):
            raise OptionError(
                f"the Spark engine does not serve subsets by name ({', '.join(map(repr, key))}), as rows have no order "
                "there; add a column that tells them, and slice by it"
            )
    extra, tables = _tables(request, truth)
    parts = truth.items if len(truth.items) > 1 else ()
    known = {"truth": truth.attributes, "prediction": prediction.attributes, ID: parts}
    asked = dict.fromkeys(
        each.name if isinstance(each, Bins) else each for key in request.slices for each in elements(key)
    )
    names: dict[str, str] = {}
    of_ids: dict[str, str] = {}
    carried: dict[str, dict[str, str]] = {"truth": {}, "prediction": {}, "": {}}
    for k, name in enumerate(each for each in asked if size_named(each, known, tuple(extra)) is None):
        side, own = attribute_home(name, known, tuple(extra), NOT_COMPARED)
        new = f"s{k}"
        if side == ID:
            of_ids[new] = own
            names[name] = f"attributes.{new}"
            continue
        rows = extra[own] if side == "" else (truth if side == "truth" else prediction).rows
        if rows.is_nested(own):
            raise SliceError(f"cannot slice by {name!r}, which is nested; use a plain column")
        new = carried[side].setdefault(own, new)
        names[name] = f"attributes.{new}"
    if given.attributes is not None and carried[""]:
        rows = next(iter(extra.values()))
        ids = item_names(rows, given.item, truth)
        tables.append(Table(rows, ids, carried[""], "attributes", "one row"))
    located = [{str(each): _located(each, names) for each in elements(key)} for key in request.slices]
    return Slicing(request.slices, located, (carried["truth"], carried["prediction"]), tuple(tables), of_ids)


def _tables(request: Request, truth: FrameSide) -> tuple[dict[str, FrameRows], list[Table]]:
    """Return the columns of a table of attributes, and the table of weights."""
    given, tables = request.given, []
    extra: dict[str, FrameRows] = {}
    if given.attributes is not None:
        rows = FrameRows(given.attributes, "the attributes")
        ids = item_names(rows, given.item, truth)
        extra = {name: rows for name in rows.names if name not in ids}
    if given.weight is not None and not isinstance(given.weight, str):
        rows = FrameRows(given.weight, "the weight table")
        ids = item_names(rows, given.item, truth)
        rest = [name for name in rows.names if name not in ids]
        name = "weight" if "weight" in rest or len(rest) != 1 else rest[0]
        rows.columns([name])
        tables.append(Table(rows, ids, {name: "w_table"}, "weight", "one weight"))
    return extra, tables


def _located(element: Element, names: Mapping[str, str]) -> Element:
    """Return an attribute, or bins of it, under the name of its column."""
    if isinstance(element, Bins):
        return replace(element, name=names[element.name])
    return names.get(element, element)
