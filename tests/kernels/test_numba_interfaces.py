"""What is private in Numba and used: the first to fail when a new version moves it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core import caching, codegen, compiler, dispatcher, typed_passes, untyped_passes

import fastbcubed as fb
from fastbcubed.kernels import cache


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def shared_places() -> list[Any]:
    locators: Any = caching.CompileResultCacheImpl._locator_classes
    return [each for each in locators if each.__name__.lstrip("_") in cache.SHARED]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (caching.FunctionCache.load_overload, ["sig", "target_context"]),
        (caching.FunctionCache.save_overload, ["sig", "data"]),
        (caching.FunctionCache._load_overload, ["sig", "target_context"]),
        (caching.FunctionCache._guard_against_spurious_io_errors, []),
        (caching.IndexDataCacheFile.__init__, ["cache_path", "filename_base", "source_stamp"]),
        (caching.IndexDataCacheFile.save, ["key", "data"]),
        (caching.IndexDataCacheFile.load, ["key"]),
        (caching.IndexDataCacheFile._data_name, ["number"]),
        (caching.IndexDataCacheFile._data_path, ["name"]),
        (caching.IndexDataCacheFile._dump, ["obj"]),
        (caching.IndexDataCacheFile._save_data, ["name", "data"]),
        *((each.get_suitable_cache_subpath, ["py_file"]) for each in shared_places()),
        (caching.CompileResultCacheImpl.__init__, ["py_func"]),
        (codegen.JITCodeLibrary._optimize_final_module, []),
        (codegen.JITCodeLibrary._finalize_final_module, []),
        (codegen.JITCodeLibrary._optimize_functions, ["ll_module"]),
        (codegen.JITCodeLibrary.serialize_using_object_code, []),
        (compiler.CompilerBase._compile_core, []),
        (dispatcher.Dispatcher._compile_for_args, ["args", "kws"]),
        (dispatcher.Dispatcher.get_call_template, ["args", "kws"]),
        (dispatcher.Dispatcher.add_overload, ["cres"]),
    ],
)
def test_private_functions_take_what_they_are_given(function: Any, names: list[str]) -> None:
    assert parameters(function) == names, f"Numba {numba.__version__}"


def test_private_attributes_are_there() -> None:
    kernel = numba.njit(lambda x: x)
    assert {"_compile_for_args", "_cache", "_compiler", "overloads"} <= set(dir(kernel))
    assert caching.FunctionCache._impl_class is caching.CompileResultCacheImpl
    assert len(shared_places()) == len(cache.SHARED)
    assert {"_compile_core", "_customize_flags"} <= set(dir(kernel._compiler))
    assert all(
        (typed_passes.InlineOverloads, typed_passes.NopythonRewrites, untyped_passes.InlineClosureLikes)
    )


def test_the_newest_version_that_was_tried_is_the_one_that_is_tried() -> None:
    """CI takes the newest; where it fails here alone, all other tests pass, and this number may follow."""
    assert tuple(numba.version_info[:2]) <= cache.TRIED


@pytest.mark.process
def test_a_newer_version_gives_a_note_and_the_same_scores(tmp_path: Path) -> None:
    code = (
        "from fastbcubed.kernels import cache; cache.TRIED = (0, 1)\n"
        "import fastbcubed as fb\n"
        "print(dict(fb.evaluate([0, 0, 1, 1, 2], [0, 1, 1, 1, 2]).overall))\n"
    )
    environment = {**os.environ, "FASTBCUBED_INTERPRET": "0", "NUMBA_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = str(Path(fb.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stdout == f"{dict(fb.evaluate([0, 0, 1, 1, 2], [0, 1, 1, 1, 2]).overall)}\n", done.stderr
    assert f"Numba {numba.__version__} is newer than 0.1, the newest version tested" in done.stderr
    assert not list(tmp_path.rglob("*.nb?"))
