"""Calling the library as the command line does: labels may be numbers or text, and warnings are in the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fastbcubed.cli.rewording import in_flags
from fastbcubed.cli.saying import say
from fastbcubed.errors import EvaluationWarning, IdTypeError


def call_evaluate(arguments: dict[str, Any], noise: str | None) -> Any:
    """Return an evaluation, as `call` does."""
    import fastbcubed

    return call(fastbcubed.evaluate, arguments, noise)


def call(function: Callable[..., Any], arguments: dict[str, Any], noise: str | None) -> Any:
    """Return what a function returns; a noise label that looks like a number is taken as text where labels are.

    Warnings that are not in the result are said.
    """
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EvaluationWarning)
        try:
            found = function(**arguments)
        except IdTypeError:
            if not isinstance(arguments["noise"], int):
                raise
            found = function(**{**arguments, "noise": noise})
    told = [each.message for each in caught if getattr(each.message, "code", None) is None]
    for message in dict.fromkeys(map(str, told)):  # those with a code are in the result
        say(f"warning: {in_flags(message)}")
    return found


def with_scores(arguments: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of `evaluate` with these scores among its metrics, behind those that are there."""
    from fastbcubed.metrics.registry import resolve

    chosen = arguments.get("metrics")
    computed = [metric.name for metric in resolve(chosen)[0]]
    more = [name for name in dict.fromkeys(names) if name not in computed]
    return {**arguments, "metrics": [*(computed if chosen is None else chosen), *more]} if more else arguments
