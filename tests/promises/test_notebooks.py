"""The notebooks run without errors, and their stored outputs are what they print today."""

from __future__ import annotations

import copy
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastbcubed as fb

nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: What warnings give as their file; Jupyter would give a new one for each run.
CELL_NAME = "IPYKERNEL_CELL_NAME", "cell"
REFRESH = f"refresh it with: {'='.join(CELL_NAME)} jupyter execute --inplace notebooks/{{}}"
#: What notebooks may show on stderr: a warning of the package, and the line of code that it is about.
WARNING = re.compile(r"cell:\d+: EvaluationWarning: .* \[[a-z-]+\]$|  \S")
#: What would hide warnings of the package.
HIDES = re.compile(r"simplefilter|catch_warnings|filterwarnings\((?!.ignore., .PySpark)")
#: A path of somebody's machine; not a part of a longer path, nor of an address.
MACHINE_PATH = re.compile(r"(?<![\w<:/.])/(?:home|root|tmp|var|usr|opt|work|mnt|Users)/|[A-Z]:\\\\Users")
#: What a first run may say on stderr.
FIRST_RUN = re.compile(r"fastbcubed: compil|font cache|^\s*$")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@each_notebook
def test_it_is_stored_as_executed_in_order(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = _code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), (
        f"{path.name} was not run from top to bottom; {REFRESH.format(path.name)}"
    )
    assert [line for cell in cells for line in _stderr(cell) if not WARNING.match(line)] == []
    assert any(cell.outputs for cell in cells)


@each_notebook
def test_it_draws_by_altair_and_hides_no_warning(path: Path) -> None:
    for cell in _code_cells(nbformat.read(path, as_version=4)):
        assert not HIDES.search(cell.source), cell.id
        assert "matplotlib" not in cell.source, cell.id
        assert [
            kind for output in cell.outputs for kind in output.get("data", ()) if kind == "image/png"
        ] == []


@each_notebook
def test_it_is_small_and_tells_nothing_of_a_machine(path: Path) -> None:
    assert path.stat().st_size < 400_000
    for cell in nbformat.read(path, as_version=4).cells:
        shown = _without_images(json.dumps(cell.get("outputs", []), ensure_ascii=False))
        found = MACHINE_PATH.search(cell.source) or MACHINE_PATH.search(shown)
        assert not found, f"{path.name}, {cell.id}: {found}"


@pytest.mark.notebook
@each_notebook
@pytest.mark.filterwarnings("default")  # those of Jupyter are not ours; the kernel's own are in the outputs
def test_it_runs_and_prints_what_is_stored(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbclient = pytest.importorskip("nbclient")
    if path.stem == "spark":
        pytest.importorskip("pyspark", reason="Spark is not installed")
        if shutil.which("java") is None:
            pytest.skip("there is no Java, which Spark needs")
    _use_this_python(tmp_path / "jupyter", monkeypatch)
    stored = nbformat.read(path, as_version=4)
    fresh = copy.deepcopy(stored)
    there = tmp_path / "here"
    there.mkdir()
    client = nbclient.NotebookClient(
        fresh, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(there)}}
    )
    client.execute()
    assert list(there.iterdir()) == [], "a notebook leaves no files"
    for before, after in zip(_code_cells(stored), _code_cells(fresh), strict=True):
        said = [line for line in _stderr(after) if not FIRST_RUN.search(line)]
        assert (list(_texts(before)), _stderr(before)) == (list(_texts(after)), said), (
            f"{path.name}, {before.id}: the stored output is stale; {REFRESH.format(path.name)}"
        )


def _code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _stderr(cell) -> list[str]:
    streams = [o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stderr"]
    return "".join(streams).splitlines()


def _texts(cell) -> Iterator[str]:
    """Yield what a cell prints, which comes in pieces, and shows as text; a figure is only there or not."""
    yield "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")
    for output in cell.outputs:
        if output.output_type != "stream":
            yield "figure" if "image/svg+xml" in output.data else output.data.get("text/plain", "")


def _without_images(text: str) -> str:
    return re.sub(r'"image/svg\+xml": ("[^"]*"|\[[^]]*\])', "", text)


def _use_this_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the kernel "python3" the running interpreter, with this package and no settings of the user."""
    spec = folder / "kernels" / "python3"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"})
    )
    monkeypatch.setenv("JUPYTER_PATH", str(folder))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(folder / "config"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv(*CELL_NAME)
    monkeypatch.setenv("PYTHONPATH", str(Path(fb.__file__).parents[1]))
