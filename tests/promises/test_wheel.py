"""The wheel: what is in it, and that it works where nothing else of ours is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import fastbcubed as fb

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BIN = "Scripts" if sys.platform == "win32" else "bin"
DATA_FILES = ("truth.parquet", "pred_20200929.parquet", "pred_20211230.parquet")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an empty environment; skip if its pip cannot reach a registry."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, system_site_packages=False, with_pip=True)
    found = folder / BIN / "python"
    probe = folder / "probe"
    pip = ("-m", "pip", "download", "--no-deps", "--no-cache-dir", "--retries=1", "--timeout=20", "--quiet")
    done = _run(found, *pip, f"--dest={probe}", "hatchling", cwd=folder)
    if done.returncode:
        pytest.skip(f"pip cannot reach its registry: {done.stderr.strip().splitlines()[-1]}")
    return found


@pytest.fixture(scope="module")
def wheel(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    _check(_run(python, "-m", "pip", "wheel", "--no-deps", f"--wheel-dir={folder}", ROOT, cwd=folder))
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(python: Path, wheel: Path) -> Path:
    """Return the interpreter of an environment with the wheel and its run-time dependencies."""
    _check(_run(python, "-m", "pip", "install", "--quiet", wheel, cwd=wheel.parent))
    _check(_run(python, "-m", "pip", "check", cwd=wheel.parent))
    return python


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = f"fastbcubed-{fb.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"fastbcubed", info}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "fastbcubed").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules
    assert not [name for name in names if "__pycache__" in name or "test" in name.lower()]
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "fastbcubed" / "data").rglob("*.*")}
    templates = (ROOT / "fastbcubed" / "render" / "templates").iterdir()
    wanted |= {path.relative_to(ROOT).as_posix() for path in templates}
    wanted |= {"fastbcubed/py.typed", "fastbcubed/data/NOTICE.md"}
    wanted |= {f"{info}/licenses/LICENSE", f"{info}/licenses/fastbcubed/data/NOTICE.md"}
    assert wanted <= names


def test_its_metadata_are_those_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = f"fastbcubed-{fb.__version__}.dist-info"
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
    assert (metadata["Name"], metadata["Version"]) == ("fastbcubed", fb.__version__)
    assert metadata["License-Expression"] == PROJECT["license"]
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    needed = [each for each in metadata.get_all("Requires-Dist") or () if "extra ==" not in each]
    assert sorted(needed) == sorted(PROJECT["dependencies"])
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()


def test_it_has_no_undeclared_dependencies(installed: Path, tmp_path: Path) -> None:
    done = _check(_run(installed, "-m", "pip", "list", "--format=json", cwd=tmp_path))
    names = {each["name"] for each in json.loads(done.stdout)}
    assert "fastbcubed" in names
    assert not names & {"pytest", "hypothesis", "polars", "duckdb", "scikit-learn", "scipy", "matplotlib"}


def test_the_library_works(installed: Path, tmp_path: Path) -> None:
    code = (
        "import fastbcubed as fb; print(fb.__file__);"
        "print(fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]).recall);"
        "print(fb.metrics.bcubed_precision(list('aabbb'), [1, 1, 1, 2, 2]))"
    )
    done = _check(_run(installed, "-c", code, cwd=tmp_path))
    where, recall, precision = done.stdout.split("\n")[:3]
    assert Path(where).is_relative_to(installed.parents[1])
    assert (float(recall), float(precision)) == (0.75, pytest.approx(11 / 15, abs=1e-12))


def test_the_commands_work(installed: Path, tmp_path: Path) -> None:
    command = installed.parent / "fastbcubed"
    assert _check(_run(command, "--version", cwd=tmp_path)).stdout == f"fastbcubed {fb.__version__}\n"
    demo = _check(_run(command, "demo", cwd=tmp_path))
    assert "PatentsView" in demo.stdout
    assert "0.80720" in demo.stdout
    where = "from importlib.resources import files; print(files('fastbcubed') / 'data' / 'patentsview')"
    data = Path(_check(_run(installed, "-c", where, cwd=tmp_path)).stdout.strip())
    paths = [data / name for name in DATA_FILES[:2]]
    done = _check(_run(command, "evaluate", *paths, "--slice", "country", "--json", cwd=tmp_path))
    assert json.loads(done.stdout)["overall"]["recall"] == pytest.approx(0.8072038082760126, abs=1e-12)
    for line in (demo.stderr + done.stderr).splitlines():
        assert line.startswith("fastbcubed: "), "a first run says on stderr no more than that it compiles"
    assert list(tmp_path.iterdir()) == []


def _run(program: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with nothing of the checkout or of this environment in its path."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA_", "COV_"))}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1"}
    command = [str(program), *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=900
    )


def _check(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done
