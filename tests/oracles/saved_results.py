"""Results of each kind, of a few items that can be worked by hand, saved once for all later versions to load.

`python tests/oracles/saved_results.py` writes them to `tests/results/saved/`, in a folder of this version. Folders of
released versions stay as they are.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import fastbcubed as fb

SAVED = Path(__file__).parents[1] / "results" / "saved"
VERSION = "1.0"

ITEMS = list("abcdef")
TRUTH = pa.table(
    {
        "item": ITEMS,
        "cluster": [1, 1, 1, 2, 2, 3],
        "weight": [1.0, 1.0, 1.0, 2.0, 2.0, 1.0],
        "country": list("xxxxyy"),
    }
)
#: c is with d and e instead of a and b.
PREDICTION = pa.table({"item": ITEMS, "cluster": list("uuvvvw")})
LINKS = {"left": list("abdc"), "right": list("bced"), "score": [0.9, 0.5, 0.8, 0.3]}
COVERS = {"a": {1, 2}, "b": {1, 2}, "c": {1}}, {"a": {"u"}, "b": {"u"}, "c": {"u"}}
SCORES = ["precision", "recall", "f1", "pair_f1"]


def _diff() -> Any:
    return fb.diff(PREDICTION, TRUTH.select(["item", "cluster"]), truth=TRUTH, slices="country")


def _pairs() -> Any:
    """Estimate from judged pairs: people find that all belong together, those that were split, too."""
    drawn = _diff().sample_pairs(12).to_arrow()
    verdicts = ["same"] * drawn.num_rows
    at = drawn.column_names.index("verdict")
    return fb.estimate_pairs(drawn.set_column(at, "verdict", pa.array(verdicts)))


#: How each result is made and saved.
KINDS: dict[str, Callable[[Path], Any]] = {
    "evaluation": lambda path: fb.evaluate(TRUTH, PREDICTION, metrics=SCORES, slices="country").save(path),
    "evaluation_on_disk": lambda path: fb.evaluate(
        TRUTH, PREDICTION, weight="weight", metrics=SCORES, engine="disk", keep="items", out=path
    ),
    "evaluation_scores": lambda path: fb.evaluate(TRUTH, PREDICTION, slices="country").save(
        path, keep="scores"
    ),
    "overlapping": lambda path: fb.extended_bcubed(*COVERS).save(path),
    "comparison": lambda path: fb.compare(
        TRUTH, {"old": PREDICTION, "new": TRUTH}, metrics=SCORES, slices="country"
    ).save(path),
    "diff": lambda path: _diff().save(path),
    "sweep": lambda path: fb.sweep(TRUTH, LINKS).save(path),
    "estimates": lambda path: fb.estimate(TRUTH, PREDICTION).save(path),
    "estimated_runs": lambda path: fb.estimate(
        TRUTH, {"old": PREDICTION, "new": TRUTH}, slices="country"
    ).save(path),
    "judged_pairs": lambda path: _pairs().save(path),
}


def write(folder: Path) -> None:
    """Save a result of each kind in a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fb.EvaluationWarning)
        for name, save in KINDS.items():
            shutil.rmtree(folder / name, ignore_errors=True)
            save(folder / name)


if __name__ == "__main__":
    write(SAVED / VERSION)
