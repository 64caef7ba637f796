"""At every threshold all figures are those of a naive twin, and of `evaluate` on the clusters there."""

import math
from typing import Any, NamedTuple

import naive
import naive_sweep
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from naive_sweep import OF_ALL, POINTWISE
from strategies import LABELS, POLICIES

import fastbcubed as fb

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
ALL = [*POINTWISE, *OF_ALL]
#: Scores of links: few, so that many are tied; and any.
TIED, ANY = st.sampled_from([0.0, 0.25, 0.5, 0.5, 0.75, 1.0]), st.floats(-1e3, 1e3)


class Case(NamedTuple):
    truth: dict[Any, Any]
    links: list[tuple[Any, Any, float]]
    weights: dict[Any, float] | None
    unmatched: Any
    ascending: bool


def unweighted_or(n: int) -> st.SearchStrategy[list[float] | None]:
    wide = st.builds(lambda m, e: m * 10.0**e, st.floats(1.0, 9.99), st.integers(-15, 15))
    kinds = [st.integers(1, 4).map(float), wide, st.sampled_from([1e-15, 1.0, 1e15])]
    return st.one_of(st.none(), *(st.lists(kind, min_size=n, max_size=n) for kind in kinds))


@st.composite
def cases(draw: st.DrawFn, max_size: int = 9) -> Case:
    """Draw links with ties, repeated and reversed ones, self-loops, and a truth of some of the items and others."""
    n = draw(st.integers(2, max_size))
    ids = draw(st.sampled_from([*LABELS.values(), lambda k: ("ab"[k % 2], k)]))
    one = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), draw(st.sampled_from([TIED, ANY])))
    links = [(ids(a), ids(b), s) for a, b, s in draw(st.lists(one, min_size=1, max_size=2 * n))]
    linked = {item for left, right, _ in links for item in (left, right)}
    n_true = draw(st.sampled_from([1, 2, 3, n]))
    lacks = draw(st.booleans())
    truth = {
        ids(k): draw(st.integers(0, n_true - 1))
        for k in range(n)
        if not (lacks and draw(st.integers(0, 3)) == 0)
    }
    common = sorted(linked, key=repr)[0]
    truth.setdefault(common, 0)
    items = list(dict.fromkeys([*truth, *linked]))
    weights = draw(unweighted_or(len(items)))
    return Case(
        truth,
        links,
        None if weights is None else dict(zip(items, weights, strict=True)),
        draw(st.sampled_from([None, *POLICIES])),
        draw(st.booleans()),
    )


def swept(case: Case, **options: Any) -> fb.Sweep:
    how = {"weight": case.weights, "unmatched": case.unmatched, "ascending": case.ascending, "threads": 1}
    return fb.sweep(case.truth, case.links, **how | options)


def policy(unmatched: Any) -> Any:
    if unmatched is None:
        return {"truth": "singleton"}
    return {"truth": "singleton", **unmatched} if isinstance(unmatched, dict) else unmatched


def at_every_threshold(case: Case, sweep: fb.Sweep) -> list[tuple[float, dict[str, Any]]]:
    """Return each threshold at which links have a score, and no link at all, with what the curve says there."""
    curve = sweep.curve(limit=None).to_pylist()
    none = -math.inf if case.ascending else math.inf
    found = []
    for threshold in [none, *naive_sweep.thresholds(case.links, case.ascending)]:
        sign = -1 if case.ascending else 1
        used = [row for row in curve if sign * row["threshold"] >= sign * threshold]
        found.append((threshold, used[-1]))
    return found


def plain(items: Any) -> list[Any]:
    """Return ids as they are in the links."""
    listed = items.take(range(len(items))).to_pylist()
    return [tuple(each.values()) if isinstance(each, dict) else each for each in listed]


def close(value: float) -> Any:
    return pytest.approx(float(value), rel=1e-12, abs=1e-12)


@examples(120)
@given(cases())
def test_every_threshold_has_the_figures_of_the_twin(case: Case) -> None:
    sweep = swept(case)
    names = [metric.name for metric in sweep.metrics]
    for threshold, row in at_every_threshold(case, sweep):
        clusters = naive_sweep.clusters_at(case.links, threshold, ascending=case.ascending)
        twin = naive.evaluate(case.truth, clusters, case.weights, unmatched=policy(case.unmatched))
        assert {name: row[name] for name in ("clusters", "largest", "singletons")} == naive_sweep.figures(
            twin
        )
        for name in names:
            assert row[name] == close(naive_sweep.score(name, twin)), (name, threshold)


@examples(60)
@given(cases(max_size=14))
def test_every_threshold_has_the_figures_of_evaluate(case: Case) -> None:
    sweep = swept(case)
    names = [metric.name for metric in sweep.metrics]
    for threshold, row in at_every_threshold(case, sweep):
        clusters = naive_sweep.clusters_at(case.links, threshold, ascending=case.ascending)
        assert sweep.at(threshold).labels.keys().tolist() == list(clusters.values())
        assert plain(sweep.at(threshold).items) == list(clusters)
        ev = fb.evaluate(
            case.truth,
            clusters,
            weight=case.weights,
            metrics=names,
            unmatched=policy(case.unmatched),
            threads=1,
        )
        assert {name: row[name] for name in names} == {name: close(ev.overall[name]) for name in names}
        again = sweep.evaluate(threshold, metrics=names)
        assert dict(again.overall) == {name: close(ev.overall[name]) for name in names}
        assert again.coverage == ev.coverage


@pytest.mark.slow
@examples(60)
@given(cases(max_size=12))
def test_the_evaluation_at_the_best_threshold_is_that_of_evaluate(case: Case) -> None:
    sweep = swept(case)
    ev = sweep.evaluate(metrics=["precision", "recall", "f1"])
    assert {name: sweep.at_best.overall[name] for name in ev.overall} == dict(ev.overall)
    assert (sweep.at_best.coverage, sweep.at_best.summary) == (ev.coverage, ev.summary)
    assert [each["code"] for each in sweep.warnings] == [each["code"] for each in sweep.evaluate().warnings]


def test_tied_links_that_join_clusters_of_several_items_by_hand() -> None:
    """All four items become one cluster at once, whichever link is looked at first; nothing is joined wrongly."""
    for links in ([(0, 2), (1, 3), (0, 1)], [(0, 1), (2, 3), (1, 2)], [(2, 3), (0, 3), (1, 2)]):
        sweep = fb.sweep(dict.fromkeys(range(4), "x"), [(a, b, 0.5) for a, b in links])
        row = sweep.curve().to_pylist()[-1]
        assert {name: row[name] for name in ("precision", "recall", "pair_precision", "elm_precision")} == {
            "precision": 1.0, "recall": 1.0, "pair_precision": 1.0, "elm_precision": 1.0
        }  # fmt: skip
        assert sweep.merges()["precision_change"].to_pylist() == [0.0]


@examples(60)
@given(st.data())
def test_ties_where_all_items_count_have_the_figures_of_the_twin(data: st.DataObject) -> None:
    """Every item is in the truth and in a link, so that the tree of items is that of the rows."""
    n = data.draw(st.integers(3, 12))
    score = st.sampled_from([0.5, 0.5, 0.7])
    links = [
        (k, data.draw(st.integers(0, n - 1)), data.draw(score)) for k in data.draw(st.permutations(range(n)))
    ]
    truth = {k: data.draw(st.integers(0, 2)) for k in range(n)}
    weights = data.draw(unweighted_or(n))
    given = None if weights is None else dict(enumerate(weights))
    case = Case(truth, links, given, None, data.draw(st.booleans()))
    sweep = swept(case)
    for threshold, row in at_every_threshold(case, sweep):
        clusters = naive_sweep.clusters_at(links, threshold, ascending=case.ascending)
        twin = naive.evaluate(truth, clusters, given)
        for name in (metric.name for metric in sweep.metrics):
            assert row[name] == close(naive_sweep.score(name, twin)), (name, threshold)
