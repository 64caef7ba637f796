"""What is tried everywhere and what in CI alone."""

import itertools

import pytest
from effort import covering, examples, pairwise
from hypothesis import settings


@pytest.fixture
def profile():
    """Return what loads a profile, for this test alone."""
    before = settings.get_current_profile_name()
    yield settings.load_profile
    settings.load_profile(before)


def test_a_profile_says_which_share_of_examples_is_tried(profile):
    profile("weekly")
    assert [examples(n).max_examples for n in (1, 40, 160)] == [1, 40, 160]
    profile("ci")  # three twentieths, rounded up
    assert [examples(n).max_examples for n in (1, 40, 161)] == [1, 6, 25]
    profile("laptop")  # a twentieth
    assert [examples(n).max_examples for n in (1, 40, 161)] == [1, 2, 9]
    assert examples(5).deadline is None


def test_three_axes_of_two_values_take_four_rows():
    # 000 has 3 of 12 pairs; 011, 101 and 110 are the first to bring three more each
    assert covering(["ab", "cd", "ef"]) == [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 4, 2), (4, 4, 4), (1, 2, 3), (6, 2, 2, 2, 3)])
def test_any_two_values_meet(sizes):
    rows = covering([range(size) for size in sizes])
    for a, b in itertools.combinations(range(len(sizes)), 2):
        met = {(row[a], row[b]) for row in rows}
        assert met == set(itertools.product(range(sizes[a]), range(sizes[b])))
    largest, second = sorted(sizes)[-1], sorted(sizes)[-2]
    assert largest * second <= len(rows) <= largest * second + 4 and len(set(rows)) == len(rows)


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 4, 2), (4, 4, 4), (6, 2, 2, 2, 3)])
def test_any_three_values_meet_beside_rows_that_are_chosen(sizes):
    axes = [range(size) for size in sizes]
    chosen = covering(axes)
    rows = covering(axes, 3, chosen)
    for three in itertools.combinations(range(len(sizes)), 3):
        met = {tuple(row[axis] for axis in three) for row in rows}
        assert met == set(itertools.product(*(axes[axis] for axis in three)))
    assert set(chosen) <= set(rows) and len(set(rows)) == len(rows)
    assert len(sizes) > 2 or rows == list(itertools.product(*axes))


def test_what_no_pair_needs_is_big():
    mark = pairwise(side="ab", policy=["drop", "keep"], weight=[None, "w"], indirect=["side"]).mark
    names, rows = mark.args
    assert names == ["side", "policy", "weight"] and mark.kwargs == {"indirect": ["side"]}
    assert [row.values for row in rows] == list(itertools.product("ab", ["drop", "keep"], [None, "w"]))
    assert [row.values for row in rows if not row.marks] == [
        ("a", "drop", None), ("a", "keep", "w"), ("b", "drop", "w"), ("b", "keep", None),
    ]  # fmt: skip
    assert {m.name for row in rows for m in row.marks} == {"big"}
