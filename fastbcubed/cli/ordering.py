"""The flag --order-by: which clusters are listed, those that cost most or those of the worst score."""

from __future__ import annotations

from typing import Any

from fastbcubed.cli.calling import with_scores
from fastbcubed.errors import OptionError

#: What clusters are ordered by unless a score is named.
LOSS = "loss"


def with_order(arguments: dict[str, Any], asked: str) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of `evaluate`, and the score to order clusters by, which is among these; None for loss."""
    from fastbcubed.metrics.registry import resolve

    if asked == LOSS:
        return arguments, None
    found = resolve([asked])[0]
    if len(found) > 1 or found[0].overall_only:
        what = (
            f"a family of {len(found)} scores"
            if len(found) > 1
            else "one score of all items, which clusters lack"
        )
        raise OptionError(f"--order-by {asked} is {what}; name a mean over items, such as f1, or {LOSS}")
    name = found[0].alias_of or found[0].name
    return with_scores(arguments, [name]), name
