"""The wheel and the source distribution: their contents, and that they work where nothing else of ours is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from email.parser import Parser
from pathlib import Path

import pytest

import fastbcubed as fb

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BIN = "Scripts" if sys.platform == "win32" else "bin"
Build = Callable[[Path], list[Path]]
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
def build(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Return a function that builds the wheel and the source distribution of a directory."""
    backend = tmp_path_factory.mktemp(
        "backend"
    )  # apart from the environment, which is to hold the package alone
    _check(_run(python, "-m", "pip", "install", "--quiet", f"--target={backend}", "hatchling", cwd=backend))

    def wheel_and_sdist(checkout: Path) -> list[Path]:
        folder = tmp_path_factory.mktemp("built")
        _check(_run(python, "-m", "hatchling", "build", "-d", folder, cwd=checkout, PYTHONPATH=str(backend)))
        return sorted(folder.iterdir(), key=lambda path: path.suffix != ".whl")

    return wheel_and_sdist


@pytest.fixture(scope="module")
def built(build: Build) -> list[Path]:
    """Return the wheel and the source distribution of the checkout."""
    return build(ROOT)


@pytest.fixture(scope="module")
def wheel(built: list[Path]) -> Path:
    """Return the wheel of the checkout."""
    return built[0]


@pytest.fixture(scope="module")
def unpacked(built: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the unpacked source distribution."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(built[1]) as archive:
        archive.extractall(folder, filter="data")
    (found,) = folder.iterdir()
    return found


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


def test_builds_give_the_same_bytes(build: Build, built: list[Path], unpacked: Path) -> None:
    """The source distribution builds the same wheel and itself: elsewhere, at other times, with other permissions."""
    for path in unpacked.rglob("*"):
        path.chmod(0o700 if path.is_dir() else path.stat().st_mode & 0o700)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    again = build(unpacked)
    assert [path.name for path in again] == [path.name for path in built]
    for one, other in zip(built, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_the_source_distribution_holds_all_that_its_tests_take(unpacked: Path) -> None:
    """Those that read files outside the package and the tests have to find them, and all are there."""
    kept = {path.relative_to(unpacked) for path in (unpacked / "tests").rglob("*") if path.is_file()}
    ours = {path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*") if path.is_file()}
    assert kept == {path for path in ours if path.parent.name != "__pycache__"}
    for name in ("LICENSE", "README.md", "CITATION.cff", "fastbcubed/data/NOTICE.md", "fastbcubed/py.typed"):
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes()
    scripts = [path for path in kept if path.name.startswith("test_")]
    reading = [path for path in scripts if ".parents[" in (unpacked / path).read_text(encoding="utf-8")]
    command = [*"-m pytest -q --collect-only -n 0 -p no:cacheprovider -m".split(), "", *reading]
    done = _check(_run(Path(sys.executable), *command, cwd=unpacked, PYTHONPATH=str(unpacked)))
    assert re.search(r"^\d{3,} tests collected", done.stdout, re.MULTILINE)


def test_its_metadata_are_those_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = f"fastbcubed-{fb.__version__}.dist-info"
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
    assert (metadata["Name"], metadata["Version"]) == ("fastbcubed", fb.__version__)
    assert metadata["License-Expression"] == PROJECT["license"]
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert set(PROJECT["classifiers"]) == set(metadata.get_all("Classifier") or ())
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


def _run(program: Path, *arguments: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program with nothing of the checkout or of this environment in its path."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA_", "COV_"))}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1", **variables}
    command = [str(program), *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=900
    )


def _check(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done
