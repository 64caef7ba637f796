"""The runs of a comparison with their evaluations, and the units that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.align.policies import Coverage
from fastbcubed.cells.contingency import Contingency
from fastbcubed.compare_runs.units import (
    RunUnits,
    are_alike,
    components_of_runs,
    number_keys,
    number_true_clusters,
    pieces_of_runs,
)
from fastbcubed.errors import Message, NotKeptError, OptionError, arg
from fastbcubed.metrics.score import Metric
from fastbcubed.results import clusters
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.evaluation_scores import COMPONENT, TRUE_CLUSTER
from fastbcubed.results.slices import slice_codes
from fastbcubed.results.standard_errors import why_none
from fastbcubed.results.table import HasTable
from fastbcubed.results.warnings import if_alone, lacks_more
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.attributes import cached_property, documented
from fastbcubed.runtime.threads import Pool

#: Where a component of all runs has a larger share of the weight, units are those of the two runs compared.
HEAVY_SHARE = 0.1

#: The warning of items that runs lack, in place of the one that each of their evaluations gives.
LACKING, INSTEAD_OF = "runs-lack-items", "dropping-truth-flatters"


def is_heavy(share: float) -> bool:
    """Return whether a component of all runs is too heavy for units; rounding does not decide."""
    return share > HEAVY_SHARE + 1e-9


class Runs(HasTable):
    """Evaluations of several runs against one truth; the attributes are described at `Comparison`."""

    __dir__ = documented

    def __init__(
        self,
        runs: Mapping[str, Evaluation],
        *,
        baseline: str,
        align: str,
        level: float,
        unit: str,
        n_bootstrap: int = 0,
        seed: int = 0,
        shared: bool = False,
        n_scored: Sequence[int] | None = None,
        coverage: Sequence[Coverage] | None = None,
        true_keys: Sequence[NDArray[np.int64]] | None = None,
        by_itself: Sequence[dict[str, Any] | None] = (),
    ) -> None:
        """Take evaluations over; `shared` says that their scored rows and codes of true clusters are the same.

        Where they are not, `true_keys`, if known, are keys of the true clusters by code, the same in all runs.
        `by_itself` is what `if_alone` says of a run on all items that it scores; None where its evaluation is that.
        """
        self.runs: Mapping[str, Evaluation] = MappingProxyType(dict(runs))
        self.baseline, self.align, self.level, self.unit = baseline, align, level, unit
        self.n_bootstrap, self.seed = n_bootstrap, seed
        self._shared, self._true_keys = shared, true_keys
        evs = self.runs.values()
        self._n_scored = [ev.contingency.n_items for ev in evs] if n_scored is None else list(n_scored)
        self._coverage = [ev.coverage for ev in evs] if coverage is None else list(coverage)
        self._by_itself = dict(zip(self.runs, by_itself, strict=False))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "runs": dict(self.runs)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, runs=MappingProxyType(state["runs"]))

    def __getitem__(self, name: str) -> Evaluation:
        if not is_one_of(name, self.runs):
            raise OptionError(f"there is no run {name!r}; there are {', '.join(map(repr, self.runs))}")
        return self.runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __contains__(self, name: object) -> bool:
        return name in self.runs

    @property
    def experiments(self) -> tuple[str, ...]:
        """The runs other than the baseline."""
        return tuple(name for name in self.runs if name != self.baseline)

    @property
    def metrics(self) -> list[Metric]:
        """The scores that all runs have."""
        named = [{m.name for m in ev.metrics} for ev in self.runs.values()]
        return [m for m in self[self.baseline].metrics if all(m.name in own for own in named)]

    @property
    def n_items(self) -> int:
        """Items that the baseline is scored on; with align="common" all runs are."""
        return self[self.baseline].contingency.n_items

    @cached_property
    def own_scores(self) -> dict[str, dict[str, Any]]:
        """Scores of each run on all items that it scores, and if those of the truth that it lacks were alone."""
        return {name: self._by_itself.get(name) or if_alone(ev) for name, ev in self.runs.items()}

    def beside_baseline(self, name: str) -> Runs:
        """Return the baseline and one other run alone, on the same items; neither is scored again."""
        places = [k for k, run in enumerate(self.runs) if run in (self.baseline, name)]
        names, keys = list(self.runs), self._true_keys
        return Runs(
            {names[k]: self.runs[names[k]] for k in places},
            baseline=self.baseline, align=self.align, level=self.level, unit=self.unit,
            n_bootstrap=self.n_bootstrap, seed=self.seed, shared=self._shared,
            n_scored=[self._n_scored[k] for k in places], coverage=[self._coverage[k] for k in places],
            true_keys=None if keys is None else [keys[k] for k in places],
        )  # fmt: skip

    @property
    def coverage_of(self) -> dict[str, Coverage]:
        """How far each run has the items of the truth, before it is restricted to those of all runs."""
        return dict(zip(self.runs, self._coverage, strict=True))

    def n_dropped(self, run: str) -> int:
        """Return how many items of the truth are dropped since a run lacks them."""
        return self.coverage_of[run].n_truth_only if self[run].policies.truth == "drop" else 0

    def lacks_more(self, run: str, other: str) -> bool:
        """Return whether a run lacks so much more of the truth than another that their scores are not comparable."""
        dropped = self[run].policies.truth == "drop"
        return dropped and lacks_more(self.coverage_of[run], self.coverage_of[other])

    def why_no_errors(self) -> Message | None:
        """Return why differences have no standard errors; None if they have."""
        if any(ev.contingency.overlapping for ev in self.runs.values()):
            return Message("clusters may overlap, and paired errors are computed for partitions only")
        if not all(isinstance(ev.contingency, Contingency) for ev in self.runs.values()):
            return Message(f"the cells were not kept; compare with {arg('keep', 'cells')}")
        if self._true_keys is not None and any(map(_makes_true_clusters, self.runs.values())):
            return Message(
                "policies have made true clusters of single items, which the disk engine does not distinguish in "
                f"several runs; compare with {arg('engine', 'memory')}"
            )
        return None

    def metrics_with_errors(self) -> list[Metric]:
        """Return the scores whose differences have standard errors."""
        found = [m for m in self.metrics if why_none(m) is None]
        for ev in self.runs.values():
            found = clusters.known_by_cluster(ev.contingency, found, ev.beta)
        return found

    @cached_property
    def true_numbers(self) -> list[NDArray[np.int64]] | None:
        """Numbers of the true clusters of each run by code; None if all runs have the same items and the same codes."""
        keys = self._true_keys
        if self._shared or (keys is not None and self.align == "common" and are_alike(keys)):
            return None
        made = any(map(_makes_true_clusters, self.runs.values()))  # whose keys are of one run
        return number_true_clusters(list(self.runs.values())) if keys is None or made else number_keys(keys)

    @cached_property
    def components(self) -> RunUnits:
        """The connected component, of the truth and all runs, of each true cluster of each run."""
        tables = [ev.contingency for ev in self.runs.values()]
        with Pool() as pool:
            return components_of_runs(pieces_of_runs(tables, True, pool), self.true_numbers)

    @property
    def shares_rows(self) -> bool:
        """Whether the rows that are scored stand in the same order in all runs."""
        return self._shared

    def components_of_rows(self) -> NDArray[np.int64]:
        """Return the component of each row that all runs score."""
        table = self[self.baseline].contingency
        assert table.rows is not None
        of_true = self.components.of_true[list(self.runs).index(self.baseline)]
        return of_true[table.true[table.rows.cell[: self.require_rows()]]]

    def units_of_rows(self) -> NDArray[np.integer]:
        """Return the requested unit of each row that all runs score."""
        if self.unit == COMPONENT:
            return self.components_of_rows()
        first, n = self[self.baseline], self.require_rows()
        if self.unit == TRUE_CLUSTER:
            assert first.contingency.rows is not None
            return first.contingency.true[first.contingency.rows.cell[:n]]
        return slice_codes(self.unit, first.contingency, first.kept_items(), first.attributes).codes[:n]

    def require_rows(self) -> int:
        """Return how many rows, the first ones, all runs have in common; raise if they are not in one order."""
        if not self._shared:
            raise NotKeptError(
                f"the items of all runs are not kept in one order; compare in memory, with {arg('align', 'common')}"
            )
        return self.n_items


def _makes_true_clusters(ev: Evaluation) -> bool:
    """Return whether policies may have made true clusters of single items."""
    made = [(ev.policies.prediction, ev.coverage.n_prediction_only), (ev.policies.nulls, ev.coverage.n_null)]
    return ev.coverage.n_noise > 0 or any(policy == "singleton" and n > 0 for policy, n in made)
