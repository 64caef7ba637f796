"""Calling the library as the command line does: labels may be numbers or text, and warnings are in the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fastbcubed.errors import EvaluationWarning, IdTypeError


def call_evaluate(arguments: dict[str, Any], noise: str | None) -> Any:
    """Return an evaluation, as `call` does."""
    import fastbcubed

    return call(fastbcubed.evaluate, arguments, noise)


def call(function: Callable[..., Any], arguments: dict[str, Any], noise: str | None) -> Any:
    """Return what a function returns; a noise label that looks like a number is taken as text where labels are."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        try:
            return function(**arguments)
        except IdTypeError:
            if not isinstance(arguments["noise"], int):
                raise
        return function(**{**arguments, "noise": noise})


def with_scores(arguments: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of `evaluate` with these scores among its metrics, behind those that are there."""
    from fastbcubed.metrics.registry import resolve

    chosen = arguments.get("metrics")
    computed = [metric.name for metric in resolve(chosen)[0]]
    more = [name for name in dict.fromkeys(names) if name not in computed]
    return {**arguments, "metrics": [*(computed if chosen is None else chosen), *more]} if more else arguments
