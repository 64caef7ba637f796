"""Whole numbers of any type are taken, and nothing else is."""

import numpy as np
import pytest

from fastbcubed.errors import OptionError
from fastbcubed.runtime.arguments import whole_number
from fastbcubed.runtime.memory_budget import memory_limit


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_any_type(value: object) -> None:
    """What comes out is a plain integer, which JSON can hold."""
    assert type(whole_number(value, "n")) is int
    assert type(memory_limit(value)) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, -1, 8, np.int64(8), [3]])
def test_anything_else(value: object) -> None:
    """The error says which argument, what it may be, and what came."""
    with pytest.raises(OptionError, match=r"^n must be a number of rows, from 0 to 7, not "):
        whole_number(value, "n", "rows", most=7)
