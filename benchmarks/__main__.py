"""Run the benchmarks and write the tables of both READMEs: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import memory
from benchmarks.datasets import DEFAULT_DIRECTORY, Dataset
from benchmarks.disk import BILLION, BILLION_LIMIT, LIMIT, NoRoomError, billion, file_datasets, stored
from benchmarks.families import AMI, measure_families, measure_functions
from benchmarks.forms import Form
from benchmarks.harness import ROOT, TOLERANCE, Protocol, measure_all
from benchmarks.links import CASES as LINK_CASES
from benchmarks.links import LARGE_CASES, measure_links
from benchmarks.links import QUICK_CASES as QUICK_LINK_CASES
from benchmarks.machine import machine_facts, usable_cores
from benchmarks.markdown import rewrite_regions
from benchmarks.overlap import CASES, QUICK_CASES, measure_overlap
from benchmarks.report import load_runs, make_tables
from benchmarks.rivals import FORMS, find_forms
from benchmarks.shapes import DRAWN, IDS, SHAPES
from benchmarks.spark_scores import QUICK_SIZES as QUICK_SPARK_SIZES
from benchmarks.spark_scores import SIZES as SPARK_SIZES
from benchmarks.spark_scores import measure_spark
from benchmarks.startup import measure_startup

SIZES = (5_000, 100_000, 10**6, 10**7, 10**8)
STRING_SIZE = 10**7
QUICK_SIZES = (1_000, 20_000)
FAMILY_SIZE = 10**7
FUNCTION_SIZES = (10**6, 10**7)
AMI_SIZE = 250_000  # 1e5 clusters a side
FILE_SIZES = (10**6, 10**7, 10**8)
PARTS = ("startup", "families", "functions", "overlap", "links", "scores", "disk", "spark")
RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Measure the requested parts, store the results, and write the tables."""
    options = parse(arguments)
    results = options.results or (options.data_dir / "quick-results" if options.quick else RESULTS)
    if not options.report_only:
        agreed = run(options, results)
    else:
        agreed = True
    show(results, [] if options.quick else [options.readme, options.tables])
    return 0 if agreed else 1


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    rivals = ",".join(dict.fromkeys(form.rival for form in FORMS))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sizes", type=comma_sizes, help="numbers of items, such as 1e6,1e7")
    parser.add_argument(
        "--shapes", type=comma_list, help=f"of {','.join([*SHAPES, *DRAWN])}; the last five in memory only"
    )
    parser.add_argument("--ids", type=comma_list, help=f"of {','.join(IDS)}")
    parser.add_argument(
        "--rivals", default=rivals, help="rival, rival/form or rival/all; default: all rivals"
    )
    parser.add_argument("--repeat", type=int, default=3, help="rounds, each with fresh processes")
    parser.add_argument("--threads", type=int, default=usable_cores(), help="default: all cores")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one call")
    parser.add_argument("--memory", type=float, default=20.0, help="GiB for one process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", type=Path, default=DEFAULT_DIRECTORY, help="(%(default)s)")
    parser.add_argument("--results", type=Path, help="directory of the result files")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", help="gets the overview")
    parser.add_argument(
        "--tables", type=Path, default=ROOT / "benchmarks" / "README.md", help="gets all other tables"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes; READMEs stay")
    parser.add_argument("--only", type=comma_list, default=PARTS, help=f"of {','.join(PARTS)}; default: all")
    parser.add_argument(
        "--billion", action="store_true", help="measure one file of 1e9 rows, or of --sizes, and nothing else"
    )
    parser.add_argument("--report-only", action="store_true", help="measure nothing")
    options = parser.parse_args(arguments)
    for wanted, known in ((options.shapes, (*SHAPES, *DRAWN)), (options.ids, IDS), (options.only, PARTS)):
        unknown = [name for name in wanted or () if name not in known]
        if unknown:
            parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
    try:
        options.rivals = comma_list(options.rivals)
        find_forms(options.rivals)
    except ValueError as error:
        parser.error(str(error))
    if options.billion:
        options.only = ("billion",)
    return options


def comma_list(text: str) -> list[str]:
    """Return the parts of a comma-separated list."""
    return [part for part in text.split(",") if part]


def comma_sizes(text: str) -> list[int]:
    """Return the numbers of a comma-separated list such as 1e6,1e7."""
    return [int(float(part)) for part in comma_list(text)]


def plan(options: argparse.Namespace, protocol: Protocol) -> Iterator[tuple[Dataset, Protocol]]:
    """Yield the data sets on which rivals are compared, and how each is measured."""
    if "scores" in options.only:
        for dataset in plan_arrays(options):
            yield dataset, protocol
    if "disk" in options.only:
        sizes = options.sizes or (QUICK_SIZES[:1] if options.quick else FILE_SIZES)
        shapes = [shape for shape in options.shapes or ["er"] if shape in SHAPES]
        for dataset in file_datasets(sizes, shapes, options.ids or IDS, options.seed):
            yield dataset, replace(protocol, limit=LIMIT)
    if "billion" in options.only:
        for n_items in options.sizes or (QUICK_SIZES[:1] if options.quick else [BILLION]):
            yield billion(n_items, options.seed), replace(protocol, limit=BILLION_LIMIT, rounds=1)


def plan_arrays(options: argparse.Namespace) -> list[Dataset]:
    """Return the data sets in memory: all combinations of the requested values or, by default, those in README."""
    seed = options.seed
    if options.sizes or options.shapes or options.ids:
        return [
            Dataset(shape, n_items, ids, seed)
            for ids in options.ids or ["int64"]
            for shape in options.shapes or ["er"]
            for n_items in options.sizes or SIZES
        ]
    sizes = QUICK_SIZES if options.quick else SIZES
    string_size = sizes[-1] if options.quick else STRING_SIZE
    return [
        *(Dataset("er", n_items, "int64", seed) for n_items in sizes),
        *(Dataset(shape, sizes[-1], "int64", seed) for shape in (*SHAPES, *DRAWN) if shape != "er"),
        *(Dataset(shape, string_size, "string", seed) for shape in ("er", "heavy")),
    ]


def run(options: argparse.Namespace, results: Path) -> bool:
    """Measure and store everything; return whether all rivals did the same work."""
    protocol = Protocol(
        options.data_dir,
        rounds=1 if options.quick else options.repeat,
        threads=options.threads,
        seconds=options.timeout,
        memory=memory_limit(options.memory),
    )
    date = datetime.now(UTC)
    facts = {"kind": "machine", "date": date.isoformat(timespec="seconds")}
    facts |= machine_facts(protocol.threads)
    limits = {"limit_seconds": protocol.seconds, "limit_bytes": protocol.memory}
    path = results / f"{date:%Y%m%d-%H%M%S}.json"
    results.mkdir(parents=True, exist_ok=True)
    agreed = True
    with path.open("w") as file:
        write_line(file, facts | limits)
        if importlib.util.find_spec("fastbcubed"):
            for record in measure_fastbcubed(options):
                write_line(file, record)
                if (record.get("difference") or 0.0) > TOLERANCE:
                    log(f"{record['kind']}: scores differ by {record['difference']:.2e}")
                    agreed = False
        for dataset, how in plan(options, protocol):
            try:
                with stored(dataset, how.directory):
                    measurements = measure_all(dataset, installed(options.rivals, dataset), how)
            except NoRoomError as error:
                log(f"left out: {error}")
                agreed = False
                continue
            for measurement in measurements:
                write_line(file, measurement.record())
                if (measurement.difference or 0.0) > TOLERANCE:
                    log(f"{measurement.form.key}: scores differ by {measurement.difference:.2e}")
                    agreed = False
    return agreed


def installed(rivals: list[str], dataset: Dataset) -> list[Form]:
    """Return the forms for a data set whose packages are installed, and log which are not."""
    forms = find_forms(rivals, dataset.layout)
    skipped = [form.key for form in forms if not form.installed]
    if skipped:
        log(f"not installed, left out: {', '.join(skipped)}")
    return [form for form in forms if form.installed]


def measure_fastbcubed(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure what rivals do not share: startup, families, overlap, links, and functions of scikit-learn."""
    runs, size = (1, QUICK_SIZES[0]) if options.quick else (options.repeat, None)
    if "startup" in options.only:
        yield from measure_startup(runs=1 if options.quick else 9)
    if "families" in options.only:
        yield from measure_families(size or FAMILY_SIZE, runs, options.threads)
    if "overlap" in options.only:
        yield from measure_overlap(QUICK_CASES if options.quick else CASES, runs)
    if "links" in options.only:
        yield from measure_links(QUICK_LINK_CASES if options.quick else LINK_CASES + LARGE_CASES, runs)
    if "spark" in options.only and importlib.util.find_spec("pyspark") and shutil.which("java"):
        options.data_dir.mkdir(parents=True, exist_ok=True)
        sizes = options.sizes or (QUICK_SPARK_SIZES if options.quick else SPARK_SIZES)
        yield from measure_spark(sizes, options.data_dir)
    if "functions" in options.only and importlib.util.find_spec("sklearn"):
        yield from measure_functions(size or AMI_SIZE, [AMI], runs, options.timeout)
        for n_items in [size] if size else FUNCTION_SIZES:
            yield from measure_functions(n_items, runs=runs, limit=options.timeout)


def memory_limit(gibibytes: float) -> int:
    """Return the bytes for one process, at most nine tenths of the machine's memory."""
    wanted = int(gibibytes * 2**30)
    total = memory.total_memory()
    return wanted if total is None else min(wanted, total * 9 // 10)


def write_line(file: Any, record: dict[str, Any]) -> None:
    """Write one line of a result file and flush it, so that an interrupted run keeps its results."""
    file.write(json.dumps(record) + "\n")
    file.flush()


def show(results: Path, documents: list[Path]) -> None:
    """Print the tables, and put them between the markers of the documents."""
    tables = make_tables(load_runs(results))
    for name, table in tables.items():
        print(f"## {name}\n\n{table}\n")
    missing = set(tables)
    for document in filter(Path.exists, documents):
        text, found = rewrite_regions(document.read_text(), tables)
        missing -= found
        aside = document.with_name(f"{document.name}.part")
        aside.write_text(text)
        shutil.copymode(document, aside)
        aside.replace(document)
    if documents and missing:
        log(f"no markers for: {', '.join(sorted(missing))}")


def log(message: str) -> None:
    """Write to standard error."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
