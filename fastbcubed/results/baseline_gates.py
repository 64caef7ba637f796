"""Gates against a baseline: an earlier result, saved or as JSON, that a new one may not be worse than."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fastbcubed.align.policies import Coverage
from fastbcubed.errors import FileFormatError, Message, OptionError, arg
from fastbcubed.metrics.metric import without_rounding
from fastbcubed.render.json import plain
from fastbcubed.render.number_formats import count, score_text
from fastbcubed.results.gates import (
    COVERAGES,
    SIZES,
    Bound,
    Gate,
    Row,
    is_score,
    same_slicing,
    size_in,
    slice_of,
    slices_of,
    subject_of,
    value_in_slice,
    value_of,
)
from fastbcubed.results.saved_files import MANIFEST, is_in_file, read_manifest
from fastbcubed.results.slices import Element, name_columns, slice_name
from fastbcubed.results.warnings import lacks_more
from fastbcubed.runtime.arguments import path_of

#: The parts of an evaluation's JSON that are compared.
PARTS = ("definition", "overall", "coverage", "summary", "manifest", "slices")
#: How far the weight of the truth may differ since it was added up in another order.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Baseline:
    """An earlier result: its origin, and its `Evaluation.to_dict`."""

    name: str
    result: Mapping[str, Any]

    @classmethod
    def read(cls, path: Any) -> Baseline:
        """Read a directory that an evaluation was saved in, or a file that `Evaluation.to_json` was written to."""
        place = Path(path_of(path, "a baseline is named by a path"))
        if place.is_dir() or place.name == MANIFEST:
            head = read_manifest(place if place.is_dir() else place.parent)
            if "kind" in head:
                raise FileFormatError(
                    f"{path} has no evaluation to compare with: it is of kind {head['kind']}"
                )
            return cls(str(path), head)
        try:
            found = json.loads(place.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileFormatError(f"{path} cannot be read as the JSON of an evaluation: {reason}") from error
        lacking = [
            part for part in PARTS if not isinstance(found, dict) or not isinstance(found.get(part), dict)
        ]
        if lacking:
            raise FileFormatError(
                f"{path} is not the JSON of an evaluation of this version: it lacks {', '.join(lacking)}. Write it "
                "anew with Evaluation.to_json, or evaluate --json"
            )
        try:  # it has no checksum, and may have been edited
            _require_figures(found)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"{path} is not the JSON of an evaluation of this version ({type(error).__name__}: {error}). Write it "
                "anew with Evaluation.to_json, or evaluate --json"
            ) from error
        return cls(str(path), found)

    @property
    def coverage(self) -> Coverage:
        """Coverage of each side by the other."""
        return Coverage.of(self.result["coverage"])

    def require_comparable(self, ev: Any) -> None:
        """Raise OptionError if scores were defined in another way there, or the truth was another one."""
        refused = f"{self.name} cannot be the baseline:"
        here, there = plain(ev.definition), self.result["definition"]
        differ = [name for name in here.keys() | there.keys() if here.get(name) != there.get(name)]
        if differ:
            named = "; ".join(f"{n}: {there.get(n)!r} there, {here.get(n)!r} here" for n in sorted(differ))
            raise OptionError(f"{refused} its scores are defined in another way ({named})")
        truth, own = self.result["manifest"]["truth"], ev.manifest["truth"]
        for what in ("rows", "fingerprint"):
            if truth.get(what) != own[what]:
                raise OptionError(
                    f"{refused} its truth was another one ({what} {truth.get(what)} there, {own[what]} here)"
                )
        weights = [each.weight_common + each.weight_truth_only for each in (self.coverage, ev.coverage)]
        if abs(weights[0] - weights[1]) > ROUNDING * abs(weights[1]):
            raise OptionError(
                f"{refused} its truth had other weights ({weights[0]:.12g} there, {weights[1]:.12g} here)"
            )

    def try_bound(self, bound: Bound, ev: Any) -> Gate:
        """Return whether a score is at most `bound.value` worse than here."""
        called = Path(self.name).absolute().name
        gate = gate_of_change(bound, value_of(bound, ev), self._value(bound), called)
        n, n_before = self._n_items(bound, ev)
        more = f", of {count(n)} items, {count(n_before)} in the baseline" if n != n_before else ""
        reason = "" if bound.name in COVERAGES else self._left_out(ev)
        return replace(
            gate,
            found=gate.found + more,
            passed=gate.passed and not reason,
            figures={**gate.figures, "n_items": n, "baseline_n_items": n_before},
            reason=reason,
        )

    def _n_items(self, bound: Bound, ev: Any) -> tuple[int, int]:
        if bound.where:
            return slice_of(bound, slices_of(ev))["n_items"], slice_of(bound, self._slices)["n_items"]
        policies = ev.policies  # the baseline's are the same
        return ev.coverage.n_scored(policies), self.coverage.n_scored(policies)

    def _left_out(self, ev: Any) -> str:
        """Return a note if more truth-only items are dropped than in the baseline."""
        if ev.policies.truth != "drop" or not lacks_more(ev.coverage, self.coverage):
            return ""
        n, n_before = self._n_items(Bound("f1", 0.0), ev)
        return Message(
            f"The scores are of fewer items: {count(n_before)} then, {count(n)} now. Items that only the truth has are "
            f"dropped, and are more of it than then; pass {arg('unmatched', {'truth': 'singleton'})} in both runs"
        )

    def _value(self, bound: Bound) -> float:
        if bound.where:
            return value_in_slice(bound, self._slices)
        if bound.name in COVERAGES:
            return float(getattr(self.coverage, bound.name))
        if bound.name in SIZES or bound.name == "items":
            return size_in(self.result["summary"], bound.name)
        if bound.name == "cells":
            return float(self._n_cells())
        if bound.name not in self.result["overall"]:
            raise OptionError(
                f"{self.name} has no {bound.name}; evaluate it with {arg('metrics', bound.name)}, too"
            )
        value = self.result["overall"][bound.name]
        return math.nan if value is None else float(value)

    def _n_cells(self) -> int:
        """Return the number of cells, which are saved in a file."""
        import pyarrow.parquet as pq

        place = self._directory / "cells.parquet"
        if not place.is_file():
            raise OptionError(
                f"{self.name} has no cells to count; save it as a directory, with {arg('keep', 'cells')}"
            )
        return int(pq.read_metadata(place).num_rows)

    @property
    def _directory(self) -> Path:
        place = Path(self.name)
        return place.parent if place.name == MANIFEST else place

    def _slices(self, names: tuple[Element, ...]) -> tuple[list[Row], list[str]]:
        for by, rows in self.result.get("slices", {}).items():
            many = is_in_file(rows)
            columns = rows["columns"] if many else name_columns(rows[0]) if rows else []
            if columns and same_slicing(columns, names):
                return (self._in_file(by) if many else rows), columns
        by = slice_name(names)
        raise OptionError(f"{self.name} has no slices by {by}; evaluate it with {arg('slices', by)}")

    def _in_file(self, by: str) -> list[Row]:
        """Return slices that are too many for the manifest."""
        from fastbcubed.results.load import read_saved

        table: Any = read_saved(self._directory, lambda ev, _: ev.sliced[by], check=False)
        return list(table.to_pylist())


def gate_of_change(bound: Bound, now: float, before: float, where: str) -> Gate:
    """Return whether a score is at most `bound.value` worse than in the named result; False for NaN.

    A size may be that far away in either direction.
    """
    if not is_score(bound.name) and bound.name not in COVERAGES:
        return _gate_of_size(bound, now, before, where)
    change = before - now if subject_of(bound, bound.name).best == "higher" else now - before
    worse = float(without_rounding(change, now))
    figures = {"score": bound.name, "slice": bound.slice, "value": now, "baseline": before}
    figures |= {"worse_by": worse, "at_most_worse_by": bound.value}
    text = f"{abs(worse):.3g} {'worse' if worse > 0 else 'better'}" if worse else "the same"
    found = f"is {score_text(now)}, {score_text(before)} in {where}: {'n/a' if math.isnan(worse) else text}"
    passed = bool(without_rounding(worse - bound.value, now) <= 0)
    return Gate(bound.subject, f"wanted at most {bound.value:g} worse", found, passed, figures)


def _gate_of_size(bound: Bound, now: float, before: float, where: str) -> Gate:
    """Return whether a size is at most `bound.value` away from that in the named result."""
    away = float(without_rounding(now - before, now))
    figures = {"score": bound.name, "slice": None, "value": now, "baseline": before}
    figures |= {"away_by": abs(away), "at_most_away_by": bound.value}
    text = f"{score_text(abs(away))} {'more' if away > 0 else 'less'}" if away else "the same"
    found = f"is {score_text(now)}, {score_text(before)} in {where}: {text}"
    passed = bool(without_rounding(abs(away) - bound.value, now) <= 0)
    return Gate(
        bound.subject, f"wanted at most {score_text(bound.value)} more or less", found, passed, figures
    )


def require_worse(bound: Bound, written: str) -> Bound:
    """Return a bound on how much worse a score may be, or how far away a size, or raise OptionError."""
    name, _, _, best = subject_of(bound, written)
    if best == "neither" and is_score(bound.name):
        raise OptionError(f"{written}: neither more nor less of {name} is better, so that none is worse")
    if not 0 <= bound.value < math.inf:
        raise OptionError(
            f"{written}: how {'much worse' if is_score(bound.name) else 'far away'} {name} may be is 0 or more"
        )
    return Bound(name, bound.value, where=bound.where)


def _require_figures(found: Mapping[str, Any]) -> None:
    """Raise KeyError, TypeError or ValueError if the JSON of an evaluation lacks a figure that gates compare."""
    coverage = vars(Coverage.of(found["coverage"]))
    counts = [coverage[name] for name in coverage if name.startswith("n_")]
    figures = [*found["overall"].values(), *coverage.values()]
    for row in (row for rows in found["slices"].values() for row in rows):
        counts.append(row["n_items"])
        figures += [row["weight"], *(row.get(name) for name in found["overall"])]
    for each in counts:
        int(each)
    for figure in figures:
        float(0 if figure is None else figure)
    dict(found["manifest"]["truth"])
