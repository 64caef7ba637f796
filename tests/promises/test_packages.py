"""What others install and run: wheel, source distribution, container image, recipe, step of a job."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from read_only import read_only

import fastbcubed as fb

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BACKEND = SETTINGS["project"], SETTINGS["build-system"]["requires"]
BIN = "Scripts" if sys.platform == "win32" else "bin"
#: A truth and a prediction that come with the package, and the recall of the latter.
DATA_FILES, RECALL = ("truth.parquet", "pred_20200929.parquet"), 0.8072038082760126


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an empty environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, system_site_packages=False, with_pip=True)
    return folder / BIN / "python"


class Build:
    """Builds the wheel and the source distribution of a directory, by the backend alone; skips if pip cannot get it."""

    def __init__(self, python: Path, factory: pytest.TempPathFactory) -> None:
        self.python, self.factory = python, factory
        self.backend = factory.mktemp(
            "backend"
        )  # apart from the environment, which is to hold the package alone
        pip = ("-m", "pip", "install", "--quiet", "--retries=1", "--timeout=20", f"--target={self.backend}")
        done = _run(python, *pip, *BACKEND, cwd=self.backend)
        if done.returncode:
            pytest.skip(f"pip cannot reach its registry: {done.stderr.strip().splitlines()[-1]}")

    def __call__(self, checkout: Path) -> list[Path]:
        folder = self.factory.mktemp("built")
        command = ("-m", "hatchling", "build", "-d", folder)
        _check(_run(self.python, *command, cwd=checkout, PYTHONPATH=str(self.backend)))
        return sorted(folder.iterdir(), key=lambda path: path.suffix != ".whl")


@pytest.fixture(scope="module")
def build(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Build:
    return Build(python, tmp_path_factory)


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
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # absent before Python 3.11.4
        archive.extractall(folder)
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def installed(python: Path, wheel: Path) -> Path:
    """Return the interpreter of an environment with the wheel and its run-time dependencies."""
    _check(_run(python, "-m", "pip", "install", "--quiet", "--no-compile", wheel, cwd=wheel.parent))
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
    assert f"{RECALL:.3f} (" in demo.stdout
    paths = [_data(installed, tmp_path) / name for name in DATA_FILES]
    done = _check(_run(command, "evaluate", *paths, "--slice", "country", "--json", cwd=tmp_path))
    assert json.loads(done.stdout)["overall"]["recall"] == pytest.approx(RECALL, abs=1e-12)
    for line in (demo.stderr + done.stderr).splitlines():
        assert line.startswith("fastbcubed: "), "a first run says on stderr no more than that it compiles"
    assert list(tmp_path.iterdir()) == []


# The image of a container

DOCKERFILE = ROOT / "docs" / "packaging" / "Dockerfile"
#: In place of `fastbcubed warm-up`, which compiles for minutes: the kernels of one evaluation.
ONE_EVALUATION = "FASTBCUBED_INTERPRET=0 fastbcubed evaluate {0} {1} --json"
#: Evaluates, and fails if anything is compiled.
NOTHING_COMPILED = """
import sys
from numba.core import event
from fastbcubed.cli.main import main
with event.install_listener("numba:compile", event.RecordingListener()) as seen:
    code = main(sys.argv[1:])
sys.exit(f"compiled: {seen.buffer}" if seen.buffer else code)
"""


class Image:
    """What the steps of a Dockerfile make, run as commands below a directory, with the Python of an environment."""

    def __init__(self, dockerfile: Path, root: Path, python: Path) -> None:
        self.root, self.python = root, python
        self.env: dict[str, str] = {}
        self.last: dict[str, str] = {}
        text = re.sub(r"^#.*\n", "", dockerfile.read_text(encoding="utf-8"), flags=re.MULTILINE)
        self.steps = [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line]

    def build(self, in_place_of: dict[str, str]) -> None:
        """Run all steps, some commands by others."""
        for name, rest in self.steps:
            if name == "COPY":
                self.copy(*rest.split())
            elif name == "RUN":
                _check(self.run("/bin/sh", "-c", self.inside(in_place_of.get(rest, rest))))
            elif name in ("ARG", "ENV"):
                for each in shlex.split(rest):
                    self.env[each.partition("=")[0]] = self.inside(each.partition("=")[2])
            else:
                self.last[name] = rest

    def inside(self, text: str) -> str:
        """Return a text with the image's own directories below the root."""
        return re.sub(r"(?<![\w.])(?=/(source|wheels|var|data)\b)", str(self.root), text)

    def copy(self, *words: str) -> None:
        """Copy files of the checkout; those of an earlier stage are here already."""
        *sources, target = (each for each in words if not each.startswith("--"))
        to = Path(self.inside(target))
        for source in (ROOT / each for each in sources if not each.startswith("/")):
            if source.is_dir():
                shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                to.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, to)

    def run(
        self, program: Path | str, *arguments: object, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program with the variables of the image."""
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        return _run(Path(program), *arguments, cwd=self.root, PATH=path, **{**self.env, **variables})


@pytest.mark.skipif(sys.platform != "linux", reason="needs mounts, or permissions of POSIX")
def test_the_image_evaluates_where_nothing_may_be_written(installed: Path, tmp_path: Path) -> None:
    for folder in ("image/data", "tmp"):
        (tmp_path / folder).mkdir(parents=True)
    image = Image(DOCKERFILE, tmp_path / "image", installed)
    paths = [_data(installed, tmp_path) / name for name in DATA_FILES]
    assert ("RUN", "fastbcubed warm-up") in image.steps
    image.build({"fastbcubed warm-up": ONE_EVALUATION.format(*paths)})
    assert image.last["USER"].isdigit() and image.last["USER"] != "0"
    assert json.loads(image.last["ENTRYPOINT"]) == ["fastbcubed"]
    assert list(Path(image.env["NUMBA_CACHE_DIR"]).glob("*/*.nbi"))
    place = {"HOME": str(tmp_path / "image" / "nowhere"), "TMPDIR": str(tmp_path / "tmp")}
    thaw = [read_only(tmp_path / "image"), read_only(installed.parents[1])]
    try:
        for command in ([installed, "-c", NOTHING_COMPILED], [installed.parent / "fastbcubed"]):
            done = _check(
                image.run(*command, "evaluate", *paths, "--json", FASTBCUBED_INTERPRET="0", **place)
            )
            assert json.loads(done.stdout)["overall"]["recall"] == pytest.approx(RECALL, abs=1e-12)
            assert "compil" not in done.stderr
    finally:
        for each in thaw:
            each()


# The recipe of conda

RECIPE = ROOT / "docs" / "packaging" / "conda" / "recipe.yaml"


def test_the_recipe_is_that_of_the_project(
    unpacked: Path, build: Build, installed: Path, tmp_path: Path
) -> None:
    recipe = pytest.importorskip("yaml").safe_load(RECIPE.read_text(encoding="utf-8"))
    context, needed = recipe["context"], recipe["requirements"]

    def known(text: str) -> str:
        return re.sub(r"\$\{\{ (\w+) \}\}", lambda found: context[found[1]], text)

    assert (recipe["package"]["name"], known(recipe["package"]["version"])) == ("fastbcubed", fb.__version__)
    assert f">={context['python_min']}" == PROJECT["requires-python"]
    run = [known(each).replace(" ", "") for each in needed["run"]]
    assert sorted(run) == sorted([*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"])
    assert [each.replace(" ", "") for each in needed["host"][1:]] == ["pip", *BACKEND]
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in PROJECT["scripts"].items()]
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
    assert about["license_file"] == PROJECT["license-files"]
    script = recipe["build"]["script"].replace("${{ PYTHON }}", str(installed)).split()
    target = f"--target={tmp_path / 'prefix'}"
    _check(_run(Path(script[0]), *script[1:], target, cwd=unpacked, PYTHONPATH=str(build.backend)))
    for command in recipe["tests"][1]["script"]:
        program, *words = command.split()
        code = ("-m", program, *words)
        _check(_run(installed, *code, cwd=tmp_path, PYTHONPATH=str(tmp_path / "prefix")))


def test_the_recipe_renders(python: Path, tmp_path: Path) -> None:
    pip = ("-m", "pip", "install", "--quiet", f"--target={tmp_path / 'rattler'}", "py-rattler-build")
    done = _run(python, *pip, cwd=tmp_path)
    if done.returncode:
        pytest.skip(f"py-rattler-build cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    code = (
        "import json, sys, rattler_build as rattler\n"
        "(found,) = rattler.Stage0Recipe.from_file(sys.argv[1]).render(rattler.VariantConfig())\n"
        "print(json.dumps(found.recipe.to_dict(), default=str))"
    )
    done = _check(_run(python, "-c", code, RECIPE, cwd=tmp_path, PYTHONPATH=str(tmp_path / "rattler")))
    found = json.loads(done.stdout)
    assert found["package"] == {"name": "fastbcubed", "version": fb.__version__}
    run = [each.replace(" ", "") for each in found["requirements"]["run"]]
    assert sorted(run) == sorted([*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"])


# The step of a job

ACTION = ROOT / ".github" / "actions" / "evaluate" / "action.yml"


class Job:
    """Runs the steps of the action as GitHub does: with bash, inputs as variables, files for outputs and the page."""

    def __init__(self, folder: Path, python: Path, package: Path) -> None:
        self.folder, self.given = folder, {"python": str(python), "package": str(package)}
        self.action = pytest.importorskip("yaml").safe_load(ACTION.read_text(encoding="utf-8"))
        self.page, self.outputs = folder / "page.md", folder / "outputs"

    def run(self, **given: str) -> subprocess.CompletedProcess[str]:
        """Run the steps with these inputs, up to the first that fails."""
        inputs = {name: each.get("default", "") for name, each in self.action["inputs"].items()}
        inputs |= {**self.given, **given}
        assert inputs.keys() == self.action["inputs"].keys()
        self.outputs.write_text("")
        for step in self.action["runs"]["steps"]:
            done = self.run_step(step, inputs)
            if done.returncode:
                break
        return done

    def run_step(self, step: dict[str, Any], inputs: dict[str, str]) -> subprocess.CompletedProcess[str]:
        assert "${{" not in step["run"] and step["shell"] == "bash"
        variables = {name: inputs[named("inputs", value)] for name, value in step["env"].items()}
        variables |= {"GITHUB_OUTPUT": str(self.outputs), "GITHUB_STEP_SUMMARY": str(self.page)}
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        flags = ("--noprofile", "--norc", "-eo", "pipefail")
        return _run(Path("bash"), *flags, script, cwd=self.folder, RUNNER_TEMP=str(self.folder), **variables)

    def found(self) -> dict[str, str]:
        """Return the outputs, by their names in the action."""
        steps = dict(line.split("=", 1) for line in self.outputs.read_text().splitlines())
        outputs = self.action["outputs"].items()
        names = {name: named("steps.evaluate.outputs", each["value"]) for name, each in outputs}
        return {name: steps[key] for name, key in names.items() if key in steps}


def named(context: str, expression: str) -> str:
    """Return the name in an expression such as ${{ inputs.NAME }}."""
    found = re.fullmatch(rf"\$\{{\{{ {re.escape(context)}\.(\w+) \}}\}}", expression)
    assert found, expression
    return found[1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_step_of_a_job_passes_and_fails_by_its_gates(
    installed: Path, wheel: Path, tmp_path: Path
) -> None:
    (tmp_path / "truth.csv").write_text("item,cluster,country\na,1,x y\nb,1,x y\nc,1,z\nd,2,z\n")
    (tmp_path / "good.csv").write_text("item,cluster\na,1\nb,1\nc,1\nd,2\n")
    (tmp_path / "bad run.csv").write_text("item,cluster\na,1\nb,1\nc,2\nd,2\n")  # c is with d
    job = Job(tmp_path, installed, wheel)
    gates = "--slice country  # and all\n--fail-under f1=0.9\n--fail-under 'recall=0.9@country=x y'"
    good = {"truth": "truth.csv", "prediction": "good.csv", "flags": gates}
    done = job.run(**good, baseline="base", worse="f1=0.1", out="base")
    assert done.returncode == 0, done.stderr
    assert "::notice title=fastbcubed::There is no baseline base yet" in done.stdout
    found = job.found()
    assert (found["passed"], found["result"], json.loads(found["scores"])["f1"]) == ("true", "base", 1.0)
    page = job.page.read_text()
    assert "f1" in page
    job.given["package"] = "none"
    bad = {"truth": "truth.csv", "prediction": "bad run.csv", "summary": "false"}
    assert job.run(**bad, flags=gates).returncode == 1
    found = job.found()
    assert found["passed"] == "false" and json.loads(found["scores"])["precision"] == 0.75
    assert fb.load(tmp_path / found["result"]).precision == 0.75  # (1 + 1 + 1/2 + 1/2) / 4
    assert job.run(**bad, baseline="base", worse="f1=0.1 recall=1").returncode == 1
    assert job.run(**bad, baseline="base", worse="f1=0.9").returncode == 0
    assert job.found()["passed"] == "true" and job.page.read_text() == page
    assert job.run(**bad, flags="--slice '$(touch injected)'").returncode == 2
    assert job.found() == {} and not (tmp_path / "injected").exists()
    assert job.run(**bad, worse="f1=0.1").returncode == 2, "a gate that compares with nothing"
    done = job.run(**bad, flags="--fail-under 'f1=0")
    assert "::error title=fastbcubed::flags or worse: No closing quotation" in done.stderr
    assert done.returncode == 1 and job.found() == {}
    assert (ACTION.parent / ".." / ".." / "..").resolve() == ROOT  # what is installed by default


def _data(python: Path, cwd: Path) -> Path:
    """Return the directory of the installed package's data."""
    where = "from importlib.resources import files; print(files('fastbcubed') / 'data' / 'patentsview')"
    return Path(_check(_run(python, "-c", where, cwd=cwd)).stdout.strip())


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
