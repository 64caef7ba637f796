"""Columns of few texts: rows get equal numbers exactly where their texts are equal, whatever a sample has seen."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.errors import IdTypeError
from fastbcubed.inputs import id_columns, keys
from fastbcubed.inputs.id_columns import Column
from fastbcubed.inputs.keys import KnownTexts, number_texts
from fastbcubed.runtime.key_partitions import sampled_rows
from fastbcubed.runtime.threads import Pool

KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view(), pa.binary_view()]
N = keys.FEWEST_ROWS
NOT_TO_BE_READ = 0  # PROT_NONE
#: Texts of all lengths at which bytes are read in another way, some of which differ in a single byte or in NULs alone.
parts = st.text("ab\0é", max_size=3)
texts = st.builds(
    lambda a, n, x, b: a + x * n + b,
    parts,
    st.sampled_from([0, 1, 4, 5, 8, 13, 14, 16, 29, 30, 32, 45]),
    st.sampled_from("x\0"),
    parts,
)
#: The same of one length each.
even_texts = st.integers(0, 40).flatmap(
    lambda n: st.lists(
        st.text("ab\0", min_size=min(n, 3), max_size=min(n, 3)).map(lambda end: "x" * (n - len(end)) + end)
    )
)


def numbers_of(data, n_threads=2, *, narrow=False):
    with Pool(n_threads) as pool:
        return number_texts(data, pool, narrow=narrow)


def few_texts(n_values, n=N, seed=3):
    rng = np.random.default_rng(seed)
    return np.array([f"a cluster, {k:x}" for k in range(n_values)], object)[rng.integers(0, n_values, n)]


def tells_apart(numbers, values):
    pairs = set(zip(values, numbers.tolist(), strict=True))
    return len(pairs) == len({value for value, _ in pairs}) == len({number for _, number in pairs})


def end_alike(values):
    """Whether two different texts have the same size and the same last sixteen bytes."""
    ends = {(len(text), text[-16:]) for text in (value.encode() for value in values)}
    return len(ends) < len(set(values))


def twin(values):
    """Number values as they come, by a dictionary; null rows may get any number."""
    known = {}
    return [None if value is None else known.setdefault(value, len(known)) for value in values]


def same_partition(numbers, values):
    pairs = {(a, b) for a, b in zip(twin(values), numbers.tolist(), strict=True) if a is not None}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def unseen_row(n=N):
    return np.setdiff1d(np.arange(n), sampled_rows(n))[0]


@pytest.mark.slow
@examples(80)
@given(
    st.lists(st.lists(st.none() | texts, max_size=12), min_size=1, max_size=4),
    st.sampled_from(KINDS),
    st.sampled_from(["known", "hashed", "narrow", "narrow at first"]),
)
def test_equal_numbers_are_equal_texts(chunks, kind, how):
    patch = pytest.MonkeyPatch()
    values = [value for chunk in chunks for value in chunk]
    data = pa.chunked_array([pa.array(chunk, pa.string()).cast(kind) for chunk in chunks])
    with patch.context() as patched:
        settings = {"FEWEST_ROWS": 1, "OFTEN": 1, "LEAST_SHARE": 0.0, "MOST_TEXTS": 5}
        if how == "hashed":
            settings |= {"LEAST_SHARE": 2.0, "MANY_REPEATS": -1.0}
        if "narrow" in how:  # all others count as rare, and have no numbers left if it is so at first alone
            settings |= {"RARE": 1, "FEW_VALUES": 0 if "first" in how else 1 << 16}
        for name, value in settings.items():
            patched.setattr(keys, name, value)
        numbers = numbers_of(data, narrow="narrow" in how)
    if numbers is None:
        sample = {values[row] for row in (sampled_rows(len(values)) if values else ())} - {None}
        assert not sample or (how != "hashed" and end_alike(sample))
        return
    known = [(v, n) for v, n in zip(values, numbers, strict=True) if v is not None]
    assert tells_apart(np.array([n for _, n in known]), [v for v, _ in known])


@examples(60)
@given(even_texts, st.sampled_from(KINDS), st.integers(0, 2**32), st.integers(0, 40), st.integers(0, 40))
def test_texts_are_found_wherever_they_stand(known, kind, seed, skipped, cut):
    """Rows draw from known texts and from these with a byte changed, in an array that is cut on both sides."""
    rng = np.random.default_rng(seed)
    known = sorted(set(known)) or ["x"]
    others = (
        [text + "a" for text in known] + [text[1:] for text in known] + [text[:-1] + "c" for text in known]
    )
    values = rng.choice(np.array(known * 3 + others, object), 200).tolist()
    values[::17] = [None] * len(values[::17])
    data = pa.array(values, pa.string()).cast(kind).slice(skipped, 200 - skipped - cut)
    table = KnownTexts.placed(pa.array(known, pa.large_binary()))
    if table is None:
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keys, "FEWEST_ROWS", 1)
        patched.setattr(KnownTexts, "of", lambda data: table)
        numbers = numbers_of(pa.chunked_array([data]))
    assert same_partition(numbers, values[skipped : 200 - cut])
    n_known = len({text for text in known} & {*values[skipped : 200 - cut]})
    assert len({n for n, v in zip(numbers, values[skipped:], strict=False) if v in known}) == n_known


@pytest.mark.skipif(sys.platform != "linux", reason="protects pages as Linux does")
@pytest.mark.parametrize("size", [8, 16, 17, 31, 32, 33, 64])
def test_no_byte_beyond_the_buffer_is_read(size):
    """Texts fill a page exactly; whoever reads what stands before or after it dies."""
    page, libc = mmap.PAGESIZE, ctypes.CDLL(None, use_errno=True)
    memory = mmap.mmap(-1, 3 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    n = page // size
    room = page - n * size
    texts = [f"{k % 10:0{size}}".encode() for k in range(n)]
    texts[0] = b"y" * room + texts[0]
    memory[page : 2 * page] = b"".join(texts)
    for guard in (address, address + 2 * page):
        assert libc.mprotect(ctypes.c_void_p(guard), page, NOT_TO_BE_READ) == 0
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.foreign_buffer(address + page, page)]
    data = pa.Array.from_buffers(pa.binary(), n, buffers)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keys, "FEWEST_ROWS", 1)
        numbers = numbers_of(pa.chunked_array([data]))
    assert same_partition(numbers, texts)


@pytest.mark.cases(8, 99)
@pytest.mark.parametrize("n_values", [1, 2, 31, 1000, 2048])
@pytest.mark.parametrize(
    "form", ["{:017x}", "{}", "{} of several", "a longer text, more than thirty-two: {:06}"]
)
def test_each_known_text_has_a_slot_of_its_own(n_values, form):
    texts = [form.format(k * 7919) for k in range(n_values)]
    table = KnownTexts.placed(pa.array(texts, pa.large_binary()))
    words, starts = table.slots.reshape(-1, 8), table.starts.tolist()
    assert set(words[:, 4].tolist()) == set(range(n_values))
    found = ((starts[k], n) for k, n in words[:, 4:6].tolist())
    assert {bytes(table.own[s : s + n]).decode() for s, n in found} == set(texts)


@pytest.mark.slow
def test_texts_that_their_last_bytes_do_not_tell_apart_are_left_to_hashes():
    assert KnownTexts.placed(pa.array(["\0" * 32, "é" + "\0" * 30], pa.large_binary())) is None
    values = few_texts(100) + " and the same end for all"
    assert KnownTexts.placed(pa.array(np.unique(values)[:3], pa.large_binary())) is None
    assert tells_apart(numbers_of(pa.chunked_array([pa.array(values)])), values)


@pytest.mark.cases(0)
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_numbers_are_small_and_the_same_for_any_number_of_threads(n_threads):
    values = few_texts(300)
    values[unseen_row()] = "a rare one"
    data = pa.chunked_array([pa.array(values[: N // 3]), pa.array(values[N // 3 :])])
    numbers = numbers_of(data, n_threads)
    assert tells_apart(numbers, values)
    assert sorted(set(numbers.tolist())) == list(range(301))
    assert numbers[unseen_row()] == 300
    assert (numbers == numbers_of(data, 4)).all()
    narrow = numbers_of(data, narrow=True)
    assert narrow.dtype == np.int32 and (narrow == numbers).all()


@pytest.mark.slow
def test_texts_that_many_rows_have_and_no_sample_are_no_longer_narrow():
    values = few_texts(10)
    known = np.zeros(N, bool)
    known[sampled_rows(N)] = True
    values[~known] = [f"alone {k % 5000}" for k in range(np.count_nonzero(~known))]
    data = pa.chunked_array([pa.array(values)])
    wide, narrow = (numbers_of(data, narrow=narrow) for narrow in (False, True))
    assert narrow.dtype == np.int64 and (narrow == wide).all()
    assert tells_apart(narrow, values)


@pytest.mark.slow
def test_texts_that_no_sample_has_seen_keep_hashes_where_they_are_not_rare():
    values = few_texts(10)
    values[::20] = [f"alone {k}" for k in range(values[::20].size)]
    numbers = numbers_of(pa.chunked_array([pa.array(values)]))
    assert tells_apart(numbers, values)
    assert np.unique(numbers[(numbers >= 0) & (numbers < 10)]).size == 10
    assert np.unique(numbers).size == 10 + values[::20].size


@pytest.mark.slow
def test_texts_half_of_which_are_one_are_hashed():
    values = np.array([f"alone {k}" for k in range(N)], object)
    values[::2] = "a giant"
    numbers = numbers_of(pa.chunked_array([pa.array(values)]))
    assert tells_apart(numbers, values)
    assert (numbers == numbers_of(pa.chunked_array([pa.array(values)]), 1)).all()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keys, "find_conflict", lambda pairs, pool: sum(len(a) for a, _ in pairs) > N // 2)
        assert numbers_of(pa.chunked_array([pa.array(values)])) is None, "each text that is alone is checked"


@pytest.mark.parametrize(
    "made",
    [
        lambda: pa.array(np.arange(N)),
        lambda: pa.array(few_texts(10)).dictionary_encode(),
        lambda: pa.array(few_texts(10)[1:]),
        lambda: pa.array([f"{k}" for k in range(N)]),
        lambda: pa.array([f"{k}" if k % 5 < 4 else "a cluster" for k in range(N)]),
        lambda: pa.nulls(N, pa.string()),
    ],
    ids=["numbers", "dictionary", "few rows", "many texts", "most texts alone", "nulls"],
)
def test_what_is_not_numbered(made):
    assert numbers_of(pa.chunked_array([made()])) is None


def test_a_collision_leaves_texts_to_other_hashes(monkeypatch):
    values = few_texts(10)
    values[unseen_row()] = "a rare one"
    monkeypatch.setattr(keys, "find_conflict", lambda pairs, pool: bool(pairs))  # of numbers
    monkeypatch.setattr(id_columns, "find_collision", lambda pairs, pool: False)  # of hashes
    assert numbers_of(pa.chunked_array([pa.array(values)])) is None
    assert tells_apart(Column("cluster", [pa.chunked_array([pa.array(values)])]).keys(), values)


@pytest.mark.cases(1, 99)
@pytest.mark.parametrize("text", [b"\xff", b"a long one of more than thirty-two \xff bytes"])
@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()])
def test_what_is_not_text_is_refused(kind, text):
    values = [value.encode() for value in few_texts(10)]
    values[unseen_row()] = text
    of_bytes = pa.array(values, pa.binary_view() if kind == pa.string_view() else pa.binary())
    wrong = pa.Array.from_buffers(kind, N, of_bytes.buffers())
    with pytest.raises(IdTypeError, match=r"1 of .* not UTF-8"):
        Column("cluster", [pa.chunked_array([wrong])]).keys()


@pytest.mark.slow
def test_few_texts_score_as_numbers():
    rng = np.random.default_rng(4)
    true, pred = rng.integers(0, 50, (2, N))
    sides = [pa.array([f"c{k:020}" for k in side]) for side in (true, pred)]
    found, expected = (dict(fb.evaluate(*labels, progress=False).overall) for labels in (sides, (true, pred)))
    assert found == pytest.approx(expected, rel=1e-12)
