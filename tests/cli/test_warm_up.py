"""Compilation ahead of use: of all that commands call, in two processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.cli import warm_up_command
from fastbcubed.kernels import jit

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="there one process compiles"),
    pytest.mark.skipif(jit.never_compiled(), reason="kernels are not compiled"),
]

ROOT = Path(fb.__file__).parents[1]
TRUTH, OLD, NEW = (
    str(ROOT / "fastbcubed" / "data" / "patentsview" / f"{name}.parquet")
    for name in ("truth", "pred_20200929", "pred_20211230")
)

#: Runs commands, and prints the kernels that they called, each with the types of its arguments.
USED = """
import contextlib, gc, json, sys
from fastbcubed.cli import main, warm_up_command
from fastbcubed.kernels.jit import Kernel
warm_up_command.available_threads = lambda: 1
with contextlib.redirect_stdout(sys.stderr):
    for words in json.loads(sys.argv[1]):
        assert main.main(words) == 0, words
kernels = [each for each in gc.get_objects() if isinstance(each, Kernel)]
print(json.dumps([f"{each.__name__}{types}" for each in kernels for types in each.signatures]))
"""


def used_by(*commands: list[str], **variables: str) -> set[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-c", USED, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert not done.returncode, done.stderr
    used = json.loads(done.stdout)
    assert len(used) == len(set(used))
    return set(used)


@pytest.mark.process
@pytest.mark.slow
def test_commands_call_only_kernels_that_warm_up_has_called(tmp_path) -> None:
    """So that nothing is compiled after it. Kernels are kept between runs, as to compile all takes minutes."""
    made = used_by(["warm-up"])
    assert len(made) == warm_up_command.N_KERNELS
    few = []
    for labels, kind in ((range(7), pa.int64()), (range(7), pa.int32()), ([2**40, -5, 7], pa.int64())):
        few.append(str(tmp_path / f"few {len(few)}.parquet"))
        side = pa.array([*labels] * (280_000 // len(labels)), kind)
        pq.write_table(pa.table({"truth": side[: 1 << 18], "prediction": side[1 : (1 << 18) + 1]}), few[-1])
    slices = ["--slice", "country,year"]
    used = used_by(
        ["evaluate", TRUTH, NEW, *slices, "--metric", "all"],
        ["evaluate", TRUTH, NEW, *slices, "--engine", "disk", "--out", str(tmp_path / "out")],
        ["evaluate", TRUTH, NEW, "--engine", "disk", "--json"],
        *(["evaluate", "truth", "prediction", "--table", table] for table in few),
        ["compare", TRUTH, NEW, OLD],
        ["compare", TRUTH, NEW, OLD, "--weight", "n_coinventors", "--bootstrap", "40"],
        ["diff", NEW, OLD, "--truth", TRUTH],
        ["estimate", TRUTH, NEW],
        ["demo"],
        FASTBCUBED_INTERPRET="0",
    )
    assert len(used) > 50 and used <= made, used - made


@pytest.mark.process
@pytest.mark.weekly
def test_two_processes_keep_every_kernel(tmp_path) -> None:
    cache = tmp_path / "kernels"  # those of other tests would hide what is missing
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "fastbcubed", "warm-up"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0 and "fastbcubed: kernels are cached in " in done.stderr and not done.stdout
    assert [*tmp_path.iterdir()] == [cache]
    assert len(list(cache.rglob("*.nbc"))) == warm_up_command.N_KERNELS


SECOND = """
import os, signal, sys
from multiprocessing.connection import Connection
import fastbcubed as fb
def assist(handle, work):
    sent = Connection(handle, readable=False)
    {does}
"""


@pytest.fixture
def second(tmp_path, monkeypatch):
    """Return a function that runs a step in this process while the second one does as it is given."""

    def run(does: str, step=lambda: None) -> None:
        (tmp_path / "second.py").write_text(SECOND.format(does=does))
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(warm_up_command, "__name__", "second")
        with warm_up_command._second_process(str(tmp_path)):
            step()

    return run


@pytest.fixture
def counted():
    """Return kernels that are announced here."""
    seen: list[int] = []
    jit.listeners.append(lambda: seen.append(1))
    yield seen
    jit.listeners.pop()


@pytest.mark.process
def test_kernels_of_both_processes_are_counted(second, counted) -> None:
    def compile_two() -> None:
        for _ in range(2):
            for listener in jit.listeners:
                listener()

    second("[sent.send(None) for _ in range(3)]", compile_two)
    assert len(counted) == 5 and len(jit.listeners) == 1


@pytest.mark.process
def test_the_error_of_the_second_process_is_raised(second, counted) -> None:
    with pytest.raises(fb.errors.FileFormatError, match=r'^Pass nulls="drop"$') as caught:
        second("sent.send(fb.errors.FileFormatError(f\"Pass {fb.errors.arg('nulls', 'drop')}\"))")
    assert len(caught.value.message.parts) == 3
    with pytest.raises(
        fb.errors.OutOfMemoryError, match=r"killed or failed \(exit code -9\), most likely for lack of"
    ):
        second("os.kill(os.getpid(), signal.SIGKILL)")


@pytest.mark.process
def test_the_second_process_ends_with_the_first(second, counted, tmp_path) -> None:
    os.mkfifo(tmp_path / "begun")

    def stop() -> None:
        (tmp_path / "begun").read_bytes()  # waits for whoever writes there
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # this test hangs where the second process goes on
        second("open(f'{work}/begun', 'w').close(); signal.pause()", stop)
    assert len(jit.listeners) == 1


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_both_processes(number, tmp_path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NUMBA_CACHE_DIR": str(tmp_path / "kernels"),
        "TMPDIR": str(tmp_path),
    }
    code = (
        "from fastbcubed.cli import main, warm_up_command as command; command.available_threads = lambda: 2; "
    )
    said = {signal.SIGINT: (130, "stopped"), signal.SIGTERM: (143, "terminated"), signal.SIGKILL: (-9, "")}
    status, message = said[number]
    command = [sys.executable, "-c", f"{code}raise SystemExit(main.main(['warm-up']))"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        first = process.stderr.readline()
        assert first.startswith("fastbcubed: compiling kernels, which takes some seconds; they are kept in ")
        process.send_signal(number)
        rest = process.stderr.read()  # until the last of both processes has closed it
    assert process.returncode == status and rest == (f"fastbcubed: {message}\n" if message else "")
    if number != signal.SIGKILL:
        assert [path.name for path in tmp_path.iterdir()] == ["kernels"]


def test_one_process_compiles_where_there_is_one_core(monkeypatch, capsys) -> None:
    asked = []
    monkeypatch.setattr(
        warm_up_command, "warm_up", lambda two_processes: asked.append(two_processes) or "done"
    )
    for cores in (1, 2):
        monkeypatch.setattr(warm_up_command, "available_threads", lambda cores=cores: cores)
        assert cli.main(["warm-up"]) == 0
    assert asked == [False, True]
