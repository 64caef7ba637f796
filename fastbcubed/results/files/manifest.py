"""The manifest, `overall.json`: scores, how they were made, and which files go with them; read with care."""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from fastbcubed.alignment.policies import Coverage
from fastbcubed.errors import FileFormatError
from fastbcubed.results.listings.outcomes import COUNTS, OUTCOMES, SUMS
from fastbcubed.results.listings.summary import Bounds
from fastbcubed.runtime.checksums import Stamp, open_regular
from fastbcubed.runtime.staging import is_staging_name

#: The file that is written last, and says which others go with it; the one that is streamed; that of slices.
MANIFEST, ITEMS, SLICES = "overall.json", "items.parquet", "slices.parquet"
#: Version of the layout of the files.
LAYOUT = 2
#: More bytes than any manifest has.
TOO_LARGE = 1 << 30
#: The files that go with each level of `keep`, and those that may be there or not.
FILES = {
    "scores": set[str](),
    "cells": {"true_clusters.parquet", "pred_clusters.parquet", "cells.parquet"},
    "items": {"true_clusters.parquet", "pred_clusters.parquet", "cells.parquet", ITEMS},
}
#: Bytes of cells, and of items, from which a result is not read as a whole unasked; and what tells that it is a diff's.
LARGE, LARGE_ITEMS, DIFF_MARK = 6_000_000, 800_000_000, "diff"
ASKED_FOR = {SLICES, "repairs.parquet"}


def sealed(head: Mapping[str, Any], files: Mapping[str, Stamp], staged_in: str) -> str:
    """Return the manifest as text, with its own checksum."""
    stamps = {name: stamp._asdict() for name, stamp in files.items()}
    whole = {"layout": LAYOUT, **head, "files": stamps, "staged_in": staged_in}
    return json.dumps({**whole, "crc32": _checksum(whole)}, indent=2, ensure_ascii=False) + "\n"


def _checksum(head: Mapping[str, Any]) -> int:
    """Return a checksum of what JSON says, however it is spaced and ordered."""
    text = json.dumps(head, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return zlib.crc32(text.encode("utf-8"))


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return what the manifest of a saved evaluation says."""
    path = directory / MANIFEST
    try:
        head = _parsed(path)
    except FileFormatError as error:
        raise FileFormatError(f"{directory} holds no saved evaluation: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{directory} holds no saved evaluation: {MANIFEST}: {error}") from error
    if head.get("layout") != LAYOUT:
        raise FileFormatError(
            f"{path} is not an evaluation of layout {LAYOUT}, which this version reads. If another version saved "
            "it, evaluate and save anew"
        )
    try:
        changed = _checksum({k: v for k, v in head.items() if k != "crc32"}) != head.get("crc32")
    except ValueError:  # text that is none
        changed = True
    if changed:
        raise FileFormatError(f"{path} is not as it was saved: its checksum differs. Evaluate and save anew")
    wanted = SCHEMA | (ERRORS if "errors" in head else {}) | (DIFF if "diff" in head else {})
    for fault in _faults(head, wanted, "it"):
        raise FileFormatError(f"{path} is no saved evaluation: {fault}")
    known = all(_is_score(head.get(name)) for name in ("pair_weight", "recall_alone"))
    if not known or not _each(_is_text)(head.get("left_out", {})):
        raise FileFormatError(f"{path} is no saved evaluation: pair_weight, recall_alone or left_out is none")
    if not _is_outcomes(head.get("outcomes")):
        raise FileFormatError(f"{path} is no saved evaluation: its outcomes are none")
    if set(head["files"]) - ASKED_FOR != FILES[head["keep"]]:
        raise FileFormatError(f"{path} names other files than keep={head['keep']!r} has")
    return head


def may_be_read_in_parts(head: Mapping[str, Any]) -> bool:
    """Tell whether what is saved is of the kind of which tables tell part by part what is asked."""
    overlapping = head["definition"]["overlapping"]
    return not (head["keep"] == "scores" or overlapping or head.get("outcomes") is None or DIFF_MARK in head)


def is_large(files: Mapping[str, Stamp]) -> bool:
    """Tell whether files are of a result that is not read as a whole unasked."""
    return files["cells.parquet"].bytes >= LARGE or (ITEMS in files and files[ITEMS].bytes >= LARGE_ITEMS)


def fault_of_json(found: Any) -> str | None:
    """Say what of the JSON of an evaluation is not as that of a saved one; None if it is as it should be."""
    parts = ("definition", "overall", "coverage", "manifest", "slices")
    return next(_faults(found, {part: SCHEMA[part] for part in parts}, "it"), None)


def _parsed(path: Path) -> dict[str, Any]:
    with open_regular(path) as file:
        text = file.read(TOO_LARGE)
    if len(text) == TOO_LARGE:
        raise ValueError("it is too large")
    head = json.loads(text.decode("utf-8"), parse_constant=_refuse)
    if not isinstance(head, dict):
        raise ValueError("it is no JSON object")
    return head


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


Check = Callable[[Any], bool]


def _faults(value: Any, wanted: Any, where: str) -> Iterator[str]:
    """Yield what of a value is not as wanted: a check, or a dict of what its keys should have."""
    if not isinstance(wanted, Mapping):
        if not wanted(value):
            yield f"{where} cannot be {str(value)[:60]!r}"
        return
    if not isinstance(value, dict):
        yield f"{where} is no object"
        return
    for key, each in wanted.items():
        if key in value:
            yield from _faults(value[key], each, key)
        else:
            yield f"{where} lacks {key!r}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def _is_score(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_scalar(value: Any) -> bool:
    if type(value) is int:
        return -(1 << 63) <= value < 1 << 64
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _is_label(value: Any) -> bool:
    return _is_scalar(value) or all(map(_is_scalar, value if isinstance(value, list) else [value]))


def _one_of(*known: Any) -> Check:
    return lambda value: any(type(value) is type(each) and value == each for each in known)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _each(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _none_or(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _conforms(wanted: Any) -> Check:
    return lambda value: not any(_faults(value, wanted, ""))


def _is_slicing(rows: Any) -> bool:
    """Tell whether this is a table of slices, row by row."""
    if not (_list_of(_each(_is_scalar))(rows) and rows and {"n_items", "weight"} <= rows[0].keys()):
        return False
    columns = list(rows[0])
    scores = columns[columns.index("n_items") + 1 :]
    each = _conforms({"n_items": _is_count, **dict.fromkeys(scores, _is_score)})
    return all(list(row) == columns and each(row) for row in rows)


def is_in_file(value: Any) -> bool:
    """Tell whether this stands for slices that are in their file alone, as they are many."""
    return _conforms({"n_slices": _is_count, "columns": _list_of(_is_text)})(value)


def _is_outcomes(rows: Any) -> bool:
    """Tell whether this is a table of outcomes, row by row, or None."""
    if rows is None:
        return True
    each = _conforms(dict.fromkeys(COUNTS, _is_count) | dict.fromkeys(SUMS, _is_number))
    wanted = [(side, outcome) for side, outcomes in OUTCOMES.items() for outcome in outcomes]
    return _list_of(each)(rows) and [(row.get("side"), row.get("outcome")) for row in rows] == wanted


SIDE = {name: _is_count for name in ("items", "clusters", "singletons", "largest", "exact")} | {
    "size_quantiles": _each(_is_count)
}
BOUNDS = {field.name: _is_score for field in fields(Bounds)}
CONTENT = {
    "rows": lambda value: value is None or _is_count(value),
    "fingerprint": lambda value: (
        value is None or (_is_text(value) and re.fullmatch("[0-9a-f]{32}", value) is not None)
    ),
}
#: How far figures may be out of their range.
ROUNDING = 1e-9
#: What has to be there with standard errors, which may be there or not.
ERRORS = {
    "errors": _each(lambda value: value is None or (_is_number(value) and value >= 0)),
    "units": {
        "n": lambda value: _is_count(value) and value > 0,
        "effective": lambda value: _is_number(value) and 1 - ROUNDING <= value < 2**63,
        "largest_share": lambda value: _is_number(value) and 0 < value <= 1 + ROUNDING,
    },
}
WARNINGS = _list_of(_conforms({"code": _is_text, "level": _one_of("warning", "note"), "message": _is_text}))
_LEVELS = dict.fromkeys(("baseline", "experiment"), _each(_is_score))
#: What has to be there where the evaluation is that of a diff.
DIFF = {
    "diff": {
        "truth": _is_name,
        "changes": _none_or(
            _list_of(
                _conforms(
                    {"became": _is_text, "n_clusters": _is_count, "n_items": _is_count}
                    | dict.fromkeys(("weight", "share"), _is_score)
                )
            )
        ),
        "verdict": _none_or(
            _conforms(
                {"n_items": lambda value: _is_count(value) and value > 0, "n_unlabelled": _is_count}
                | {"unlabelled": _one_of("drop", "outside"), "scores": _each(_is_score), "levels": _LEVELS}
                | dict.fromkeys(("weight", "weight_unlabelled"), _is_number)
            )
        ),
        "errors": _each(_is_score),
        "judging": _list_of(_is_text),
        "warnings": WARNINGS,
        "not_computed": _each(_is_text),
    }
}
#: What has to be there; there may be more.
SCHEMA = {
    "keep": _one_of(*FILES),
    "metrics": _list_of(_is_text),
    "truth": _is_name,
    "prediction": _is_name,
    "definition": {
        "overlapping": _one_of(False, True),
        "weighted": _one_of(False, True),
        "weighting": _one_of("pointwise", "outer"),
        "beta": lambda value: _is_number(value) and value >= 0,
        "unmatched": {
            "truth": _one_of("drop", "raise", "singleton"),
            "prediction": _one_of("drop", "raise", "singleton", "outside"),
        },
        "nulls": _one_of("raise", "singleton", "drop"),
        "duplicates": _one_of("raise", "drop"),
        "noise": _is_label,
    },
    "manifest": {"arguments": _each(lambda value: True), "truth": CONTENT, "prediction": CONTENT},
    "overall": _each(_is_score),
    "coverage": {
        **{field.name: _is_count if field.name.startswith("n_") else _is_score for field in fields(Coverage)},
        "n_common": lambda value: _is_count(value) and value > 0,
        "bounds": lambda value: value is None or _conforms(BOUNDS)(value),
    },
    "summary": {"true": SIDE, "pred": SIDE},
    "warnings": WARNINGS,
    "slices": _each(lambda value: _is_slicing(value) or is_in_file(value)),
    "not_computed": _each(_is_text),
    "files": _each(_conforms({"bytes": _is_count, "crc32": _is_count})),
    "staged_in": is_staging_name,
}
