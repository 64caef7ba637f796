"""What several test files need of pytest."""

import collections
import contextlib
import gc
import importlib
import json
import math
import os
import signal
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from in_browser import browser  # noqa: F401 - a fixture of several files

from fastbcubed.align import item_join
from fastbcubed.cells import shards as disk
from fastbcubed.engines import disk as sharded
from fastbcubed.kernels import interpreter, jit
from fastbcubed.render import plots
from fastbcubed.render.document import Chart

#: Of 100 examples that a test of generated input states, so many are tried; see tests/oracles/effort.py.
#: A laptop and the weekly run of CI, which tries all, draw new examples each time; otherwise CI draws the same ones, so
#: that what fails there fails again at home.
#: How long drawing takes and how many drawn cases a test passes over depends on luck and load, and is no failure.
LUCK = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile("laptop", deadline=None, max_examples=5, suppress_health_check=LUCK)
settings.register_profile("ci", settings.get_profile("laptop"), max_examples=15, derandomize=True)
settings.register_profile("weekly", settings.get_profile("laptop"), max_examples=100)
settings.register_profile("few", settings.get_profile("laptop"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "laptop"))

# Where no bytecode may be written beside the source, it is kept from run to run in pytest's cache: to rewrite and
# compile all tests takes longer than to collect them, and processes that tests start compile the package, each anew.
if sys.dont_write_bytecode and not sys.pycache_prefix:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# Tests ask little of many kernels: each process would compile them in longer than it takes to interpret them. What is
# asked of many items is compiled at once all the same, and steps of CI compile everything.
if jit._patience == 1.0:
    jit._patience = 4.0

# A shell lets what it starts in the background ignore Ctrl-C, and processes that tests start would ignore it, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection(session: pytest.Session) -> None:
    """Let each process begin with other files: what one has rewritten, which takes most of the time, others load."""
    worker, ours = os.environ.get("PYTEST_XDIST_WORKER"), Path(__file__).parent
    if not worker or session.config.args_source != pytest.Config.ArgsSource.TESTPATHS:
        return
    files = sorted(ours.glob("*/test_*.py"))
    share = math.ceil(len(files) / int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    for path in files[int(worker[2:]) * share :][:share]:
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        with contextlib.suppress(
            Exception, pytest.skip.Exception
        ):  # found again, and said, where it is collected
            importlib.import_module(path.stem)


@pytest.hookimpl(tryfirst=True)  # before marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark cases beyond as many as `cases` states as slow, and beyond a second number, by default 2 more, as weekly.

    Those left are spread, and the same each time.
    """
    of = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker("cases") and not item.get_closest_marker("big"):
            of[item.nodeid.split("[")[0]].append(item)
    for cases in of.values():
        cases.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        n, most = _cases(*cases[0].get_closest_marker("cases").args)
        here = [item for item in cases if not item.get_closest_marker("slow")][:n]
        for at, item in enumerate((item for item in cases if item not in here), len(here)):
            item.add_marker("weekly" if at >= most else "slow")


def _cases(n: int, most: int | None = None) -> tuple[int, int]:
    return n, n + 2 if most is None else most


def pytest_collection_finish() -> None:
    """Leave all tests and modules, which stay, out of later collections of garbage: each would take half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_deadline() -> None:
    """Forget the deadline that an earlier test set for interpreted kernels, some of which tests call directly."""
    interpreter.start(math.inf)


@pytest.fixture(autouse=True)
def pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Specify the charts of pages, but draw them only for tests marked `pictures`: half of the time of a page."""
    if "pictures" not in request.keywords:
        monkeypatch.setattr(plots, "drawn", specified)


def specified(chart: Chart) -> str:
    """Return an empty picture in place of a chart whose specification is JSON."""
    json.dumps(plots.finished(plots._DRAWS[chart.draws](*chart.data)), allow_nan=False)
    return plots.as_inline(f'<svg xmlns="{plots.SVG}" width="9" height="9"/>', chart.id, chart.said)


@pytest.fixture(params=["all in memory", "all spilled", "some spilled"])
def many_shards(request, monkeypatch):
    """Cut even small inputs into many blocks and shards, and spill nothing, all, or what comes late."""
    kept = {"all in memory": 1 << 30, "all spilled": 0, "some spilled": 600}[request.param]
    monkeypatch.setattr(disk.Layout, "of", lambda *given: disk.Layout(2, kept, kept))
    monkeypatch.setattr(sharded, "block_rows", lambda *_: 23)
    monkeypatch.setattr(item_join, "join_bits", lambda *_: 3)
    monkeypatch.setattr(item_join, "kept_of", lambda limit: kept)


@pytest.fixture
def paths(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Write the columns TRUTH and PREDICTION of a test file as Parquet, and return where they are."""
    found = {"truth": request.module.TRUTH, "pred": request.module.PREDICTION}
    for name, columns in found.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    return [str(tmp_path / f"{name}.parquet") for name in found]
