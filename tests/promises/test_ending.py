"""How a call ends where it cannot go on: signals, full and closed disks, files that change while they are read."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cells import shards as disk
from fastbcubed.cli import main as cli
from fastbcubed.errors import FileFormatError, SpillError, lacks_memory
from fastbcubed.runtime import spill
from fastbcubed.runtime.output_files import TableWriter, remove_stale, written_aside

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs signals, /proc, and tmpfs")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
N_ROWS = 5_000_000
#: A disk engine that spills all, for small inputs.
SPILL_ALL = disk.Layout(2, 0, 0)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that takes the disk engine a while, and more memory than it is given."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    truth = np.random.default_rng(0).integers(0, N_ROWS, N_ROWS) * 7919
    pq.write_table(pa.table({"truth": truth, "prediction": np.where(truth % 5, truth, -truth)}), path)
    return path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"no mount: {error}")
    if done.returncode:
        pytest.skip(f"cannot mount a small disk: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def start(*arguments: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fastbcubed", *map(str, arguments)]
    return subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def evaluate_on_disk(rows: Path, *flags: Any) -> subprocess.Popen[str]:
    return start(
        "evaluate", "truth", "prediction", "--table", rows, "--engine", "disk", "--memory-limit", "64MiB",
        "--threads", 1, "--keep", "scores", *flags,
    )  # fmt: skip


def wait_until(reached: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 300
    while not reached():
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.005)


def spills(process: subprocess.Popen[str], directory: Path) -> bool:
    """Tell whether a process has begun to spill to a directory."""
    try:
        open_files = [os.readlink(entry) for entry in Path(f"/proc/{process.pid}/fd").iterdir()]
    except OSError:  # it opens and closes files meanwhile
        return False
    return any(name.startswith(f"{directory}/") for name in open_files)


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def an_evaluation(n_items: int = 6) -> fb.Evaluation:
    return fb.evaluate(np.arange(n_items) // 3, np.arange(n_items) // 2)


# -- Signals ----------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "fastbcubed: stopped\n"),
        (signal.SIGTERM, 143, "fastbcubed: terminated\n"),
        (signal.SIGKILL, -9, ""),
    ],
)
def test_an_evaluation_that_is_ended_leaves_nothing(number, code, said, rows, tmp_path) -> None:
    (tmp_path / "spill").mkdir()
    an_evaluation().save(tmp_path / "out")
    before = content(tmp_path / "out")
    process = evaluate_on_disk(rows, "--spill-dir", tmp_path / "spill", "--out", tmp_path / "out")
    wait_until(lambda: spills(process, tmp_path / "spill"), process)
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == code and err.endswith(said) and "Traceback" not in err
    assert not list((tmp_path / "spill").iterdir())
    assert content(tmp_path / "out") == before


#: Writes half a file and waits.
HALF = """
import pathlib, sys, time
from fastbcubed.runtime.output_files import written_aside
with written_aside(pathlib.Path(sys.argv[1])) as aside:
    open(aside, "w").write("half")
    time.sleep(200)
"""


@pytest.mark.process
def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    """A live process's file is not."""
    path = tmp_path / "items.parquet"
    path.write_text("earlier")

    def write(text: str) -> None:
        with written_aside(path) as aside:
            Path(aside).write_text(text)

    mine = tmp_path / ".items.parquet.original"
    mine.write_text("of the user")

    def asides() -> set[Path]:
        return set(tmp_path.iterdir()) - {path, mine}

    command = [sys.executable, "-c", HALF, str(path)]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: any(file.stat().st_size for file in asides()), process)
        (at_work,) = asides()
        write("first")
        assert asides() == {at_work} and process.poll() is None
    finally:
        process.kill()
        process.communicate(timeout=300)
    assert asides() == {at_work}
    assert path.read_text() == "first"  # what was half-written never shows
    write("second")
    assert not asides() and mine.exists()


def test_only_unlocked_files_are_stale(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    stale, other = tmp_path / ".a.json.fastbcubed-12345678", tmp_path / ".b.json.fastbcubed-12345678"
    for path in (stale, other):
        path.write_text("half")
    with written_aside(file) as aside:
        assert not stale.exists() and other.exists()
        remove_stale(file)
        Path(aside).write_text("whole")
    assert file.read_text() == "whole"
    assert set(tmp_path.iterdir()) == {file, other}


def test_the_library_leaves_signals_alone(capsys, tmp_path) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before, seen = [signal.getsignal(number) for number in numbers], []

    def look(progress: object) -> None:
        seen.append([signal.getsignal(number) for number in numbers])

    for engine in ("memory", "disk"):
        fb.evaluate([0, 0, 1], [0, 1, 1], engine=engine, progress=look)
    assert seen and all(found == before for found in seen)
    cli.main(["metrics", "precision"])
    assert [signal.getsignal(number) for number in numbers] == before


#: A module in place of a package that is lacking, or whose loading is stopped by Ctrl-C.
IN_PLACE = {
    "stopped": "raise KeyboardInterrupt",
    "lacking": "raise ModuleNotFoundError(f'No module named {__name__!r}', name=__name__)",
}


@pytest.mark.process
@pytest.mark.parametrize(
    ("what", "package", "code", "said"),
    [
        ("stopped", "numpy", 130, "stopped"),
        ("lacking", "numpy", 2, "cannot be loaded: No module named 'numpy'. Install fastbcubed again"),
        ("lacking", "pyarrow", 2, "cannot be loaded: No module named 'pyarrow'"),
        ("lacking", "numba", 2, "cannot be loaded: No module named 'numba'"),
    ],
)
def test_what_ends_a_command_that_loads_is_one_line(what, package, code, said, tmp_path) -> None:
    (tmp_path / f"{package}.py").write_text(IN_PLACE[what])
    environment = ENVIRONMENT | {"PYTHONPATH": f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"}
    command = [sys.executable, "-m", "fastbcubed", "warm-up"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == code and said in done.stderr
    assert done.stderr.startswith("fastbcubed: ") and len(done.stderr.splitlines()) == 1
    library = [sys.executable, "-c", "import fastbcubed as fb; fb.evaluate([1], [1])"]
    environment["FASTBCUBED_INTERPRET"] = "0"
    assert "Traceback" in subprocess.run(library, env=environment, capture_output=True, text=True).stderr


#: A package that loses Ctrl-C while it is loaded, as a callback from C does.
LOSES = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(99))
except KeyboardInterrupt:
    raise SystemExit(0)
"""


@pytest.mark.process
def test_ctrl_c_is_not_lost_while_packages_load(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(LOSES)
    environment = ENVIRONMENT | {"PYTHONPATH": f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"}
    for words, code, said in (
        (["-m", "fastbcubed", "metrics"], 130, "fastbcubed: stopped\n"),
        (["-c", "import fastbcubed"], 0, ""),  # a library leaves signals alone
    ):
        done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@pytest.mark.process
@pytest.mark.parametrize(("words", "code"), [(["metrics", "f1"], 0), (["metrics", "nope"], 2)])
def test_the_command_ends_before_the_interpreter_is_taken_apart(words, code) -> None:
    """Threads of Arrow that need it then would end the process with 134; what is registered for the exit is called."""
    ended = (
        "import atexit, sys\n"
        "class Last:\n"
        "    def __del__(self): print('taken apart')\n"
        "sys.last, sys.argv = Last(), ['fastbcubed', *sys.argv[1:]]\n"
        "atexit.register(print, 'at exit')\n"
        "from fastbcubed.cli.main import main\n"
        "raise SystemExit(main())"
    )
    command = [sys.executable, "-c", ended, *words]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == code and "taken apart" not in done.stdout, done.stderr
    assert done.stdout.endswith("at exit\n")


@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "stopped"), (signal.SIGTERM, 143, "terminated")]
)
@pytest.mark.parametrize("then", ["goes on", "fails"])
def test_a_signal_whose_exception_is_lost_ends_the_command(
    number, code, said, then, monkeypatch, capsys
) -> None:
    def run(_: object) -> int:
        with contextlib.suppress(BaseException):
            os.kill(os.getpid(), number)
            sum(range(99))
        if then == "fails":
            raise ImportError("cannot be loaded", name="numpy")
        return 0

    before = signal.getsignal(number)
    monkeypatch.setattr("fastbcubed.cli.metrics_command.run", run)
    assert cli.main(["metrics"]) == code
    assert capsys.readouterr().err == f"fastbcubed: {said}\n"
    assert signal.getsignal(number) == before


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_kernel_is_loaded_is_not_lost(number) -> None:
    """LLVM calls Numba back, and nobody hears of an exception that is raised there; so it comes afterwards."""
    code = (
        "import os, signal, sys, numba\n"
        "from numba.core.codegen import JITCPUCodegen\n"
        "from fastbcubed.kernels.cells import bit_length\n"
        "def ended(*_): raise SystemExit(9)\n"
        f"signal.signal({int(number)}, ended)\n"
        "engine = numba.njit(lambda: 1).targetdescr.target_context.codegen()._engine\n"
        "def notify(*_):\n"
        f"    os.kill(os.getpid(), {int(number)}); sum(range(99))\n"
        "engine._ee.set_object_cache(notify, lambda _: None)\n"
        "bit_length(8)\n"
        "print('went on')"
    )
    environment = ENVIRONMENT | {"FASTBCUBED_CACHE": "0", "FASTBCUBED_INTERPRET": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (9, "", "")


@pytest.mark.parametrize(
    "cause",
    [
        ImportError("libblas.so: failed to map segment from shared object"),
        RuntimeError("Failed to launch worker thread: Resource temporarily unavailable"),
    ],
)
def test_errors_that_follow_lack_of_memory(cause: Exception) -> None:
    """Llvmlite says that its library cannot be found."""
    error = OSError("Could not find/load shared object file 'libllvmlite.so'")
    assert not lacks_memory(error)
    error.__context__ = cause
    assert lacks_memory(error) and lacks_memory(cause)


@pytest.mark.process
@pytest.mark.parametrize("n_kib", [150_000, 300_000, 480_000])
def test_a_limit_of_addresses_is_called_lack_of_memory(n_kib: int) -> None:
    """With 150 MiB no library can be mapped; with 300 MiB a thread of Arrow ended the process with code 134."""
    command = [sys.executable, "-m", "fastbcubed", "demo"]
    limited = ["sh", "-c", f'ulimit -v {n_kib}; exec "$@"', "sh", *command]
    done = subprocess.run(limited, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"fastbcubed: out of memory: the process may use {n_kib // 1024} MiB of address space"
    )
    assert "ulimit -v" in line and "512 MiB" in line


# -- Disks ------------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_an_output_directory_is_tried_before_the_work(engine, tmp_path, small_disk) -> None:
    (tmp_path / "taken").write_text("mine")
    told: list[Any] = []
    options: dict[str, Any] = {"engine": engine, "keep": "scores", "progress": told.append}
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for out in (tmp_path / "taken", tmp_path / "taken" / "deeper", small_disk, small_disk / "a" / "b"):
        with pytest.raises(FileFormatError, match=f"cannot write to {out}: .*Name a writable directory"):
            fb.evaluate([0, 0, 1], [0, 1, 1], out=out, **options)
    assert not told
    with pytest.raises(fb.errors.MetricError):  # another error leaves no empty directory
        fb.evaluate([0, 0, 1], [0, 1, 1], out=tmp_path / "new", metrics="absent")
    assert not (tmp_path / "new").exists()


@pytest.mark.process
def test_too_little_disk_is_said_before_anything_is_read(rows, small_disk, capsys) -> None:
    process = evaluate_on_disk(rows, "--spill-dir", small_disk)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert f"would be spilled to {small_disk}, which has 4 MiB free" in err
    assert "larger disk with --spill-dir" in err and "raise --memory-limit" in err
    assert len(err.splitlines()) == 1


@pytest.mark.process
def test_a_disk_that_fills(small_disk, monkeypatch) -> None:
    monkeypatch.setattr(spill, "LEAVE_FREE", -(1 << 40))  # the check before the work finds nothing
    monkeypatch.setattr(disk.Layout, "of", lambda *given: SPILL_ALL)
    true = np.arange(400_000)
    with pytest.raises(SpillError, match=r"the disk of .*disk is full after \d+ MiB of spill"):
        fb.evaluate(true, true // 2, engine="disk", spill_dir=small_disk)
    assert not list(small_disk.iterdir())
    assert shutil.disk_usage(small_disk).used < 1 << 16


@pytest.mark.process
def test_a_full_disk_keeps_the_earlier_result_whole(small_disk) -> None:
    out = small_disk / "out"
    an_evaluation().save(out)
    before = content(out)
    rng = np.random.default_rng(0)
    large = fb.evaluate(rng.integers(0, 2**60, 400_000), rng.integers(0, 2**60, 400_000))
    with pytest.raises(FileFormatError, match="cannot write"):
        large.save(out)
    assert content(out) == before
    assert fb.load(out).overall == an_evaluation().overall


def test_a_result_that_replaces_one_is_there_at_once(tmp_path, monkeypatch) -> None:
    """An error at the last table leaves all files of the earlier result."""
    an_evaluation().save(tmp_path)
    before = content(tmp_path)
    write = TableWriter.add

    def fail(self: TableWriter, table: pa.Table) -> None:
        if "cell" in table.column_names:
            raise OSError(errno.EIO, "Input/output error")
        write(self, table)

    monkeypatch.setattr(TableWriter, "add", fail)
    with pytest.raises(FileFormatError, match=r"cannot write .*items.parquet: Input/output error"):
        an_evaluation(60).save(tmp_path)
    assert content(tmp_path) == before
    monkeypatch.undo()
    an_evaluation(60).save(tmp_path, keep="scores")
    assert set(content(tmp_path)) == {"overall.json"}


def test_a_result_whose_files_cannot_be_moved_is_in_force(tmp_path, monkeypatch) -> None:
    an_evaluation().save(tmp_path)
    replace = os.replace

    def fail(source: Path, target: Path) -> None:
        if Path(target).name == "cells.parquet":
            raise OSError(errno.EIO, "Input/output error", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(
        FileFormatError, match=r"new result .* can be loaded.*cells.parquet: Input/output error"
    ):
        an_evaluation(60).save(tmp_path)
    assert fb.load(tmp_path).summary["true"]["items"] == 60
    monkeypatch.undo()
    an_evaluation(6).save(tmp_path)
    assert fb.load(tmp_path).summary["true"]["items"] == 6
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


@pytest.mark.process
def test_a_page_of_a_job_on_a_full_disk(small_disk, capsys) -> None:
    """Nothing of it is left: no empty file, and no half of a page after those of other steps."""
    page, earlier = small_disk / "new.md", small_disk / "job.md"
    earlier.write_text("x" * 4090)  # there is room for six bytes more
    with pytest.raises(OSError, match="No space"), open(small_disk / "full", "wb", buffering=0) as file:
        while file.write(bytes(1 << 16)) == 1 << 16:
            pass
        file.write(b"0" * 4096)
    for path in (page, earlier):
        assert cli.main(["evaluate", *example_files(small_disk.parent), "--summary", str(path)]) == 2
        assert f"cannot write {path}: No space left on device" in capsys.readouterr().err
    assert not page.exists()
    assert earlier.read_text() == "x" * 4090


def example_files(directory: Path) -> list[str]:
    """Write a truth and a prediction, and return their paths."""
    for name, labels in (("truth", [1, 1, 2]), ("prediction", [1, 2, 2])):
        pq.write_table(pa.table({"item": [1, 2, 3], "cluster": labels}), directory / f"{name}.parquet")
    return [str(directory / f"{name}.parquet") for name in ("truth", "prediction")]


# -- Files that change ------------------------------------------------------------------------------


def write(kind: str, path: Path, labels: np.ndarray) -> None:
    table = pa.table({"t": labels, "p": labels // 2})
    if kind == "Parquet":
        pq.write_table(table, path, row_group_size=1000, compression="none")
    else:
        pyarrow.feather.write_feather(table, str(path), chunksize=1000, compression="uncompressed")


@pytest.mark.parametrize("kind", ["Parquet", "Arrow IPC"])
@pytest.mark.parametrize("change", ["shrinks", "is written anew", "is replaced", "is removed"])
def test_a_file_that_changes_between_the_plan_and_the_work(kind, change, tmp_path) -> None:
    """It has been opened by then, its rows counted and its first block read."""
    path, labels = tmp_path / "rows", np.arange(5000)
    write(kind, path, labels)

    def intervene(progress: Any) -> None:
        if progress.stage == "plan":
            if change == "shrinks":
                os.truncate(path, path.stat().st_size // 2)
            elif change == "is removed":
                path.unlink()
            else:
                to = tmp_path / "new" if change == "is replaced" else path
                write(kind, to, labels[::-1])
                to.replace(path)

    with pytest.raises(FileFormatError, match=str(path)):
        fb.evaluate("t", "p", table=path, engine="disk", progress=intervene)
