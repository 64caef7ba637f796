"""Calling the library as the command line does: labels may be numbers or text, and warnings are in the result."""

from __future__ import annotations

from typing import Any

from fastbcubed.errors import EvaluationWarning, IdTypeError


def call_evaluate(arguments: dict[str, Any], noise: str | None) -> Any:
    """Return an evaluation; a noise label that looks like a number is taken as text where labels are."""
    import warnings

    import fastbcubed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        try:
            return fastbcubed.evaluate(**arguments)
        except IdTypeError:
            if not isinstance(arguments["noise"], int):
                raise
        return fastbcubed.evaluate(**{**arguments, "noise": noise})
