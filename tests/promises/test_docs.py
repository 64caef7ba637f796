"""What is written for people is true: README, the pages of docs, CHANGELOG and docstrings.

In README.md and each page of docs every block marked `python` is run, from top to bottom and in one
namespace; where it has `>>>` prompts, its outputs are compared as in a doctest. In blocks marked
`console`, every command that begins with `$ fastbcubed ` is run. Lines below it, or in a `text` block
right after it or after one of `python`, are its output or part of it: `...` or `…` stands for what is
left out, and spaces are not compared. `$ echo $?` after a command shows its exit code, which else is 0.
All of it happens in a directory that has the example data.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import itertools
import re
import runpy
import shlex
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fastbcubed as fb
from fastbcubed.cli.main import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
#: Pages that the documentation makes of the code when it is built.
MADE = [DOCS / "reference" / folder for folder in ("api", "commands", "json", "scores")]
PAGES = [README, *(page for page in sorted(DOCS.rglob("*.md")) if page.parent not in MADE)]
DATA = Path("fastbcubed", "data", "patentsview")
FENCE = re.compile(
    r"^(?P<fence>```+|~~~+)(?P<kind>[^\n`]*)\n(?P<text>.*?)^(?P=fence)[ ]*$", re.DOTALL | re.MULTILINE
)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Block(NamedTuple):
    """A fenced block: its language, its text, the number of lines above it."""

    kind: str
    text: str
    above: int


class Command(NamedTuple):
    """A command of a console block, the lines of output shown below it, and its exit code."""

    line: str
    shown: list[str]
    code: int = 0


@pytest.fixture
def beside_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a directory with the example data, by their path in the package and by their names alone."""
    folder = Path(str(files("fastbcubed"))) / "data" / "patentsview"
    shutil.copytree(folder, tmp_path / DATA)
    for file in folder.glob("*.parquet"):
        shutil.copy(file, tmp_path)
    shutil.copy(folder / "pred_20211230.parquet", tmp_path / "prediction.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


# README


def test_readme_names_the_commands() -> None:
    text = README.read_text(encoding="utf-8")
    for command in ("fastbcubed evaluate", "fastbcubed demo"):
        assert command in text
    assert {"python", "text"} <= {block.kind for block in _blocks(text)}


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix(""))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_python_and_commands_of_a_page_run(page: Path, beside_data: Path) -> None:
    text = page.read_text(encoding="utf-8")
    _run_python(text, page.name)
    for command in _commands(text):
        _run_command(command)


MEASURED = sorted((ROOT / "benchmarks").glob("*.md"))
LINKED = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *MEASURED]


@pytest.mark.parametrize("page", LINKED, ids=_named)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", FENCE.sub("", page.read_text(encoding="utf-8")))
    local = [page.parent / each for each in targets if not each.startswith(("https://", "http://"))]
    written = [each for each in local if each.resolve().parent not in MADE]
    assert [each for each in written if not each.exists()] == []


def test_all_short_answers_are_listed() -> None:
    folder = DOCS / "how-to"
    listed = (folder / "short-answers.md").read_text(encoding="utf-8")
    for name in ("what-scores-mean", "prepare-data", "other-programs", "plan", "use-results", "systems"):
        text = FENCE.sub("", (folder / f"{name}.md").read_text(encoding="utf-8"))
        for heading in re.findall(r"^## (.*)$", text, re.MULTILINE):
            assert f"- [{heading}]({name}.md#" in listed, heading


def test_the_benchmarks_begin_with_their_questions() -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    questions, *sections = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    assert len(sections) >= 20
    for heading in sections[::2]:
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        assert f"(#{anchor})" in questions, heading


# CHANGELOG and docstrings


def test_changelog_begins_with_the_current_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\S+) - \d{4}-\d{2}-\d{2}$", text, re.MULTILINE)
    assert versions[0] == fb.__version__


@pytest.mark.parametrize("name", [name for name in fb.__all__ if not name.startswith("__")])
def test_public_names_are_documented(name: str) -> None:
    thing = getattr(fb, name)
    text = inspect.getdoc(thing)
    assert text
    is_error = inspect.isclass(thing) and issubclass(thing, Exception)
    if callable(thing) and not is_error:  # what is only caught needs no example
        assert "Examples\n--------\n" in text
        assert ">>>" in text


def test_headings_of_docstrings_stand_on_lines_of_their_own() -> None:
    run_in = re.compile(r"^ *(?:[A-Z]\w+|See Also) -{4,}", re.MULTILINE)
    assert run_in.search("    Notes ----- The loss of an item")
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "fastbcubed").rglob("*.py")}
    assert {path.name: run_in.findall(text) for path, text in texts.items() if run_in.search(text)} == {}


RESULTS: dict[str, Any] = {
    "ev": lambda: fb.evaluate(TRUTH, PREDICTION, slices="true_size"),
    "cmp": lambda: fb.compare(TRUTH, {"old": PREDICTION, "new": TRUTH}),
    "diff": lambda: fb.diff(TRUTH, PREDICTION),
    "d": lambda: fb.diff(TRUTH, PREDICTION, truth=TRUTH),
    "sweep": lambda: fb.sweep(TRUTH, {"left": [0, 1, 3], "right": [1, 2, 4], "score": [0.9, 0.8, 0.7]}),
    "est": lambda: fb.estimate({k: k // 3 for k in range(6)}, PREDICTION),
    "clustering": lambda: fb.Clustering.from_labels([1, 1, 2]),
    "table": lambda: fb.contingency(TRUTH, PREDICTION),
    "listing": lambda: fb.evaluate(TRUTH, PREDICTION).clusters("true"),
    "scores": lambda: fb.evaluate(TRUTH, PREDICTION).overall,
    "item": lambda: fb.evaluate(TRUTH, PREDICTION).item(0),
    "cluster": lambda: fb.evaluate(TRUTH, PREDICTION).cluster("true", 0),
    "cluster in runs": lambda: fb.compare(TRUTH, {"old": PREDICTION, "new": TRUTH}).cluster("true", 0),
    "report": lambda: fb.evaluate(TRUTH, PREDICTION).report(),
}
TRUTH, PREDICTION = ({k: k // size for k in range(12)} for size in (3, 4))
#: What completion showed of ours.
INNER = (
    "figures kept origin losses standard_errors has_clusters kept_items at_best warn rates "
    "known_changes true_numbers kinds places grid TYPE_CHECKING annotations label Any "
    "check_key LIGHT make math PUBLIC alignment results runtime"
).split()


def test_the_gallery_shows_every_chart() -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert [name for name in fb.charts.__all__ if f"fb.charts.{name}(" not in text] == []


@pytest.mark.slow
@pytest.mark.pictures
@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_pictures_of_the_gallery_show_the_figures_of_its_code(tmp_path: Path) -> None:
    draw = runpy.run_path(str(DOCS / "gallery_pictures.py"))["main"]
    draw(tmp_path)
    kept = DOCS / "_static" / "gallery"
    drawn = {path.name: path for path in tmp_path.rglob("*.svg")}
    assert drawn.keys() == {path.name for path in kept.iterdir()}
    for name, path in drawn.items():
        found, expected = (_described(each) for each in (path, kept / name))
        assert found == expected, f"{name} is out of date: run python docs/gallery_pictures.py"


def _described(picture: Path) -> list[str]:
    """Return the descriptions of a picture's marks for screen readers, with figures to six digits."""
    labels = re.findall(r'aria-label="([^"]*)"', picture.read_text(encoding="utf-8"))
    return [re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.6g}", label) for label in labels]


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_completion_shows_what_is_documented(name: str) -> None:
    """Some thirty names that serve other modules stood among the results."""
    found = RESULTS[name]()
    listed = [each for each in dir(found) if not each.startswith("__")]
    assert len(listed) > 5 or name == "report"
    assert not {*INNER} & {*listed}
    scores = [*getattr(found, "overall", ()), *(found if name == "scores" else ())]
    for each in {*listed}.difference(scores):
        homes = [kind for kind in type(found).__mro__ if each in vars(kind)]
        texts = [inspect.getdoc(vars(kind)[each]) or "" for kind in homes]
        attributes = "\n".join(inspect.cleandoc(kind.__doc__ or "") for kind in type(found).__mro__)
        assert (
            re.search(rf"^(\w+, )*{each}(, \w+)* : ", attributes, re.MULTILINE)
            or any(re.search(r"\n-{5,}\n", text) or each.startswith("to_") for text in texts)
            or any(not kind.__module__.startswith("fastbcubed") for kind in homes)
            or hasattr(getattr(found, "_arrow", None), each)
        ), each
    if hasattr(found, "to_json"):
        text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
        told = set(re.findall(rf"\b{name}\.([a-z]\w+)", text))
        assert told - {"items_df", "cells_df", "md"} <= {
            *dir(found),
            *fb.metrics.__all__,
        }  # of Spark; of files


@pytest.mark.parametrize("module", [fb, fb.metrics, fb.charts, fb.constraints, fb.errors])
def test_completion_of_modules_shows_what_they_offer(module: Any) -> None:
    assert [name for name in dir(module) if not name.startswith("__")] == sorted(
        name for name in module.__all__ if not name.startswith("__")
    )


# The checks themselves


def test_blocks_share_a_namespace(beside_data: Path) -> None:
    blocks = ("a = 2", ">>> a + 1\n3\n>>> b = 5", "assert b == 5")
    _run_python("".join(f"Text.\n\n```python\n{block}\n```\n" for block in blocks))


@pytest.mark.parametrize("text", ["1 / 0", ">>> 1 + 1\n3", ">>> 1 / 0", "print(2)\n```\n\n```text\n3"])
def test_wrong_python_is_found(text: str) -> None:
    with pytest.raises((ZeroDivisionError, AssertionError)):
        _run_python(f"# Title\n\n```python\n{text}\n```\n")


def test_text_elsewhere_is_not_what_python_prints() -> None:
    _run_python("```python\nprint(1, 2)\n```\n\n```text\n1…\n```\n\n```text\n3\n```\n")


def test_commands_are_read_with_their_output() -> None:
    lines = [
        "$ pip install .",
        "$ fastbcubed evaluate a \\",
        "    b  # now",
        "score  1",
        "",
        "$ fastbcubed demo",
        "tp 8",
        "$ echo $?",
        "1",
    ]
    text = "\n".join(
        ["```console", *lines, "```", "", "```text", "fp 2", "```", "", "```text", "else", "```", ""]
    )
    assert _commands(text) == [
        Command("fastbcubed evaluate a b  # now", ["score  1"]),
        Command("fastbcubed demo", ["tp 8", "fp 2"], code=1),
    ]


@pytest.mark.slow
def test_wrong_commands_are_found(beside_data: Path) -> None:
    command = f"fastbcubed evaluate {DATA}/truth.parquet prediction.parquet"
    shown = ["recall 0.935 (0.893 to 0.961) ...", "...", "f1 ..."]
    _run_command(Command(f"{command} | head", shown))
    with pytest.raises(AssertionError, match=r"0\.5"):
        _run_command(Command(command, ["recall 0.5"]))
    with pytest.raises(AssertionError, match="exits with 2"):
        _run_command(Command("fastbcubed evaluate nowhere.parquet prediction.parquet", []))
    with pytest.raises(AssertionError, match="exits with 0"):
        _run_command(Command(command, [], code=1))


def _blocks(text: str) -> list[Block]:
    return [
        Block((found["kind"].split() or [""])[0], found["text"], text.count("\n", 0, found.start("text")))
        for found in FENCE.finditer(text)
    ]


def _run_python(text: str, name: str = "a test") -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = _blocks(text)
    for block, after in itertools.zip_longest(blocks, blocks[1:]):
        if block.kind != "python":
            continue
        if re.search(r"^>>> ", block.text, re.MULTILINE):
            _run_doctest(block, namespace, name)
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("\n" * block.above + block.text, name, "exec"), namespace)
        if after and after.kind == "text" and after.above == block.above + block.text.count("\n") + 3:
            _assert_shown(after.text.splitlines(), out.getvalue(), block.text)


def _run_doctest(block: Block, namespace: dict[str, Any], name: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, name, name, block.above)
    report = io.StringIO()
    failed = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(
        test, out=report.write, clear_globs=False
    )
    assert not failed.failed, report.getvalue()
    namespace.update(test.globs)


def _commands(text: str) -> list[Command]:
    commands: list[Command] = []
    before = 0  # the end of the last console block
    for found in FENCE.finditer(text):
        kind = found["kind"].strip()
        if kind == "console":
            for part in re.split(r"^\$ ", re.sub(r"\s*\\\n\s*", " ", found["text"]), flags=re.MULTILINE)[1:]:
                line, *shown = part.splitlines()
                if line == "echo $?":
                    commands[-1] = commands[-1]._replace(code=int(shown[0]))
                elif line.startswith("fastbcubed "):
                    commands.append(Command(line, [each for each in shown if each.strip()]))
            before = found.end()
        elif kind == "text" and commands and not text[before : found.start()].strip():
            commands[-1].shown.extend(each for each in found["text"].splitlines() if each.strip())
    return commands


def _run_command(command: Command) -> None:
    """Run a command up to a pipe or redirection, and look for the output that is shown."""
    words = shlex.split(command.line, comments=True)
    ends = [at for at, word in enumerate(words) if word in ("|", ">", "2>", "&&", ";")]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(words[1 : min(ends, default=len(words))])
    printed = f"{out.getvalue()}\n{err.getvalue()}"
    assert code == command.code, f"$ {command.line}\nexits with {code}: {err.getvalue()}"
    _assert_shown(command.shown, printed, f"$ {command.line}")


def _assert_shown(shown: list[str], printed: str, by: str) -> None:
    """Raise unless the lines that are shown are part of what was printed, in this order."""
    rest = _spaced_once(CONTROL.sub("", printed))
    for line in shown:
        for piece in filter(None, map(_spaced_once, re.split(r"\.\.\.|…", line))):
            _, found, rest = rest.partition(piece)
            assert found, f"{by}\ndoes not print, or not there: {line}\nbut:\n{printed}"


def _spaced_once(text: str) -> str:
    return " ".join(text.split())
