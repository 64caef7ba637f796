"""Notices: what checks find in an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fastbcubed.errors import Message

WARNING, NOTE = "warning", "note"


class Notice(NamedTuple):
    """A finding: "warning" if scores may mislead, "note" if they need care to interpret; with its figures."""

    level: str
    message: str
    figures: dict[str, Any]


def with_codes(found: Mapping[str, Iterable[Notice]]) -> list[dict[str, Any]]:
    """Return notices by code as results list them: the code, level, message and figures of each."""
    return [
        {"code": code, "level": notice.level, "message": Message(notice.message), **notice.figures}
        for code, notices in found.items()
        for notice in notices
    ]
