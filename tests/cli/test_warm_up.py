"""Compilation ahead of use in two processes; for what it compiles, see test_cli.py."""

import os
import signal
import subprocess
import sys

import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.cli import warm_up_command
from fastbcubed.kernels import jit

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="there one process compiles"),
    pytest.mark.skipif(jit.never_compiled(), reason="kernels are not compiled"),
]

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
        "PYTHONPATH": os.path.dirname(os.path.dirname(fb.__file__)),
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
