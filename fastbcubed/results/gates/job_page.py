"""An evaluation as Markdown, for the page of a job: headline scores, coverage, warnings, gates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from fastbcubed.results.gates.gating import Gate
from fastbcubed.results.text.wording import count, label, percent, score
from fastbcubed.results.warnings.plain_shape import n_scored


def as_markdown(ev: Any, gates: Sequence[Gate] = ()) -> str:
    """Return an evaluation as Markdown, and what the gates came to; it ends with an empty line."""
    found = ev.coverage
    failed = sum(not gate.passed for gate in gates)
    mark = "" if not gates else " ✗" if failed else " ✓"
    lines = [f"## fastbcubed: {count(n_scored(ev))} items{mark}", ""]
    names = [ev.names.get(side) for side in ("truth", "prediction")]
    if all(names):
        lines += [f"{_plain(label(names[1]))} against {_plain(label(names[0]))}", ""]
    lines += _table(("score", "value"), [(name, score(value)) for name, value in ev.overall.items()])
    if not found.complete:
        shares = percent(found.truth_coverage), percent(found.prediction_coverage)
        lines += [f"Coverage: {shares[0]} of the truth, {shares[1]} of the prediction.", ""]
    if gates:
        rows = [
            ("passed" if gate.passed else "**failed**", gate.subject, gate.found, gate.wanted)
            for gate in gates
        ]
        lines += _table(("gate", "of", "found", "wanted"), rows)
    for warning in ev.warnings:
        lines += [f"> **{warning['level']}** `{warning['code']}`: {_plain(warning['message'])}", ""]
    return "\n".join(lines) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    plain = ([cell if cell.startswith("**") else _plain(cell) for cell in row] for row in rows)
    grid = [header, ["---"] * len(header), *plain]
    return [f"| {' | '.join(row)} |" for row in grid] + [""]


def _plain(text: str) -> str:
    r"""Return a text that Markdown shows as it is.

    Examples
    --------
    >>> print(_plain("a|b <x> f1_of_means"))
    a\|b \<x\> f1\_of\_means
    """
    return re.sub(r"([\\`*_{}\[\]<>|~#])", r"\\\1", " ".join(text.split()))
