"""Which columns of a table of links are the two items and the score: as named, or by the names that tools give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fastbcubed.errors import ColumnError, OptionError
from fastbcubed.sources.suggestions import Typed, similar
from fastbcubed.sources.tables import ColumnName, Rows, column_names, listed

#: How names of the left and of the right item differ, by case-blind endings or beginnings.
ENDINGS = (("_l", "_r"), ("left", "right"), ("1", "2"), ("_a", "_b"), ("_x", "_y"))
BEGINNINGS = (("left", "right"), ("l_", "r_"), ("ltable_", "rtable_"))
#: Pairs of names that differ as a whole; the second is Zingg's.
WHOLE = (("source", "target"), ("z_zid", "z_z_zid"), ("src", "dst"))
#: What is left of the names of ids; other columns may come in pairs, too.
IDS = (
    "unique_id", "", "item", "item_id", "id", "record", "record_id", "rec_id", "recid", "uid", "key", "node",
    "z_zid",
)  # fmt: skip
#: What is left of the names of a column that makes a composite id with that of the item.
SOURCES = ("source_dataset", "data_source")
#: Names of scores; of several the first is taken.
SCORES = (
    "match_probability", "match_weight", "score", "z_score", "match_score", "probability", "similarity",
    "confidence", "weight",
)  # fmt: skip


class LinkColumns(NamedTuple):
    """The columns of the two items of a link, of one or more parts, and of its score."""

    left: list[str]
    right: list[str]
    score: str | None
    items: list[str]  #: what the parts of an item are called
    tool: str | None = None  #: whose names they are
    recognised: bool = False  #: whether the items were found by such names, other than left and right
    scores: tuple[str, ...] = ()  #: all columns with names of scores, the first one first


class _Pair(NamedTuple):
    """Two columns whose names differ in what says left or right, and what is left of their names."""

    stem: str
    left: str
    right: str


def choose_links(
    rows: Rows,
    left: ColumnName | None = None,
    right: ColumnName | None = None,
    score: str | None = None,
    *,
    scored: bool = False,
) -> LinkColumns:
    """Return the columns of a table of links; a score is looked for if none is named.

    Without names, items are the columns that a known tool writes, or the only two with names that differ as left and
    right do, or the only two. What is not there, or may be read in several ways, raises ColumnError; so does a score
    that is not there, if links have to be `scored`.
    """
    if (left is None) != (right is None):
        missing = "right" if right is None else "left"
        raise OptionError(f"A link has two items, so name the columns of both: {missing}= is missing.")
    named = {} if left is None or right is None else {"left": left, "right": right}
    asked = {part: column_names(names, part) for part, names in named.items()}
    if score is not None:
        if not isinstance(score, str):
            raise OptionError(f"score is the name of a column, not {type(score).__name__}.")
        asked["score"] = [score]
    for part, names in asked.items():
        _require(rows, part, names)
    if named:
        found = _as_named(rows, asked["left"], asked["right"])
    else:
        found = _recognised(rows, score)
    rest = [name for name in rows.names if name not in (*found.left, *found.right)]
    known = {name.lower(): name for name in rest}
    scores = tuple(known[name] for name in SCORES if name in known)
    chosen = score or next(iter(scores or rest[: scored and len(rest) == 1]), None)
    if chosen is None and scored:
        hint = "Name the right one with score=." if rest else "Each link needs one, such as ('a', 'b', 0.9)."
        raise ColumnError(f"There is no column of scores in {rows.where} ({listed(rows.names)}). {hint}")
    if chosen in (*found.left, *found.right):
        raise _score_of_item(rows, chosen)
    return found._replace(score=chosen, tool=_tool_of(found, chosen), scores=scores)


def _score_of_item(rows: Rows, score: str | None) -> ColumnError:
    return ColumnError(
        f"The score of {rows.where} is the column of an item: {score}. Name another with score=."
    )


def _require(rows: Rows, part: str, names: list[str]) -> None:
    """Raise if the table lacks a column that was named."""
    absent = [name for name in names if name not in rows.names]
    if absent:
        near = [similar(name, rows.names) if name in absent else name for name in names]
        hint = f"Name the right one with {part}=."
        if None not in near:
            hint = f"Did you mean {Typed()({part: [name for name in near if name is not None]})}?"
        raise ColumnError(
            f"There is no column {absent[0]!r} in {rows.where} ({listed(rows.names)}). {hint}{rows.hint}"
        )


def _as_named(rows: Rows, left: list[str], right: list[str]) -> LinkColumns:
    if len(left) != len(right):
        raise OptionError(
            f"left= and right= name {len(left)} and {len(right)} columns; an item has as many parts on either side."
        )
    if common := [name for name in left if name in right]:
        raise ColumnError(
            f"left and right are the same column of {rows.where}: {', '.join(common)}. Name two."
        )
    stems = {(pair.left, pair.right): pair.stem for pair in _pairs(rows.names)}
    items = [stems.get(names, "") for names in zip(left, right, strict=True)]
    return LinkColumns(left, right, None, _item_names(items))


def _item_names(stems: Sequence[str]) -> list[str]:
    """Return names of the parts of an item."""
    plain = ["item"] if len(stems) == 1 else [f"item_{k}" for k in range(len(stems))]
    own = [stem or other for stem, other in zip(stems, plain, strict=True)]
    return own if len(set(own)) == len(own) else plain


def _recognised(rows: Rows, score: str | None) -> LinkColumns:
    """Return the columns of items that have no name yet."""
    names = [name for name in rows.names if name != score]
    pairs = list(_pairs(names))
    ids = [pair for pair in pairs if pair.stem.lower() in IDS] or pairs
    if len(ids) > 1 and "match_probability" in {
        name.lower() for name in names
    }:  # those of Splink may be among others
        ids = [pair for pair in ids if pair.stem.lower() == "unique_id"] or ids
    if len(ids) > 1:
        ways = [Typed()({"left": [pair.left], "right": [pair.right]}) for pair in ids[:4]]
        raise ColumnError(
            f"The items of {rows.where} may be in {len(ids)} pairs of columns ({listed(rows.names)}). Say which: "
            f"{'; or '.join(ways)}."
        )
    if ids:
        sources = [pair for pair in pairs if pair.stem.lower() in SOURCES and pair not in ids]
        parts = [*sources[:1], *ids]
        return LinkColumns(
            [pair.left for pair in parts],
            [pair.right for pair in parts],
            None,
            _item_names([pair.stem for pair in parts]),
            recognised=len(parts) > 1 or bool(ids[0].stem),
        )
    rest = [name for name in names if name.lower() not in SCORES]
    if len(rest) == 2:
        return LinkColumns(rest[:1], rest[1:], None, ["item"], recognised=True)
    if score is not None and any(score in (pair.left, pair.right) for pair in _pairs(rows.names)):
        raise _score_of_item(rows, score)
    clusters = {"item", "cluster"} <= set(rows.names)
    hint = (
        " With item and cluster it looks like a clustering, which is no table of links." if clusters else ""
    )
    raise ColumnError(
        f"There are no columns left and right in {rows.where} ({listed(rows.names)}). Name the columns of the two "
        f"items of a link with left= and right=.{hint}{rows.hint}"
    )


def links_hint(names: Sequence[str]) -> str:
    """Return, to end a message with, that columns look like those of links; nothing if they do not."""
    ids = [pair for pair in _pairs(names) if pair.stem.lower() in IDS]
    if not ids:
        return ""
    return (
        f" With {ids[0].left} and {ids[0].right} it looks like a table of links, pairs of items: pass "
        "Clustering.from_links(...)."
    )


def _pairs(names: Sequence[str]) -> Iterator[_Pair]:
    """Yield the pairs of columns whose names differ as those of a left and a right item, each once."""
    known = {name.lower(): name for name in reversed(names)}
    found = set()
    for name in names:
        for stem, other in _counterparts(name.lower()):
            pair = (name, known.get(other, name))
            if pair[1] != name and pair not in found:
                found.add(pair)
                yield _Pair(name[stem].strip("_"), *pair)


def _counterparts(name: str) -> Iterator[tuple[slice, str]]:
    """Yield where the stem of the name of a left item may stand, and what the right one is called then."""
    for left, right in ENDINGS:
        if name.endswith(left):
            yield slice(0, len(name) - len(left)), name.removesuffix(left) + right
    for left, right in BEGINNINGS:
        if name.startswith(left):
            yield slice(len(left), len(name)), right + name.removeprefix(left)
    for left, right in WHOLE:
        if name == left:
            yield slice(0, len(name) if left == "z_zid" else 0), right


def _tool_of(found: LinkColumns, score: str | None) -> str | None:
    """Return the tool that gives columns these names, if they tell it."""
    if found.items[-1].lower() == "unique_id" and (score or "").lower() in SCORES[:2]:
        return "Splink"
    return "Zingg" if found.items[-1].lower() == "z_zid" else None
