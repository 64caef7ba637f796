"""What is asked of a sweep with a memory limit takes no more than is looked for beforehand, or is refused by name."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.errors import OptionError
from fastbcubed.kernels.jit import compiling
from fastbcubed.runtime import buffers
from fastbcubed.runtime.memory_budget import Allowance
from fastbcubed.sweep_links import unit_sums

N = 20_000
#: Bytes that do not grow with the rows: of imports, code and blocks.
CONSTANT = 3 << 20
#: Those of an evaluation, whose engine keeps blocks for each thread.
OF_ENGINE = 9 << 20

QUESTIONS: dict[str, Callable[[fb.Sweep], Any]] = {
    "chosen": lambda sweep: sweep.chosen("f1", draws=2),
    "chosen of pairs": lambda sweep: sweep.chosen("pair_f1", draws=2),
    "chosen of a cost": lambda sweep: sweep.chosen("5*pair_fp + pair_fn", draws=2),
    "interval of entropies": lambda sweep: sweep.interval("v_measure", 0.5),
    "errors of the curve": lambda sweep: sweep.curve(errors=True, limit=50),
    "merges": lambda sweep: sweep.merges(),
    "weakest links": lambda sweep: sweep.weakest_links(),
    "stages": lambda sweep: sweep.stages(0.5),
    "slices": lambda sweep: sweep.slices("few"),
    "errors of slices": lambda sweep: sweep.slices("few", errors=True),
    "clusters": lambda sweep: sweep.at(0.5),
    "clusters at thresholds": lambda sweep: sweep.clusterings([0.3, 0.5, 0.7]),
    "an evaluation": lambda sweep: sweep.evaluate(0.5),
}


def sweep_of(n: int, *, weighted: bool = False) -> fb.Sweep:
    rng, items = np.random.default_rng(0), np.arange(n)
    far = rng.integers(0, n, (2, n // 2))
    left, right = np.concatenate([items[:-1], far[0]]), np.concatenate([items[1:], far[1]])
    score = np.where(left // 3 == right // 3, rng.beta(5, 2, left.size), rng.beta(1.2, 6, left.size))
    truth = pa.table({"item": items, "cluster": items // 3, "few": items % 5, "w": rng.random(n) + 0.1})
    links = pa.table({"left": left, "right": right, "score": score})
    return fb.sweep(truth, links, memory_limit="4GiB", weight="w" if weighted else None)


class Seen(Allowance):
    """An allowance that has room for all, and notes the most that was asked for."""

    def __init__(self) -> None:
        super().__init__("4GiB")
        self.most = 0

    def has_room(self, more: int) -> bool:
        self.most = max(self.most, more)
        return True

    def require(self, more: int, what: str, way_out: str = "") -> None:
        self.has_room(more)


def traced(call: Callable[[], Any]) -> int:
    """Return the most bytes that a call holds at once."""
    tracemalloc.start()
    call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@pytest.mark.parametrize(
    ("questions", "weighted"),
    [
        (list(QUESTIONS), False),
        (list(QUESTIONS), True),
    ],
)
def test_no_question_takes_more_than_it_looks_for(questions: list[str], weighted: bool) -> None:
    sweep = sweep_of(N, weighted=weighted)

    def again(ask: Callable[[fb.Sweep], Any]) -> None:
        for part in ("_effects", "_units", "_stages_at"):
            sweep.__dict__.pop(part, None)
        buffers.release()
        ask(sweep)

    for name in questions:
        sweep._allowance = seen = Seen()
        # an interpreted kernel takes more, and when kernels are compiled depends on the machine
        with compiling():
            again(QUESTIONS[name])
        constant = OF_ENGINE if name == "an evaluation" else CONSTANT
        most = traced(lambda name=name: again(QUESTIONS[name]))
        assert most < seen.most + constant, (name, most / N, seen.most / N)
        assert seen.most < 700 * N, name  # nor does it ask for much more than that


@pytest.mark.cases(5, 99)
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_without_room_is_refused_by_name(question: str) -> None:
    sweep, ask = sweep_of(90), QUESTIONS[question]
    sweep._allowance._held = sweep._allowance.limit
    least = (
        r"memory_limit is 4.0 GiB, but [a-z_0-9 ]* 90 items would take .*Pass memory_limit=\"\d+MiB\" or more"
    )
    with pytest.raises(OptionError, match=least):
        ask(sweep)
    assert "f1" in repr(sweep)  # what is shown has been made


@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_what_the_process_takes_later_is_not_the_sweeps() -> None:
    sweep = sweep_of(90)
    held, beside = sweep._allowance._held, np.ones(1 << 24)
    assert sweep._allowance._held == held < beside.nbytes
    assert sweep.chosen("f1", draws=2).draws == 2


def test_the_curve_is_saved_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = sweep_of(200)
    monkeypatch.setattr("fastbcubed.sweep_links.question_memory.POINTS_AT_ONCE", 7)
    sweep.save(tmp_path / "parts")
    assert pq.read_table(tmp_path / "parts" / "curve.parquet").equals(sweep.curve(limit=None).to_arrow())


@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_errors_in_blocks_of_units_are_those_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By one event at a time, whose unit has two or more of them, and by all; and at one point, as an interval is."""
    tables = []
    for at_once in (1, 1 << 16):
        monkeypatch.setattr(unit_sums, "EVENTS_AT_ONCE", at_once)
        sweep = sweep_of(300, weighted=True)
        tables.append(sweep.curve(errors=True, limit=None).to_pandas())
    errors = [name for name in tables[0] if re.search("_se$", name)]
    assert np.isfinite(tables[0]["f1_se"]).sum() > 100
    for name in errors:
        np.testing.assert_allclose(tables[0][name], tables[1][name], rtol=1e-9, atol=1e-15)
    k = 40
    score, threshold = "pair_f1", float(tables[1]["threshold"][k])
    at_one = sweep._units.errors_at(sweep._curve.metric(score), sweep._point(threshold)).of[score]
    assert at_one == pytest.approx(tables[1][f"{score}_se"][k], rel=1e-9)
