"""One cluster or one item to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from fastbcubed.metrics.pointwise import LOSSES
from fastbcubed.render.document import Grid
from fastbcubed.render.html import escaped, html_table
from fastbcubed.render.text import aligned
from fastbcubed.render.wording import amount, count, label, score_text
from fastbcubed.results.table import WIDTH, Table
from fastbcubed.runtime.attributes import documented

#: Names of the clusters of a side, and of items that the other side lacks.
KINDS = {"true": "true", "pred": "predicted"}
FATES = {"drop": "left out (drop)", "outside": "false positives (outside)"}
#: The mark of a value that differs from the commonest one, and characters of a value that are shown.
MARK, LONGEST = "*", 32
#: Where a line says whether it has a member.
MEMBER = -1


class Cluster(dict[str, Any]):
    """The result of `Evaluation.cluster`: a dict that reads well.

    Its keys are side, cluster, n_items, weight, n_parts, outcome (not of overlapping clusterings), precision_loss,
    recall_loss, weighted, overlapping, columns; "parts", a list of the parts that are shown, each with the other
    side's cluster (a list of them where they overlap), figures and "members"; and "one_sided", the items that the
    other side lacks: n_items, policy, members. A member has item, weight and attributes.

    Attributes
    ----------
    parts : Table
        All parts, largest first.
    table : Table
        All members, part by part.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2, "d": 2}, {"a": "x", "b": "x", "c": "x", "d": "y"})
    >>> ev.cluster("pred", "x")
    Predicted cluster x: 3 items of 2 true clusters, mixed
    precision loss 0.33333, recall loss 0.12500
    <BLANKLINE>
    true cluster  items   item
    1             2 of 2  a
                          b
    2             1 of 2  c
    >>> ev.cluster("pred", "x").parts["n_items"].to_pylist()
    [2, 1]
    """

    #: what clusters of a side are called; what the other side of it is called, which may lack items
    kinds: ClassVar[Mapping[str, str]] = KINDS
    others: ClassVar[Mapping[str, str]] = {"true": "prediction", "pred": "truth"}
    fates: ClassVar[Mapping[str, str]] = FATES

    def __init__(self, figures: Mapping[str, Any], parts: Table, table: Callable[[], Table]) -> None:
        super().__init__(figures)
        self.parts = parts
        self._make = table

    @property
    def table(self) -> Table:
        """All members, part by part: item, its cluster on the other side, attributes, scored or not, weight."""
        return self._make()

    @property
    def n_listed(self) -> int:
        """How many parts there are."""
        return len(self.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), dict(self), self.parts, self.table)

    __dir__ = documented

    def __repr__(self) -> str:
        grid, left_out = self.grid(WIDTH)
        parts = ["\n".join(self.heading()), aligned(grid)]
        if notes := self.notes(left_out):
            parts.append("\n".join(notes))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        grid, left_out = self.grid(None)
        title, *figures = map(escaped, self.heading())
        notes = "".join(f"<p>{escaped(note)}</p>" for note in self.notes(left_out))
        lines = "".join(f"<br>{line}" for line in figures)
        return f"<div><p><b>{title}</b>{lines}</p>{html_table(grid)}{notes}</div>"

    # Parts of the text

    def heading(self) -> list[str]:
        """Return the name of the cluster and its losses."""
        n_parts = self["n_parts"]
        kinds = f"of {_counted(n_parts, f'{self.kinds[self._other]} cluster')}"
        if self["overlapping"]:
            kinds += f", in {_counted(len(self.parts), 'set')} of them"
        title = (
            f"{self.kinds[self['side']].capitalize()} cluster {_name(self['cluster'], overlapping=False)}: "
        )
        if not n_parts:
            return [f"{title}none of its items is scored"]
        title += f"{_counted(self['n_items'], 'item')} {kinds}"
        title += f", {self['outcome']}" if self.get("outcome") else ""
        weight = [f"weight {amount(self['weight'])}"] if self["weighted"] else []
        return [title, ", ".join([*self._figures(), *weight])]

    def _figures(self) -> list[str]:
        """Return the losses."""
        return [f"{name} loss {score_text(self[f'{name}_loss'])}" for name in ("precision", "recall")]

    def notes(self, left_out: Sequence[str]) -> list[str]:
        """Return the notes below the members."""
        found = []
        if any(text.endswith(MARK) for column in self._texts().values() for text in column):
            found.append(f"{MARK} differs from the commonest value of the members shown")
        alone = self["one_sided"]
        if alone["n_items"]:
            items, lacking = _counted(alone["n_items"], "item"), self.others[self["side"]]
            found.append(f"{items} not in the {lacking}: {self.fates.get(alone['policy'], alone['policy'])}")
        if left_out:
            found.append(f"{_counted(len(left_out), 'more column')}: {', '.join(map(label, left_out))}")
        return found

    def grid(self, width: int | None) -> tuple[Grid, list[str]]:
        """Return the members as a grid, and the names of attributes for which a line has no room."""
        header = [
            f"{self.kinds[self._other]} cluster",
            "items",
            "item",
            *(["weight"] if self["weighted"] else []),
        ]
        rows = list(self._rows())
        columns = [[name, *(row[at] for row in rows)] for at, name in enumerate(header)]
        texts = self._texts()
        used = sum(max(map(len, column)) + 2 for column in columns)
        chosen = []
        for name, values in texts.items():
            own = iter(values)
            column = [label(name), *(next(own) if row[MEMBER] else "" for row in rows)]
            used += max(map(len, column)) + 2
            if width is not None and used - 2 > width:
                break
            chosen.append(column)
        lines = list(zip(*columns, *chosen, strict=True))
        return Grid(lines[0], lines[1:], len(lines[0])), list(texts)[len(chosen) :]

    @property
    def _other(self) -> str:
        return next(side for side in self.kinds if side != self["side"])

    def _rows(self) -> Iterator[list[str]]:
        """Yield the first texts of each line, and whether it has a member, as the last one."""
        for part in self["parts"]:
            clusters = part[f"{self._other}_cluster"]
            shared = count(part["n_items"])
            if "n_items_of_cluster" in part:
                shared += f" of {count(part['n_items_of_cluster'])}"
            yield from self._lines(part, _name(clusters, overlapping=self["overlapping"]), shared)
        left = len(self.parts) - len(self["parts"])
        if left:
            n = self["n_items"] - sum(part["n_items"] for part in self["parts"])
            yield self._line(f"… {count(left)} more", count(n))
        alone = self["one_sided"]
        if alone["n_items"]:
            yield from self._lines(alone, "(none)", count(alone["n_items"]))

    def _lines(self, part: Mapping[str, Any], name: str, shared: str) -> Iterator[list[str]]:
        """Yield the lines of a part."""
        for member in part["members"]:
            weight = "" if member["weight"] is None else amount(member["weight"])
            yield self._line(name, shared, label(member["item"]), weight, MARK)
            name = shared = ""
        left = part["n_items"] - len(part["members"])
        if left:
            yield self._line(name, shared, f"… {count(left)} more")

    def _line(self, name: str, shared: str, item: str = "", weight: str = "", member: str = "") -> list[str]:
        return [name, shared, item, *([weight] if self["weighted"] else []), member]

    def _texts(self) -> dict[str, list[str]]:
        """Return the attributes of the members that are shown as texts, those marked that differ."""
        members = [m for part in (*self["parts"], self["one_sided"]) for m in part["members"]]
        return {name: _marked([m["attributes"][name] for m in members]) for name in self["columns"]}


def _marked(values: Sequence[Any]) -> list[str]:
    """Return values as texts, those that differ from the commonest one marked, if any occurs twice.

    Examples
    --------
    >>> _marked(["Smith", "Smyth", None, "Smith"]), _marked([1, 2, 3])
    (['Smith', 'Smyth*', '(null)', 'Smith'], ['1', '2', '3'])
    """
    found = []
    for value, differs in zip(values, differing(values), strict=True):
        text = label(value)
        short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        found.append(f"{short}{MARK}" if differs else short)
    return found


def differing(values: Sequence[Any]) -> list[bool]:
    """Return which values differ from the commonest one, if any occurs twice; nulls never do.

    Examples
    --------
    >>> differing(["Smith", "Smyth", None, "Smith"]), differing([1, 2, 3])
    ([False, True, False, False], [False, False, False])
    """
    texts = [None if value is None else label(value) for value in values]
    counts = Counter(text for text in texts if text is not None)
    commonest, n = counts.most_common(1)[0] if counts else ("", 0)
    return [n > 1 and text is not None and text != commonest for text in texts]


def _name(cluster: Any, *, overlapping: bool) -> str:
    """Return the name of a part: the other side's cluster, or all of them where they overlap."""
    if overlapping:
        return " + ".join(_name(each, overlapping=False) for each in cluster or [None])
    if isinstance(cluster, tuple):
        return ", ".join(map(label, cluster))
    return "(alone by policy)" if cluster is None else label(cluster)


def _clusters(clusters: Any) -> str:
    """Return the name of a cluster, or of those of an item whose clusters overlap."""
    return ", ".join(map(label, clusters)) if isinstance(clusters, list) else label(clusters)


def _counted(n: int, thing: str) -> str:
    return f"{count(n)} {thing}{'' if n == 1 else 's'}"


def _again(kind: type[Cluster], figures: Mapping[str, Any], parts: Table, table: Table) -> Cluster:
    """Rebuild a cluster from its members."""
    return kind(figures, parts, lambda: table)


#: What the items of a set have to do with the item.
SETS = {
    "tp": "in both of its clusters",
    "fp": "only in its predicted cluster",
    "fn": "only in its true cluster",
    "tn": "in neither",
}
#: What scores are where clusters overlap: no ratios of the counts below them.
OF_SHARED = " (means over the items below, by their shares of common clusters)"
#: Keys that are not scores.
PLACES = (
    "item", "true_cluster", "pred_cluster", "weight", *SETS, "true_mates", "pred_mates", *LOSSES, "attributes",
    "members",
)  # fmt: skip


class Item(dict[str, Any]):
    """The result of `Evaluation.item`: a dict that reads well.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2}, {"a": "x", "b": "y", "c": "y"}, metrics=["precision"])
    >>> ev.item("b")
    Item b: true cluster 1, predicted cluster y, weight 1
      precision 0.50000
    <BLANKLINE>
      tp  1  in both of its clusters: b
      fp  1  only in its predicted cluster: c
      fn  1  only in its true cluster: a
      tn  0  in neither
    """

    #: what its clusters are called, by key; what the items of a set have to do with it; keys that are not scores
    kinds: ClassVar[Mapping[str, str]] = {"true_cluster": "true", "pred_cluster": "predicted"}
    sets: ClassVar[Mapping[str, str]] = SETS
    places: ClassVar[tuple[str, ...]] = PLACES

    __dir__ = documented

    def __repr__(self) -> str:
        sets = self._sets()
        width = max((len(figure) for _, figure, _ in sets), default=0)
        longest = max((len(name) for name, _, _ in sets), default=0)
        lines = [f"  {name:<{longest}}  {figure:>{width}}  {text}" for name, figure, text in sets]
        own = self._attributes()
        return "\n".join([self._title(), f"  {self._scores()}", *([f"  {own}"] if own else []), "", *lines])

    def _repr_html_(self) -> str:
        table = html_table(Grid(["set", "items", ""], self._sets(), forms=("text", "figure", "text")))
        lines = [escaped(line) for line in (self._scores(), self._attributes()) if line]
        return f"<div><p><b>{escaped(self._title())}</b><br>{'<br>'.join(lines)}</p>{table}</div>"

    def __reduce__(self) -> tuple[type[Item], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)

    def _title(self) -> str:
        places = [
            f"{kind} cluster{'s' * (isinstance(self[key], list) and len(self[key]) > 1)} {_clusters(self[key])}"
            for key, kind in self.kinds.items()
            if key in self
        ]
        return f"Item {label(self['item'])}: {', '.join(places)}, weight {amount(self['weight'])}"

    def _scores(self) -> str:
        shown = [f"{name} {score_text(value)}" for name, value in self.items() if name not in self.places]
        overlap = any(isinstance(self.get(key), list) for key in self.kinds)
        return ", ".join(shown) + OF_SHARED * (
            overlap and any(name in self for name in ("precision", "recall"))
        )

    def _attributes(self) -> str:
        return ", ".join(
            f"{label(name)}: {label(value)}" for name, value in self.get("attributes", {}).items()
        )

    def _sets(self) -> list[tuple[str, str, str]]:
        """Return each set: its name, its number of items, its description and its first items."""
        sets = []
        for name, members in self["members"].items():
            first = ", ".join(map(label, members["first"]))
            more = ", …" if first and len(members["first"]) < members["n_items"] else ""
            text = f"{self.sets[name]}: {first}{more}" if first else self.sets[name]
            sets.append((name, count(members["n_items"]), text))
        return sets
