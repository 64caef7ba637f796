"""Families: a score is declared where its formula stands.

    pointwise = Family("pointwise", low=0.0, high=1.0, best="higher", source="van Staden 2024")

    @pointwise.mean_over_items("tp / (tp + fp)", example=">>> ...")
    def precision(tp, fp, fn, tn):
        '''Mean over items of the share of an item's predicted cluster that belongs with it.'''
        return tp / (tp + fp)

The name of the function is that of the score, and its docstring the sentence that tells people what it is.
The decorators return the function as it is, so that other formulas can call it and a kernel can compile it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from fastbcubed.metrics.metric import Metric, Page

Function = TypeVar("Function", bound=Callable[..., Any])


class Family:
    """The scores of a family, in the order in which they are declared.

    What is given for all of them, as fields of `Metric`, each can give otherwise. An F1 gives as `three` the example
    of the function that returns precision, recall and their F.
    """

    def __init__(self, name: str, **shared: Any) -> None:
        self.name = name
        self._shared = shared
        self._metrics: dict[str, Metric] = {}

    def __getitem__(self, name: str) -> Metric:
        return self._metrics[name]

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._metrics.values())

    def mean_over_items(self, formula: str, **about: Any) -> Callable[[Function], Function]:
        """Declare the mean over items of a function (tp, fp, fn, tn), which works element by element."""

        def declare(function: Function) -> Function:
            self._add(function, about, definition=f"mean over items of {formula}", formula=function)
            return function

        return declare

    def mean_over_three(self, formula: str, **about: Any) -> Callable[[Function], Function]:
        """Declare the mean over items of a function of an item's clusters in truth, baseline and experiment."""

        def declare(function: Function) -> Function:
            self._add(function, about, definition=f"mean over items of {formula}", of_sets=function)
            return function

        return declare

    def of_means(
        self, definition: str, *needs: Metric, slopes: Callable[..., Any] | None = None, **about: Any
    ) -> Callable[[Function], Function]:
        """Declare a function of the means of other scores, in this order, and of beta.

        `slopes` takes the same, and returns the derivatives by each of them.
        """
        names = tuple(metric.name for metric in needs)

        def declare(function: Function) -> Function:
            how: dict[str, Any] = {"combine": partial(_combine, function, names), "needs": needs}
            how["slopes"] = None if slopes is None else partial(_combine, slopes, names)
            self._add(function, about, definition=definition, **how)
            return function

        return declare

    def of_cells(
        self, definition: str, *, by: Callable[..., float] | None = None, **about: Any
    ) -> Callable[[Function], Function]:
        """Declare a function (contingency, pool) of all cells, or one of the sums that `by` adds up over them."""

        def declare(function: Function) -> Function:
            how = {"score": partial(by, function), "finalize": function} if by else {"score": function}
            self._add(function, about, definition=definition, **how)
            return function

        return declare

    def alias(self, name: str, metric: Metric, **about: Any) -> None:
        """Declare a further name of a score."""
        own = {"example": "", "also": {}, "alias_of": metric.name, **_with_pages(name, about)}
        self._keep(replace(metric, name=name, family=self.name, **own))

    def _add(self, function: Callable[..., Any], about: dict[str, Any], **how: Any) -> None:
        """Add a score under the name of its function, with the first paragraph of its docstring."""
        known = {"summary": _first_paragraph(function), **self._shared, **how, **about}
        name = known.pop("name", function.__name__)
        self._keep(Metric(name, self.name, **_with_pages(name, known)))

    def _keep(self, metric: Metric) -> None:
        if metric.name in self._metrics:
            raise ValueError(f"{metric.name} is declared twice")
        self._metrics[metric.name] = metric


def _with_pages(name: str, about: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of a score, with the page of the function that returns three where there is one."""
    three = about.pop("three", "")
    pages = {f"{name.removesuffix('f1')}precision_recall_fscore": Page(three)} if three else {}
    return {**about, "also": {**about.get("also", {}), **pages}}


def _first_paragraph(function: Callable[..., Any]) -> str:
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())


def _combine(
    function: Callable[..., Any], names: tuple[str, ...], means: Mapping[str, Any], beta: float
) -> Any:
    return function(*(means[name] for name in names), beta)
