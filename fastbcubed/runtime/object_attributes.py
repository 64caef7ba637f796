"""Attributes of objects that are computed on first access, and `dir()` listings of documented attributes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """Compute an attribute on first access, like `functools.cached_property` of Python 3.12.

    The version of Python 3.11 has one lock for all instances. A process forked while another thread holds the lock
    waits forever, and evaluations in several threads wait for each other.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value = self.function(instance)
        instance.__dict__[self.name] = value
        return value


#: Patterns of the docstring section that lists attributes, of a name in it, and of the line below a section title.
ATTRIBUTES = re.compile(r"^Attributes\n-+\n(.*?)(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
NAMES = re.compile(r"^(\w+(?:, \w+)*) :", re.MULTILINE)
SECTION = re.compile(r"^-{3,}$", re.MULTILINE)


def documented(thing: Any, more: Iterable[str] = ()) -> list[str]:
    """Return the ``dir()`` of an object of this package, for its `__dir__`; `more` are additional names.

    The list has the attributes documented by its classes, the methods whose docstrings have sections, conversions
    (``to_pandas``), and everything from classes of other libraries, such as the methods of a dict.
    """
    return sorted({*_of_class(thing.__class__), *more})


@cache
def _of_class(kind: type) -> frozenset[str]:
    found = set[str]()
    for each in kind.__mro__:
        ours = each.__module__.partition(".")[0] == "fastbcubed"
        for section in ATTRIBUTES.findall(inspect.cleandoc(each.__doc__ or "")) if ours else ():
            found.update(chain.from_iterable(names.split(", ") for names in NAMES.findall(section)))
        for name, member in vars(each).items():
            is_inner = name.startswith("_")
            described = name.startswith("to_") or SECTION.search(inspect.cleandoc(member.__doc__ or ""))
            if name.startswith("__") if is_inner else described or not ours:
                found.add(name)
    return frozenset(found)


def only_all(names: Mapping[str, Any]) -> Callable[[], list[str]]:
    """Return a `__dir__` function for a module that lists only these names, those of ``__all__``."""
    return lambda: sorted({*names["__all__"], *(name for name in names if name.startswith("__"))})
