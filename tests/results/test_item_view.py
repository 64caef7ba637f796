"""One item to read: a dict to programs, a text to people."""

from __future__ import annotations

import json
import pickle

import fastbcubed as fb


def _item(**options: object) -> dict[str, object]:
    truth = {"a<": 1, "b": 1, "c": 2, "d": 2}
    prediction = {"a<": "x", "b": "y", "c": "y", "d": "y"}
    with_options = {"metrics": ["precision", "recall"], **options}
    return fb.evaluate(truth, prediction, **with_options).item("b", members=1)


def test_it_is_the_dict_that_it_was() -> None:
    found = _item()
    assert isinstance(found, dict) and found["tp"] == 1.0
    assert json.loads(json.dumps(found))["members"]["fp"] == {"n_items": 2, "first": ["c"]}
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_text_names_the_four_sets() -> None:
    assert repr(_item()).splitlines() == [
        "Item b: true cluster 1, predicted cluster y, weight 1",
        "  precision 0.33333, recall 0.50000",
        "",
        "  tp  1  in both of its clusters: b",
        "  fp  2  only in its predicted cluster: c, …",
        "  fn  1  only in its true cluster: a<",
        "  tn  0  in neither",
    ]


def test_html_is_escaped() -> None:
    text = _item()._repr_html_()
    assert "a&lt;" in text and "a<" not in text.replace("a&lt;", "")
    assert text.count("<tr>") == 4  # no head, as the columns need none


def test_items_of_covers_and_outside_are_told_too() -> None:
    outside = fb.evaluate({"a": 1}, {"a": 1, "b": 1}, unmatched={"prediction": "outside"}).item("a")
    assert "tn" not in repr(outside) and "fp  1  only in its predicted cluster: b" in repr(outside)
    covers = fb.evaluate({"a": {1, 2}, "b": {1}}, {"a": {3}, "b": {3}}, overlapping=True).item("a")
    assert "Item a: true clusters 1, 2, predicted cluster 3" in repr(covers)


def test_completion_lists_the_scores_and_hides_what_is_inner() -> None:
    ev = fb.evaluate([0, 0, 1], [0, 1, 1], metrics=["precision", "v_measure"])
    assert {"precision", "v_measure", "clusters", "overall"} <= set(dir(ev))
    assert not [name for name in dir(ev) if name.startswith("_") and not name.startswith("__")]
    assert {"precision", "v_measure", "keys"} <= set(dir(ev.overall))
