"""Lists of integers and of texts, which are read without pandas where it is not loaded, as Arrow reads them with it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from versions import arrow_imports_no_pandas

from fastbcubed.errors import IdTypeError
from fastbcubed.inputs import arrays


def read(values: list[Any]) -> pa.ChunkedArray:
    """Read a list as where pandas is not loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "pandas", raising=False)
        plain = arrays._plain_list(values)
    return arrays.to_arrow(values, "labels") if plain is None else pa.chunked_array([plain])


@pytest.mark.slow
@examples(100)
@given(
    st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.just(7)), min_size=1)
    | st.lists(st.text(), min_size=1)
)
def test_plain_lists_are_read_as_by_arrow(values: list[Any]) -> None:
    found = read(values)
    assert found.type == pa.array(values).type and found.to_pylist() == values
    found.validate(full=True)


@pytest.mark.parametrize(
    "values",
    [
        [], [None, 1], ["a", None], [True, 1], [True], [1.5, 2], [np.int64(3)], [2**63, 2**64 - 1], [b"a"], ["", ""],
    ],
)  # fmt: skip
def test_other_lists_are_left_to_arrow(values: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "pandas", raising=False)
        assert arrays._plain_list(values) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "MOST_PLAIN", 1)
        assert arrays._plain_list([1, 2]) is None


@pytest.mark.parametrize("values", [["a\udc80"], ["\ud83d", "\ude00"], [1, 2**63, -1], [2**70]])
def test_what_arrow_cannot_hold_is_said(values: list[Any]) -> None:
    with pytest.raises(IdTypeError, match="labels"):
        read(values)


@pytest.mark.process
@arrow_imports_no_pandas
def test_scoring_lists_and_dicts_loads_no_pandas() -> None:
    """Its import takes longer than the scoring; that of Arrow's functions, too, which looking at labels takes."""
    code = (
        "import sys, numpy as np, fastbcubed as fb\n"
        "fb.evaluate([1, 1, 2], ['a', 'b', 'b'])\n"
        "fb.evaluate({'x': 1, 'y': 1}, {'x': 'a', 'y': 'b'})\n"
        "fb.evaluate(np.arange(9) // 2, np.arange(9) // 3, weight=np.arange(1.0, 10.0))\n"
        "print([name for name in ('pandas',) if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_masked_arrays_have_nulls() -> None:
    masked = np.ma.masked_array(np.arange(3), [False, True, False])
    assert arrays.to_arrow(masked, "labels").to_pylist() == [0, None, 2]
