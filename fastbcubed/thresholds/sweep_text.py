"""A sweep for people: sentences, and the curve drawn in a few lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastbcubed.metrics.registry import METRICS
from fastbcubed.results.text.wording import count, paragraph
from fastbcubed.thresholds.best import Best, shown
from fastbcubed.thresholds.drawing import SEVERAL, draw

#: Scores that are drawn, and their letters.
DRAWN = {"precision": "P", "recall": "R", "f1": "F"}
COLUMNS = 60


def as_text(sweep: Any) -> str:
    """Return what was swept, where F1 is best, and the curve."""
    parts = [paragraph(what_was_swept(sweep))]
    if "f1" in sweep._curve.names:
        best = sweep.best("f1")
        parts.append("\n".join(map(paragraph, (best.sentence, best.range))))
        parts += ["\n".join(lines)] if (lines := drawn(sweep, best)) else []
    return "\n\n".join(parts)


def what_was_swept(sweep: Any) -> str:
    """Return a sentence on the links, their items and the thresholds."""
    tree = sweep.tree
    links = f"{count(len(sweep.links))} link{'' if len(sweep.links) == 1 else 's'} over {count(tree.n_items)} items"
    if not tree.n_levels:
        return f"Sweep of {links}, none of which joins anything."
    first, last = (shown(float(sweep._level_thresholds[k])) for k in (0, -1))
    scores = "score" if tree.n_levels == 1 else "scores"
    reach = f"at {first}" if tree.n_levels == 1 else f"from {first} to {last}"
    return f"Sweep of {links}: clusters change at {count(tree.n_levels)} {scores} of links, {reach}."


def drawn(sweep: Any, best: Best, *, width: int = COLUMNS, height: int = 11) -> list[str]:
    """Return the lines of a chart of scores by threshold, strongest left, with the best marked; none for one level.

    The scores are precision, recall and F1 where they are known, and the one that is best, if it is a share.
    """
    curve, known = sweep._curve, sweep._level_thresholds
    finite = known[np.isfinite(known)]
    if finite.size < 2:
        return []
    metric = METRICS[best.score]
    letters = {letter: name for name, letter in DRAWN.items() if name in curve.names}
    if best.score not in DRAWN and metric.low >= 0 and metric.high <= 1:
        letters["B"] = best.score
    first, last = finite[[0, -1]].tolist()
    points = np.array([sweep._point(threshold) for threshold in np.linspace(first, last, width).tolist()])
    at = min(max(best.threshold, min(first, last)), max(first, last))
    lines = draw(
        {letter: curve.figures(name, points) for letter, name in letters.items()},
        (shown(first), shown(last)),
        round((at - first) / (last - first) * (width - 1)),
        height=height,
    )
    named = ", ".join(f"{letter} {name}" for letter, name in letters.items())
    return [*lines, f"     {named}, {SEVERAL} several, by threshold; ^ the best {best.score}"]
