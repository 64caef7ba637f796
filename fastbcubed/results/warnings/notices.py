"""A notice: a warning or a note on an evaluation, before it has its code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

WARNING, NOTE = "warning", "note"
#: With fewer items nothing is told from shares: whoever evaluates so few can read them all.
FEW_ITEMS = 20


class Notice(NamedTuple):
    """What is to be said: "warning" if the scores may mislead, "note" if they are right and want care; the figures."""

    level: str
    message: str
    figures: dict[str, Any]


def sentence(found: Mapping[str, Any]) -> str:
    """Return what is said of an entry of `Evaluation.warnings`, with its code."""
    return f"{found['level'].capitalize()}: {found['message']} [{found['code']}]"
