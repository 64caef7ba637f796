"""Scores of a change that judged pairs estimate: which pairs each adds up, how they weigh, which verdict counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastbcubed.errors import MetricError
from fastbcubed.sources.suggestions import did_you_mean

#: What a person says of two items.
SAME, DIFFERENT, UNSURE = VERDICTS = ("same", "different", "unsure")
#: What the change did to two items: they were together before alone, they are now alone, they were and are.
SPLIT, MERGED, STABLE = CHANGES = ("split", "merged", "stable")


@dataclass(frozen=True)
class PairScore:
    """A score that is a sum over ordered pairs of an item and another one, each with a weight of its own."""

    name: str
    #: the verdict that counts, by what the change did to the pair
    counts: Mapping[str, str] = field(hash=False)
    #: whether a mate weighs beside all mates, before and now; else beside those of its side
    by_union: bool = False
    signed: bool = False  #: whether pairs that were separated count against it

    @property
    def answers(self) -> list[PairScore]:
        """The scores that its pairs estimate: itself, but not `RATES`, and those of the same weights and no more."""
        others = (
            other
            for other in PAIR_SCORES.values()
            if other is not self
            and other.by_union == self.by_union
            and other.counts.keys() <= self.counts.keys()
        )
        return [*others] if self is RATES else [self, *others]


def _quality(kind: str, split: str, merged: str) -> list[PairScore]:
    """Return the scores of what the change did well, or badly: which verdict on what it separated, and joined."""
    return [
        PairScore(f"{kind}_split_rate", {SPLIT: split}),
        PairScore(f"{kind}_merge_rate", {MERGED: merged}),
        PairScore(f"{kind}_split_distance", {SPLIT: split}, by_union=True),
        PairScore(f"{kind}_merge_distance", {MERGED: merged}, by_union=True),
        PairScore(f"{kind}_distance", {SPLIT: split, MERGED: merged}, by_union=True),
    ]


#: All of them, by name.
PAIR_SCORES = {
    each.name: each
    for each in (
        *_quality("good", split=DIFFERENT, merged=SAME),
        *_quality("bad", split=SAME, merged=DIFFERENT),
        PairScore("delta_precision", {SPLIT: SAME, MERGED: SAME, STABLE: SAME}, signed=True),
    )
}


#: Pairs for the four rates at once, of which half were separated and half joined.
RATES = PairScore("rates", {SPLIT: DIFFERENT, MERGED: SAME})


def pair_score(name: object) -> PairScore:
    """Return the score of this name, or `RATES`; raise MetricError if there is none."""
    known = {RATES.name: RATES} | PAIR_SCORES
    if isinstance(name, str) and name in known:
        return known[name]
    asked = did_you_mean(name, known) if isinstance(name, str) else ""
    raise MetricError(f"judged pairs estimate {', '.join(known)}, not {name!r}.{asked}")
