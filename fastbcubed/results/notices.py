"""What a check finds in an evaluation."""

from __future__ import annotations

from typing import Any, NamedTuple

WARNING, NOTE = "warning", "note"


class Notice(NamedTuple):
    """A message: "warning" if the scores may mislead, "note" if they are right but need care; its figures."""

    level: str
    message: str
    figures: dict[str, Any]
