"""Which columns of a table are its items and clusters: as named, by default, the only ones left, or by layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, first_few
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import to_numpy
from fastbcubed.sources.layouts import Reading, readings
from fastbcubed.sources.link_columns import links_hint
from fastbcubed.sources.selection import plain
from fastbcubed.sources.suggestions import Typed, similar
from fastbcubed.sources.tables import ColumnName, Rows, column_names, listed


class Chosen(NamedTuple):
    """Columns that were chosen for what was asked, in its order, and how they were recognised if they were."""

    columns: list[list[str]]
    reading: Reading | None = None


def choose_columns(
    rows: Rows, asked: Mapping[str, ColumnName], taken: str | None = None, typed: Typed | None = None
) -> Chosen:
    """Return the columns for an item and a cluster, or for an item and a weight.

    `asked` is what is looked for, under its default name: a column, or the columns of a composite id; `taken`
    a further column that has another use; `typed` writes arguments for messages.

    A default name ("item" for the item, and so on) that the table lacks stands for the only column
    that is left when the others are taken away, or for one that a known tool gives to it.
    """
    typed = typed or Typed()
    chosen = {part: column_names(names, part) for part, names in asked.items()}
    for part, names in chosen.items():
        if names != [part]:
            _require(rows, part, names, typed)
    missing = [part for part, names in chosen.items() if names == [part] and part not in rows.names]
    used = {taken, *(name for names in chosen.values() for name in names)}
    left = [name for name in rows.names if name not in used]
    reading = None
    if len(missing) == 1 and len(left) == 1:
        chosen[missing.pop()] = left
    elif missing and "cluster" in asked:
        reading = _recognised(rows, chosen, missing, taken, typed)
        if reading is not None:
            chosen = {"item": list(reading.items), "cluster": list(reading.clusters)}
            missing = []
    if missing:
        wanted = " and no ".join(f"column {part!r}" for part in missing)
        hint = " and ".join(f"{part}=" for part in missing)
        raise ColumnError(
            f"There is no {wanted} in {rows.where} ({listed(rows.names)}). Name the right one with {hint}."
            + (rows.hint or links_hint(rows.names))
        )
    first, second = chosen.values()
    if common := [name for name in first if name in second]:
        raise ColumnError(
            f"{' and '.join(chosen)} are the same column of {rows.where}: {', '.join(common)}. Name two."
        )
    return Chosen([first, second], reading)


def _require(rows: Rows, part: str, names: list[str], typed: Typed) -> None:
    """Raise if the table lacks a column that was named, with what to type instead."""
    absent = [name for name in names if name not in rows.names]
    if not absent:
        return
    found = [similar(name, rows.names) if name in absent else name for name in names]
    hint = f"Name the right one with {part}="
    if None not in found and len(set(found)) == len(found):
        hint = f"Did you mean {typed({part: [name for name in found if name is not None]})}"
    end = "?" if hint.startswith("Did") else "."
    raise ColumnError(
        f"There is no column {absent[0]!r} in {rows.where} ({listed(rows.names)}). {hint}{end}{rows.hint}"
    )


def _recognised(
    rows: Rows, chosen: Mapping[str, list[str]], missing: list[str], taken: str | None, typed: Typed
) -> Reading | None:
    """Return how a known tool's columns are to be read; None if there are none; ambiguous ones raise."""
    names = [name for name in rows.names if name != taken]
    items, clusters = (None if part in missing else chosen[part] for part in ("item", "cluster"))
    found = readings(names, items, clusters)
    if clusters == ["cluster"]:  # by default, where those of a tool may be meant
        found += [each for each in readings(names, items, None) if each.clusters != ("cluster",)]
    if items == ["item"]:
        found += [each for each in readings(names, None, clusters) if each.items != ("item",)]
    if len(found) < 2:
        return found[0] if found else None
    raise ColumnError(
        f"The columns of {rows.where} can be read in {len(found)} ways ({listed(rows.names)}). Say which: "
        f"{'; or '.join(_ways(found, typed))}."
    )


def _ways(found: list[Reading], typed: Typed) -> list[str]:
    """Return what to type for each of several readings: what tells it from the others, if that is no default."""
    ways = []
    for each in found:
        parts = {part: own for part, own in zip(("item", "cluster"), each[:2], strict=True) if own != (part,)}
        telling = {
            part: own for part, own in parts.items() if any(getattr(r, f"{part}s") != own for r in found)
        }
        ways.append(typed(telling or parts))
    return ways


def refuse_links(rows: Rows, reading: Reading) -> None:
    """Raise if rows link two clusters, and do not say that an item is in one."""
    name = next((name for name in rows.names if name.lower() == reading.layout.links), None)
    if name is None:
        return
    values = plain(rows.column(name))
    texts = values if pa.types.is_string(values.type) else values.cast(pa.string())
    none = pc.is_in(texts, value_set=pa.array(["", "0", None], pa.string()))
    linking = np.flatnonzero(~to_numpy(none))
    if linking.size:
        raise ColumnError(
            f"{linking.size} of {len(values)} rows of {rows.where} have a {name} other than 0 (first: row "
            f"{first_few(linking[:4].tolist())}): they tell which clusters are related, not which items are in one. "
            "Leave them out, or export without relations."
        )
