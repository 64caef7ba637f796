"""`Comparison.explain`: the kinds of items for which a run is better or worse than elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastbcubed.compare_runs.units import ComparisonData, beside_baseline, components_of_rows, require_rows
from fastbcubed.errors import OptionError
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.explain_items import (
    Options,
    Question,
    RowScore,
    columns_of,
    explain_rows,
    explained,
    loss_name,
)
from fastbcubed.results.explanation import Explanation


def explain(
    self: ComparisonData,
    run: str,
    attributes: Any = None,
    *,
    loss: str | Metric | Callable[..., Any] = "f1",
    depth: int = 2,
    min_items: int = 50,
    level: float = 0.05,
    limit: int = 20,
    seed: int = 0,
) -> Explanation:
    """Search for kinds of items for which a run differs from the baseline by more or less than for other items.

    The method of `Evaluation.explain` is applied to the difference between each item's losses in the two runs.
    Components are the connected components of the truth and both runs.

    Parameters
    ----------
    run : str
        The run to compare with the baseline.
    attributes, loss, depth, min_items, level, limit, seed
        As for `Evaluation.explain`; attributes can come from the truth and the baseline.

    Returns
    -------
    Explanation
        The explanation. In the tables of the explanation, inside and outside are changes in the score, and excess is
        the contribution of a slice to the change in the overall score.

    Raises
    ------
    OptionError, ColumnError, SliceError, MetricError, NotKeptError
        In the same cases as for `Evaluation.explain`. NotKeptError is also raised if the items of the runs are not kept
        in a common order.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> truth = {k: k // 2 for k in range(2000)}
    >>> new = {k: k // 2 if k % 20 >= 4 else -k for k in truth}  # 4 of every 20 are singletons
    >>> where = {"item": list(truth), "country": ["JP" if k % 20 < 4 else "US" for k in truth]}
    >>> cmp = fb.compare(truth, {"old": dict(truth), "new": new}, attributes=where)
    >>> cmp.explain("new", loss="recall").slices.select(["slice", "inside", "outside", "excess"])
    slice         inside  outside    excess
    country=JP  -0.50000        0  -0.10000
    <BLANKLINE>
    1 row
    """
    options = Options.of(depth, min_items, level, limit, seed)
    known = self[run]
    if run == self.baseline:
        others = ", ".join(map(repr, self.experiments))
        raise OptionError(
            f"{run!r} is the baseline; name another run to explain: {others or 'there is none'}"
        )
    require_rows(self)
    base = self[self.baseline]
    metric = explained(base.contingency, loss, base.beta, base.metrics)
    columns = columns_of(base.kept, attributes)
    beside = beside_baseline(self, run)
    scores = [RowScore.of(ev.contingency, metric, ev.beta) for ev in (base, known)]
    question = Question(scores, loss_name(loss, metric), (self.baseline, run))
    names = {"truth": name} if (name := base.names.get("truth")) else {}
    return explain_rows(base.kept, question, columns, lambda: components_of_rows(beside), options, names)
