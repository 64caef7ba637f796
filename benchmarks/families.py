"""The time of each family of scores relative to building the cells, and of the same scores in scikit-learn."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.harness import ROOT
from benchmarks.shapes import generate

__all__ = ["FUNCTIONS", "measure_families", "measure_functions"]

FAMILIES = ("pairs", "matching", "entropy", "edit", "coreference")
#: Functions of `fastbcubed.metrics` that scikit-learn has under the same or another name.
FUNCTIONS = (
    "v_measure_score",
    "homogeneity_score",
    "completeness_score",
    "mutual_info_score",
    "normalized_mutual_info_score",
    "adjusted_rand_score",
    "rand_score",
    "fowlkes_mallows_score",
)
#: A function whose time in scikit-learn is quadratic in the number of clusters.
AMI = "adjusted_mutual_info_score"


def seconds_of(call: Callable[[], Any]) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure_families(n_items: int, runs: int = 3, threads: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield result lines of the time to build the cells of shape `er`, and to score each family from them.

    Scores of one-to-one pairings of clusters need a search and are timed separately.
    """
    import fastbcubed as fb
    from fastbcubed.metrics.registry import resolve
    from fastbcubed.metrics.sums import overall
    from fastbcubed.runtime.threads import Pool

    rows = generate("er", n_items)
    for weighted in (False, True):
        weight = rows.weights if weighted else None

        def build(weight: Any = weight) -> fb.Contingency:
            return fb.contingency(rows.labels_true, rows.labels_pred, weight=weight, threads=threads)

        def score(metrics: Sequence[Any]) -> float:
            cells = build()  # a new evaluation each time, because it caches shared sums
            with Pool(threads) as pool:
                return seconds_of(lambda: overall(cells, metrics, pool=pool))

        found = {family: resolve(family, weighted=weighted)[0] for family in FAMILIES}
        every = [metric for metrics in found.values() for metric in metrics]
        found = {name: [m for m in metrics if not m.pairs_clusters] for name, metrics in found.items()}
        found["all of these"] = [m for m in every if not m.pairs_clusters]
        found["one-to-one pairing"] = [m for m in every if m.pairs_clusters]
        of_cells = [seconds_of(build) for _ in range(runs + 1)][1:]
        record = {"kind": "family", "shape": "er", "n_items": n_items, "weighted": weighted}
        cells = statistics.median(of_cells)
        yield record | {"name": "building the cells", "seconds": cells, "share": 1.0}
        for name, metrics in found.items():
            if metrics:
                seconds = statistics.median([score(metrics) for _ in range(runs + 1)][1:])
                yield record | {"name": name, "seconds": seconds, "share": seconds / cells}


def measure_functions(
    n_items: int, names: Sequence[str] = FUNCTIONS, runs: int = 3, limit: float = 600.0
) -> Iterator[dict[str, Any]]:
    """Yield result lines of functions from labels to a score, in fastbcubed and scikit-learn, in fresh processes."""
    for name in names:
        record: dict[str, Any] = {"kind": "function", "shape": "er", "n_items": n_items, "name": name}
        for package, key in (("fastbcubed", "seconds"), ("sklearn", "rival_seconds")):
            command = [sys.executable, "-m", "benchmarks.families", package, name, str(n_items), str(runs)]
            try:
                done = subprocess.run(
                    command, cwd=ROOT, timeout=limit, check=True, capture_output=True, text=True
                )
                score, seconds = json.loads(done.stdout)
                record |= {key: seconds, f"{key.removesuffix('seconds')}score": score}
            except subprocess.TimeoutExpired:
                record |= {key: None, "outcome": "time"}
            except subprocess.CalledProcessError as error:
                record |= {key: None, "outcome": "error", "message": error.stderr[-500:]}
        yield record


def main(package: str, name: str, n_items: str, runs: str) -> int:
    """Print the score of one function and its seconds: the median of calls after the first, which compiles."""
    rows = generate("er", int(n_items))
    if package == "sklearn":  # without compilation, one call is enough
        from sklearn.metrics import cluster as functions

        calls = 1
    else:
        import fastbcubed.metrics as functions

        getattr(functions, name)(rows.labels_true, rows.labels_pred)
        calls = int(runs)
    scores: list[float] = []
    call = getattr(functions, name)
    seconds = [
        seconds_of(lambda: scores.append(call(rows.labels_true, rows.labels_pred))) for _ in range(calls)
    ]
    print(json.dumps([float(scores[0]), statistics.median(seconds)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
