"""Standard errors and intervals of the scores of a diff, those that judge it included."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fastbcubed.changes.change_lists import DiffLists
from fastbcubed.changes.naming import in_words_of_a_diff, meant
from fastbcubed.errors import OptionError
from fastbcubed.metrics.registry import METRICS, known_as
from fastbcubed.results.listings.table import Table
from fastbcubed.results.scores import Scores
from fastbcubed.uncertainty.intervals import Interval, check_level, interval


class DiffErrors(DiffLists):
    """A diff that is asked how sure its scores are; see `Diff`."""

    @property
    def errors(self) -> Scores:
        """Standard errors of the overall scores, by connected component; see `Evaluation.errors`.

        They say how far a score would differ on other components of the same kind. On these very items a diff has no
        error. Scores that judge the change have one by components of truth, baseline and experiment.
        """
        of_impact = self.evaluation.errors
        found = dict(of_impact) | (self._judging_errors if self.verdict is not None else {})
        return Scores(found, of_impact._missing)

    def interval(self, which: str, *, level: float = 0.95, unit: str = "component") -> Interval:
        """Return the interval of an overall score; see `Evaluation.interval`.

        Parameters
        ----------
        which : str
            A score, such as "split_rate".
        level : float
            The confidence.
        unit : str
            As for `Evaluation.interval`; "component" alone for scores that judge the change.
        """
        name = known_as(meant(which))
        metric = METRICS.get(name) if isinstance(name, str) else None
        if metric is None or not metric.takes_three:
            with in_words_of_a_diff():
                return self.evaluation.interval(str(meant(which)), level=level, unit=unit)
        if unit != "component":
            raise OptionError(f'{metric.name} has intervals by unit="component" alone, not {unit!r}')
        judgement = self._require_judged(metric.name)
        error = judgement.errors([metric])[metric.name]
        how: dict[str, Any] = {"level": check_level(level), "low": metric.low, "high": metric.high}
        value = judgement.overall([metric])[metric.name]
        return interval(value, error, n_units=judgement.units.n, **how)

    def estimates(self, *, level: float = 0.95) -> Table:
        """Return the overall scores with standard errors and intervals, as far as they have any.

        Parameters
        ----------
        level : float
            The confidence.

        Returns
        -------
        Table
            score, value, se, low, high, n_units, effective_units.
        """
        found = self.evaluation.estimates(level=level).to_arrow()
        if self.judgement is None:
            return Table(found)
        errors, units = self._judging_errors, self.judgement.units
        rows = []
        for metric in self.judging:
            low, high = self.interval(metric.name, level=level)
            figures = (metric.name, self.overall[metric.name], errors[metric.name], low, high, units.n)
            rows.append(dict(zip(found.column_names, (*figures, units.effective), strict=True)))
        return Table(pa.concat_tables([found, pa.Table.from_pylist(rows, found.schema)]))
