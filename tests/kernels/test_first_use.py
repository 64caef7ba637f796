"""The first call of an installation: which kernels each command compiles, and that both tiers agree on all."""

import os
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.cli import warm_up_command
from fastbcubed.kernels import interpreter, jit

DATA = Path(fb.__file__).parent / "data" / "patentsview"
TRUTH, OLD, NEW = (str(DATA / f"{name}.parquet") for name in ("truth", "pred_20200929", "pred_20211230"))
ROOT = Path(fb.__file__).parents[1]

COMMANDS = [
    ["demo"],
    ["evaluate", TRUTH, NEW],
    ["evaluate", TRUTH, NEW, "--metric", "all", "--slice", "true_size"],
    ["evaluate", TRUTH, NEW, "--engine", "disk", "--slice", "country"],
    ["compare", TRUTH, OLD, NEW],
    ["diff", OLD, NEW, "--truth", TRUTH],
    ["estimate", TRUTH, NEW],
]


@pytest.mark.process
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(map(os.path.basename, command)))
def test_commands_on_few_items_compile_nothing(command, tmp_path) -> None:
    code = "import sys; from fastbcubed.cli.main import main; from fastbcubed.kernels import jit\n"
    code += "jit._patience = 5.0; status = main(sys.argv[1:])\n"  # a busy machine is no reason to compile
    code += "print('numba' in sys.modules, file=sys.stderr); sys.exit(status)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    environment["FASTBCUBED_INTERPRET"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, env=environment, timeout=300
    )
    assert not done.returncode, done.stderr
    assert done.stderr.splitlines()[-1] == "False" and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_both_tiers_agree_to_the_last_bit_on_all_that_warm_up_runs(monkeypatch) -> None:
    """Every kernel is interpreted, then compiled on the same arrays: the first three times for each type of these."""
    differing: list[str] = []
    seen: Counter[tuple[Any, ...]] = Counter()
    one_at_a_time = RLock()

    def run_both(self, *arguments):
        with one_at_a_time, jit.compiling():
            seen[self, jit.types_of(arguments)] += 1
            if seen[self, jit.types_of(arguments)] > 3:
                return self.dispatcher(*interpreter.writable(arguments))
            arrays = list(jit.arrays_in(arguments))
            before = [array.copy() for array in arrays]
            interpreter.start(np.inf)
            copies = interpreter.Copies(arrays)
            with np.errstate(all="ignore"):
                results = values_of(interpreter.unviewed(self.python(*map(copies.viewed, arguments))))
            copies.write_back()
            after = [array.copy() for array in arrays]
            for array, saved in zip(arrays, before, strict=True):
                if array.flags.writeable:
                    array[...] = saved
            compiled = self.dispatcher(*interpreter.writable(arguments))
            pairs = zip(results + after, [*values_of(compiled), *arrays], strict=True)
            # NumPy versions leave workspace as it is, also where another kernel calls one
            if self.loops is not self.python or self.__name__ == "square_ranges":
                pairs = [
                    pair for pair in pairs if not any(pair[1] is each for each in workspace(self, arguments))
                ]
            if not all(same_bits(one, other) for one, other in pairs):
                differing.append(self.__name__)
            return compiled

    monkeypatch.setattr(warm_up_command, "N_ITEMS", 200)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", fb.EvaluationWarning)
        patch.setattr(jit.Kernel, "__call__", run_both)
        warm_up_command.warm_up()
    assert len(seen) > 300 and differing == []


def workspace(function, arguments):
    """Return the arrays of a call that hold nothing afterwards, or not to their end."""
    names = function.py_func.__code__.co_varnames
    own = {"space"} | {
        "count_pairs": {"slots"},
        "scatter_cells": {"sums"},
        "change_by_part": {"sums"},
        "find_cells": {"places", "codes", "merged"},  # test_by_numpy compares what is found
        "pair_clusters": {"left", "right"},
    }.get(function.__name__, set())
    return list(
        jit.arrays_in(tuple(each for name, each in zip(names, arguments, strict=False) if name in own))
    )


def values_of(result):
    """Return the results of a kernel in one list, arrays as they are now."""
    if isinstance(result, tuple):
        return [value for each in result for value in values_of(each)]
    return [result.copy() if isinstance(result, np.ndarray) else result]


def same_bits(one, other) -> bool:
    """Return whether two values are equal, floats to the last bit; what lies between fields of records is nothing."""
    if isinstance(one, np.ndarray) and one.dtype.names:
        return all(same_bits(one[name], other[name]) for name in one.dtype.names)
    return type(one) is type(other) and np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.process
def test_a_kernel_is_compiled_anew_when_one_that_it_calls_has_changed(tmp_path) -> None:
    """Its own file is the same, and so is the name and the signature that its code is kept under."""
    (tmp_path / "caller.py").write_text(
        "from callee import step\nfrom fastbcubed.kernels.jit import kernel\n\n\n"
        "@kernel\ndef call(x):\n    return step(x)\n\n\nprint(call(1))\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
        "FASTBCUBED_INTERPRET": "0",
    }
    for added in (1, 1, 22):
        text = (
            f"from fastbcubed.kernels.jit import kernel\n\n\n@kernel\ndef step(x):\n    return x + {added}\n"
        )
        if not (tmp_path / "callee.py").exists() or (tmp_path / "callee.py").read_text() != text:
            (tmp_path / "callee.py").write_text(text)
        command = [sys.executable, "-c", "import caller"]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{1 + added}\n"
        kept = list((tmp_path / "numba").rglob("*call*.nbc"))  # by the content of the sources
        assert len(kept) == (1 if added == 1 else 2)
