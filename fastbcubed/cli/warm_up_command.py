"""``fastbcubed warm-up``: compile the kernels ahead of use by evaluating small tables with all options."""

from __future__ import annotations

import argparse
import gc
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fastbcubed import kernels
from fastbcubed.cli.output import say
from fastbcubed.errors import MORE_MEMORY, EvaluationWarning, FileFormatError, OutOfMemoryError
from fastbcubed.runtime.exit_codes import TERMINATED
from fastbcubed.runtime.progress_bar import announcing_compilation, kept
from fastbcubed.runtime.threads import available_threads

if TYPE_CHECKING:
    import pyarrow as pa

#: Number of items in the tables.
N_ITEMS = 600
#: Garbage-collection threshold during compilation, which creates so many objects that the default threshold would
#: slow it down; this one costs 0.1 GiB of memory.
OBJECTS_AT_ONCE = 1_500_000
#: Total number of compiled kernels, counting each combination of argument types.
N_KERNELS = 336
WEIGHTS: tuple[dict[str, str], ...] = ({}, {"weight": "weight"}, {"weight": "weight", "weighting": "outer"})
POLICIES = ("drop", "singleton", "outside")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add no flags; the command has none."""


def run(options: argparse.Namespace) -> int:
    """Compile the kernels, and print the directory of their cache."""
    gc.set_threshold(OBJECTS_AT_ONCE)
    # Numba compiles in only one thread at a time, so a second process helps; on Windows, cache files are not locked.
    say(warm_up(two_processes=sys.platform != "win32" and available_threads() > 1))
    return 0


def warm_up(*, two_processes: bool = False) -> str:
    """Compile the kernels, and return a message with the directory of their cache."""
    directory = None if kernels.jit.never_compiled() else _directory()
    if directory is None or directory in kernels.cache.fallbacks or kernels.cache.passed_over(directory):
        raise FileFormatError(f"kernels are not compiled ahead: {kept()}")
    with announcing_compilation(N_KERNELS), tempfile.TemporaryDirectory() as work:
        with _second_process(work) if two_processes else nullcontext():
            _compile_all(Path(work))
    return f"kernels are cached in {directory}"


def _directory() -> str | None:
    return kernels.cache.kept_in(kernels.sums.add_up.dispatcher)


@contextmanager
def _second_process(work: str) -> Iterator[None]:
    """Run a second process that shares the steps: its kernels are counted and its errors raised here."""
    from multiprocessing import Pipe

    count = kernels.jit.listeners[-1]
    received, sent = Pipe(duplex=False)
    script = f"import sys; sys.path[:] = {sys.path}; from {__name__} import assist; "
    script += f"assist({sent.fileno()}, {work!r})"
    # A separate process group does not receive Ctrl-C from the terminal.
    process = subprocess.Popen([sys.executable, "-c", script], pass_fds=[sent.fileno()], process_group=0)
    sent.close()

    def receive(*, to_the_end: bool = False) -> None:
        while to_the_end or received.poll():
            try:
                error = received.recv()
            except EOFError:
                if code := process.wait():
                    raise OutOfMemoryError(
                        f"the second compiling process was killed or failed (exit code {code}), most "
                        f"likely for lack of memory. {MORE_MEMORY}"
                    ) from None
                return
            if error is not None:
                raise error
            count()

    kernels.jit.listeners.append(receive)
    try:
        yield
        receive(to_the_end=True)
    finally:
        kernels.jit.listeners.remove(receive)
        received.close()
        process.terminate()
        process.wait()


def assist(handle: int, work: str) -> None:
    """Take steps in the second process; send None for each compiled kernel, or an error, to the first."""
    from multiprocessing.connection import Connection

    # exits by an exception, so that temporary files are removed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    gc.set_threshold(OBJECTS_AT_ONCE)
    with suppress(BrokenPipeError), Connection(handle, readable=False) as sent:
        kernels.jit.listeners.append(partial(sent.send, None))
        try:
            _compile_all(Path(work), last_first=True)
        except Exception as error:
            sent.send(error)


def _compile_all(work: Path, *, last_first: bool = False) -> None:
    """Take all steps, except those that the other process has claimed by creating their directory."""
    of_tables = [partial(step, ids) for ids in ("int", "string") for step in (_one_table, _two_tables)]
    steps: list[Callable[[Path], None]] = [*of_tables, _large_clusters, _few_clusters, _covers, _links]
    order = range(len(steps))
    with kernels.jit.compiling(), warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        for k in reversed(order) if last_first else order:
            own = work / str(k)
            try:
                own.mkdir()
            except FileExistsError:
                continue
            steps[k](own)
    if kernels.jit.failures:
        raise FileFormatError(f"kernels could not be cached in {_directory()}: {kernels.jit.failures[0]}")


def _rows(ids: str) -> pa.Table:
    """Return a table of shuffled items with small true and predicted clusters, weights and attributes."""
    import numpy as np
    import pyarrow as pa

    number = np.random.default_rng(0).permutation(N_ITEMS)
    codes = {"item": number, "truth": number // 3, "prediction": np.where(number % 7, number // 3, number)}
    columns: dict[str, Any] = {}
    for k, (name, values) in enumerate(codes.items()):
        # spread over the range of integers
        words = (values + (k << 60)).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        columns[name] = words.view(np.int64) if ids == "int" else [f"{name[0]}{word:016x}" for word in words]
    countries = [("US", "CN", "JP", None)[code % 4] for code in number.tolist()]
    kind = pa.dictionary(pa.int8(), pa.string())
    columns |= {"weight": 0.5 + number / N_ITEMS, "country": pa.array(countries, kind)}
    return pa.table(columns | {"year": (1990 + number % 30).astype(np.int16)})


def _one_table(ids: str, work: Path) -> None:
    import pyarrow.parquet as pq

    rows = work / "rows.parquet"
    pq.write_table(_rows(ids).drop_columns("item"), rows, use_dictionary=["country", "year"])
    for options in WEIGHTS:
        _evaluate(work, "truth", "prediction", metrics="all" if ids == "int" else None, table=rows, **options)


def _two_tables(ids: str, work: Path) -> None:
    """Evaluate two tables, each of which lacks an item of the other."""
    import pyarrow.parquet as pq

    rows = _rows(ids)
    truth = rows.drop_columns("prediction").rename_columns(["item", "cluster", "weight", "country", "year"])
    prediction = rows.select(["item", "prediction"]).rename_columns(["item", "cluster"])
    prediction = prediction.sort_by("cluster")  # in a different order than the truth
    paths = [work / "truth.parquet", work / "prediction.parquet"]
    weights = truth.select(["item", "weight"])
    _evaluate(work, truth, prediction, weight=weights)
    _evaluate(work, truth, prediction.slice(1))
    for path, table in zip(paths, (truth, prediction), strict=True):
        pq.write_table(table.slice(1), path)
    _runs(*paths)
    _estimate(*paths)
    for options in WEIGHTS:
        own: dict[str, Any] = {**options, "weight": weights} if options else {}
        for policy in POLICIES:
            metrics = "all" if policy == "outside" and ids == "int" else None
            _evaluate(work, *paths, metrics=metrics, unmatched={"prediction": policy}, **own)


def _large_clusters(_: Path) -> None:
    """Compare runs that share the rows of the truth, and evaluate on disk, where rows are first counted by cell."""
    from importlib.resources import as_file, files

    import fastbcubed as fb

    with as_file(files("fastbcubed") / "data" / "patentsview") as folder:
        truth, *runs = (folder / f"{name}.parquet" for name in ("truth", "pred_20200929", "pred_20211230"))
        for weight in (None, "n_coinventors"):
            for run in runs:
                fb.evaluate(truth, run, weight=weight, engine="disk", progress=False)
            for n_bootstrap in (0, 40):
                given = {run.stem: run for run in runs}
                repr(
                    fb.compare(
                        truth, given, weight=weight, bootstrap=n_bootstrap, slices="country", progress=False
                    )
                )


def _few_clusters(work: Path) -> None:
    """Evaluate with few clusters: consecutive labels or not, narrow or wide, rarely unseen in a sample, or text."""
    import numpy as np
    import pyarrow as pa

    import fastbcubed as fb
    from fastbcubed.cells.dense import FEWEST_TO_SAMPLE
    from fastbcubed.runtime.key_partitions import sampled_rows

    rows = np.arange(FEWEST_TO_SAMPLE)
    labels = rows % 10
    unseen = labels.copy()
    unseen[np.setdiff1d(rows, sampled_rows(rows.size))[0]] = 10
    mostly = np.where(rows % 5, labels, rows)
    narrow = [side.astype(np.int32) for side in (labels, unseen)]
    for side in (labels, unseen, *narrow, labels << 40, unseen << 40, mostly << 40):
        for weight in (None, 1.0 + labels):
            ev = fb.evaluate(side, side, weight=weight, keep="items", progress=False)
            ev.clusters("true", limit=3)
            ev.items(limit=3)
    some_repeat = np.where(labels < 5, labels, rows)
    for kind in (pa.string(), pa.large_string()):
        texts = [pa.array(side.astype(str)).cast(kind) for side in (labels, some_repeat)]
        fb.evaluate(*texts, progress=False)
        fb.evaluate(*(pa.table({"item": rows, "cluster": side}) for side in texts), progress=False)


def _covers(work: Path) -> None:
    import pyarrow as pa

    import fastbcubed as fb

    everyone = range(N_ITEMS // 10)
    truth = {item: {item // 3, 100 + item // 5} for item in everyone}
    prediction = {item: {item // 4, 100 + item // 7} for item in everyone}
    for weight in (None, {item: 1.0 + item % 7 for item in everyone}):
        ev = fb.evaluate(truth, prediction, weight=weight, overlapping=True, metrics="all", progress=False)
        _look_at(ev, work)
    held = [(item, cluster, 1.0) for item, clusters in truth.items() for cluster in clusters]
    # one table is sorted and one is not, and one lacks an item
    rows, columns = [held, held[:1:-1]], ("item", "cluster", "weight")
    tables = [dict(zip(columns, map(list, zip(*each, strict=True)), strict=True)) for each in rows]
    for column in (None, "weight"):
        fb.extended_bcubed(*map(pa.table, tables), weight=column, unmatched="drop", progress=False)


def _links(_: Path) -> None:
    import fastbcubed as fb

    for kind in (int, str):
        links = [(kind(item), kind(item // 2), item / N_ITEMS) for item in range(N_ITEMS)]
        fb.Clustering.from_links(links)
        fb.Clustering.from_links(links, threshold=0.5, items=list(map(kind, range(5 * N_ITEMS))))
        _sweep(links, {kind(item): item % 70 for item in range(1, N_ITEMS + 1)})


def _sweep(links: list[Any], truth: dict[Any, int]) -> None:
    """Sweep links that contain an item that the truth lacks."""
    import fastbcubed as fb

    weights = {item: 1.0 + k % 7 for k, item in enumerate([*truth, links[0][0]])}
    policies: tuple[dict[str, Any], ...] = ({}, {"unmatched": "outside"})
    for weight in (None, weights):
        for policy in policies:
            sweep = fb.sweep(truth, links, weight=weight, progress=False, **policy)
            sweep.curve(errors=True)
            sweep.merges()
            sweep.weakest_links()
            sweep.slices("true_size")


def _evaluate(work: Path, truth: Any, prediction: Any, *, metrics: str | None = None, **options: Any) -> None:
    """Evaluate with both engines; these metrics, of which weighted ones may need all items, in memory only."""
    import fastbcubed as fb

    engines: list[tuple[Literal["memory", "disk"], str | None]] = [("memory", metrics), ("disk", None)]
    for engine, own in engines:
        ev = fb.evaluate(
            truth, prediction, slices=["country", "true_size"], metrics=own, engine=engine, keep="items",
            progress=False, **options,
        )  # fmt: skip
        _look_at(ev, work)


def _runs(truth: Path, prediction: Path) -> None:
    """Compare runs, find the changes between them, and evaluate with unmatched items dropped."""
    import fastbcubed as fb

    for weight, metric in ((None, "conll_f1"), ("weight", "pair_f1")):
        runs = {"run": prediction, "truth": truth}
        repr(fb.compare(truth, runs, weight=weight, unmatched="drop", metrics=["f1", metric], progress=False))
        repr(fb.diff(prediction, truth, truth=truth, weight=weight, progress=False))
        fb.evaluate(truth, prediction, weight=weight, engine="disk", unmatched="drop", progress=False)


def _estimate(sample: Path, prediction: Path) -> None:
    """Estimate scores with both engines, taking the true clusters as a sample."""
    import fastbcubed as fb

    engines: tuple[Literal["memory", "disk"], ...] = ("memory", "disk")
    for engine in engines:
        fb.estimate(sample, prediction, engine=engine, progress=False)


def _look_at(ev: Any, work: Path) -> None:
    """Call every method of an evaluation that runs kernels."""
    for side in ("true", "pred"):
        ev.clusters(side, limit=3)
        ev.lorenz(side, limit=3)
        ev.cluster(side, next(filter(None, ev.clusters(side)["cluster"].to_pylist())))
    ev.items(limit=3)
    ev.cells(limit=3)
    if not ev.contingency.overlapping:
        ev.outcomes()
        ev.repairs(limit=3)
    repr(ev)
    ev.slices("true_size", errors=True)
    ev.save(work / "result", keep="items")
