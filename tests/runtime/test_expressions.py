"""Texts that bound a figure, as gates and conditions have them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastbcubed.runtime.expressions import parse_bound
from fastbcubed.sweep_links.curve import as_conditions

SIGNS = st.sampled_from([">=", "<=", ">", "<"])
SPACES = st.sampled_from(["", " ", "  ", "\t"])
NAMES = st.sampled_from(["f1", "f1.low", "largest_pred", "split-rate", "a/b", "b³"])
WHOLE = st.integers(-(10**15), 10**15)
REAL = st.floats(allow_nan=False, allow_infinity=False)
#: Numbers, each with a way to write it: plain, with separators, signed, in scientific notation.
NUMBERS = st.one_of(
    st.tuples(WHOLE, st.sampled_from(["{}", "{:,}", "{:_}", "{:+}"])),
    st.tuples(REAL, st.sampled_from(["{!r}", "{:.17e}", "{:.17E}"])),
)


@given(NAMES, SIGNS, NUMBERS, st.lists(SPACES, min_size=4, max_size=4))
def test_a_bound_is_read_as_it_was_put_together(name, sign, number, spaces) -> None:
    value, form = number
    before, left, right, after = spaces
    text = f"{before}{name}{left}{sign}{right}{form.format(value)}{after}"
    assert parse_bound(text) == (name, sign, float(value))


@given(
    st.lists(st.tuples(SIGNS, NUMBERS), min_size=1, max_size=4),
    st.sampled_from([" and ", "&", " & ", "\nand\t"]),
)
def test_joined_conditions_are_those_joined(parts, joint) -> None:
    text = joint.join(f"f1 {sign} {form.format(value)}" for sign, (value, form) in parts)
    assert as_conditions(text, ["f1"]) == [("f1", sign, float(value)) for sign, (value, _) in parts]


@pytest.mark.parametrize("number", ["0,5", "1,00", "1.2.3", ".", ","])
def test_a_number_that_cannot_be_read_is_named(number) -> None:
    with pytest.raises(ValueError, match="^" + number.replace(".", r"\.") + "$"):
        parse_bound(f"f1 >= {number}")


OTHERS = ["", "f1", ">= 1", "f1 >=", "f1 = 1", "f1 => 1", "f1 >= high", "a b >= 1", "0 <= f1", "f1 >= 1 @x"]


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_no_bounds(text) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        parse_bound(text)
