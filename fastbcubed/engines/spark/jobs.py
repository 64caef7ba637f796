"""Jobs on Spark: what runs there, and what failed there, said as errors of this library."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastbcubed import errors
from fastbcubed.engines.spark.adding_up import PAYLOAD, Sums, add_up, added
from fastbcubed.engines.spark.streamed_cells import Question
from fastbcubed.errors import FastBCubedError, SparkJobError

#: An error of a Python process on an executor, as its traceback ends.
RAISED = re.compile(r"^(?:fastbcubed\.errors\.)?(\w+): (.*)$", re.MULTILINE)
#: Further lines that a message shows of what Spark says.
SHOWN = 300


def sums_of_job(cells: Any, question: Question) -> Sums | None:
    """Stream cells past the kernels where they are, and return the sums; None of no cells."""
    with named_errors():
        rows = cells.mapInArrow(add_up(question), PAYLOAD).collect()
    parts = [pickle.loads(row["payload"]) for row in rows]
    return added(parts, question) if parts else None


@contextmanager
def named_errors() -> Iterator[None]:
    """Raise what fails on Spark as an error of this library, without the stack of Java."""
    try:
        yield
    except FastBCubedError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        raise _named(str(error)) from None


def _named(text: str) -> FastBCubedError:
    """Return the error of a kernel that is in the text of one of Spark's, or one that says what Spark says."""
    start = text.find("Traceback (most recent call last)")
    if start < 0:
        return SparkJobError(f"Spark could not do its part: {_first_lines(text)}")
    raised = RAISED.search(text, start)
    name, message = ("an error", _first_lines(text[start:])) if raised is None else raised.groups()
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, FastBCubedError):
        return kind(message)
    if name == "ModuleNotFoundError" and "fastbcubed" in message:
        message += ". Install fastbcubed where the executors run, as well"
    return SparkJobError(f"a kernel failed on an executor: {name}: {message}")


def _first_lines(text: str) -> str:
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")
    ]
    return " ".join(lines)[:SHOWN]
