"""Notices: what checks find in an evaluation."""

from __future__ import annotations

from typing import Any, NamedTuple

WARNING, NOTE = "warning", "note"


class Notice(NamedTuple):
    """A finding: "warning" if scores may mislead, "note" if they need care to interpret; with its figures."""

    level: str
    message: str
    figures: dict[str, Any]
