"""The columns of links: two items and a score, given by name or recognised as written by tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn

from fastbcubed.errors import ColumnError, Either, OptionError, arg, quoted
from fastbcubed.inputs.tables import (
    BY_TOOL,
    DEFAULT,
    LEFT,
    NAMED,
    ColumnName,
    Source,
    column_names,
    listed,
)
from fastbcubed.inputs.typed_columns import Typed
from fastbcubed.inputs.verdicts import NAMES as VERDICTS
from fastbcubed.runtime.suggestions import similar

#: The column of verdicts, False for none, or None if the caller did not say.
VerdictColumn = str | Literal[False] | None
#: The names of the tables of the left and the right items, False if ids mean the same in both, None if not said.
Sources = tuple[str, str] | Sequence[str] | Literal[False] | None

#: Suffixes and prefixes, in any case, that mark the columns of the left and the right item.
ENDINGS = (("_l", "_r"), ("left", "right"), ("1", "2"), ("_a", "_b"), ("_x", "_y"))
BEGINNINGS = (("left", "right"), ("l_", "r_"), ("ltable_", "rtable_"))
#: Pairs of column names without a common part; the second is Zingg's.
WHOLE = (("source", "target"), ("z_zid", "z_z_zid"), ("src", "dst"))
#: Column names, without the mark for left or right, that are ids; other columns may also come in pairs.
IDS = (
    "unique_id", "", "item", "item_id", "id", "record", "record_id", "rec_id", "recid", "uid", "key", "node",
    "z_zid",
)  # fmt: skip
#: Column names, without the mark for left or right, that make a composite id with the item's.
SOURCES = ("source_dataset", "data_source")
#: Names of score columns; the first one present is used.
SCORES = (
    "match_probability", "match_weight", "score", "z_score", "match_score", "probability", "similarity",
    "confidence", "weight",
)  # fmt: skip


#: How to name the tables of links between two tables.
TWO_TABLES = Either('sources=("a", "b")', "--link-sources a,b")


@dataclass(frozen=True)
class LinkRequest:
    """The columns of links that the caller named, before the table is read; None for columns not named."""

    left: ColumnName | None = None  #: the columns of the two items; a list makes a composite id
    right: ColumnName | None = None
    score: str | None = None
    scored: bool = False  #: whether a score column is required; if not, scores are read only if named
    verdict: VerdictColumn = None  #: column that says whether two items match; only matches are links
    sources: Sources = None  #: names of the tables of the two items, which become composite ids (source, id)

    def columns(self) -> dict[str, list[str]]:
        """Return the named columns by part; raise OptionError for values that are not names, or a single item."""
        if not (self.verdict is None or self.verdict is False or isinstance(self.verdict, str)):
            raise OptionError(
                f"{arg('verdict')} must be the name of a column, or False if no column has verdicts, not "
                f"{quoted(self.verdict)}."
            )
        if (self.left is None) != (self.right is None):
            missing = "right" if self.right is None else "left"
            raise OptionError(
                f"A link has two items, so name the columns of both: {arg(missing, ...)} is missing."
            )
        found = {}
        if self.left is not None and self.right is not None:
            found = {"left": column_names(self.left, "left"), "right": column_names(self.right, "right")}
        if self.score is not None:
            if not isinstance(self.score, str):
                raise OptionError(
                    f"{arg('score')} must be the name of a column, not {type(self.score).__name__}."
                )
            found["score"] = [self.score]
        return found | ({"verdict": [self.verdict]} if self.verdict else {})


class LinkColumns(NamedTuple):
    """The columns of a link's items, each of one or more parts, of its score, and of its verdict."""

    left: list[str]
    right: list[str]
    score: str | None
    items: list[str]  #: names of the parts of an item
    tool: str | None = None  #: the tool that uses these names
    scores: tuple[str, ...] = ()  #: all columns named like scores, in order of precedence
    verdict: str | None = None  #: column that says whether two items match
    sources: tuple[str, str] | None = None  #: names of the tables of the left and the right items
    doubtful: tuple[str, ...] = ()  #: columns that may hold verdicts, to be decided by their values
    reasons: Mapping[str, str] = {}  #: why each of these columns was chosen, by part; empty for arrays

    @property
    def recognised(self) -> bool:
        """Whether the item columns were recognised, under names other than left and right."""
        return self.reasons.get("left") in (BY_TOOL, LEFT)

    def to_dict(self) -> dict[str, Any] | None:
        """Return the reading as JSON: columns, reason and alternatives of each part, and the tool; None for arrays."""
        if not self.reasons:
            return None
        parts: dict[str, Any] = {"left": self.left, "right": self.right}
        parts |= {name: [own] for name in ("score", "verdict") if (own := getattr(self, name)) is not None}
        others = {"score": [[name] for name in self.scores if name != self.score]}
        found = {
            name: {"columns": own, "reason": self.reasons[name], "others": others.get(name, [])}
            for name, own in parts.items()
        }
        return found | {"sources": self.sources and list(self.sources), "tool": self.tool}


class _Pair(NamedTuple):
    """Two columns whose names differ only in the mark for left or right, and the common rest of their names."""

    stem: str
    left: str
    right: str


def choose_links(rows: Source, asked: LinkRequest) -> LinkColumns:
    """Choose the columns of a table of links.

    Unless named, items are the columns that a known tool writes, else the only two whose names differ in a mark for
    left or right, else the only two columns. Raise ColumnError if columns are missing or ambiguous, or if there is no
    score although links must be `scored`.
    """
    score, verdict, scored = asked.score, asked.verdict, asked.scored
    both, named = both_sources(asked.sources), asked.columns()
    for part, names in named.items():
        require_columns(rows, part, names, Typed())
    if "left" in named:
        found = _as_named(rows, named["left"], named["right"])
    else:
        found = _recognised(rows, [name for name in (score, verdict) if name])
    rest = [name for name in rows.names if name not in (*found.left, *found.right, verdict)]
    known = {name.lower(): name for name in rest}
    scores = tuple(known[name] for name in SCORES if name in known)
    chosen = score or next(iter(scores or rest[: scored and len(rest) == 1]), None)
    if chosen is None and scored:
        hint = (
            f"Name the right one with {arg('score', ...)}."
            if rest
            else "Each link needs one, such as ('a', 'b', 0.9)."
        )
        raise ColumnError(f"There is no column of scores in {rows.where} ({listed(rows.names)}). {hint}")
    if chosen in (*found.left, *found.right):
        raise _score_of_item(rows, chosen)
    if verdict and verdict in (*found.left, *found.right, chosen):
        raise ColumnError(
            f"Column {verdict!r} of {rows.where} cannot hold verdicts, because it is already an item or score "
            f"column. Name another with {arg('verdict', ...)}."
        )
    if both is not None:
        found = _with_sources(rows, found, both)
    elif asked.sources is None and found.left[0].lower().startswith("ltable_") and len(found.left) == 1:
        ask_sources(
            f"The columns {found.left[0]} and {found.right[0]} of {rows.where} have the ids of two tables"
        )
    doubtful = (
        _doubtful(rows, rest, {score, *scores}, judged=scored and bool(scores)) if verdict is None else ()
    )
    reasons = dict(found.reasons)
    if chosen is not None:
        reasons["score"] = NAMED if score else DEFAULT if scores else LEFT
    if verdict:
        reasons["verdict"] = NAMED
    return found._replace(
        score=chosen, tool=_tool_of(found, chosen), scores=scores, verdict=verdict or None, doubtful=doubtful,
        reasons=reasons,
    )  # fmt: skip


def ask_sources(why: str) -> NoReturn:
    """Raise ColumnError that asks whether ids come from two tables, which may both number their rows from 0."""
    raise ColumnError(
        f"{why}, which may use the same ids for different rows. Name the tables with {TWO_TABLES}, so that "
        "an id includes its table; if equal ids mean the same item, pass "
        f"{Either('sources=False', '--no-link-sources')}."
    )


def both_sources(sources: Sources) -> tuple[str, str] | None:
    """Return the names of the tables of the left and the right items; None unless they are named."""
    if sources is None or sources is False:
        return None
    given = list(sources) if isinstance(sources, tuple | list) else []
    if len(given) != 2 or not all(isinstance(name, str) and name for name in given):
        raise OptionError(
            f"{Either('sources', '--link-sources')} names the tables of the left and the right items, as in "
            f"{TWO_TABLES}, not {sources!r}."
        )
    return given[0], given[1]


def _with_sources(rows: Source, found: LinkColumns, sources: tuple[str, str]) -> LinkColumns:
    """Return the columns of links whose item ids are preceded by the names of their tables."""
    if own := [
        name for name in (*found.left, *found.right) if "source" in name.lower() and len(found.left) > 1
    ]:
        raise OptionError(
            f"The items of {rows.where} have a column for their source, {own[0]}, so "
            f"{Either('sources', '--link-sources')} is redundant; omit it."
        )
    return found._replace(sources=sources, items=["source", *found.items])


def _doubtful(rows: Source, rest: list[str], scores: set[Any], *, judged: bool) -> tuple[str, ...]:
    """Return the columns that may hold verdicts, to be decided by their values.

    Columns that come in pairs describe the two items and do not count. If scores decide which links connect, only
    columns named like verdicts count, as other columns of flags are common in tables with scores.
    """
    paired = {name for pair in _pairs(rows.names) for name in (pair.left, pair.right)}
    return tuple(
        name
        for name in rest
        if name not in scores and name not in paired and (name.lower() in VERDICTS or not judged)
    )


def _score_of_item(rows: Source, score: str | None) -> ColumnError:
    return ColumnError(
        f"The score column of {rows.where} is also an item column: {score}. Name another with "
        f"{arg('score', ...)}."
    )


def _as_named(rows: Source, left: list[str], right: list[str]) -> LinkColumns:
    if len(left) != len(right):
        raise OptionError(
            f"{arg('left', ...)} and {arg('right', ...)} name {len(left)} and {len(right)} columns, but "
            "items must have the same number of parts on both sides."
        )
    if common := [name for name in left if name in right]:
        raise ColumnError(
            f"left and right are the same column of {rows.where}: {', '.join(common)}. Name two different ones."
        )
    stems = {(pair.left, pair.right): pair.stem for pair in _pairs(rows.names)}
    items = [stems.get(names, "") for names in zip(left, right, strict=True)]
    return LinkColumns(left, right, None, _item_names(items), reasons=dict.fromkeys(("left", "right"), NAMED))


def _item_names(stems: Sequence[str]) -> list[str]:
    plain = ["item"] if len(stems) == 1 else [f"item_{k}" for k in range(len(stems))]
    own = [stem or other for stem, other in zip(stems, plain, strict=True)]
    return own if len(set(own)) == len(own) else plain


def _recognised(rows: Source, others: Sequence[str]) -> LinkColumns:
    """Return the item columns if the caller did not name them; `others` are the columns of score and verdict."""
    names = [name for name in rows.names if name not in others]
    pairs = list(_pairs(names))
    ids = [pair for pair in pairs if pair.stem.lower() in IDS] or pairs
    if len(ids) > 1 and "match_probability" in {
        name.lower() for name in names
    }:  # Splink's source columns may be among the pairs
        ids = [pair for pair in ids if pair.stem.lower() == "unique_id"] or ids
    if len(ids) > 1:
        ways = [Typed()({"left": [pair.left], "right": [pair.right]}) for pair in ids[:4]]
        raise ColumnError(
            f"The items of {rows.where} may be in {len(ids)} pairs of columns ({listed(rows.names)}). "
            f"Say which: {'; or '.join(ways)}."
        )
    if ids:
        sources = [pair for pair in pairs if pair.stem.lower() in SOURCES and pair not in ids]
        parts = [*sources[:1], *ids]
        why = BY_TOOL if len(parts) > 1 or ids[0].stem else DEFAULT
        return LinkColumns(
            [pair.left for pair in parts],
            [pair.right for pair in parts],
            None,
            _item_names([pair.stem for pair in parts]),
            reasons={"left": why, "right": why},
        )
    rest = [name for name in names if name.lower() not in (*SCORES, *VERDICTS)]
    if len(rest) == 2:
        return LinkColumns(rest[:1], rest[1:], None, ["item"], reasons={"left": LEFT, "right": LEFT})
    if named := [name for pair in _pairs(rows.names) for name in (pair.left, pair.right) if name in others]:
        raise _score_of_item(rows, named[0])
    clusters = {"item", "cluster"} <= set(rows.names)
    hint = " A table with item and cluster looks like a clustering, not a table of links." if clusters else ""
    raise ColumnError(
        f"There are no columns left and right in {rows.where} ({listed(rows.names)}). Name the columns of "
        f"the two linked items with {arg('left', ...)} and {arg('right', ...)}.{hint}{rows.hint}"
    )


def links_hint(names: Sequence[str]) -> str:
    """Return the end of a message saying that columns look like links; empty if they do not."""
    ids = [pair for pair in _pairs(names) if pair.stem.lower() in IDS]
    if not ids:
        return ""
    return (
        f" A table with {ids[0].left} and {ids[0].right} looks like a table of links, pairs of items: pass "
        f"{Either('Clustering.from_links(...)', '--links')}."
    )


def _pairs(names: Sequence[str]) -> Iterator[_Pair]:
    """Yield the pairs of columns whose names differ only in the mark for left or right, each once."""
    known = {name.lower(): name for name in reversed(names)}
    found = set()
    for name in names:
        for stem, other in _counterparts(name.lower()):
            pair = (name, known.get(other, name))
            if pair[1] != name and pair not in found:
                found.add(pair)
                yield _Pair(name[stem].strip("_"), *pair)


def _counterparts(name: str) -> Iterator[tuple[slice, str]]:
    """Yield the parts of a left item's column name without its mark, each with the corresponding right name."""
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
    """Return the tool that uses these column names, if they identify one."""
    if found.items[-1].lower() == "unique_id" and (score or "").lower() in SCORES[:2]:
        return "Splink"
    return "Zingg" if found.items[-1].lower() == "z_zid" else None


def require_columns(rows: Source, part: str, names: list[str], typed: Typed) -> None:
    """Raise ColumnError if the table lacks a named column, suggesting a similar one."""
    absent = [name for name in names if name not in rows.names]
    if not absent:
        return
    found = [similar(name, rows.names) if name in absent else name for name in names]
    hint = f"Name the right one with {arg(part, ...)}."
    if part in ("item", "cluster") and (of_links := links_hint(rows.names)):
        hint = of_links.lstrip()
    elif None not in found and len(set(found)) == len(found):
        hint = f"Did you mean {typed({part: [name for name in found if name is not None]})}?"
    raise ColumnError(
        f"There is no column {absent[0]!r} in {rows.where} ({listed(rows.names)}). {hint}{rows.hint}"
    )
