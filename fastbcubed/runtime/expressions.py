"""Expressions of named figures that users write as text: arithmetic, "5*pair_fp + pair_fn", and bounds, "f1 >= 0.9"."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fastbcubed.errors import OptionError, quoted
from fastbcubed.types import Floats

#: Maximum length of an expression in characters.
LONGEST = 1000
#: Characters and words that are passed to Python's parser, which would warn of others, such as "1or 2".
WRITTEN = re.compile(r"(?:[\s()*/+-]|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])|[^\W\d]\w*)+")
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.UAdd: operator.pos, ast.USub: operator.neg,
}  # fmt: skip


#: A bound on a named figure.
BOUND = re.compile(
    r"\s*([^\s<>=@]+)\s*(>=|<=|>|<)\s*([-+]?(?:[\d.,_]+(?:e[-+]?[\d_]+)?|inf(?:inity)?))\s*", re.IGNORECASE
)
#: A number with commas between thousands; any other comma may be meant as a decimal point.
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(?![\d,])[^,]*")


@dataclass(frozen=True)
class Expression:
    """A sum, difference, product or quotient of numbers and of named figures."""

    text: str
    names: tuple[str, ...]  #: the names of the figures, each once
    _tree: ast.expr

    def of(self, figure: Callable[[str], Any]) -> Floats:
        """Return the value of the expression; `figure` returns the number or array with a given name."""
        known = {name: np.asarray(figure(name), np.float64) for name in self.names}
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray(_value(self._tree, known), np.float64)


def is_expression(text: Any) -> bool:
    """Return whether a string is an expression, i.e. more than a name.

    >>> is_expression("pair_f1"), is_expression("5*pair_fp + pair_fn")
    (False, True)
    """
    return isinstance(text, str) and not text.strip().isidentifier()


def parse_expression(text: str, called: Any) -> Expression:
    """Return the expression that a string contains: numbers, names, + - * / and parentheses.

    Raises OptionError for anything else; `called` is the name of the argument in its message.

    >>> float(parse_expression("5*a + b/2", "score").of({"a": 1, "b": 4}.get))
    7.0
    """
    try:
        return _parsed(text.strip())
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        short = text if len(text) <= 80 else f"{text[:80]}…"
        raise OptionError(
            f"{called} must be a name, or numbers and names with + - * / and parentheses, such as "
            f"'5*pair_fp + pair_fn', not {quoted(short)}"
        ) from None


def parse_bound(text: str) -> tuple[str, str, float]:
    """Return the name, sign and number in a bound; raise ValueError, with the number as argument if that is wrong.

    >>> parse_bound("largest <= 1,000")
    ('largest', '<=', 1000.0)
    """
    if (found := BOUND.fullmatch(text)) is None:
        raise ValueError
    name, sign, number = found.groups()
    try:
        return name, sign, float(number.replace(",", "") if THOUSANDS.fullmatch(number) else number)
    except ValueError:
        raise ValueError(number) from None


@lru_cache(64)  # a threshold chosen in a thousand samples evaluates its cost in each of them
def _parsed(text: str) -> Expression:
    if len(text) > LONGEST or not WRITTEN.fullmatch(text):
        raise ValueError
    tree = ast.parse(text, mode="eval").body
    return Expression(text, tuple(dict.fromkeys(_names(tree))), tree)


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield all names in a syntax tree; raise ValueError for anything that is not arithmetic."""
    match tree:
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            yield from _names(left)
            yield from _names(right)
        case ast.UnaryOp(op, operand) if type(op) in OPERATORS:
            yield from _names(operand)
        case ast.Name(name):
            yield name
        case ast.Constant(float()):
            pass
        case ast.Constant(int() as value) if not isinstance(value, bool):
            float(value)
        case _:
            raise ValueError


def _value(tree: ast.AST, known: dict[str, Floats]) -> Any:
    match tree:
        case ast.BinOp(left, op, right):
            return OPERATORS[type(op)](_value(left, known), _value(right, known))
        case ast.UnaryOp(op, operand):
            return OPERATORS[type(op)](_value(operand, known))
        case ast.Name(name):
            return known[name]
        case ast.Constant(int() | float() as value):
            return np.float64(value)
    raise AssertionError(tree)
