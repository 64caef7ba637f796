"""Estimates as the content of a page: sentences, intervals, the table, and the basis of the estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastbcubed.render.report import Page
from fastbcubed.render.wording import count
from fastbcubed.results.page import Asked
from fastbcubed.results.section_page import chart, page_of, section
from fastbcubed.results.table import grid_of

#: Rows of a chart, and of a table.
CHARTED, LISTED = 20, 100


def estimates_page(estimates: Any, sentences: Sequence[str], how: str, asked: Asked) -> Page:
    """Return the page content of scores estimated from sampled true clusters; `how` is their basis."""
    table = estimates.scores()
    facts = {side.capitalize(): name for side, name in estimates.names.items()}
    of_1 = [row for row in table.to_pylist() if estimates._ranges[row["score"]] == (0, 1)]
    sections = [
        section("Estimates", sentences, charts=_charts(of_1, estimates.level)),
        section("Figures", grids=[grid_of(table.drop_columns(["df"]), LISTED)]),
        section("What it rests on", [how]),
    ]
    return page_of("estimate", asked.title or "Estimated scores", facts, sections, estimates.warnings)


def pairs_page(found: Any, asked: Asked) -> Page:
    """Return the page of scores estimated from judged pairs."""
    unsure = "low_unsure and high_unsure: the estimate if all that is unsure went the one way, or the other."
    notes = [unsure] if any(found["n_unsure"].to_pylist()) else []
    if len(found) > LISTED:
        notes.append(f"The first {LISTED} of {count(len(found))} rows.")
    sections = [
        section("Verdict", found.sentences, charts=_charts(found.to_pylist(), found.level)),
        section("Figures", grids=[grid_of(found, LISTED)], notes=notes),
    ]
    return page_of("judged pairs", asked.title or "What people say of the change", {}, sections)


def _charts(rows: Sequence[Mapping[str, Any]], level: float) -> list[dict[str, Any]]:
    """Return the chart of estimates with intervals; none where there is no row."""
    shown = [
        {"name": ": ".join(str(row[name]) for name in ("stratum", "score") if name in row), "value": row["estimate"],
         "low": row["low"], "high": row["high"]}
        for row in rows[:CHARTED]
    ]  # fmt: skip
    text = f"Lines are intervals of {100 * level:g} %."
    return [chart("intervals", "Estimates", text, {"rows": shown})] if shown else []
