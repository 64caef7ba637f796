"""Each benchmark runs on tiny data, and all rivals find the same scores."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("benchmarks")

from benchmarks import __main__ as command
from benchmarks import report, shapes, startup
from benchmarks.datasets import Dataset, load_rows, write_rows
from benchmarks.families import AMI, FAMILIES, measure_families, measure_functions
from benchmarks.forms import Form, Limits, NotPossible
from benchmarks.harness import TOLERANCE, Measurement, Protocol, measure_all
from benchmarks.links import QUICK_CASES, measure_links
from benchmarks.rivals import FORMS, REFERENCE, find_forms
from fastbcubed.kernels.partition import unmix_all

N_ITEMS = 300
MACHINE = {
    "date": "2025-01-31T10:00:00",
    "cpu": "CPU",
    "virtual": False,
    "cores": 2,
    "memory_bytes": None,
    "threads": 2,
    "system": "Linux",
    "python": "3.11",
    "versions": {"polars": "2", "duckdb": "1", "scikit-learn": "1"},
}


def naive_scores(rows: shapes.Rows, *, weighted: bool) -> dict[str, float]:
    """Score items one by one from sets of their mates."""
    weights = rows.weights.tolist() if weighted else [1.0] * len(rows.weights)
    sides = [labels.tolist() for labels in rows[:2]]
    clusters: list[defaultdict[object, set[int]]] = [defaultdict(set), defaultdict(set)]
    for side, labels in zip(clusters, sides, strict=True):
        for item, label in enumerate(labels):
            side[label].add(item)
    precision, recall, jaccard = [], [], []
    for label_true, label_pred in zip(*sides, strict=True):
        truth, prediction = clusters[0][label_true], clusters[1][label_pred]
        both = sum(weights[item] for item in truth & prediction)
        precision.append(both / sum(weights[item] for item in prediction))
        recall.append(both / sum(weights[item] for item in truth))
        jaccard.append(both / sum(weights[item] for item in truth | prediction))
    p, r = np.average(precision, weights=weights), np.average(recall, weights=weights)
    by_true = [
        [np.mean([values[item] for item in cluster]) for cluster in clusters[0].values()]
        for values in (precision, recall)
    ]
    return {
        "precision": float(p),
        "recall": float(r),
        "f1": float(2 * p * r / (p + r)),
        "jaccard_index": float(np.average(jaccard, weights=weights)),
        "bcubed_precision_by_true_cluster": float(np.mean(by_true[0])),
        "bcubed_recall_by_true_cluster": float(np.mean(by_true[1])),
    }


@pytest.mark.cases(0)
@pytest.mark.filterwarnings("ignore")  # those of the rivals are theirs
@pytest.mark.parametrize("ids", shapes.IDS)
@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.reads == "arrays"], ids=lambda form: form.key
)
def test_forms_do_the_same_work(form: Form, ids: shapes.Ids, tmp_path: Path) -> None:
    """Every form of every rival finds the scores of the definition."""
    for package in form.packages:
        pytest.importorskip(package)
    for shape in (*shapes.SHAPES, *shapes.DRAWN):
        rows = shapes.generate(shape, N_ITEMS, ids)
        try:
            prepared = form.prepare(rows, Limits(1, 1 << 30, str(tmp_path)))
        except NotPossible:
            assert form.rival == "numpy" and (
                shape not in ("few_10", "few_1000", "lopsided") or ids == "string"
            )
            continue
        scores = form.score(prepared)
        expected = naive_scores(rows, weighted=form.weighted)
        assert scores == pytest.approx({k: expected[k] for k in scores}, abs=TOLERANCE, rel=0)
        if form.check is not None:
            scores = form.check(prepared)
            expected = naive_scores(rows, weighted=False)
            assert scores == pytest.approx({k: expected[k] for k in scores}, abs=TOLERANCE, rel=0)


@pytest.mark.cases(0)
@pytest.mark.parametrize("ids", shapes.IDS)
@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.reads != "arrays"], ids=lambda form: f"{form.reads}-{form.key}"
)
def test_forms_of_files_do_the_same_work(form: Form, ids: shapes.Ids, tmp_path: Path) -> None:
    """From Parquet files every form finds the scores of the definition, for all shapes, call after call."""
    for package in form.packages:
        pytest.importorskip(package)
    for shape in shapes.SHAPES:
        path = write_rows(Dataset(shape, N_ITEMS, ids, layout=form.reads), tmp_path)
        expected = naive_scores(shapes.generate(shape, N_ITEMS, ids), weighted=form.reads == "table")
        prepared = form.prepare(path, Limits(1, 1 << 30, str(tmp_path)))
        for _ in range(2):
            try:
                scores = form.score(prepared)
            except NotPossible as error:
                pytest.skip(str(error))
            assert scores == pytest.approx({k: expected[k] for k in scores}, abs=TOLERANCE, rel=0)
            if form.clear is not None:
                form.clear(prepared)
                assert not (tmp_path / "items").exists()


@pytest.mark.weekly
def test_files_are_measured_and_removed(tmp_path: Path) -> None:
    """A run from files shows the rivals beside fastbcubed, and leaves no files."""
    pytest.importorskip("duckdb")
    data = tmp_path / "data"
    places = ["--data-dir", data, "--results", tmp_path, "--readme", tmp_path / "README.md"]
    places += ["--tables", tmp_path / "PAGE.md"]
    options = ["--sizes", "2000", "--ids", "int64", "--rivals", "fastbcubed,duckdb", "--repeat", "1"]
    assert command.main([*map(str, places), *options, "--only", "disk"]) == 0
    (path,) = tmp_path.glob("*.json")
    _, *records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(r["layout"], r["rival"]) for r in records] == [
        (layout, rival) for layout in ("table", "tables") for rival in (REFERENCE, "duckdb")
    ]
    for record in records:
        assert record["outcome"] == "ok", record["message"]
        assert record["weighted"] == (record["layout"] == "table")
        assert record["difference"] < TOLERANCE
        assert record["limit_bytes"] == 2 << 30 and record["file_bytes"] > 16 * 2000
        assert record["anonymous_bytes"] > 0
    assert not list(data.iterdir())


def test_tables_of_files_show_limits_and_what_is_not_possible() -> None:
    """Items are compared with the same join without them; ids come in order."""

    def record(key: str, dataset: Dataset, seconds: float, outcome: str = "ok") -> dict[str, object]:
        (form,) = find_forms([key], dataset.layout)
        measurement = Measurement(form, dataset, outcome, limit_bytes=2 << 30, file_bytes=1 << 30)
        measurement.first_seconds, measurement.warm_seconds = [9.0], [seconds]
        measurement.anonymous_bytes, measurement.written_bytes = 3 << 29, 5 << 20
        return measurement.record()

    joined = [Dataset("er", 10**7, ids, layout="tables") for ids in shapes.IDS]
    records = [
        record("fastbcubed-items", joined[1], 0.0, "not possible"),
        record(REFERENCE, joined[1], 4.0),
        record("fastbcubed-items", joined[0], 3.0),
        record(REFERENCE, joined[0], 2.0),
        record(REFERENCE, Dataset("er", 10**9, layout="labels"), 50.0),
    ]
    tables = report.make_tables([[MACHINE, *records]])
    assert set(tables) == {"overview", "sizes", "join", "billion", "machines"}
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in tables["join"].splitlines()[2:6]]
    assert rows[0][:8] == ["10 M", "int64", "fastbcubed", "1.0 GiB", "2 s", "5 M", "1.00\u00d7", "9 s"]
    assert rows[0][8:] == ["2.0 GiB", "1.5 GiB", "0 MiB", "5 MiB"]
    assert rows[1][2:7] == ["fastbcubed-items", "1.0 GiB", "3 s", "3.33 M", "1.50\u00d7"]
    assert rows[3][1:5] == ["string", "fastbcubed-items", "1.0 GiB", "not possible"]
    assert "| 1 billion | int64 | fastbcubed | 1.0 GiB | 50 s |    20 M |" in tables["billion"]


def test_a_disk_without_room_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What does not fit is not begun, and the exit status says that something is missing."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 34))
    places = [
        "--data-dir",
        str(tmp_path / "data"),
        "--results",
        str(tmp_path),
        "--readme",
        str(tmp_path / "no"),
        "--tables",
        str(tmp_path / "no"),
    ]
    assert command.main([*places, "--billion"]) == 1
    assert "1,000,000,000 items as labels take up to 70 GiB" in capsys.readouterr().err
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.cases(12, 99)
@pytest.mark.parametrize("shape", [*shapes.SHAPES, *shapes.DRAWN])
@pytest.mark.parametrize("n_items", [1, 2, 3, 7, 1000])
def test_shapes_have_all_rows(shape: str, n_items: int) -> None:
    """Any size can be made, the same each time, and weights are positive."""
    rows = shapes.generate(shape, n_items)
    again = shapes.generate(shape, n_items)
    assert all(column.size == n_items for column in rows)
    assert all(np.array_equal(a, b) for a, b in zip(rows, again, strict=True))
    assert rows.weights.min() >= 0.5


def test_er_has_the_stated_sizes() -> None:
    """Clusters of shape er have mean 2.5; the prediction has more by 15 % and fewer by 10 %."""
    rows = shapes.generate("er", 100_000)
    n_true, n_pred = (np.unique(labels).size for labels in rows[:2])
    assert 100_000 / n_true == pytest.approx(2.5, rel=0.02)
    assert n_pred / n_true == pytest.approx(1.05, rel=0.001)
    assert not np.intersect1d(rows.labels_true, rows.labels_pred).size


def test_other_shapes_have_the_stated_sizes() -> None:
    """Half of all items are in the giant; singletons are alone; heavy has large clusters."""
    largest = {
        shape: np.unique(shapes.generate(shape, 10_000).labels_true, return_counts=True)[1].max()
        for shape in shapes.SHAPES
    }
    assert largest["one_giant"] == 5000
    assert largest["singletons"] == 1
    assert 100 < largest["heavy"] <= 500


def test_drawn_shapes_have_few_clusters_on_a_side() -> None:
    """Four fifths of the items, and some more by chance, are where all of their true cluster belong."""
    for shape, (n_true, n_pred) in shapes.DRAWN.items():
        rows = shapes.generate(shape, 30_000)
        true, pred = rows.labels_true, rows.labels_pred
        if shape in shapes.HASHED:
            assert np.abs(np.sort(true)[[0, -1]]).min() > 2**60
            true, pred = unmix_all(true), unmix_all(pred)
        assert true.min() >= 0 and true.max() < (n_true or 10_000)
        assert pred.min() >= 0 and pred.max() < n_pred
        assert np.mean(pred == true % n_pred) == pytest.approx(0.8 + 0.2 / n_pred, abs=0.02)


def test_strings_are_the_same_labels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """String labels are the int64 ones in hexadecimal, also when written in several blocks."""
    monkeypatch.setattr(shapes, "BLOCK", 64)
    rows = load_rows(write_rows(Dataset("er", 200, "string"), tmp_path))
    numbers = load_rows(write_rows(Dataset("er", 200), tmp_path))
    expected = [f"c{label % 2**64:016x}" for label in numbers.labels_pred.tolist()]
    assert isinstance(rows.labels_pred, pa.StringArray)
    assert rows.labels_pred.to_pylist() == expected
    assert np.array_equal(rows.weights, numbers.weights)
    assert numbers.labels_true.flags.owndata
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.process
def test_run_writes_results_and_tables(tmp_path: Path) -> None:
    """A run in fresh processes leaves a result file, and tables between the markers."""
    pytest.importorskip("pandas")
    readme = tmp_path / "README.md"
    regions = [f"<!-- benchmark:{name} -->old<!-- /benchmark:{name} -->" for name in report.TABLES[1:]]
    page = tmp_path / "PAGE.md"
    page.write_text("before\n" + "\n".join(regions) + "\nafter\n")
    readme.write_text("<!-- benchmark:overview --><!-- /benchmark:overview -->")
    places = ["--data-dir", tmp_path / "data", "--results", tmp_path, "--readme", readme, "--tables", page]
    options = ["--sizes", "300", "--rivals", "pandas", "--repeat", "1", "--only", "scores"]
    assert command.main([*map(str, places), *options]) == 0
    (path,) = tmp_path.glob("*.json")
    machine, record = [json.loads(line) for line in path.read_text().splitlines()]
    assert machine["kind"] == "machine"
    assert record["outcome"] == "ok"
    assert len(record["first_seconds"]) == 1
    assert len(record["warm_seconds"]) == 3
    assert record["peak_bytes"] > record["growth_bytes"] >= 0
    assert readme.read_text().startswith("<!-- benchmark:overview -->\n\n| work")
    text = page.read_text()
    assert text.startswith("before\n") and "<!-- benchmark:large -->\n\n| shape" in text
    assert text.endswith("<!-- benchmark:startup -->old<!-- /benchmark:startup -->\nafter\n")


@pytest.mark.process
@pytest.mark.parametrize(("limits", "outcome"), [({"seconds": 0}, "time"), ({"memory": 1}, "memory")])
def test_limits_are_kept(limits: dict[str, int], outcome: str, tmp_path: Path) -> None:
    """A process that passes a limit is ended, and the result says which."""
    pytest.importorskip("pandas")
    protocol = Protocol(tmp_path, rounds=2, **limits)
    (measurement,) = measure_all(Dataset("er", 100), find_forms(["pandas"]), protocol)
    assert measurement.outcome == outcome
    assert measurement.record()["seconds"] is None


@pytest.mark.weekly
def test_families_and_functions_are_timed(tmp_path: Path) -> None:
    """Each family is compared with building the cells, each function with scikit-learn's, which agrees."""
    pytest.importorskip("sklearn")
    records = list(measure_families(300, runs=1))
    assert {(r["name"], r["weighted"]) for r in records} >= {
        (f, w) for f in FAMILIES[:4] for w in (True, False)
    }
    (one, *_), (cells, *_) = measure_functions(300, ["rand_score", AMI], runs=1), records
    assert one["score"] == pytest.approx(one["rival_score"], abs=1e-12)
    (late,) = measure_functions(300, ["rand_score"], runs=1, limit=1e-3)
    assert (late["outcome"], late["rival_seconds"]) == ("time", None)
    tables = report.make_tables([[MACHINE, *records, one | {"rival_seconds": None, "outcome": "time"}]])
    assert set(tables) == {"families", "functions", "machines"}
    assert "building the cells" in tables["families"].splitlines()[2] and cells["share"] == 1
    assert "did not finish (time)" in tables["functions"] and "scikit-learn 1" in tables["machines"]


@pytest.mark.weekly
def test_thresholds_of_links_are_measured() -> None:
    records = list(measure_links(QUICK_CASES))
    assert [record["outcome"] for record in records] == ["ok"] * 3, records
    for record in records:
        assert record["difference"] < 1e-12
        assert record.get("rival_difference", 0.0) < 1e-12
        assert 0 < record["thresholds"] < record["n_links"]
    table = report.links_table(records)
    assert [line.split("|")[1].strip() for line in table.splitlines()[2:]] == ["300", "1 k", "2 k"]
    assert "Parquet, limit 1GiB" in table


@pytest.mark.slow
def test_startup_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process and later ones are timed."""
    names = ['python -c "import fastbcubed"', "a few kernels"]
    monkeypatch.setitem(startup.PROCESSES, names[1], "import fastbcubed as fb; fb.contingency([0], [0])")
    records = startup.measure_startup(1, names)
    assert [record["name"] for record in records] == names
    assert all(min(record["first"], record["later"], record["seconds"]) > 0 for record in records)
    _, few = records
    assert few["kernels"] == 0 and few["first_compiled"] > 1.5 * few["first"]  # to compile takes seconds
    assert len(report.startup_table(records).splitlines()) == 4


def test_tables_show_the_best_form_and_what_did_not_finish() -> None:
    """One run gives all figures of a data set; a slower form is left out, a failure is not."""

    def record(key: str, seconds: float, outcome: str = "ok", *data: Any) -> dict[str, object]:
        (form,) = find_forms([key])
        measurement = Measurement(form, Dataset(*(data or ("er", 10**8))), outcome)
        measurement.first_seconds, measurement.warm_seconds = [9.0, 3.0, 4.0], [seconds]
        measurement.peak_bytes = measurement.growth_bytes = 3 << 30
        return measurement.record()

    complete = [
        MACHINE,
        record(f"{REFERENCE}/evaluate", 2.0),
        record("polars/joins", 30.0),
        record("polars/windows", 10.0),
        record("pandas", 0.0, "memory"),
    ]
    newer_without_reference = [MACHINE, record("polars/windows", 1.0)]
    tables = report.make_tables([newer_without_reference, complete])
    assert set(tables) == {"overview", "sizes", "large", "sweep", "machines"}
    lines = tables["large"].splitlines()
    cells = [cell.strip() for cell in lines[3].split("|")[1:-1]]
    assert cells[:5] == ["er", "100 M", "polars (windows)", "10 s", "10 M"]
    assert cells[5:] == ["5.00\u00d7", "3.0 GiB", "3.0 GiB", "9 s", "3.5 s"]
    assert "did not finish (memory)" in lines[4]
    assert lines[2].startswith("| er    | 100 M | fastbcubed")
    assert "joins" not in tables["large"]
    assert tables["large"].endswith(f"Machine A, {MACHINE['date'][:10]}.")
    overview = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in tables["overview"].splitlines()[:3]
    ]
    assert overview[0] == ["work", "items", "fastbcubed", "polars", "duckdb", "pandas"]
    row = ["in memory, `er`", "100 M", "2 s", "10 s (5.00\u00d7)", "", "did not finish (memory)"]
    assert overview[2] == row
    assert "10 s (5.00\u00d7)" in tables["sweep"]
    sizes = [("few_10", 10**7), ("er", 10**7, "string"), ("er", 10**7)]
    of_shapes = [
        record(key, s, "ok", *data) for data in sizes for key, s in ((REFERENCE, 2.0), ("numpy", 3.0))
    ]
    lines = report.make_tables([complete, [MACHINE, *of_shapes]])["shapes"].splitlines()[:5]
    shapes_shown = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert shapes_shown[0] == ["shape", "labels", "fastbcubed", "numpy"]
    assert [row[:2] for row in shapes_shown[2:]] == [
        ["`er`", "int64"],
        ["`few_10`", "int64"],
        ["`er`", "string"],
    ]
    assert shapes_shown[2][2:] == ["2 s (5 M/s)", "3 s (1.50\u00d7)"]


def test_unknown_names_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong rival or shape ends with a message that lists the right ones."""
    for arguments in (["--rivals", "polar"], ["--shapes", "er,none"]):
        with pytest.raises(SystemExit):
            command.main(arguments)
        assert "known are" in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.weekly
def test_comparisons_are_timed(tmp_path: Path) -> None:
    files, page = tmp_path / "files", tmp_path / "page.md"
    files.mkdir()
    page.write_text("<!-- benchmark:diff --><!-- /benchmark:diff -->")
    small = ["--items", "300", "--diff-items", "300", "--rounds", "1", "--directory", str(files)]
    small += ["--tables", str(page)]
    here = {"cwd": Path(__file__).parents[2], "capture_output": True, "text": True, "check": True}
    done = subprocess.run([sys.executable, "-m", "benchmarks.comparing", *small], **here)
    assert "| Parquet, joined by item |" in done.stdout
    assert "300 items:" in page.read_text() and "| duckdb |" in page.read_text()  # which agree
    assert not list(files.iterdir())
