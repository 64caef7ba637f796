"""Old names of functions and methods, which still work but warn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def under_old_name(function: Callable[P, R], old: str) -> Callable[P, R]:
    """Return a function or method under its old name, which warns that it has a new one.

    The old name is kept until the next major version, e.g. ``estimates = under_old_name(scores, "estimates")``.
    """
    new = function.__name__

    def by_old_name(*args: P.args, **options: P.kwargs) -> R:
        warnings.warn(f"{old}() has been renamed {new}()", DeprecationWarning, stacklevel=2)
        return function(*args, **options)

    by_old_name.__name__ = old
    by_old_name.__doc__ = f"Return the result of `{new}`, which is the new name of this method."
    return by_old_name
