"""One item to read: its clusters, its scores, and the first members of its four sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fastbcubed.metrics.losses import LOSSES
from fastbcubed.results.text.wording import Grid, amount, count, escaped, html_table, label, score
from fastbcubed.runtime.completion import documented

#: What the items of a set have to do with the item.
SETS = {
    "tp": "in both of its clusters",
    "fp": "only in its predicted cluster",
    "fn": "only in its true cluster",
    "tn": "in neither",
}
#: Keys that are not scores.
PLACES = (
    "item", "true_cluster", "pred_cluster", "weight", *SETS, "true_mates", "pred_mates", *LOSSES, "attributes",
    "members",
)  # fmt: skip


class Item(dict[str, Any]):
    """What `Evaluation.item` returns: a dict that reads well.

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
        table = html_table(Grid(["set", "items", ""], self._sets()), text_last=True)
        lines = [escaped(line) for line in (self._scores(), self._attributes()) if line]
        return f"<div><p><b>{escaped(self._title())}</b><br>{'<br>'.join(lines)}</p>{table}</div>"

    def __reduce__(self) -> tuple[type[Item], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)

    def _title(self) -> str:
        places = [f"{kind} cluster {label(self[key])}" for key, kind in self.kinds.items() if key in self]
        return f"Item {label(self['item'])}: {', '.join(places)}, weight {amount(self['weight'])}"

    def _scores(self) -> str:
        shown = [f"{name} {score(value)}" for name, value in self.items() if name not in self.places]
        return ", ".join(shown)

    def _attributes(self) -> str:
        return ", ".join(
            f"{label(name)}: {label(value)}" for name, value in self.get("attributes", {}).items()
        )

    def _sets(self) -> list[tuple[str, str, str]]:
        """Return each set: its name, its number of items, what they are and the first of them."""
        sets = []
        for name, members in self["members"].items():
            first = ", ".join(map(label, members["first"]))
            more = ", …" if first and len(members["first"]) < members["n_items"] else ""
            text = f"{self.sets[name]}: {first}{more}" if first else self.sets[name]
            sets.append((name, count(members["n_items"]), text))
        return sets
