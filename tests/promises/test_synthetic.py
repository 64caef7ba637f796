"""Synthetic clusterings of the benchmarks: sizes follow their laws, and rows are reproducible."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("benchmarks")

import fastbcubed as fb
from benchmarks.synthetic import COUNTRIES, SHAPES, Synthetic, generate, lay_out, size_histogram
from benchmarks.synthetic_kernels import permute, permute_back

pytestmark = pytest.mark.slow

SIZES = [1, 2, 3, 7, 21, 1000]


def whole(n_items: int, shape: str = "er", seed: int = 0, ids: str = "int", order: str = "truth", **columns):
    synthetic = Synthetic(n_items, shape, seed)
    return synthetic.rows(columns or {"true": "true", "pred": "pred"}, 0, n_items, order=order, ids=ids)


def sizes_of(labels: pa.Array) -> np.ndarray:
    return np.unique(labels.to_numpy(), return_counts=True)[1]


# The law of the sizes


def test_er_has_geometric_sizes() -> None:
    """P(k) = 0.4 * 0.6^(k - 1): of C clusters, C * P(k) have k items, to one; one more takes the rest."""
    n_items = 1_000_000
    counts = np.bincount(sizes_of(whole(n_items)["true"]))[1:]
    expected = counts.sum() * 0.4 * 0.6 ** np.arange(counts.size)
    assert np.abs(counts - expected).max() <= 2
    assert counts.sum() == pytest.approx(n_items / 2.5, abs=10)


def test_heavy_has_zipf_sizes() -> None:
    """P(size > k) is the sum over j > k of j^-1.9, divided by that over all j; 0 from 5 % of the items on."""
    n_items = 1_000_000
    sizes = sizes_of(whole(n_items, "heavy")["true"])
    terms = np.arange(1, 10**6 + 1.0) ** -1.9
    beyond = (10**6 + 0.5) ** -0.9 / 0.9  # the integral of what is not summed
    above = np.cumsum(terms[::-1])[::-1] + beyond  # at k - 1: the sum over j >= k
    for k in (1, 2, 3, 10, 100, 1000, 10_000, 49_999):
        expected = sizes.size * above[k] / above[0]
        assert abs(np.sum(sizes > k) - expected) <= 1.5, k
    assert sizes.max() == 50_000
    # The exponent as it is estimated from data (Clauset et al. 2009): 1 + n / sum of ln(x / (xmin - 1/2)).
    large = sizes[(sizes >= 20)]
    assert 1 + large.size / np.log(large / 19.5).sum() == pytest.approx(1.9, abs=0.03)


def test_singletons_and_the_giant() -> None:
    assert set(sizes_of(whole(10_000, "singletons")["true"])) == {1}
    sizes = np.sort(sizes_of(whole(10_000, "one_giant")["true"]))
    assert sizes[-1] == 5_000
    rest = np.repeat(*size_histogram("er", 5_000))
    assert np.array_equal(sizes[:-1], rest)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_items", SIZES)
def test_any_size_can_be_made(shape: str, n_items: int) -> None:
    rows = whole(n_items, shape, item="item", true="true", pred="pred")
    assert len(set(rows["item"].to_pylist())) == n_items
    assert len(set(rows["true"].to_pylist())) == lay_out(shape, n_items).n_clusters


@pytest.mark.cases(1)
@pytest.mark.parametrize("shape", SHAPES)
def test_layouts_of_very_many_items(shape: str) -> None:
    n_items = 1 << (34 if shape == "heavy" else 40)
    layout = lay_out(shape, n_items)
    items, clusters, sizes = layout.runs.T.astype(object)  # Python integers
    assert items[-1] == n_items and clusters[-1] == layout.n_clusters
    assert all(np.diff(items) == np.diff(clusters) * sizes[:-1])


# What the prediction changes


@pytest.mark.cases(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_items", [7, 1000, 40_000])
def test_stated_shares_are_split_and_merged(shape: str, n_items: int) -> None:
    """15 % of the true clusters, without the giant, lie in two predicted ones; 10 % have lost their label."""
    rows = whole(n_items, shape)
    sizes, parts, members = Counter(), defaultdict(set), defaultdict(set)
    for true, pred in zip(*(column.to_pylist() for column in rows), strict=True):
        sizes[true] += 1
        parts[true].add(pred)
        members[pred].add(true)
    n_free = len(sizes) - (shape == "one_giant")
    n_large = sum(size > 1 for size in sizes.values()) - (shape == "one_giant")
    n_split, n_merged = min(int(0.15 * n_free), n_large), int(0.10 * n_free)
    assert Counter(map(len, parts.values())) == Counter({1: len(sizes) - n_split, 2: n_split}) - Counter()
    assert Counter(map(len, members.values())) - Counter({1: n_items}) == Counter({2: n_merged}) - Counter()
    assert len(members) == len(sizes) + n_split - n_merged
    if shape == "one_giant":
        giant, _ = sizes.most_common(1)[0]
        (label,) = parts[giant]
        assert members[label] == {giant}


def test_changes_do_not_depend_on_size() -> None:
    """Split and merged clusters have the sizes of all that could be; a split falls anywhere."""
    codes = Synthetic(2_000_000).codes(0, 2_000_000)
    n_clusters = lay_out("er", 2_000_000).n_clusters
    sizes = np.bincount(codes["true"].astype(np.int64))
    is_tail = codes["pred"] >= n_clusters
    split = np.unique(codes["true"][is_tail])
    stays = ~is_tail & (codes["pred"] != codes["true"])
    merged = np.unique(codes["true"][stays])
    into = np.unique(codes["pred"][stays])
    for chosen, of in ((split, sizes[sizes > 1]), (merged, sizes), (into, sizes)):
        error = of.std() / math.sqrt(chosen.size)
        assert abs(sizes[chosen].mean() - of.mean()) < 4 * error
    tail = np.bincount(codes["true"][is_tail].astype(np.int64), minlength=n_clusters)
    moved = np.bincount(tail[(sizes == 5) & (tail > 0)])[1:]
    assert moved.size == 4
    expected = moved.mean()
    assert ((moved - expected) ** 2 / expected).sum() < 21  # chi-square, 3 degrees of freedom, 1 in 10,000


# The shuffle and the names


@pytest.mark.cases(11)
@pytest.mark.parametrize("n", [*range(1, 40), 97, 256, 257, 1000])
def test_the_shuffle_is_one_to_one(n: int) -> None:
    key = np.random.default_rng(n).integers(0, 2**64, 4, np.uint64)
    side = np.uint64(math.isqrt(n - 1) + 1)
    places = [int(permute(np.uint64(x), np.uint64(n), side, key)) for x in range(n)]
    assert sorted(places) == list(range(n))
    back = [int(permute_back(np.uint64(x), np.uint64(n), side, key)) for x in places]
    assert back == list(range(n))


def test_every_place_is_as_likely() -> None:
    """Over many keys, each of 7 things comes to each of 7 places equally often."""
    keys = np.random.default_rng(0).integers(0, 2**64, (7000, 4), np.uint64)
    seen = np.zeros((7, 7))
    for key in keys:
        for x in range(7):
            seen[x, permute(np.uint64(x), np.uint64(7), np.uint64(3), key)] += 1
    assert ((seen - 1000) ** 2 / 1000).sum() < 77  # chi-square, 36 degrees of freedom, 1 in 10,000


def test_rows_are_shuffled() -> None:
    n = 1_000_000
    synthetic = Synthetic(n)
    orders = [synthetic.codes(0, n, order)["item"].astype(np.float64) for order in ("truth", "prediction")]
    bound = 4 / math.sqrt(n)
    for items in orders:
        assert np.array_equal(np.sort(items), np.arange(n))
        for lag in (1, 2, 1000, 1024):
            assert abs(np.corrcoef(items[:-lag], items[lag:])[0, 1]) < bound
        assert abs(np.corrcoef(items, np.arange(n))[0, 1]) < bound
        steps = np.histogram(np.diff(items) % n, bins=100, range=(0, n))[0]
        assert ((steps - n / 100) ** 2 / (n / 100)).sum() < 160  # 99 degrees of freedom, 1 in 10,000
    assert abs(np.corrcoef(*orders)[0, 1]) < bound


def test_no_two_names_are_equal() -> None:
    n = 500_000
    rows = whole(n, item="item", true="true", pred="pred")
    names = [np.unique(column.to_numpy()) for column in rows]
    assert names[0].size == n
    assert np.unique(np.concatenate(names)).size == sum(column.size for column in names)


def test_strings_are_the_numbers_in_hexadecimal() -> None:
    columns = {"item": "item", "true": "true", "pred": "pred"}
    texts, numbers = whole(3000, ids="string", **columns), whole(3000, **columns)
    for name, letter in zip(columns, "icc", strict=True):
        expected = [f"{letter}{number % 2**64:016x}" for number in numbers[name].to_pylist()]
        assert texts[name].to_pylist() == expected
    texts.validate(full=True)


# Reproducibility


MASK = 2**64 - 1


def naive_mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def naive_choice(x: int, key: int, n: int) -> int:
    x = (x ^ key) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 32)) * 0x94D049BB133111EB & MASK
    return (x >> 32) * n >> 32


def naive_shuffle(n: int, key: list[int]) -> list[int]:
    """Put each x into a square table, and move its row and column around by turns, until it is below n."""
    side = next(side for side in range(n + 1) if side * side >= n)
    rows = -(-n // side) if n else 0

    def once(x: int) -> int:
        row, column = divmod(x, side)
        for turn in (0, 2):
            column = (column + naive_choice(row, key[turn], side)) % side
            row = (row + naive_choice(column, key[turn + 1], rows)) % rows
        return row * side + column

    places = []
    for x in range(n):
        place = once(x)
        while place >= n:
            place = once(place)
        places.append(place)
    return places


def naive_rows(n_items: int, shape: str, seed: int) -> list[tuple[int, int, int, float]]:
    """List item, true and predicted label, and weight of each row, from one list of all clusters."""

    def words(purpose: str) -> list[int]:
        digest = hashlib.blake2b(f"{shape} {n_items} {seed} {purpose}".encode(), digest_size=32).digest()
        return [int.from_bytes(digest[at : at + 8], "little") for at in range(0, 32, 8)]

    def name(number: int) -> int:
        return (naive_mix(number ^ words("names")[0]) ^ 1 << 63) - (1 << 63)  # as a signed number

    giant = n_items // 2 if shape == "one_giant" else 0
    sizes = [int(size) for size in np.repeat(*size_histogram(shape, n_items - giant))]
    n_free = len(sizes)
    n_clusters = n_free + bool(giant)
    labels = list(range(n_clusters))
    drawn = naive_shuffle(n_free, words("merge"))
    n_merged = n_free // 10
    for cluster in range(n_free):
        if drawn[cluster] < n_merged:
            labels[cluster] = drawn.index(drawn[cluster] + n_merged)
    n_alone = sizes.count(1)
    n_split = min(int(n_free * 0.15), n_free - n_alone)
    drawn = naive_shuffle(n_free - n_alone, words("split"))
    items = []
    for cluster, size in enumerate([*sizes, giant] if giant else sizes):
        moved = 0
        if n_alone <= cluster < n_free and drawn[cluster - n_alone] < n_split:
            moved = 1 + naive_choice(cluster, words("move")[0], size - 1)
        for member in range(size):
            pred = n_clusters + drawn[cluster - n_alone] if member < moved else labels[cluster]
            item = len(items)
            weight = 0.5 + (naive_mix(item ^ words("weight")[0]) >> 11) / 2**53
            items.append((name(item), name(2**60 + cluster), name(2**61 + pred), weight))
    return [items[at] for at in naive_shuffle(n_items, words("order of truth"))]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("n_items", "seed"), [(1, 0), (2, 1), (7, 2), (331, 3)])
def test_rows_are_those_of_a_naive_twin(shape: str, n_items: int, seed: int) -> None:
    """So later versions make the same rows."""
    rows = whole(n_items, shape, seed, item="item", true="true", pred="pred", weight="weight")
    assert list(zip(*(c.to_pylist() for c in rows), strict=True)) == naive_rows(n_items, shape, seed)


@pytest.mark.parametrize("ids", ["int", "string"])
def test_blocks_are_parts_of_the_whole(ids: str) -> None:
    columns = {kind: kind for kind in ("item", "true", "pred", "weight", "country", "year")}
    n = 40_000  # more than a chunk
    synthetic = Synthetic(n, seed=5)
    expected = synthetic.rows(columns, 0, n, ids=ids)
    cuts = [0, 1, 2, 1000, 16_383, 16_385, 39_999, n]
    for start, stop in pairwise(cuts):
        assert synthetic.rows(columns, start, stop, ids=ids).equals(expected.slice(start, stop - start))


def test_seeds_shapes_and_sizes_differ() -> None:
    same = whole(1000)["true"]
    assert whole(1000)["true"].equals(same)
    assert not whole(1000, seed=1)["true"].equals(same)
    assert not set(whole(1000, seed=1)["true"].to_pylist()) & set(same.to_pylist())


def test_threads_do_not_change_the_files(tmp_path: Path) -> None:
    texts = set()
    for threads in (1, 2, 4):
        path = tmp_path / f"{threads}.parquet"
        generate(path, 50_000, weights=True, attributes=True, row_group=3000, threads=threads)
        texts.add(path.read_bytes())
    assert len(texts) == 1


# Weights and attributes


def test_weights_are_uniform() -> None:
    weights = whole(200_000, weight="weight")["weight"].to_numpy()
    assert 0.5 <= weights.min() < 0.501 and 1.499 < weights.max() < 1.5
    counts = np.histogram(weights, bins=50, range=(0.5, 1.5))[0]
    assert ((counts - 4000) ** 2 / 4000).sum() < 97  # 49 degrees of freedom, 1 in 10,000


def test_attributes_have_the_stated_shares() -> None:
    n = 300_000
    rows = whole(n, "singletons", country="country", year="year")
    assert rows["country"].null_count / n == pytest.approx(0.02, abs=0.002)
    counts = Counter(rows["country"].drop_null().to_pylist())
    harmonic = sum(1 / k for k in range(1, 31))
    for k, country in enumerate(COUNTRIES, 1):
        assert counts[country] / (0.98 * n) == pytest.approx(1 / k / harmonic, abs=0.004)
    years = np.bincount(rows["year"].to_numpy())[1990:]
    assert years.size == 35
    assert years / n == pytest.approx(1.05 ** np.arange(35) * 0.05 / (1.05**35 - 1), abs=0.002)


def test_items_of_a_cluster_share_their_country() -> None:
    """Two items of a cluster have its country with 0.95² = 0.9025, and else often the same by chance."""
    rows = whole(100_000, "er", true="true", country="country").to_pydict()
    members = defaultdict(list)
    for true, country in zip(*rows.values(), strict=True):
        if country is not None:
            members[true].append(country)
    pairs = [countries[0] == countries[1] for countries in members.values() if len(countries) > 1]
    harmonic = sum(1 / k for k in range(1, 31))
    chance = sum((1 / k / harmonic) ** 2 for k in range(1, 31))
    assert np.mean(pairs) == pytest.approx(0.9025 + 0.0975 * chance, abs=0.01)


# Files


def test_one_table_and_two_are_the_same_clustering(tmp_path: Path) -> None:
    one, truth, prediction = (tmp_path / f"{name}.parquet" for name in ("one", "truth", "prediction"))
    for ids in ("int", "string"):
        generate(one, 20_000, ids=ids, weights=True, attributes=True)
        generate(truth, 20_000, prediction_out=prediction, ids=ids, weights=True, attributes=True)
        assert pq.read_schema(one).names == ["truth", "prediction", "weight", "country", "year"]
        assert pq.read_schema(truth).names == ["item", "cluster", "weight", "country", "year"]
        assert pq.read_schema(prediction).names == ["item", "cluster"]
        options = {"weight": "weight", "slices": ["country", "year"]}
        a = fb.evaluate("truth", "prediction", table=one, **options)
        b = fb.evaluate(truth, prediction, **options)
        assert a.overall == pytest.approx(b.overall, abs=1e-12, rel=0)
        assert a.slices("country")["n_items"].equals(b.slices("country")["n_items"])
        items = [pq.read_table(path)["item"].to_pylist() for path in (truth, prediction)]
        assert items[0] != items[1] and set(items[0]) == set(items[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "one.parquet",
        "prediction.parquet",
        "truth.parquet",
    ]
