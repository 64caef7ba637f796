"""Containers: an installation that cannot be written to, no home directory, kernels compiled with the image."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from read_only import read_only

import fastbcubed as fb
from fastbcubed.kernels import cache

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs mounts, or permissions of POSIX")

#: Compiles one kernel and says where it is kept.
ONE_KERNEL = """
from fastbcubed.kernels import cache, cells, jit
with jit.compiling():
    cells.bit_length(8)
compiled = cells.bit_length.dispatcher
print(cache.kept_in(compiled), *compiled.stats.cache_hits.values(), *jit.failures)
"""


class Image:
    """A copy of the package, which runs as in a container: nothing may be written but in a few directories."""

    def __init__(self, path: Path) -> None:
        self.root, self.tmp = path / "image", path / "tmp"
        self.tmp.mkdir()
        package = Path(fb.__file__).parent
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, self.root / "site" / "fastbcubed", ignore=skipped)
        (self.root / "home").mkdir()
        self._undo: Callable[[], object] | None = None

    def freeze(self) -> None:
        """Let nothing be written to the image any more."""
        self._undo = read_only(self.root)

    def thaw(self) -> None:
        if self._undo is not None:
            self._undo()

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        names = (
            "NUMBA_CACHE_DIR",
            "FASTBCUBED_CACHE",
            "FASTBCUBED_INTERPRET",
            "XDG_CACHE_HOME",
            "TEMP",
            "TMP",
            "COVERAGE_PROCESS_START",
            "PYTHONDONTWRITEBYTECODE",
        )
        environment = {name: value for name, value in os.environ.items() if name not in names}
        environment |= {
            "PYTHONPATH": str(self.root / "site"), "HOME": str(self.root / "home"), "TMPDIR": str(self.tmp),
        }  # fmt: skip
        return subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, timeout=300, cwd=self.tmp,
            env=environment | variables,
        )  # fmt: skip

    def kernel(self, **variables: str) -> list[str]:
        """Compile a kernel, and return where it is kept, and how often it was there."""
        done = self.run("-c", ONE_KERNEL, **variables)
        assert not done.stderr and not done.returncode, done.stderr
        return done.stdout.split()


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Image]:
    made = Image(tmp_path)
    yield made
    made.thaw()


def cluster(image: Image, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Cluster links by few kernels, all of them compiled."""
    (image.tmp / "links.csv").write_text("left,right,score\n1,2,0.9\n")
    flags = ["cluster", "links.csv", "--threshold", "0.5"]
    return image.run(*(command or ("-m", "fastbcubed")), *flags, FASTBCUBED_INTERPRET="0", **variables)


@pytest.mark.process
@pytest.mark.slow
def test_a_read_only_installation_keeps_kernels_in_a_temporary_directory(image: Image) -> None:
    image.freeze()
    done = cluster(image)
    kept = image.tmp / f"fastbcubed-{os.getuid()}"
    assert done.stdout.startswith("1 link of 2 items (links.csv)\n")
    (line,) = done.stderr.splitlines()
    assert set(image.tmp.iterdir()) == {image.tmp / "links.csv", kept}
    assert f"kept in {kept}" in line and "NUMBA_CACHE_DIR" in line
    again = cluster(image)
    assert (again.stdout, again.stderr) == (done.stdout, "")
    assert kept.stat().st_mode & 0o777 == 0o700


@pytest.mark.process
@pytest.mark.slow
def test_where_nothing_can_be_written_kernels_are_not_kept(image: Image) -> None:
    image.freeze()
    only = "import sys; from fastbcubed.kernels import cache; cache.PLACES = ()\n"
    done = image.run("-c", only + ONE_KERNEL, TMPDIR=str(image.root))
    assert done.stdout.split() == ["None"] and not done.stderr, done.stderr
    code = only + "from fastbcubed.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = cluster(image, "-c", code, TMPDIR=str(image.root))
    assert done.returncode == 0
    (line,) = (each for each in done.stderr.splitlines() if "cannot be kept" in each)
    assert "NUMBA_CACHE_DIR" in line
    done = image.run("-m", "fastbcubed", "warm-up")
    assert done.returncode == 2 and "not compiled ahead" in done.stderr and "NUMBA_CACHE_DIR" in done.stderr


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("where", ["installation", "named directory"])
def test_what_was_compiled_with_the_image_is_used(image: Image, where: str) -> None:
    named = {"NUMBA_CACHE_DIR": str(image.root / "cache")} if where == "named directory" else {}
    built = image.root / "cache" if named else image.root / "site" / "fastbcubed" / "kernels"
    assert image.kernel(**named) == [str(built)]
    image.freeze()
    kept = image.tmp / f"fastbcubed-{os.getuid()}"
    assert image.kernel(**named) == [str(kept), "1"]
    other = image.tmp / "home"
    assert image.kernel(HOME=str(other), **named) == [str(other / ".cache" / "numba"), "1"]


@pytest.mark.process
def test_a_directory_of_somebody_else_is_not_used(image: Image) -> None:
    image.freeze()
    (image.tmp / f"fastbcubed-{os.getuid()}").mkdir(0o777)
    os.chmod(image.tmp / f"fastbcubed-{os.getuid()}", 0o777)  # anybody could put files there
    (image.tmp / "other").mkdir()
    assert image.kernel(TEMP=str(image.tmp / "other")) == [
        str(image.tmp / "other" / f"fastbcubed-{os.getuid()}")
    ]


@pytest.mark.process
@pytest.mark.slow
def test_a_damaged_cache_is_compiled_anew(image: Image) -> None:
    named = {"NUMBA_CACHE_DIR": str(image.tmp / "cache")}
    image.kernel(**named)
    for ending in ("nbi", "nbc"):
        (file,) = (image.tmp / "cache").glob(f"*/cells.bit_length-*.{ending}")
        for content in (b"", file.read_bytes()[:20], b"nonsense"):
            file.write_bytes(content)
            assert image.kernel(**named) == [str(image.tmp / "cache")]
        assert image.kernel(**named) == [str(image.tmp / "cache"), "1"]


@pytest.mark.process
def test_a_full_disk_is_no_error(image: Image) -> None:
    code = "import os; from fastbcubed.kernels import cells, jit\n"
    code += "full = os.open('/dev/full', os.O_WRONLY)\n"
    code += "cells.bit_length.dispatcher._cache._cache.save_overload = lambda *_: os.write(full, b'x')\n"
    code += "print(cells.bit_length(8), *jit.failures)"
    done = image.run("-c", code, NUMBA_CACHE_DIR=str(image.tmp), FASTBCUBED_INTERPRET="0")
    assert done.stdout == "3 No space left on device\n" and not done.stderr


@pytest.mark.process
@pytest.mark.slow
def test_kernels_whose_source_was_replaced_since_are_not_kept(image: Image) -> None:
    code = "import os; from fastbcubed.kernels import cache, cells; own = cells.bit_length.dispatcher; {}; "
    code += "print(cells.bit_length(8), cache.kept_in(own))"
    directory = str(image.tmp / "cache")
    for change, kept in (("0", directory), ("os.utime(cells.__file__, (1, 1))", "None")):
        done = image.run("-c", code.format(change), NUMBA_CACHE_DIR=directory, FASTBCUBED_INTERPRET="0")
        assert done.stdout == f"3 {kept}\n", done


@pytest.mark.process
@pytest.mark.slow
def test_another_copy_of_the_package_finds_the_kernels(image: Image, tmp_path: Path) -> None:
    named = {"NUMBA_CACHE_DIR": str(image.tmp / "cache")}
    assert image.kernel(**named) == [named["NUMBA_CACHE_DIR"]]
    (tmp_path / "other").mkdir()
    other = Image(tmp_path / "other")
    assert other.kernel(**named) == [named["NUMBA_CACHE_DIR"], "1"]
    changed = other.root / "site" / "fastbcubed" / "kernels" / "intrinsics.py"
    changed.write_bytes(changed.read_bytes() + b"# changed\n")
    assert other.kernel(**named) == [named["NUMBA_CACHE_DIR"]]


@pytest.mark.process
@pytest.mark.slow
def test_no_temporary_directory_is_made_where_none_is_needed(image: Image) -> None:
    assert image.kernel() == [str(image.root / "site" / "fastbcubed" / "kernels")]
    code = "from fastbcubed.runtime.progress_bar import kept; print(kept())"
    assert "site/fastbcubed/kernels for later runs" in image.run("-c", code).stdout
    assert not list(image.tmp.iterdir())


def test_a_kernel_of_another_signature_is_not_taken() -> None:
    """Two processes that compile at once may write each other's files; what is loaded has to be what was asked."""

    class Mixed:
        flushed = 0

        def load_overload(self, signature: object, context: object) -> object:
            return SimpleNamespace(signature=SimpleNamespace(args=("int64",)))

        def flush(self) -> None:
            self.flushed += 1

    mixed = Mixed()
    assert (
        cache.Sturdy(lambda: mixed, lambda: None).load_overload(("int64",), None) is not None
        and not mixed.flushed
    )
    assert (
        cache.Sturdy(lambda: mixed, lambda: None).load_overload(("float64",), None) is None
        and mixed.flushed == 1
    )


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_files_of_kernels_with_flipped_bits_are_not_loaded(ending: str, tmp_path: Path) -> None:
    """Flipped bits of machine code would be run; those of an index could name a kernel of another signature."""
    file = cache.CheckedFile(str(tmp_path), "kernel", "stamp of the source")
    file.save("signature", {"code": bytes(range(256))})
    assert file.load("signature") == {"code": bytes(range(256))}
    (path,) = tmp_path.glob(f"*.{ending}")
    whole = path.read_bytes()
    for at in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            with pytest.raises(ValueError, match="is damaged"):
                file.load("signature")
    path.write_bytes(whole)
    assert cache.CheckedFile(str(tmp_path), "kernel", "stamp of another source").load("signature") is None
