"""Output of the command line: messages on stderr, JSON on stdout, arguments named as flags."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from fastbcubed.errors import Argument, Either, EvaluationWarning, IdTypeError, Message, Part, alternatives


def print_json(text: str) -> None:
    """Write JSON; names that the encoding of stdout lacks are escaped."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text), indent=2)
    with to_stdout():
        print(text)


@contextmanager
def to_stdout() -> Iterator[None]:
    """Name standard output in the error of a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


def say(message: str) -> None:
    """Write a message on stderr, which may be closed."""
    try:
        print(f"fastbcubed: {message}", file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: TextIO) -> None:
    """Discard a stream's further output, so that Python does not fail on it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def in_flags(message: str) -> str:
    """Return a message of the library with its arguments written as flags.

    Examples
    --------
    >>> from fastbcubed.errors import arg
    >>> in_flags(Message(f"Pass {arg('unmatched', 'drop')} or {arg('unmatched', {'prediction': 'outside'})}."))
    'Pass --unmatched drop or --unmatched prediction=outside.'
    >>> in_flags(Message(f"Did you mean {arg('item', ('item', ['DATA_SOURCE', 'RECORD_ID']))}?"))
    'Did you mean --item item,DATA_SOURCE+RECORD_ID?'
    """
    return Message(message).render(_in_flags)


def _in_flags(part: str | Part) -> str:
    if isinstance(part, Either):
        return part.command
    from fastbcubed.cli.options import OPTIONS

    if not isinstance(part, Argument) or part.name not in OPTIONS:
        return str(part)
    flag = OPTIONS[part.name].flags[0]
    value = alternatives(_value(part.name, value) for value in part.values)
    return f"{flag} {value}".rstrip()


def _value(name: str, value: Any) -> str:
    """Return a value as a flag takes it; nothing for True, or where any value is meant."""
    if value is None or value is True:
        return ""
    if name in ("item", "cluster", "left", "right", "link_left", "link_right", "item_column"):
        return _columns(value)
    if isinstance(value, dict):
        return ",".join(f"{side}={policy}" for side, policy in value.items())
    if isinstance(value, float):
        return f"{value:.2g}"
    return ",".join(value) if isinstance(value, list) else str(value)


def _columns(names: str | list[str] | tuple[str | list[str], ...]) -> str:
    r"""Return columns in the syntax of a flag.

    Examples
    --------
    >>> _columns(("item", ["source", "no, or id"]))
    "'item,source+no\\, or id'"
    """
    sides = names if isinstance(names, tuple) else (names,)
    joined = ("+".join(map(_escaped, [side] if isinstance(side, str) else side)) for side in sides)
    return shlex.quote(",".join(joined))


def _escaped(name: str) -> str:
    return re.sub(r"([,+\\])", r"\\\1", name)


def call_evaluate(arguments: dict[str, Any], noise: str | None) -> Any:
    """Return an evaluation, as `call` does."""
    import fastbcubed

    return call(fastbcubed.evaluate, arguments, noise)


def call(function: Callable[..., Any], arguments: dict[str, Any], noise: str | None) -> Any:
    """Return a function's result; a noise label that looks like a number becomes text if labels are text.

    Warnings that are not in the result are printed.
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
    messages = [each.message.args[0] for each in caught if getattr(each.message, "code", None) is None]  # type: ignore
    for message in dict.fromkeys(messages):  # warnings with a code are in the result
        say(f"warning: {in_flags(message)}")
    return found


def with_scores(arguments: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of `evaluate` with these scores added to its metrics."""
    from fastbcubed.metrics.registry import resolve

    chosen = arguments.get("metrics")
    computed = [metric.name for metric in resolve(chosen)[0]]
    more = [name for name in dict.fromkeys(names) if name not in computed]
    return {**arguments, "metrics": [*(computed if chosen is None else chosen), *more]} if more else arguments
