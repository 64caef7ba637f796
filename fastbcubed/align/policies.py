"""Policies for items that one side lacks or leaves unlabelled; and coverage, the counts of such items.

`align.apply_policies` applies "drop" and "singleton" to the rows. "outside" takes effect in the margins of cells, in
`kernels.cells` (for covers, in `overlap`): such items count in their predicted cluster but are not scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Literal

from fastbcubed.errors import PREDICTION, TRUTH, OptionError, arg, first_few, quoted
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.saved_figures import numbers_in

#: Policies for items that one side lacks, for null clusters, and for repeated rows.
Unmatched = Literal["drop", "raise", "singleton", "outside"]
Nulls = Literal["raise", "singleton", "drop"]
Duplicates = Literal["raise", "drop"]
#: Whether weights apply to confusion matrices and means, or to means only.
Weighting = Literal["pointwise", "outer"]


@dataclass(frozen=True)
class Policies:
    """The policies for items missing from one side, nulls, duplicates and noise; every result states its policies.

    Attributes
    ----------
    truth, prediction : str
        Policy for truth-only items and for prediction-only items: "drop", "raise" or "singleton"; for prediction-only
        items, also "outside".
    nulls : {"raise", "singleton", "drop"}
        Policy for items whose cluster is null.
    duplicates : {"raise", "drop"}
        Policy for rows that are identical to an earlier row.
    noise : object
        The label whose items are treated as singletons, if any; or a dict with a label for "truth", "prediction" or
        both.
    """

    truth: str = "drop"
    prediction: str = "drop"
    nulls: str = "raise"
    duplicates: str = "raise"
    noise: Any = None

    def noise_of(self, side: str | int) -> Any:
        """Return the noise label of a side ("true", "pred", 0 or 1); None if the side has none."""
        if not isinstance(self.noise, Mapping):
            return self.noise
        return self.noise.get("truth" if side in ("true", 0) else "prediction")

    def of_side(self, side: int) -> Policies:
        """Return these policies with the noise label of one side only."""
        return replace(self, noise=self.noise_of(side)) if isinstance(self.noise, Mapping) else self

    @property
    def may_leave_alone(self) -> bool:
        """Whether a policy may make an item a singleton."""
        return self.noise is not None or "singleton" in (self.truth, self.prediction, self.nulls)

    @classmethod
    def of(
        cls,
        unmatched: str | Mapping[str, str] | None,
        nulls: str,
        duplicates: str,
        noise: Any,
        *,
        truth_only: str = "drop",
    ) -> Policies:
        """Check the arguments of `evaluate` and fill in defaults; `truth_only` is the default for truth-only items."""
        sides = {"truth": truth_only, "prediction": "drop"}
        if isinstance(unmatched, str):
            sides = dict.fromkeys(sides, unmatched)
            if unmatched == "outside":
                sides["truth"] = "singleton"
        elif isinstance(unmatched, Mapping):
            if strange := set(unmatched) - set(sides):
                raise OptionError(
                    f"{arg('unmatched', ...)} has policies for {first_few(sorted(map(str, strange)))}, but "
                    "the sides are named truth and prediction"
                )
            sides |= unmatched
            if sides["prediction"] == "outside" and "truth" not in unmatched:
                sides["truth"] = "singleton"
        elif unmatched is not None:
            raise OptionError(
                f"{arg('unmatched', ...)} must be a policy, or a dict from side to policy, not "
                f"{quoted(unmatched)}"
            )
        if unmatched is not None:
            _check_unmatched(sides)
        _check("nulls", nulls, ("raise", "singleton", "drop"))
        _check("duplicates", duplicates, ("raise", "drop"))
        if isinstance(noise, Mapping):
            strange = set(noise) - set(sides)
            if strange or not noise:
                raise OptionError(
                    f"{arg('noise', ...)} must be a label, or a dict from side (truth, prediction or both) "
                    f"to label, not {quoted(noise)}"
                )
            noise = {side: label for side, label in noise.items() if label is not None} or None
        return cls(sides["truth"], sides["prediction"], nulls, duplicates, noise)


def _check_unmatched(sides: Mapping[str, str]) -> None:
    for side, policy in sides.items():
        if side == "truth" and is_one_of(policy, ("outside",)):
            raise OptionError(
                f"{arg('unmatched', ...)} cannot be outside for items that only the {TRUTH} has; outside "
                f"applies to items that only the {PREDICTION} has. Choose drop, raise or singleton"
            )
        if not is_one_of(policy, ("drop", "raise", "singleton", "outside")):
            raise OptionError(
                f"{arg('unmatched', ...)} must be drop, raise, singleton, or, for items that only the "
                f"prediction has, outside, not {quoted(policy)}"
            )


def _check(name: str, value: object, known: tuple[str, ...]) -> None:
    if not (isinstance(value, str) and value in known):
        raise OptionError(
            f"{arg(name, ...)} must be {', '.join(known[:-1])} or {known[-1]}, not {quoted(value)}"
        )


@dataclass(frozen=True)
class Coverage:
    """The overlap of the two sides' items before any policy is applied; weights are NaN if unknown.

    Attributes
    ----------
    n_common, n_truth_only, n_prediction_only : int
        Numbers of items on both sides, in the truth only, and in the prediction only.
    weight_common, weight_truth_only, weight_prediction_only : float
        Total weights of the items on both sides, in the truth only, and in the prediction only; without weights, the
        numbers of items.
    n_null : int
        Number of rows of both sides whose cluster is null.
    n_noise : int
        Number of rows of both sides that have the noise label.
    n_duplicates : int
        Number of rows of both sides that were dropped because they repeat an earlier row.
    """

    n_common: int
    n_truth_only: int
    n_prediction_only: int
    weight_common: float
    weight_truth_only: float
    weight_prediction_only: float
    n_null: int = 0
    n_noise: int = 0
    n_duplicates: int = 0

    @property
    def truth_coverage(self) -> float:
        """Share of the truth's total weight that is on items of both sides."""
        known = self.weight_common + self.weight_truth_only
        return self.weight_common / known if known else 1.0

    @property
    def prediction_coverage(self) -> float:
        """Share of the prediction's total weight that is on items of both sides; NaN if unknown."""
        known = self.weight_common + self.weight_prediction_only
        return self.weight_common / known if known else 1.0

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> Coverage:
        """Return the coverage from figures of a JSON document; other figures are ignored, and null becomes NaN."""
        return cls(**numbers_in(figures, [field.name for field in fields(cls)]))

    @classmethod
    def total(cls, parts: Iterable[Coverage]) -> Coverage:
        """Return the sum of the coverage of blocks."""
        columns = zip(*(astuple(part) for part in parts), strict=True)
        return cls(*(sum(c) if isinstance(c[0], int) else math.fsum(c) for c in columns))  # type: ignore[arg-type]

    @property
    def complete(self) -> bool:
        """Whether both sides have the same items."""
        return not (self.n_truth_only or self.n_prediction_only)

    def n_scored(self, policies: Policies) -> int:
        """Return the number of scored items, including those that the policies make singletons."""
        alone = (self.n_truth_only, policies.truth), (self.n_prediction_only, policies.prediction)
        return self.n_common + sum(n for n, policy in alone if policy == "singleton")

    def weight_scored(self, policies: Policies) -> float:
        """Return the total weight of the scored items."""
        alone = (self.weight_truth_only, policies.truth), (self.weight_prediction_only, policies.prediction)
        return self.weight_common + sum(weight for weight, policy in alone if policy == "singleton")
