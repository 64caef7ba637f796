"""Judged pairs → estimates: the share of verdicts that count in each stratum, times what its pairs come to."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from fastbcubed.errors import EvaluationWarning, JudgementError, first_few
from fastbcubed.sampling.judged_table import Judged, Stratum, read_judged
from fastbcubed.sampling.pair_estimates import PairEstimates
from fastbcubed.sampling.pair_scores import DIFFERENT, SAME, UNSURE, PairScore
from fastbcubed.sources.arrays import from_texts, table_of
from fastbcubed.uncertainty.intervals import check_level
from fastbcubed.uncertainty.stratified import sum_of_shares

#: What is this share of all pairs, or less, is rounding.
ROUNDING = 1e-12


class Estimate(NamedTuple):
    """A score estimated from judged pairs; each figure is a column of the result."""

    estimate: float
    se: float
    low: float
    high: float
    n_judged: int
    n_unsure: int
    n_unjudged: int
    low_unsure: float
    high_unsure: float


def estimate(labelled: Any, by_stratum: bool, level: float) -> PairEstimates:
    """Estimate scores from judged pairs, as `fastbcubed.estimate_pairs` does."""
    level, judged = check_level(level), read_judged(labelled)
    if not any(verdict for stratum in judged.strata for verdict in stratum.drawn):
        raise JudgementError(
            'no pair has a verdict; write "same", "different" or "unsure" into the column verdict'
        )
    if judged.skipped:
        warnings.warn(EvaluationWarning(_of_skipped(judged)), stacklevel=3)
    names = dict.fromkeys(stratum.name for stratum in judged.strata)
    found: list[tuple[str | None, str, Estimate]] = []
    for name in names if by_stratum else (None,):
        own = [each for each in judged.strata if not by_stratum or each.name == name]
        share = own[0].share if by_stratum else 1.0
        found += [(name, score.name, estimated(score, own, share, level)) for score in judged.score.answers]
    columns: dict[str, Any] = {"score": from_texts([score for _, score, _ in found])}
    if by_stratum:
        columns = {"stratum": from_texts([name for name, _, _ in found])} | columns
    for name, values in zip(Estimate._fields, zip(*(each for _, _, each in found), strict=True), strict=True):
        columns[name] = np.array(values)
    return PairEstimates(table_of(columns), level)


def _of_skipped(judged: Judged) -> str:
    n = len(judged.skipped)
    return (
        f"{n} pair{'s' if n > 1 else ''} before the last one judged {'have' if n > 1 else 'has'} no verdict (first: "
        f"{first_few(judged.skipped)}). What is left out is taken to be like what is judged, which does not hold if "
        'it was left out for being hard; the verdict for that is "unsure"'
    )


def estimated(score: PairScore, strata: list[Stratum], share: float, level: float) -> Estimate:
    """Estimate a score from its strata, which have this share of the weight.

    A stratum of n judged draws, k of which count, adds z k / n. The interval ends where the verdicts leave nothing else
    possible; the estimate does not, which would not be right on average then.
    """
    own = [_Counted.of(each, score) for each in strata if each.change in score.counts]
    if not own:  # the change did nothing of the kind
        return Estimate(0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0.0, 0.0)
    self_pairs = {each.name: each.self_pairs for each in strata} if score.signed else {}
    known = math.fsum(self_pairs.values())

    whole = math.fsum(each.z for each in own)

    def added(values: Any) -> float:
        total = known + math.fsum(values)
        return 0.0 if abs(total) < ROUNDING * whole else total / share

    value = added(each.sign * each.z * (each.k / each.n) for each in own)
    se = math.sqrt(math.fsum((each.z * each.error) ** 2 for each in own)) / share
    low, high = (
        (known + end) / share
        for end in sum_of_shares(
            [each.sign * each.z for each in own], [each.k for each in own], [each.n for each in own], level
        )
    )
    least, most = (
        added(each.sign * each.z * each.bound[side * each.sign] for each in own) for side in (-1, 1)
    )
    unsure = (added(each.sign * each.z * each.unsure[side * each.sign] for each in own) for side in (-1, 1))
    low, high = max(low, least), min(high, most)
    if low > high:  # what was drawn often is not like the rest, which is little
        low, high = least, most
    count = {
        which: sum(each.drawn.get(verdict, 0) for each in own for verdict in verdicts)
        for which, verdicts in {"judged": (SAME, DIFFERENT), "unsure": (UNSURE,), "unjudged": (None,)}.items()
    }
    return Estimate(value, se, low, high, *count.values(), *unsure)


class _Counted(NamedTuple):
    """The verdicts of a stratum that count for a score; of two figures in a dict, -1 is the lower and 1 the higher."""

    sign: int
    z: float
    k: int
    n: int
    error: float  #: the standard error of k / n; NaN of a single draw, unless there is no other pair
    unsure: dict[int, float]  #: the share if all that is unsure did not count, or did
    bound: dict[int, float]  #: the least and the most that the verdicts leave possible
    drawn: Any

    @classmethod
    def of(cls, stratum: Stratum, score: PairScore) -> _Counted:
        """Count, or raise JudgementError where nothing was judged."""
        verdict = score.counts[stratum.change]
        n = stratum.drawn.get(SAME, 0) + stratum.drawn.get(DIFFERENT, 0)
        if not n:
            name = f" of stratum {stratum.name!r}" if stratum.name is not None else ""
            raise JudgementError(
                f'no pair{name} with change "{stratum.change}" and sign {stratum.sign} has the verdict "{SAME}" or '
                f'"{DIFFERENT}"; judge some of these pairs: {first_few(stratum.pairs)}'
            )
        k, more = stratum.drawn.get(verdict, 0), stratum.drawn.get(UNSURE, 0)
        seen = stratum.known.get(verdict, 0.0)
        left = 1.0 - stratum.known.get(SAME, 0.0) - stratum.known.get(DIFFERENT, 0.0)
        left = left if left > ROUNDING else 0.0
        return cls(
            sign=stratum.sign if score.signed else 1,
            z=stratum.z,
            k=k,
            n=n,
            error=math.sqrt(k / n * (1 - k / n) / (n - 1)) if n > 1 else math.nan if left else 0.0,
            unsure={-1: k / (n + more), 1: (k + more) / (n + more)},
            bound={-1: seen, 1: seen + left},
            drawn=stratum.drawn,
        )
