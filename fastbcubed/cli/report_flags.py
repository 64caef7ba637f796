"""``--report FILE``: a result as a page for people, written when all else has been said."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.saying import say
from fastbcubed.errors import OptionError
from fastbcubed.sources.marks import plain, split

if TYPE_CHECKING:
    from fastbcubed.results.gates.gating import Gate

#: Clusters of each side, and members of each, that a page shows.
WORST, MEMBERS = 20, 10


def add_report_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``--report FILE``, and the attributes that it shows."""
    add = parser.add_argument_group("a page for people; takes fastbcubed[report]").add_argument
    add(
        "--report", metavar="FILE",
        help="write verdict, charts, slices and the clusters that cost most as one HTML file, which is replaced",
    )  # fmt: skip
    add(
        "--report-columns", metavar="NAME,...",
        help="attributes to show beside the members of clusters there (default: none)",
    )  # fmt: skip


def add_report_flag(add: Any, what: str) -> None:
    """Add ``--report FILE`` alone; `what` is on the page."""
    add(
        "--report", metavar="FILE",
        help=f"write {what} as one HTML file, which is replaced; takes fastbcubed[report]",
    )  # fmt: skip


def check_report(options: argparse.Namespace) -> None:
    """Raise if a page cannot be made or written; before the work."""
    if options.report is None and getattr(options, "report_columns", None) is not None:
        raise OptionError("--report-columns goes with --report")
    if options.report is not None:
        from fastbcubed.results.report.asked import require_packages, require_place

        require_packages("--report")
        require_place(options.report, overwrite=True)


def report_columns(text: str | None) -> list[str]:
    """Return the attributes that a flag names."""
    return [] if text is None else [plain(name) for name in split(text, ",")]


def write_report(options: argparse.Namespace, result: Any, gates: Sequence[Gate] = ()) -> None:
    """Write the page of a result, if it was asked for, with the gates that were tried."""
    if options.report is None:
        return
    from fastbcubed.results.report.page import report_of

    asked = {"columns": report_columns(options.report_columns)}
    report_of(lambda found: result.page_content(found, gates), options.report, asked, overwrite=True)
    say(f"wrote {options.report}")
