"""Figures and tables in Markdown, and their insertion between the markers of a document."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["count", "markdown", "ratio", "rewrite_regions", "seconds", "size"]


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]], left: int) -> str:
    """Return a table with padded columns, the first `left` of which are left-aligned."""
    table = [list(head), *(list(row) for row in rows)]
    widths = [max(4, *(len(row[column]) for row in table)) for column in range(len(table[0]))]

    def line(row: list[str]) -> str:
        cells = [
            text.ljust(width) if column < left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(cells)} |"

    rule = ["-" * width if column < left else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return "\n".join([line(table[0]), line(rule), *map(line, table[1:])])


def seconds(value: float) -> str:
    """Return seconds as text, in seconds or milliseconds, with three digits."""
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def ratio(value: float, reference: float | None) -> str:
    """Return as text how many times longer than the reference a rival took."""
    if reference is None:
        return ""
    times = value / reference
    digits = 2 if times < 10 else 1 if times < 100 else 0
    return f"{times:,.{digits}f}\u00d7"


def size(n_bytes: int) -> str:
    """Return bytes as text in GiB or MiB."""
    if n_bytes >= 2**30:
        return f"{n_bytes / 2**30:.1f} GiB"
    return f"{n_bytes / 2**20:.0f} MiB"


def count(value: float) -> str:
    """Return a large number as text in thousands, millions or billions."""
    for unit, name in ((1e9, " billion"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def rewrite_regions(text: str, tables: dict[str, str]) -> tuple[str, set[str]]:
    """Return the text with tables between their markers, and the names of the tables that have markers."""
    found = set()
    for name, table in tables.items():
        start, end = f"<!-- benchmark:{name} -->", f"<!-- /benchmark:{name} -->"
        region = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        if region.search(text):
            found.add(name)
            body = f"{start}\n\n{table}\n\n{end}"
            text = region.sub(body.replace("\\", r"\\"), text)
    return text, found
