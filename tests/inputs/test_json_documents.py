"""JSON that is one document: read, or refused by what it may be; it was refused for not beginning as Parquet does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import FileFormatError

#: Against clusters {1, 2, 3}: precision 1, recall (2/3 + 2/3 + 1/3) / 3.
TRUTH, RECALL = {1: "x", 2: "x", 3: "x"}, 5 / 9
ROWS = [{"item": 1, "cluster": "a"}, {"item": 2, "cluster": "a"}, {"item": 3, "cluster": "b"}]
READ: dict[str, Any] = {
    "records": ROWS,
    "records with more": [{**ROWS[0], "name": None}, ROWS[1], {**ROWS[2], "size": 4.5}],
    "item to label": {"1": "a", "2": "a", "3": "b"},
    "lists of items": [[1, 2], [3]],
    "columns": {"item": [1, 2, 3], "cluster": ["a", "a", "b"]},
    "columns of pandas": json.loads(pd.DataFrame(ROWS).to_json()),
}


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("form", READ)
def test_documents_are_read(form: str, engine: Any, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    for indent in (None, 2):
        path.write_text(json.dumps(READ[form], indent=indent))
        ev = fb.evaluate(TRUTH, path, engine=engine)
        assert (ev.precision, ev.recall) == (1, pytest.approx(RECALL))


def test_json_lines_may_be_called_json(tmp_path: Path) -> None:
    for folder in ("lines", "lines/below"):
        (tmp_path / folder).mkdir()
    (tmp_path / "lines/part-0.json").write_text("\n".join(map(json.dumps, ROWS[:2])))
    (tmp_path / "lines/below/part-1.json").write_text(json.dumps(ROWS[2:]))
    assert fb.evaluate(TRUTH, tmp_path / "lines").recall == pytest.approx(RECALL)
    (tmp_path / "lines/below/part-1.json").unlink()
    assert fb.evaluate(TRUTH, tmp_path / "lines").recall == 1
    pd.DataFrame(ROWS).to_parquet(tmp_path / "lines/rows.parquet")  # JSON beside it is about it
    assert fb.evaluate(TRUTH, tmp_path / "lines").recall == pytest.approx(RECALL)


REFUSED = {
    "[[1, 2], [2, 3]]": "2 lists of length 2, some of which share values (1 in all, first: 2)",
    '{"a": [1, 2], "b": [3]}': "an object of lists",
    '[1, "a"]': "a list of single values",
    "[]": "a list of nothing",
    '[{"item": 1}, {"item": "a"}]': "values of several types in 'item' (int, str)",
    "[[[1]], [[2]]]": "lists of lists of lists",
    '{"item": 1': "cannot be read as JSON",
    "[" * 100_000: "nested more than 64 levels deep, in line 1. Write records",
    '[{"item": "a",\n "cluster": '
    + "[" * 900
    + "]" * 900
    + "}]": "nested more than 64 levels deep, in line 2",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_others_are_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.json"
    path.write_text(text)
    with pytest.raises(FileFormatError) as caught:
        fb.evaluate(TRUTH, path)
    assert REFUSED[text] in str(caught.value)
    assert cli.main(["evaluate", str(path), str(path)]) == 2
    assert capsys.readouterr().err.startswith("fastbcubed: ")
