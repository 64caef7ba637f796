"""Pairs of items drawn from a change, for people to judge: as a table that has all that the estimate needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed.errors import EmptyInputError, OptionError
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items.items import RowNumbers
from fastbcubed.results.listings.opening import chosen_columns
from fastbcubed.results.listings.table import Table
from fastbcubed.results.slices.slicing import SliceKey, attribute_values
from fastbcubed.runtime.counts import whole_number
from fastbcubed.sampling.pair_draws import LEAST, Floats, Places, allot, draw_rows, sums_by_stratum
from fastbcubed.sampling.pair_frame import Frame
from fastbcubed.sampling.pair_scores import RATES, SPLIT, PairScore, pair_score
from fastbcubed.sources.arrays import from_numpy, from_texts


def sample_pairs(
    ev: Evaluation,
    n: int,
    *,
    score: str = "rates",
    by: SliceKey | None = None,
    columns: str | Iterable[str] = (),
    seed: int = 0,
) -> Table:
    """Draw pairs of items from a change, to be judged by people.

    Parameters
    ----------
    ev : Evaluation
        The baseline as truth, the experiment as prediction, with its items.
    n : int
        How many pairs to draw. The same pair may be drawn repeatedly: so many verdicts are needed at most.
    score : str
        What to estimate: "rates", which are good_split_rate, bad_split_rate, good_merge_rate and bad_merge_rate; one
        of these alone, the same with _distance in place of _rate, good_distance, bad_distance, or delta_precision.
    by : str, Bins or tuple of these, optional
        An attribute by whose values to draw apart, named as in `Evaluation.slices`.
    columns : str or iterable of str
        Attributes to show of both items, named as in `Evaluation.slices`.
    seed : int
        Of the random numbers: the same seed draws the same pairs.

    Returns
    -------
    Table
        A row for each draw: pair, its number; repeats, the number of the first row that has these two items in either
        order, whose verdict it shares; item, mate; score, n_pairs (how many were drawn), stratum and share (its name
        and its share of the weight, with `by`), change ("split", "merged", "stable"), probability (that a draw from
        the stratum, change and sign gives these two items), sign, z (what the weights of all these pairs come to),
        self_pairs (of delta_precision: what pairs of an item with itself add, which need no verdict); ``item.name``
        and ``mate.name`` of each attribute; verdict, which is empty.

    Raises
    ------
    MetricError
        If there is no such score, or clusters may overlap.
    EmptyInputError
        If there is no pair to judge, and so the score is known.
    OptionError
        If n is too small for two pairs from each stratum.
    NotKeptError
        If the items were not kept.

    Notes
    -----
    Each pair (i, j) is drawn in proportion to its weight in the score, c = (w_i / N) w_j / w(B) and the like, with
    replacement: the item by what its pairs add up to, then the mate by its weight. Pairs that were split and pairs that
    were merged, and stable ones that speak for and against, are drawn apart, in proportion to what they add up to (z),
    but two of each stratum at least; for "rates", half of the pairs were split and half were merged. A longer sample
    of the same seed begins with a shorter one. No pair is looked at that is not drawn: cost is linear in the cells and
    items, and beyond that in what is in the clusters drawn. Items are put in order by a hash of their ids, so the
    sample depends on neither engine nor order of the rows. Ids that are integers and the same ids as texts draw
    different samples.

    Examples
    --------
    Items 0 and 1 were together: (0, 1) and (1, 0) weigh 1/3 * 1/2 each. Now 1 and 2 are.

    >>> import fastbcubed as fb
    >>> sample_pairs(fb.evaluate([0, 0, 1], [0, 1, 1]), 4).select(["pair", "repeats", "change", "probability", "z"])
    pair  repeats  change  probability        z
    1     (null)   split             1  0.33333
    2     (null)   merged            1  0.33333
    3     1        split             1  0.33333
    4     2        merged            1  0.33333
    <BLANKLINE>
    4 rows
    """
    asked = pair_score(score)
    n, seed = whole_number(n, "n", "pairs", least=LEAST), whole_number(seed, "seed")
    frame = Frame.of(ev, asked, by)
    names = chosen_columns(ev, columns)
    strata = _strata(frame, asked)
    if n < LEAST * len(strata):
        raise OptionError(
            f"n is {n}, and there are {len(strata)} strata ({_told(frame, strata)}), each of which needs {LEAST} "
            f"pairs: draw {LEAST * len(strata)} or more{'' if by is None else ', or by an attribute of fewer values'}"
        )
    sizes = np.array([each.z for each in strata])
    if asked is RATES:  # splitting and merging are judged each by itself, however little of one there is
        kinds = np.array([each.kind for each in strata])
        sizes /= np.bincount(kinds, sizes)[kinds]
    drawn = _draw(frame, strata, allot(sizes, n), seed)
    return Table(_table(frame, asked, strata, drawn, names))


class Stratum(NamedTuple):
    """Pairs that are drawn apart: of one kind, the item in one slice."""

    kind: int
    slice: int
    z: float  #: what the weights of all pairs come to


class Drawn(NamedTuple):
    """The pairs drawn, one entry each: stratum, item and mate by row and by place in the frame, probability."""

    stratum: Places
    item: Places
    mate: Places  #: -1 where the mate is no item of the frame
    mate_row: RowNumbers
    probability: Floats


def _strata(frame: Frame, score: PairScore) -> list[Stratum]:
    """Return the strata that have a pair, or raise EmptyInputError."""
    found = []
    for k, kind in enumerate(frame.kinds):
        z = sums_by_stratum(frame.sums(kind), frame.slices, len(frame.slicing.names)) / frame.total
        found += [Stratum(k, int(h), float(z[h])) for h in np.flatnonzero(z > 0)]
    if found:
        return found
    changed = "separated from another or joined with one"
    if len(score.counts) == 1:
        changed = "separated from another" if SPLIT in score.counts else "joined with another"
    which = "each rate" if score is RATES else score.name
    raise EmptyInputError(
        f"there is no pair to judge: no item was {changed}, and so {which} is 0, whatever is true"
    )


def _told(frame: Frame, strata: list[Stratum]) -> str:
    """Return the first few strata for a message."""
    names = []
    for each in strata[:4]:
        kind, name = frame.kinds[each.kind], frame.slicing.names[each.slice]
        sign = f" {kind.sign:+d}" if any(k.sign < 0 for k in frame.kinds) else ""
        names.append(f"{'' if name is None else f'{name} '}{kind.change}{sign}")
    return ", ".join(names) + (", …" if len(strata) > 4 else "")


def _draw(frame: Frame, strata: list[Stratum], order: Places, seed: int) -> Drawn:
    """Draw from the strata in this order."""
    item, mate, mate_row = (np.empty(order.size, np.int64) for _ in range(3))
    probability = np.empty(order.size)
    for k, kind in enumerate(frame.kinds):
        own = {h: each for h, each in enumerate(strata) if each.kind == k}
        if not own:
            continue
        slices = [each.slice for each in own.values()]
        number = np.full(len(frame.slicing.names), -1)
        number[slices] = np.arange(len(own))
        at = [np.flatnonzero(order == h) for h in own]
        points = [
            np.random.default_rng([seed, k, each]).random((here.size, 2))
            for each, here in zip(slices, at, strict=True)
        ]
        sums = frame.sums(kind)
        some = np.flatnonzero((sums > 0) & (frame.slices >= 0))
        rows = draw_rows(
            sums[some], frame.keys[some], number[frame.slices[some]], [each[:, 0] for each in points]
        )
        here, first = np.concatenate(at), some[np.concatenate(rows)]
        second_row, mass, second = frame.mates(kind, first, np.concatenate([each[:, 1] for each in points]))
        c = frame.weigh(kind, first, mass) + _reversed(frame, kind, first, second)
        item[here], mate[here], mate_row[here] = first, second, second_row
        probability[here] = c / np.array([strata[h].z for h in order[here]])
    return Drawn(order, item, mate, mate_row, probability)


def _reversed(frame: Frame, kind: Any, item: Places, mate: Places) -> Floats:
    """Return c of pairs the other way round, 0 where that pair is not in the same stratum."""
    found = frame.weigh(kind, mate, frame.mass[item])
    found[(mate < 0) | (frame.slices[mate] != frame.slices[item])] = 0.0
    return found


def _table(frame: Frame, score: PairScore, strata: list[Stratum], drawn: Drawn, names: list[str]) -> pa.Table:
    """Return the pairs drawn with all that the estimate needs, the attributes of both items, and no verdict."""
    n = drawn.item.size
    items, rows = frame.ev.kept_items(), {"item": frame.rows[drawn.item], "mate": drawn.mate_row}
    kinds = [frame.kinds[strata[h].kind] for h in drawn.stratum]
    slices = np.array([strata[h].slice for h in drawn.stratum])
    repeats = _repeats(rows["item"], rows["mate"])
    columns: dict[str, Any] = {"pair": from_numpy(np.arange(1, n + 1))}
    columns["repeats"] = from_numpy(repeats, repeats == 0)
    columns |= {side: items.ids(own) for side, own in rows.items()}
    columns |= {"score": from_texts([score.name] * n), "n_pairs": from_numpy(np.full(n, n))}
    if frame.slicing.names != [None]:
        columns["stratum"] = from_texts([frame.slicing.names[h] for h in slices])
        columns["share"] = from_numpy(frame.slicing.shares[slices])
    columns["change"] = from_texts([kind.change for kind in kinds])
    columns["probability"] = from_numpy(drawn.probability)
    columns["sign"] = from_numpy(np.array([kind.sign for kind in kinds]))
    columns["z"] = from_numpy(np.array([strata[h].z for h in drawn.stratum]))
    if score.signed:
        columns["self_pairs"] = from_numpy(frame.self_pairs[slices])
    for name in names:
        for side, own in rows.items():
            columns[f"{side}.{name}"] = attribute_values(name, items, frame.ev.attributes, own)
    return pa.table({**columns, "verdict": pa.nulls(n, pa.string())})


def _repeats(item: RowNumbers, mate: RowNumbers) -> Places:
    """Return the number of the first pair that has the same two items, 0 for the first one itself."""
    both = np.stack([np.minimum(item, mate), np.maximum(item, mate)])
    _, first, which = np.unique(both, axis=1, return_index=True, return_inverse=True)
    found = first[which.reshape(-1)] + 1
    found[found == np.arange(1, found.size + 1)] = 0
    return found
