"""Warnings and notes of an evaluation: for each code an input that has it, and one that must not."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT, SETTINGS
from hypothesis import given
from hypothesis import strategies as st
from strategies import pairs

import fastbcubed as fb
from fastbcubed.errors import EmptyInputError, EvaluationWarning, OptionError
from fastbcubed.results import warnings
from fastbcubed.results.warnings import CODES, require_code

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")

#: 120 items in 60 true clusters of two; the prediction cuts every third.
TRUTH = {f"i{k}": f"t{k // 2}" for k in range(120)}
PREDICTION = {f"i{k}": f"p{k // 2}{'ab'[k % 2] if k % 6 < 2 else ''}" for k in range(120)}


def found(truth: Any = TRUTH, prediction: Any = PREDICTION, **options: Any) -> dict[str, dict[str, Any]]:
    """Return the warnings by code; those that are not notes were issued, too, in this order."""
    with catch_warnings(record=True) as told:
        simplefilter("always")
        ev = fb.evaluate(truth, prediction, **options)
    issued = [each.message.code for each in told if isinstance(each.message, EvaluationWarning)]
    assert issued == [each["code"] for each in ev.warnings if each["level"] == "warning"]
    return {warning["code"]: warning for warning in ev.warnings}


def only(sides: dict[str, str], n: int) -> dict[str, str]:
    return dict(list(sides.items())[:n])


def write(path: Path, clusters: dict[str, Any], **columns: Any) -> Path:
    pq.write_table(pa.table({"item": list(clusters), "cluster": list(clusters.values()), **columns}), path)
    return path


def test_a_sound_evaluation_has_none() -> None:
    assert found() == {}


def test_every_entry_has_code_level_message_and_figures() -> None:
    ev = fb.evaluate(TRUTH, {**only(PREDICTION, 60), **{f"x{k}": "p1" for k in range(9)}}, slices="true_size")
    assert {warning["code"] for warning in ev.warnings} >= {"dropping-flatters", "dropping-truth-flatters"}
    for warning in ev.warnings:
        assert list(warning)[:3] == ["code", "level", "message"] and len(warning) > 3
        assert warning["code"] in CODES and warning["level"] in ("warning", "note")


def test_warnings_alone_are_python_warnings_and_carry_their_code() -> None:
    truth = {f"i{k}": k // 2 for k in range(180)}
    linked = {item: f"p{cluster}" for item, cluster in truth.items() if cluster % 3}
    with pytest.warns(EvaluationWarning) as told:
        ev = fb.evaluate(truth, linked, slices={"few": ["i2", "i3"]})
    assert [warning["level"] for warning in ev.warnings] == ["warning", "note"]
    (one,) = told
    assert one.message.code == "dropping-truth-flatters"  # type: ignore[union-attr]
    assert str(one.message).endswith(" [dropping-truth-flatters]")
    again = pickle.loads(pickle.dumps(one.message))
    assert (str(again), again.code) == (str(one.message), "dropping-truth-flatters")


# -- Items that one side lacks ---------------------------------------------------------------------


def test_linked_records_alone_flatter() -> None:
    """40 of 120 items are linked to nothing: alone, they find 1 of 2, so that recall is (80 + 40 / 2) / 120."""
    linked = {item: cluster for item, cluster in PREDICTION.items() if cluster[-1] not in "ab"}
    warning = found(TRUTH, linked)["dropping-truth-flatters"]
    assert warning["level"] == "warning"
    assert (warning["f1"], warning["precision_if_alone"]) == (1.0, 1.0)
    assert warning["recall_if_alone"] == pytest.approx(100 / 120, abs=1e-15)
    assert warning["f1_if_alone"] == pytest.approx(2 * (5 / 6) / (1 + 5 / 6), abs=1e-15)
    assert (
        "f1 would be 0.90909 instead of 1 (precision 1, recall 0.83333)." in warning["message"]
        and "linked records only" in warning["message"]
    )


def test_dropping_the_truth_s_items_is_a_warning_from_a_change_of_a_hundredth_on() -> None:
    """Of pairs that are whole, k lose one item: recall of all 2n items is 1 - k / 2n, and f1 2 r / (1 + r)."""
    truth = {f"i{k}": f"t{k // 2}" for k in range(200)}
    level = {}
    for k in (1, 2, 3, 4, 5):
        some = {
            item: cluster for item, cluster in truth.items() if item not in [f"i{2 * j}" for j in range(k)]
        }
        warning = found(truth, some)["dropping-truth-flatters"]
        recall = 1 - k / 200
        assert warning["f1"] - warning["f1_if_alone"] == pytest.approx(
            1 - 2 * recall / (1 + recall), abs=1e-15
        )
        level[k] = warning["level"]
    assert level == {1: "note", 2: "note", 3: "note", 4: "warning", 5: "warning"}  # 4: 1 - 1.96 / 1.98


def test_dropping_the_truth_s_items_is_nothing_if_nothing_changes() -> None:
    lone = {f"lone {k}": f"lone {k}" for k in range(9)}  # right if they are alone
    assert "dropping-truth-flatters" not in found(TRUTH | lone, PREDICTION)
    most = only(PREDICTION, 111)
    assert found(TRUTH, most)["dropping-truth-flatters"]["level"] == "warning"
    assert "dropping-truth-flatters" not in found(TRUTH, most, unmatched={"truth": "singleton"})
    assert "dropping-truth-flatters" not in found(TRUTH, PREDICTION)


@pytest.mark.parametrize("engine", ["memory", "disk"])
@SETTINGS
@given(
    pair=pairs(),
    policy=st.sampled_from(["drop", "singleton", "outside"]),
    outer=st.booleans(),
    data=st.data(),
)
def test_figures_if_alone_are_those_of_singletons(engine, many_shards, pair, policy, outer, data) -> None:
    weights = st.floats(0.5, 2)
    options: dict[str, Any] = {"engine": engine} | ({"memory_limit": LIMIT} if engine == "disk" else {})
    if outer:
        options |= {"weighting": "outer", "weight": {item: data.draw(weights) for item in pair.items}}
    dropped = fb.evaluate(*pair[:2], unmatched={"truth": "drop", "prediction": policy}, **options)
    alone = fb.evaluate(*pair[:2], unmatched={"truth": "singleton", "prediction": policy}, **options)
    warning = {w["code"]: w for w in dropped.warnings}.get("dropping-truth-flatters")
    if warning is None:
        assert dropped.f1 - alone.f1 <= 1e-4
        return
    assert warning["exact"]
    for name in ("precision", "recall", "f1"):
        assert warning[f"{name}_if_alone"] == pytest.approx(alone.overall[name], abs=1e-12), name


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_figures_if_alone_take_weights_of_a_cluster_as_equal(engine) -> None:
    """Of a cluster of weights 1 to 4, 3 and 4 are left out: 3.5 each would find 3.5 of 10; the others 3 of 10."""
    truth, prediction = dict.fromkeys("abcd", 0), dict.fromkeys("ab", 0)
    weight = dict(zip("abcd", [1.0, 2.0, 3.0, 4.0], strict=True))
    warning = found(truth, prediction, weight=weight, engine=engine)["dropping-truth-flatters"]
    assert not warning["exact"] and "about" in warning["message"]
    assert warning["recall_if_alone"] == pytest.approx((3 * 0.3 + 7 * 0.35) / 10, abs=1e-15)


def test_figures_if_alone_need_no_score_by_name() -> None:
    some = only(PREDICTION, 90)
    expected = found(TRUTH, some)["dropping-truth-flatters"]
    assert found(TRUTH, some, metrics="pair_f1")["dropping-truth-flatters"] == expected
    on_disk = found(TRUTH, some, metrics="jaccard_distance", engine="disk", keep="scores")[
        "dropping-truth-flatters"
    ]
    assert np.isnan(on_disk["f1_if_alone"]) and "f1 would be" not in on_disk["message"]


def test_overlapping_clusterings_say_that_items_were_dropped() -> None:
    truth = {item: {cluster} for item, cluster in TRUTH.items()}
    warning = found(truth, only(PREDICTION, 117), overlapping=True)["dropping-truth-flatters"]
    assert warning["level"] == "warning" and np.isnan(warning["f1_if_alone"])
    assert found(truth, only(PREDICTION, 119), overlapping=True)["dropping-truth-flatters"]["level"] == "note"


def test_unlabelled_mates_put_precision_and_recall_in_doubt() -> None:
    """Each of 60 labelled items is with one that has no label: precision is 1 at most, and 1/2 at least."""
    truth, prediction = {k: k for k in range(60)}, {k: k % 60 for k in range(120)}
    warning = found(truth, prediction)["dropping-flatters"]
    assert (warning["precision_lower"], warning["precision_upper"]) == (0.5, 1.0)
    assert "100 % of the scored weight" in warning["message"]
    assert "anywhere from 0.50000 to 1. If the true clusters are complete" in warning["message"]
    assert '"outside"}, or use fb.estimate if they are a random sample of all. If' in warning["message"]
    weighted = found(truth, prediction, weight=dict.fromkeys(range(120), 2.0))["dropping-flatters"]
    assert "fb.estimate" not in weighted["message"]  # which serves no weights
    assert warning["message"].endswith(
        "If the truth labels a sample of records, and not whole clusters, recall is too high as well, since the "
        "unsampled records of a true cluster are not counted."
    )


def test_bounds_read_the_same_in_the_warning_and_in_the_text() -> None:
    """One of 4,001 labelled items is alone, 4,000 are with an unlabelled one; of the pairs, half a precision."""
    truth = {k: k for k in range(4001)}
    ev = fb.evaluate(truth, {**truth, **{4001 + k: k for k in range(4000)}, 9000: 3999})
    low = (1 + 3999 / 2 + 1 / 3) / 4001
    (warning,) = (w for w in ev.warnings if w["code"] == "dropping-flatters")
    assert f"anywhere from {low:.5f} to 1." in warning["message"] and "99.98 % of the" in warning["message"]
    assert f"precision would be between {low:.5f} and 1." in " ".join(repr(ev).split())


def test_few_items_labelled() -> None:
    few = only(TRUTH, 24)
    warning = found(few, PREDICTION)["few-items-labelled"]  # precision is 1
    assert warning["level"] == "warning" and "precision is 1 by construction unless" in warning["message"]
    assert warning["message"].endswith("or use fb.estimate if they are a random sample of all.")
    warning = found(few, {item: "one" for item in PREDICTION})[
        "few-items-labelled"
    ]  # which merges labelled clusters
    assert (warning["level"], warning["share"], warning["n_items"]) == ("note", 0.2, 120)
    assert (
        "drawn at random; in that case, fb.estimate estimates the scores of all items." in warning["message"]
    )
    warning = found(few, PREDICTION, unmatched="singleton")["few-items-labelled"]
    assert warning["level"] == "warning"
    assert warning["message"].endswith("or use fb.estimate if they are a random sample of all.")
    assert "few-items-labelled" not in found(only(TRUTH, 60), PREDICTION)
    assert "few-items-labelled" not in found(only(TRUTH, 2), only(PREDICTION, 10))


@pytest.mark.parametrize(
    ("spelled", "way"),
    [
        (lambda item: f"{item} ", "without surrounding spaces"),
        (lambda item: item.upper(), "in lower case"),
        (lambda item: f"00{item}", "leading zeros"),
        (lambda item: f"source:{item}", "up to the last"),
    ],
)
def test_few_ids_match(spelled, way) -> None:
    other = {item if k < 30 else spelled(item): c for k, (item, c) in enumerate(PREDICTION.items())}
    warning = found(TRUTH, other)["few-ids-match"]
    assert (warning["level"], warning["share"], warning["n_common"]) == ("warning", 0.25, 30)
    assert "'i30'" in warning["message"] and repr(spelled("i30")) in warning["message"]
    assert way in warning["message"] and warning["truth_only"][0] == "i30"


def test_few_ids_match_only_if_both_sides_lack_most() -> None:
    assert "few-ids-match" not in found(only(TRUTH, 24), PREDICTION)  # a sample is labelled
    assert "few-ids-match" not in found(TRUTH, only(PREDICTION, 24))
    others = {**only(PREDICTION, 61), **{f"x{k}": "x" for k in range(59)}}
    assert "few-ids-match" not in found(TRUTH, others)


# -- Shapes ----------------------------------------------------------------------------------------


def test_all_singleton_truth() -> None:
    alone = {item: item for item in TRUTH}
    assert found(alone, PREDICTION)["all-singleton-truth"]["level"] == "warning"
    assert "all-singleton-truth" not in found({**alone, "i1": "i0"}, PREDICTION)
    assert "all-singleton-truth" not in found(only(alone, 19), only(PREDICTION, 19))


@pytest.mark.cases(1)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_linker_that_found_nothing(engine: str, tmp_path: Path) -> None:
    """Its score is that of singletons: precision 1, recall the mean over items of 1 / true size."""
    pairs = {f"i{k}": k // 2 for k in range(40)}
    path = tmp_path / "truth.parquet"
    pq.write_table(pa.table({"item": list(pairs), "cluster": list(pairs.values())}), path)
    nothing = fb.Clustering.from_links([])
    with pytest.warns(EvaluationWarning, match="every item is a singleton in the prediction"):
        ev = fb.evaluate(path, nothing, engine=engine, out=tmp_path / "out")
    assert (ev.precision, ev.recall, ev.coverage.n_truth_only) == (1, 1 / 2, 40)
    assert "0 of" not in str(ev.warnings) and "alone" in str(ev)
    assert fb.load(tmp_path / "out").recall == 1 / 2
    if engine == "memory":
        with pytest.warns(EvaluationWarning, match="a singleton in the prediction"):
            cmp = fb.compare(pairs, {"none": nothing, "all": dict.fromkeys(pairs, 1)})
        assert (cmp["none"].recall, cmp["all"].recall) == (1 / 2, 1)
        ev.report(tmp_path / "page.html")
    with pytest.raises(EmptyInputError, match="there are no rows in"):
        fb.evaluate(path, nothing, unmatched="drop", engine=engine)


@pytest.mark.parametrize("score", [fb.extended_bcubed, fb.cice_bcubed])
def test_warnings_name_the_line_of_the_user(score) -> None:
    truth = {k: {str(k // 4)} for k in range(120)}
    with pytest.warns(EvaluationWarning) as told:
        score(truth, {item: {"all"} for item in truth})
    assert {each.filename for each in told} == {__file__}


def test_pure_by_construction() -> None:
    alone, one = {item: item for item in TRUTH}, dict.fromkeys(TRUTH, "all")
    assert found(TRUTH, alone)["pure-by-construction"]["score"] == "precision"
    assert found(TRUTH, alone)["pure-by-construction"]["level"] == "warning"
    assert found(TRUTH, one)["pure-by-construction"]["level"] == "note"
    assert found(TRUTH, one)["pure-by-construction"]["score"] == "recall"
    assert found(one, PREDICTION)["pure-by-construction"]["score"] == "precision"
    assert "pure-by-construction" not in found(TRUTH, {**alone, "i1": "i0"})
    more = {**alone, "x": "i0"}  # not pure: the truth lacks an item of a cluster
    assert "pure-by-construction" not in found(TRUTH, more, unmatched="outside")


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("keep", ["scores", "cells"])
def test_giant_cluster(engine, keep) -> None:
    giant = {item: "all" if k < 40 else cluster for k, (item, cluster) in enumerate(PREDICTION.items())}
    warning = found(TRUTH, giant, engine=engine, keep=keep)["giant-cluster"]
    assert (warning["level"], warning["n_items"], warning["n_true_clusters"]) == ("warning", 40, 20)
    everything = found(TRUTH, dict.fromkeys(TRUTH, "all"), engine=engine, keep=keep)["giant-cluster"]
    assert (everything["level"], everything["share"], everything["n_true_clusters"]) == ("warning", 1, 60)
    pure = {item: "all" if k < 40 else cluster for k, (item, cluster) in enumerate(TRUTH.items())}
    assert "giant-cluster" not in found(pure, giant, engine=engine, keep=keep)


def test_notes_are_looked_for_when_they_are_read() -> None:
    ev = fb.evaluate(only(TRUTH, 20), only(PREDICTION, 20))
    assert "standard_errors" not in vars(ev)
    assert [each["code"] for each in ev.warnings] == ["few-units"] and "standard_errors" in vars(ev)


def test_few_units() -> None:
    few = {item: str(k // 6) for k, item in enumerate(TRUTH)}
    warning = found(few, PREDICTION)["few-units"]
    assert (warning["level"], warning["n_units_at_most"]) == ("note", pytest.approx(20))
    heavy = {item: "one" if k < 13 else cluster for k, (item, cluster) in enumerate(TRUTH.items())}
    assert found(heavy, PREDICTION)["few-units"]["largest_share"] == pytest.approx(13 / 120)
    chain = {
        item: f"{(k + 1) // 2}" if k < 13 else cluster for k, (item, cluster) in enumerate(TRUTH.items())
    }
    warning = found(TRUTH, chain)["few-units"]  # no cluster is large, but items 0 to 13 hang together
    assert (
        warning["largest_share"] == pytest.approx(14 / 120) and "11.7 % of the weight" in warning["message"]
    )


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize(("n_items", "n_units"), [(1, 1), (2, 2), (60, 5), (99, 3)])
def test_few_units_of_few_items(engine, n_items: int, n_units: int) -> None:
    """Units of equal size, whose items are one cluster of the truth, and are found in pieces of one or two."""
    items = {f"i{k}": k for k in range(n_items)}
    truth = {item: k % n_units for item, k in items.items()}
    pieces = {item: k // n_units // 2 * n_units + k % n_units for item, k in items.items()}
    note = found(truth, pieces, engine=engine)["few-units"]
    assert (note["level"], note["n_units_at_most"]) == ("note", pytest.approx(n_units))
    groups = "1 independent group" if n_units == 1 else f"{n_units} independent groups"
    said = f"These scores rest on only about {groups} and may differ widely on new data."
    assert note["message"] == said


def test_few_units_where_only_a_bound_is_known() -> None:
    """Of 90 items in three true clusters a predicted one joins two; the cells, which tell how uneven, are not kept."""
    truth = {k: k // 30 for k in range(90)}
    options = {"engine": "disk", "keep": "scores"}
    note = found(truth, {k: k // 60 for k in range(90)}, **options)["few-units"]
    assert note["message"].startswith("These scores rest on at most 2 independent groups and")
    note = found({k: max(k, 59) for k in range(300)}, {k: k for k in range(300)}, **options)["few-units"]
    assert "has at least 20.0 % of the weight" in note["message"]


def test_few_units_of_clusters_that_overlap() -> None:
    """All items but one in 60 are in a cluster that they share with the next: the prediction links them all."""
    truth = {k: {k // 2} for k in range(120)}
    chain = {k: {k, k + 1} if k < 90 else {200 + k} for k in range(120)}
    warning = found(truth, chain, overlapping=True)["few-units"]
    assert warning["largest_share"] == pytest.approx(90 / 120)
    assert warning["n_units_at_most"] == pytest.approx(1 / (0.75**2 + 15 * (2 / 120) ** 2))


@pytest.mark.slow
def test_few_units_of_verbs() -> None:
    wordnet = Path(fb.__file__).parent / "data" / "wordnet_verbs"
    for name in ("pred_hypernym", "pred_first_sense"):
        ev = fb.evaluate(wordnet / "truth.parquet", wordnet / f"{name}.parquet", overlapping=True)
        (note,) = (w for w in ev.warnings if w["code"] == "few-units")
        assert (note["n_units_at_most"], note["largest_share"]) == (
            ev.units.effective,
            ev.units.largest_share,
        )


def test_many_cells_have_their_units_looked_at() -> None:
    """100,000 items in pairs, of which two in five hang together in a chain: no cluster is large."""
    n = 100_000
    items = np.arange(n)
    truth, chain = items // 2, np.where(items < 0.4 * n, (items + 1) // 2, n + items // 2)
    pairs_alone = np.where(items < 0.4 * n, chain, n + items)  # 100,000 cells
    ev = fb.evaluate(truth, pairs_alone)
    (note,) = (w for w in ev.warnings if w["code"] == "few-units")
    assert ev.contingency.n_cells == n and note["largest_share"] == pytest.approx(0.4)


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_attributes_of_other_items(engine) -> None:
    """Whether they are sliced by or not: what is asked later gives nulls. One item in common is enough."""
    attributes = pa.table({"item": ["01", "02", "03"], "country": ["at", "de", "at"]})
    how = {"engine": engine, "keep": "items"}
    with pytest.warns(EvaluationWarning, match="None of the 3 rows of the attributes match an item"):
        ev = fb.evaluate(TRUTH, PREDICTION, attributes=attributes, **how)
    assert [w["n_rows"] for w in ev.warnings if w["code"] == "attributes-match-none"] == [3]
    one_known = attributes.set_column(0, "item", [["01", "02", "i1"]])
    assert "attributes-match-none" not in found(TRUTH, PREDICTION, attributes=one_known, **how)
    with pytest.warns(EvaluationWarning, match="None of the 3 rows") as told:
        fb.evaluate(TRUTH, PREDICTION, **how).slices("country", attributes=attributes)
    assert told[0].filename == __file__


@pytest.mark.cases(1)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_slices_of_nulls(engine) -> None:
    attributes = pa.table({"item": ["01", "02"], "country": ["at", "de"], "year": [1, 2]})
    how = {"attributes": attributes, "engine": engine}
    with pytest.warns(EvaluationWarning, match="No item has a value for country"):
        ev = fb.evaluate(TRUTH, PREDICTION, slices=[("country", "true_size"), "country"], **how)
    assert [w["by"] for w in ev.warnings if w["code"] == "slices-of-nulls"] == ["country"]
    one_known = attributes.set_column(0, "item", [["01", "i1"]])
    assert "slices-of-nulls" not in found(
        TRUTH, PREDICTION, slices="country", **{**how, "attributes": one_known}
    )


def test_small_slices(tmp_path) -> None:
    table = pa.table(
        {"item": list(TRUTH), "cluster": list(TRUTH.values()), "year": [k // 29 for k in range(120)]}
    )
    warning = found(table, PREDICTION, slices=["year", "true_size"])["small-slice"]
    assert (warning["level"], warning["by"], warning["n_slices"]) == ("note", "year", 5)
    assert warning["slices"] == ["0", "1", "2"]
    table = table.set_column(2, "year", [[k // 30 for k in range(120)]])
    assert "small-slice" not in found(table, PREDICTION, slices="year")
    assert found(table.slice(0, 40), PREDICTION, slices="year")["small-slice"]["slices"] == ["1"]
    assert "small-slice" not in found(table.slice(0, 20), PREDICTION, slices="year")  # few-units says so


@pytest.mark.slow
def test_large_clusters_are_told_from_a_sample_before_any_is_counted() -> None:
    rng = np.random.default_rng(0)
    n = warnings.LARGE
    labels, prediction = rng.integers(0, n // 3, n), rng.integers(0, n // 3, n)
    ev = fb.evaluate(labels, prediction)
    assert {each["code"] for each in ev.warnings} <= {"few-units"} and "summary" not in ev.__dict__
    giant = np.where(rng.random(n) < 0.12, -1, prediction)
    assert set(found(labels, giant)) == {"giant-cluster", "few-units"}
    assert set(found(np.arange(n), prediction)) == {"all-singleton-truth"}
    assert set(found(labels, np.zeros(n, int))) == {"giant-cluster", "pure-by-construction", "few-units"}


def test_slices_without_scores() -> None:
    assert found(slices="true_size", metrics="pair_f1")["slices-without-scores"]["scores"] == ["pair_f1"]
    assert "slices-without-scores" not in found(slices="true_size")


# -- What was given --------------------------------------------------------------------------------


@pytest.mark.slow
def test_same_input(tmp_path) -> None:
    path = write(tmp_path / "a.parquet", TRUTH)
    link = tmp_path / "b.parquet"
    link.symlink_to(path)
    for sides in (
        (TRUTH, TRUTH),
        (path, path),
        (str(path), link),
        (path, write(tmp_path / "c.parquet", TRUTH)),
    ):
        assert found(*sides)["same-input"]["level"] == "warning"
    rows = pa.table({"a": [0, 0, 1] * 10, "b": [0, 1, 1] * 10})
    assert found("a", "a", table=rows)["same-input"]["message"].startswith(
        "Truth and prediction are the same column"
    )
    assert "same-input" not in found("a", "b", table=rows)
    renamed = {item: f"other {cluster}" for item, cluster in TRUTH.items()}
    assert "same-input" not in found(TRUTH, renamed)  # as good as it says
    copy = tmp_path / "c.parquet"
    assert found(path, copy, engine="disk", keep="items")["same-input"]["level"] == "warning"
    assert found(path, copy, engine="disk")["same-input"]["level"] == "warning"
    assert (
        found(path, copy, engine="disk", keep="scores")["same-input"]["level"] == "note"
    )  # there are no labels
    assert "same-input" not in found(TRUTH, renamed, engine="disk", keep="items")


def test_labels_that_agree_by_value_are_the_same_input(tmp_path) -> None:
    """Types, order and coverage differ: the column of the truth, kept in the output, was read as the prediction."""
    numbers = {item: k // 2 for k, item in enumerate(TRUTH)}
    for other in (
        {item: str(own) for item, own in numbers.items()},
        {item: float(own) for item, own in reversed(numbers.items())},
        only(numbers, 50),
        only({item: f"{own}.0" for item, own in numbers.items()}, 50) | {"new": "7"},
    ):
        for sides in ((numbers, other), (other, numbers)):
            warning = found(*sides)["same-input"]
            assert warning["level"] == "warning" and "under the same names" in warning["message"]
    assert "same-input" not in found(numbers, numbers | {next(iter(numbers)): 999})
    assert "same-input" not in found(numbers, {item: own + 1 for item, own in numbers.items()})  # perfect
    truth = {item: str(own) for item, own in numbers.items()}
    codes = [each["code"] for each in fb.compare(numbers, {"a": truth, "b": PREDICTION}).warnings]
    assert "same-input" in codes
    path = write(tmp_path / "few.parquet", {"a": 1, "b": 1, "c": 2, "d": 3})
    assert "same-input" in found(path, write(tmp_path / "copy.parquet", {"a": "1", "c": "2", "d": "3"}))
    with pytest.warns(fb.EvaluationWarning, match="Sample and prediction are the same file"):
        estimates = fb.estimate(path, path)
    assert estimates.warnings[0]["code"] == "same-input"


def test_labels_that_differ_are_compared_before_the_cell_of_each_item_is_found() -> None:
    """That takes longer than all else; labels of items that one side lacks, or that are noise, say nothing."""
    numbers = {item: k // 2 for k, item in enumerate(TRUTH)}
    last = list(TRUTH)[-1]
    for other in (numbers | {last: 999}, only(numbers, 50) | {last: 999}):
        assert "cell" not in vars(fb.evaluate(numbers, other).contingency.rows)
    noisy = {item: "noise" if own % 2 else str(own) for item, own in numbers.items()}
    truth = {item: f"{item} alone" if own == "noise" else own for item, own in noisy.items()}
    assert "same-input" in found(truth, noisy, noise="noise")


@pytest.mark.parametrize("policy", [{}, {"nulls": "singleton"}, {"noise": 7}])
def test_integers_matched_by_position_are_compared_by_value(policy: dict[str, Any]) -> None:
    """A row without a cluster on a side, by a null or by noise, says nothing; nor do the bits of unsigned ones."""
    signed = pa.array([-1, 7, 3, 4, 4] * 6, pa.int64())
    other = [None, None, 3, 4, 4] if "nulls" in policy else [-1, 7, 3, 4, 4]
    assert "same-input" in found(signed, pa.array(other * 6, pa.int32()), **policy)
    assert "same-input" not in found(signed, pa.array([-1, 7, 3, 4, 5] * 6), **policy)
    assert "same-input" not in found(signed, pa.array([2**64 - 1, 7, 3, 4, 4] * 6, pa.uint64()), **policy)


RECORDS = pa.table({"unique_id": [1, 2, 3, 4, 5], "cluster": [0, 0, 1, 1, 2]})
#: A run that keeps the column of the truth, in another order, as text, with an item more; and one that is perfect.
KEPT = pa.table(
    {"unique_id": [6, 5, 3, 4, 2, 1], "cluster": ["9", "2", "1", "1", "0", "0"], "cluster_id": [1] * 6}
)
RENAMED = pa.table({"unique_id": [1, 2, 3, 4, 5], "cluster": list("aabbc")})


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_small_tables_with_the_same_labels(engine: Any, tmp_path) -> None:
    """Tables are named, as files are: five items whose labels agree are enough."""
    columns = {"item": "unique_id", "cluster": "cluster"}
    sides = {"records": RECORDS, "kept": KEPT, "renamed": RENAMED}
    if engine == "disk":
        for name, table in sides.items():
            pq.write_table(table, tmp_path / name)
            sides[name] = str(tmp_path / name)
    records, kept, renamed = sides.values()
    for verb in (fb.evaluate, fb.estimate):
        for other, expected in ((kept, True), (renamed, False)):
            result = verb(records, other, engine=engine, **columns)
            codes = {each["code"]: each["level"] for each in result.warnings}
            assert codes.get("same-input") == ("warning" if expected else None)
    said = fb.evaluate(records, kept, **columns, engine=engine).warnings[0]["message"]
    assert said.startswith(
        "All items that both sides have are in the same clusters under the same names: is one"
    )
    assert "same-input" not in [each["code"] for each in fb.evaluate([1, 1, 2], [1, 1, 2]).warnings]


@pytest.mark.parametrize("overlapping", [False, True])
def test_large_inputs_warn_as_small_ones_do(overlapping: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of cells labels are compared by item; items that one side lacks change nothing."""
    numbers = {item: k // 2 for k, item in enumerate(TRUTH)}
    if overlapping:  # labels are lists, which are compared in one type
        numbers = {item: str(own) for item, own in numbers.items()}
    texts = {item: str(own) for item, own in numbers.items()}
    for cells in (1 << 20, 0):
        monkeypatch.setattr("fastbcubed.results.warnings.CELLS_AT_ONCE", cells)
        for other, expected in (
            (texts, True),
            ({**texts, next(iter(texts)): "x"}, False),
            ({item: f"{own}+" for item, own in texts.items()}, False),
        ):
            assert ("same-input" in found(numbers, other, overlapping=overlapping)) == expected
        some = found(numbers, only(texts, 50) | {"new": "7"}, overlapping=overlapping)
        assert ("same-input" in some) == (not overlapping)


def test_one_file_with_two_columns_is_not_the_same_input(tmp_path) -> None:
    path = write(tmp_path / "both.parquet", TRUTH, other=list(PREDICTION.values()))
    assert "same-input" not in found(path, path, cluster=("cluster", "other"))


def test_maybe_swapped(tmp_path) -> None:
    truth, prediction = (
        write(tmp_path / "gold.parquet", TRUTH),
        write(tmp_path / "pred_2.parquet", PREDICTION),
    )
    assert found(prediction, truth)["maybe-swapped"] == {
        "code": "maybe-swapped", "level": "note", "by": "name",
        "message": "The truth is called 'pred_2.parquet', which sounds like a prediction. The truth comes first: if "
        "they are swapped, so are precision and recall.",
    }  # fmt: skip
    other = write(tmp_path / "pred_1.parquet", PREDICTION)
    assert "maybe-swapped" not in found(truth, prediction)
    assert "maybe-swapped" not in found(other, prediction)  # of two releases one is taken as the truth
    rows = pa.table({"predicted": list(PREDICTION.values()), "truth": list(TRUTH.values())})
    assert "maybe-swapped" in found("predicted", "truth", table=rows)
    assert "maybe-swapped" not in found("truth", "predicted", table=rows)
    many = {f"i{k}": str(k // 2) for k in range(1000)}
    assert found(many, only(PREDICTION, 50))["maybe-swapped"]["by"] == "size"
    assert "maybe-swapped" not in found(many, {**PREDICTION, "x": "x"})


# -- Results ---------------------------------------------------------------------------------------


@pytest.mark.cases(3, 99)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("keep", ["scores", "cells", "items"])
def test_results_keep_what_was_found(tmp_path, engine, keep) -> None:
    path = write(tmp_path / "truth.parquet", TRUTH)
    ev = fb.evaluate(
        path, only(PREDICTION, 90), slices="true_size", engine=engine, out=tmp_path / "out", keep=keep
    )
    expected = [dict(warning) for warning in ev.warnings]
    assert {"dropping-truth-flatters"} <= {warning["code"] for warning in expected}
    assert fb.load(tmp_path / "out").warnings == expected
    assert pickle.loads(pickle.dumps(ev)).warnings == expected


def test_warnings_is_the_one_public_list_of_what_there_is_to_know() -> None:
    floats = pa.table({"item": [1.0, 2.0], "cluster": ["a", "b"]})
    ev = fb.evaluate(floats, {1: "x", 2: "y"})
    assert [w["code"] for w in ev.warnings] == ["few-units", "whole-floats"]
    assert not hasattr(ev, "notes") and "notes" not in dir(ev)


def test_text_tells_warnings_from_notes() -> None:
    text = repr(fb.evaluate(dict.fromkeys(TRUTH, "all"), PREDICTION))
    assert "Note: Precision is 1 by construction" in text and "Warning:" not in text
    with pytest.warns(EvaluationWarning, match="every item is a singleton"):
        alone = fb.evaluate(TRUTH, {item: item for item in TRUTH})
    assert "Warning: Precision is 1 by construction" in repr(alone)


def test_warnings_that_were_not_checked_are_named() -> None:
    """The engine that keeps no cells said that there were none."""
    truth = {f"i{k}": k // 2 for k in range(200)}
    (note,) = fb.evaluate(
        truth, truth | {"i0": 7}, engine="disk", keep="scores", unmatched="singleton"
    ).warnings
    assert note["code"] == "not-checked" and note["level"] == "note"
    assert note["codes"] == ["same-input", "giant-cluster", "few-units"]
    assert note["message"].endswith('Pass keep="cells" to check.')
    assert not fb.evaluate(truth, truth | {"i0": 7}, unmatched="singleton").warnings


def test_codes_are_known() -> None:
    assert require_code("giant-cluster") == "giant-cluster"
    with pytest.raises(OptionError, match=r"no warning has the code 'giant'.*giant-cluster"):
        require_code("giant")
    for code in CODES.values():
        assert code.meaning.endswith(".")


def test_real_data_are_healthy() -> None:
    """Two dated releases lack later records; nothing else is said of them."""
    patents = Path(fb.__file__).parent / "data" / "patentsview"
    for release in ("pred_20200929", "pred_20211230"):
        ev = fb.evaluate(patents / "truth.parquet", patents / f"{release}.parquet")
        assert [w["code"] for w in ev.warnings] == ["dropping-truth-flatters"]
