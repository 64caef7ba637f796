"""What is imported when, and by whom: a light start, and imports that point down the data flow."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed import kernels

PACKAGE = Path(fb.__file__).parent
#: Each module by its name within the package; "" is the package itself.
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
LONGEST = 900
#: Modules that may be longer, and why.
LONGER: dict[str, str] = {}

#: The rooms, from the ground up: a module imports from its own room and from those listed before it.
ORDER = (
    "_version",
    "errors",
    "types",
    "kernels",
    "runtime",
    "inputs",
    "align",
    "cells",
    "overlap",
    "metrics",
    "render",
    "find_slices",
    "results",
    "engines",
    "spark",
    "choose_engine",
    "evaluate",
    "compare_runs",
    "sample",
    "sweep_links",
    "diff_runs",
    "load_result",
    "charts",
    "constraints",
    "progress",
    "",  # the package itself
    "cli",
    "__main__",
)


def test_import_is_light() -> None:
    heavy = (
        "numba",
        "pandas",
        "rich",
        "pyarrow.compute",
        "matplotlib",
        "scipy",
        "csv",
        "difflib",
        "html",
        "statistics",
        "altair",
        "jinja2",
        "vl_convert",
    )
    heavy += (
        "fastbcubed.charts",
        "fastbcubed.results.page",
        "fastbcubed.constraints",
        "fastbcubed.results.gates",
        "fastbcubed.diff_runs.diff_result",
        "fastbcubed.compare_runs.comparison",
        "fastbcubed.sweep_links.curve",
        "fastbcubed.sample.estimates",
        "fastbcubed.sweep_links.sweep_result",
    )
    code = (
        "import sys, numpy, pyarrow; there = set(sys.modules); import fastbcubed; "
        f"print([name for name in {heavy} if name in sys.modules.keys() - there])"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_names_loaded_on_first_use_are_never_modules() -> None:
    """Whoever imports a module sets its name in the package, where no function of that name may stand."""
    code = (
        "import sys, pkgutil, importlib, fastbcubed as fb\n"
        "for each in pkgutil.iter_modules(fb.__path__, 'fastbcubed.'):\n"
        "    each.name == 'fastbcubed.__main__' or importlib.import_module(each.name)\n"
        "print([name for name in fb.__all__ if isinstance(getattr(fb, name), type(sys))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['charts', 'constraints', 'errors', 'metrics']"


@pytest.mark.process
def test_kernels_load_without_scipy() -> None:
    """Numba loads half of SciPy to know whether it has a BLAS; what needs one still finds it."""
    code = (
        "import sys, numba, numpy as np, fastbcubed as fb\n"
        "fb.evaluate(np.arange(9) // 2, np.arange(9) // 3)\n"
        "print('scipy.linalg' in sys.modules)\n"
        "product = numba.njit(lambda a, b: np.dot(a, b))\n"
        "print(product(np.full((2, 3), 1.0), np.full((3, 1), 2.0)).tolist())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[:2] == ["False", "[[6.0], [6.0]]"]


def test_every_module_is_in_a_room() -> None:
    assert {_room(name) for name in MODULES} == set(ORDER)


def test_contributors_are_told_of_all_rooms() -> None:
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = [room for room in ORDER if (PACKAGE / room).is_dir() and room]
    assert re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE) == folders


def test_imports_point_down_the_data_flow() -> None:
    up = [
        f"{name or 'fastbcubed'} imports {imported or 'fastbcubed'} ({where}), which comes after it"
        for name in MODULES
        for imported, where in _imports(name)
        if imported in MODULES and ORDER.index(_room(imported)) > ORDER.index(_room(name))
    ]
    assert not up


def test_kernels_know_numpy_and_numba_only() -> None:
    known = {"numpy", "numba", "llvmlite", "kernels", *sys.stdlib_module_names}
    others = [
        f"{name} imports {imported}"
        for name in MODULES
        if name.startswith("kernels")
        for imported, _ in _imports(name)
        if _room(imported) not in known
    ]
    assert not others


def test_no_imports_go_round_in_a_circle() -> None:
    """Those in functions and those for types count, too."""
    above = {name: {module for module, _ in _imports(name)} & MODULES.keys() - {name} for name in MODULES}
    while above:
        free = {name for name, modules in above.items() if not modules & above.keys()}
        assert free, f"circles among {sorted(above)}"
        above = {name: modules for name, modules in above.items() if name not in free}


TRUE, PRED, NEW = (
    np.array(codes * 40)
    for codes in ([0, 0, 1, 1, 2, 2, 2, 3], [0, 0, 0, 1, 2, 2, 3, 3], [0, 0, 1, 1, 2, 2, 3, 3])
)
#: Walks through the rooms: from what they start, and their steps.
WALKS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "evaluation": (lambda: None, lambda _: fb.evaluate(TRUE, PRED, threads=1)),
    "cells": (lambda: fb.evaluate(TRUE, PRED, threads=1), lambda ev: ev.cells()),
    "clusters": (lambda: fb.evaluate(TRUE, PRED, threads=1), lambda ev: ev.clusters("pred")),
    "deltas": (lambda: fb.compare(TRUE, {"old": PRED, "new": NEW}), lambda cmp: cmp.deltas()),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_rarely_goes_back_to_a_room(name: str) -> None:
    start, walk = WALKS[name]
    walk(start())
    begun, stays, ground = start(), list[str](), ORDER[: ORDER.index("inputs")]

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE) and not frame.f_code.co_name.startswith("<"):
            room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
            if room not in ground and [room] != stays[-1:]:
                stays.append(room)

    sys.setprofile(note)
    try:
        walk(begun)
    finally:
        sys.setprofile(None)
    assert len(stays) - len(set(stays)) <= 25, stays


def test_no_two_files_have_one_name() -> None:
    counted = [name for name in MODULES if not name.startswith("kernels.")]
    files = [MODULES[name].name for name in counted if MODULES[name].name != "__init__.py"]
    assert not {name for name in files if files.count(name) > 1}


def test_no_module_has_a_second_subject() -> None:
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name: n for name, n in lines.items() if n > LONGEST}.keys() == LONGER.keys()


def test_kernels_are_loaded_on_first_use() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = kernels.nonsense
    assert not hasattr(kernels, "__wrapped__")


def test_kernels_are_called_by_their_module() -> None:
    callers = [name for name in MODULES if _room(name) != "kernels" and name != "metrics.compiled"]
    by_name = [name for name in callers if any(one.startswith("kernels.") for one, _ in _imports(name))]
    assert not by_name, "say `from fastbcubed import kernels` and `kernels.sums.…`"


def _room(name: str) -> str:
    """Return the folder of a module, or itself."""
    return name.split(".")[0]


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


@cache
def _imports(name: str) -> list[tuple[str, str]]:
    """Return what a module imports, and where; a module of the package by its name within it."""

    def visit(node: ast.AST, where: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((_within(alias.name), where) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0 and child.module, "imports are absolute"
                for alias in child.names:
                    whole = f"{child.module}.{alias.name}"
                    is_module = whole.startswith("fastbcubed.") and _within(whole) in MODULES
                    yield _within(whole if is_module else child.module), where
            elif not isinstance(child, ast.expr):  # in which nothing is imported
                yield from visit(child, _where(child, where))

    return list(visit(_tree(name), "at the top"))


def _where(node: ast.AST, outer: str) -> str:
    """Return when the imports in a node run."""
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return "for types"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and outer == "at the top":
        return "in a function"
    return outer


def _within(imported: str) -> str:
    return imported.removeprefix("fastbcubed").lstrip(".") if _is_ours(imported) else imported


def _is_ours(imported: str) -> bool:
    return imported == "fastbcubed" or imported.startswith("fastbcubed.")


# -- Kernels ---------------------------------------------------------------------------------------

KERNEL_LINES, KERNEL_PARAMETERS = 40, 12
#: Kernels that are longer, and why.
LONG_KERNELS = {
    "merge_rows": "calls that take arrays, even in place, count references for every row: twice as slow",
}


def test_kernels_are_short() -> None:
    long = {name for name, node in _kernels() if _lines_of(node) > KERNEL_LINES}
    assert long == set(LONG_KERNELS)


def test_kernels_take_few_arguments() -> None:
    many = {name: len(node.args.args) for name, node in _kernels() if len(node.args.args) > KERNEL_PARAMETERS}
    assert not many, "pass what belongs together as a tuple"


@cache
def _kernels() -> list[tuple[str, ast.FunctionDef]]:
    """Return the functions that Numba compiles."""
    nodes = (node for name in MODULES for node in ast.walk(_tree(name)) if isinstance(node, ast.FunctionDef))
    made = {"kernel", "inlined"}
    return [
        (node.name, node)
        for node in nodes
        if made & {ast.unparse(each).split("(")[0] for each in node.decorator_list}
    ]


def _lines_of(node: ast.FunctionDef) -> int:
    """Count the lines of a function on which code stands; its comments are spared, so that nobody saves on them."""
    return len({each.lineno for each in ast.walk(node) if isinstance(each, ast.stmt | ast.expr | ast.arg)})


def test_one_word_for_one_thing() -> None:
    """Say heavy, duplicate or repeated, most similar, and what is clustered with an item."""
    told = re.compile(r"set apart|comes? again|likest|wrong company|Where to what")
    texts = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}
    assert {name: told.findall(text) for name, text in texts.items() if told.search(text)} == {}
