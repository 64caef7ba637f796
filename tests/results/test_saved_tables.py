"""Comparisons, sweeps and estimates in files: loaded, they show, convert and report the same as before."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import FileFormatError, NotKeptError
from fastbcubed.render.text import drawn
from fastbcubed.sweep_links import saved_sweep
from fastbcubed.sweep_links.sweep_document import document
from fastbcubed.sweep_links.threshold_choice import Leading

N = 48
TRUTH = pa.table({"item": range(N), "cluster": [k // 4 for k in range(N)], "country": list("abc") * (N // 3)})
OLD = {k: k // 2 for k in range(N - 3)}
NEW = {k: k // 4 if k % 5 else k // 8 for k in range(N)}
LINKS = [(k, k + 1, 0.9 if k % 4 < 3 else 0.4 + k / 200) for k in range(N - 1)]


def own(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return tp / (tp + fp + fn)


def a_comparison(**options: Any) -> fb.Comparison:
    runs = {"old": OLD, "new": NEW, "same": NEW}
    return fb.compare(
        TRUTH, runs, metrics=["precision", "recall", "f1", "rand", own], slices=["country"], **options
    )


def a_sweep() -> fb.Sweep:
    cut = {"slices": ["country", "true_size"], "thresholds": [0.9, 0.5]}
    return fb.sweep(TRUTH, LINKS, metrics=["precision", "recall", "f1", "mean_f1"], **cut)


def judged() -> Any:
    pairs = fb.diff(OLD, NEW).sample_pairs(12).to_pandas()
    return fb.estimate_pairs(pairs.assign(verdict=["same", "different", "unsure"] * 4))


RESULTS: dict[str, Callable[[], Any]] = {
    "comparison": a_comparison,
    "comparison of two, by bootstrap": lambda: fb.compare(TRUTH, {"old": OLD, "new": NEW}, bootstrap=40),
    "comparison of one": lambda: fb.compare(TRUTH, {"new": NEW}, align="each", unmatched="singleton"),
    "sweep": a_sweep,
    "sweep of distances": lambda: fb.sweep(TRUTH, LINKS, ascending=True, metrics=["pairs", "f1"]),
    "estimates": lambda: fb.estimate({k: k // 4 for k in range(20)}, NEW, beta=2.0, population_clusters=12),
    "judged pairs": judged,
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request: pytest.FixtureRequest) -> Any:
    return RESULTS[request.param]()


@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_a_loaded_result_answers_the_same(
    result: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, page = repr(result), result.report().html
    result.save(tmp_path)
    for found in (fb.load(tmp_path), fb.load(tmp_path, check=False)):
        assert type(found) is type(result)
        assert (repr(found), found._repr_html_()) == (text, result._repr_html_())
        assert found.to_json() == result.to_json()
        assert found.report().html == page
        assert found.to_pandas().equals(result.to_pandas())
        assert getattr(found, "warnings", []) == getattr(result, "warnings", [])
    assert cli.main(["show", str(tmp_path), "--json"]) == 0
    assert capsys.readouterr().out == f"{result.to_json()}\n"
    assert cli.main(["show", str(tmp_path), "--true", "1"]) == 2
    assert "has no clusters or items to open" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_what_a_loaded_comparison_answers(tmp_path: Path) -> None:
    cmp = a_comparison(bootstrap=80)
    cmp.save(tmp_path)
    found = fb.load(tmp_path)
    for ask in (
        lambda c: c.deltas(adjust="none"),
        lambda c: c.coverage(),
        lambda c: c.slices("country", deltas=False),
        lambda c: c.slices("country"),
        lambda c: c.slices("country", order_by="worse", limit=3),
    ):
        assert ask(found).to_pandas().equals(ask(cmp).to_pandas())
    assert (found.baseline, found.units, found["new"].f1) == (cmp.baseline, cmp.units, cmp["new"].f1)
    assert found["old"].to_json() == cmp["old"].to_json()
    assert found.report(title="Again").content["title"] == "Again"
    refused: list[Callable[[], Any]] = [
        found.clusters, found.items, lambda: found.cluster("true", 1),
        lambda: found.slices("true_size"), lambda: found.against("same").deltas(), lambda: found.report(worst=3),
    ]  # fmt: skip
    for ask_for in refused:
        with pytest.raises(NotKeptError, match="compare the runs again"):
            ask_for()


def test_slices_of_any_name_are_saved(tmp_path: Path) -> None:
    table = TRUTH.rename_columns(["item", "cluster", "by"]).append_column(
        "run", pa.array([k % 2 for k in range(N)])
    )
    slices: list[Any] = ["by", ("run", "by"), {"first": [0, 1, 2]}]
    cmp = fb.compare(
        table, {"old": dict.fromkeys(range(N), 1), "new": {k: k // 4 for k in range(N)}}, slices=slices
    )
    cmp.save(tmp_path / "compared")
    found = fb.load(tmp_path / "compared")
    for key in slices:
        again, before = (each.slices(key, order_by="better").to_pandas() for each in (found, cmp))
        assert again.equals(before)
    assert [*found.to_dict()["slices"]] == [*found["new"].sliced] == ["by", "run,by", "first"]
    sweep = fb.sweep(table, LINKS, slices=["by", "run"])
    sweep.save(tmp_path / "swept")
    assert fb.load(tmp_path / "swept").sliced == sweep.sliced


@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_what_a_loaded_sweep_answers(tmp_path: Path) -> None:
    sweep = a_sweep()
    sweep.save(tmp_path, score="precision", where="clusters <= 20")
    found = fb.load(tmp_path)
    for score in ("precision", "recall"):
        assert repr(found.best(score, where="clusters >= 3")) == repr(
            sweep.best(score, where="clusters >= 3")
        )
    assert found.report(score="recall", worst=2).html == sweep.report(score="recall", worst=2).html
    for ask in (
        lambda s: s.curve(limit=4), lambda s: s.points(), lambda s: s.sliced["country"], lambda s: s.merges(limit=3),
        lambda s: s.merges(threshold=0.5, limit=2), lambda s: s.weakest_links(limit=2),
    ):  # fmt: skip
        assert ask(found).to_pandas().equals(ask(sweep).to_pandas())
    refused: list[Callable[[], Any]] = [
        found.evaluate, lambda: found.at(0.5), lambda: found.clusterings([0.5]), lambda: found.interval("f1"),
        lambda: found.curve(errors=True), lambda: found.slices("country"), lambda: found.save(tmp_path),
        lambda: found.merges(order_by="recall_change"),
    ]  # fmt: skip
    for ask_for in refused:
        with pytest.raises(NotKeptError, match="sweep again"):
            ask_for()


def test_a_loaded_sweep_shows_what_it_was_saved_with(tmp_path: Path) -> None:
    """Of the scores of pairs only; without a link nothing is wrong, and the threshold of that is infinite."""
    sweep = fb.sweep(TRUTH, LINKS, metrics="pairs")
    chosen = sweep.chosen("9*pair_fp + pair_fn", where="threshold > 0.9", draws=9)
    sweep.save(tmp_path, chosen=chosen, merges=2)
    found = fb.load(tmp_path)
    assert math.isinf(chosen.best.threshold) and chosen.best.where == "threshold > 0.9"
    assert repr(found) == drawn(document(sweep, Leading(chosen.best, chosen)).blocks)
    content = found.to_dict()
    assert (content["best"], content["merges"]) == (chosen.best.to_dict(), [])
    assert repr(content["chosen"]) == repr(chosen.to_dict())  # all is one component: NaN
    assert pq.read_table(tmp_path / "clusters.parquet")["cluster"].to_pylist() == list(range(N))
    assert found.report().html == sweep.report(score=chosen.best.score, where="threshold > 0.9").html


def test_merges_at_the_best_threshold_are_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those of all thresholds, the first are at weak ones: at 0.4 and more, other clusters come together."""
    monkeypatch.setattr(saved_sweep, "LISTED", 2)
    sweep = fb.sweep(TRUTH, [*LINKS, (0, 47, 0.95)])
    sweep.save(tmp_path)
    found, best = fb.load(tmp_path), sweep.best().threshold
    for ask in (lambda s: s.merges(limit=2, threshold=best), lambda s: s.merges(limit=2)):
        assert ask(found).to_pandas().equals(ask(sweep).to_pandas())
    assert best == 0.9 and found.merges(limit=1, threshold=best)["threshold"].to_pylist() == [0.95]
    assert 0.9 not in found.merges(limit=2)["threshold"].to_pylist()
    for threshold in (0.5, None):
        with pytest.raises(NotKeptError, match="sweep again"):
            found.merges(limit=3, threshold=threshold)


def test_loaded_estimates_answer_all(tmp_path: Path) -> None:
    est = RESULTS["estimates"]()
    est.save(tmp_path)
    found = fb.load(tmp_path)
    assert (repr(found.errors), found.f1, found.level) == (repr(est.errors), est.f1, est.level)
    assert found.scores(level=0.5).to_pandas().equals(est.scores(level=0.5).to_pandas())


@pytest.mark.cases(2)
def test_damage_is_refused(result: Any, tmp_path: Path) -> None:
    result.save(tmp_path)
    for file in sorted(tmp_path.iterdir()):
        whole = file.read_bytes()
        for broken in (whole[: len(whole) // 2], whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:], None):
            file.unlink()
            if broken is not None:
                file.write_bytes(broken)
            for check in (True, False):
                with pytest.raises(FileFormatError):
                    fb.load(tmp_path, check=check)
            file.write_bytes(whole)
    fb.load(tmp_path)
    head = json.loads((tmp_path / "overall.json").read_text())
    (tmp_path / "overall.json").write_text(json.dumps({**head, "layout": head["layout"] + 1}))
    with pytest.raises(FileFormatError, match="Load it with the version that saved it"):
        fb.load(tmp_path)


@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_each_result_takes_the_place_of_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fb.evaluate(TRUTH, NEW).save(tmp_path)
    a_sweep().save(tmp_path)
    (tmp_path / "of_mine.parquet").touch()
    assert not (tmp_path / "items.parquet").exists()
    RESULTS["estimates"]().save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"overall.json", "estimates.parquet", "of_mine.parquet"}
    assert isinstance(fb.load(tmp_path), fb.Estimates)
    command = ["evaluate", "t.csv", "t.csv", "--baseline", str(tmp_path), "--fail-worse", "f1=0"]
    assert cli.main(command) == 2
    assert "contains no evaluation to compare with" in capsys.readouterr().err
    fb.evaluate(TRUTH, NEW).save(tmp_path, keep="scores")
    assert {path.name for path in tmp_path.iterdir()} == {"overall.json", "of_mine.parquet"}
