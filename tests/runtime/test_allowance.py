"""What a call may take: steps that fit pass, those that do not raise and say what they need."""

import re
from typing import Any

import pytest

from fastbcubed.errors import OptionError
from fastbcubed.runtime import memory_budget as module
from fastbcubed.runtime.memory_budget import BESIDE, Allowance


def held(monkeypatch: pytest.MonkeyPatch, *sizes: int) -> None:
    """Say that the process is of these sizes, one after the other; the last stays."""
    left = list(sizes)
    monkeypatch.setattr(module, "_resident", lambda: left.pop(0) if len(left) > 1 else left[0])


def test_without_a_limit_nothing_is_looked_at() -> None:
    assert Allowance().limit is None
    Allowance().require(1 << 60, "anything")
    assert Allowance().block_rows(1 << 20) == 1 << 20


def test_what_is_held_already_counts_but_for_what_may_pass_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    held(monkeypatch, 10, 10 + BESIDE + (64 << 20))
    allowance = Allowance("96MiB")
    allowance.require(32 << 20, "a step")
    with pytest.raises(OptionError, match=r"memory_limit is 96 MiB, but a step would take about 98 MiB"):
        allowance.require((32 << 20) + 1, "a step")


def test_a_limit_as_large_as_the_message_says_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    held(monkeypatch, 0)
    with pytest.raises(OptionError, match=r"or more, or else$") as raised:
        Allowance("1GiB").require(3 << 30, "a step", ", or else")
    enough = re.search(r'Pass memory_limit="(\d+MiB)"', str(raised.value))
    assert enough is not None
    Allowance(enough[1]).require(3 << 30, "a step")


def test_idle_memory_is_given_back_before_a_step_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    held(monkeypatch, 0, BESIDE + (90 << 20), BESIDE + (20 << 20))
    Allowance("64MiB").require(40 << 20, "a step")


def test_where_the_system_does_not_tell_the_step_alone_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    held(monkeypatch, 0)
    Allowance(100 << 20).require(100 << 20, "a step")
    with pytest.raises(OptionError):
        Allowance(100 << 20).require(101 << 20, "a step")


def test_a_small_limit_reads_small_blocks() -> None:
    assert [Allowance(limit).block_rows(1 << 20) for limit in ("64MiB", "8GiB")] == [1 << 16, 1 << 20]


@pytest.mark.parametrize("wrong", ["much", 0, -1, True, 1.5])
def test_a_limit_is_a_number_of_bytes(wrong: Any) -> None:
    with pytest.raises(OptionError, match="memory_limit must be a number of bytes"):
        Allowance(wrong)
