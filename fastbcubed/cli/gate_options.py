"""Gates on the command line: their flags, the results they need, and the exit code on failure."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.flag_values import explain_of, report_columns, say_saved
from fastbcubed.cli.options import GATE_FLAGS, add_options, add_report_flags
from fastbcubed.cli.output import in_flags, say, warnings_said, with_scores
from fastbcubed.errors import OptionError
from fastbcubed.runtime.exit_codes import FAILED_GATE

if TYPE_CHECKING:
    from fastbcubed.compare_runs.gates_of_runs import Baseline
    from fastbcubed.render.document import Document
    from fastbcubed.results.gates import Bound, Gate
    from fastbcubed.results.page import Asked


def write_page(
    options: argparse.Namespace,
    result: Any,
    gates: Sequence[Gate] = (),
    found: Mapping[str, Any] | None = None,
    *,
    save: bool = False,
) -> None:
    """Write the report of a result, including `found`, if requested, and print the paths of result and report.

    The result is also written to ``--out`` if `save`; otherwise, the library has done so.
    """
    if getattr(options, "out", None) is not None:
        if save:
            result.save(options.out)
        say_saved(options.out)
    if options.report is not None:
        from fastbcubed.results.page import gate_notices, report_of

        asked: dict[str, Any] = {"columns": report_columns(getattr(options, "report_columns", None))}
        asked["explain"], notices = explain_of(getattr(options, "report_explain", None)), gate_notices(gates)

        def page(asked: Asked) -> Document:
            shown: Document = result._document(asked.with_found(found or {}, _requesting(options)))
            return shown.with_gates(notices)

        report_of(page, options.report, asked, overwrite=True)
        say(f"wrote {options.report}")


def _requesting(options: argparse.Namespace) -> list[str]:
    """Return the flags that requested further figures of a result, for the command that reproduces its report."""
    words = list[str]()
    for name in ("show", "repairs"):
        if n := getattr(options, name, 0):
            words += [f"--{name}", str(n)]
    for name in getattr(options, "slice_pairs", ()):
        words += ["--slice-pairs", name]
    return words


def code_of(gates: Sequence[Gate]) -> int:
    """Return the exit code: that of a failed gate if any gate failed, else 0."""
    return 0 if all(gate.passed for gate in gates) else FAILED_GATE


def add_gate_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of gates; if any gate fails, the exit code is 1."""
    add = add_bound_flags(parser)
    add(
        "--baseline", metavar="PATH",
        help="earlier result that --fail-worse compares with\nfor the same truth; saved, or as JSON",
    )  # fmt: skip
    worse = (
        "a score is worse than the baseline's; repeatable\nby more than a value, such as f1=0.002, or significantly "
        "(f1=significant: the 95 %% interval of the difference excludes 0), or a size differs by more "
        "than this, such as clusters_pred=1000"
    )
    add("--fail-worse", **WORSE, help=f"fail if {worse}")
    add_report_flags(parser)


def gate_group(parser: argparse.ArgumentParser) -> Any:
    """Add the group of flags for gates."""
    return parser.add_argument_group("gates: the exit code is 1 if one fails")


def add_bound_flags(parser: argparse.ArgumentParser) -> Any:
    """Add the flags of gates that need no other result, and return the `add_argument` of their group."""
    group = gate_group(parser)
    add = group.add_argument
    under = (
        "fail if a score, coverage or size is below a value; repeatable\na score, truth_coverage, "
        "prediction_coverage, or a size. Sizes cover scored items: "
        "clusters_pred, largest_pred, singletons_pred (as a share of the clusters), the "
        "same with _true, items and cells. For a slice: f1=0.9@country=US, f1=0.9@country=US,year=2020, or, "
        "for a bin, f1=0.9@year:10=1990-1999. For an end of the 95 %% interval: f1.low=0.8"
    )
    add("--fail-under", **BOUND, help=under)
    over = "fail if a score is above a value\nfor scores where lower is better, such as jaccard_distance"
    add("--fail-over", **BOUND, help=over)
    add(
        "--fail-on-warning", action="append", default=[], nargs="?", const="", metavar="CODE",
        help="fail on any warning, or on the warning or note CODE; repeatable",
    )  # fmt: skip
    add_options(group, "summary", summary=", scores and slices")
    return add


def bound_of(text: str, *, words: Sequence[str] = ()) -> tuple[str, float | str, str]:
    """Return the score, value and slice in SCORE=VALUE or SCORE=VALUE@SLICE; a value may be one of `words`."""
    bound, at, where = text.partition("@")
    name, _, value = bound.partition("=")
    try:
        if at and not where.strip():  # an empty slice, as from an unset variable, does not mean all items
            raise ValueError
        return name.strip(), value.strip() if value.strip() in words else float(value), where.strip()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form SCORE=VALUE, such as f1=0.9, or SCORE=VALUE@NAME=SLICE"
        ) from None


#: Arguments of a flag for bounds.
BOUND: Any = {"action": "append", "default": [], "type": bound_of, "metavar": "SCORE=VALUE[@NAME=SLICE]"}
#: Arguments of a flag for bounds on how much worse a score may be than the baseline's.
WORSE = {**BOUND, "type": partial(bound_of, words=["significant"])}


class Gates:
    """The requested gates, checked for mistakes before the work starts."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.bounds: list[Bound] = []
        self.worse: list[Bound] = []
        self.baseline: Baseline | None = None
        self.codes: list[str] = options.fail_on_warning
        # avoids the imports below, which load all scores
        if not any(getattr(options, flag) for flag in GATE_FLAGS):
            return
        from fastbcubed.compare_runs.gates_of_runs import Baseline

        self.bounds, self.worse = bounds_of(options)
        if bool(self.worse) != (options.baseline is not None):
            lacking = "--fail-worse" if options.baseline is not None else "--baseline"
            raise OptionError(f"--baseline and --fail-worse go together; {lacking} is missing")
        if options.baseline is not None:
            self.baseline = Baseline.read(options.baseline)

    def needs(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of `evaluate` with the slices and scores that the gates need."""
        bounds = [*self.bounds, *self.worse]
        if arguments.get("keep") is None and any(bound.end for bound in bounds):
            arguments = {**arguments, "keep": "cells"}  # intervals need cells
        return with_slices(with_scores(arguments, [bound.name for bound in self.worse if bound.end]), bounds)

    def judge(self, ev: Any) -> list[Gate]:
        """Evaluate all gates, and return their outcomes."""
        if not (self.bounds or self.worse or self.codes):
            return []
        from fastbcubed.results.gates import try_bound, try_warnings

        with warnings_said():
            found = [try_bound(bound, ev) for bound in self.bounds]
            if self.baseline is not None:
                self.baseline.require_comparable(ev)
                worse = [self.baseline.try_worse(bound, ev) for bound in self.worse]
                found += [replace(gate, reason=in_flags(gate.reason)) for gate in worse]
        return found + try_warnings(self.codes, ev)


def bounds_of(
    options: argparse.Namespace, called: Callable[[str], str] = str
) -> tuple[list[Bound], list[Bound]]:
    """Return the bounds on scores, and on how much worse they may be; raise for unknown scores or warning codes.

    `called` returns the score that a name in a bound stands for.
    """
    given = {flag: getattr(options, flag, ()) for flag in ("fail_under", "fail_over", "fail_worse")}
    codes = getattr(options, "fail_on_warning", ())
    if not (codes or any(given.values())):  # avoids the imports below, which load all scores
        return [], []
    from fastbcubed.compare_runs.gates_of_runs import require_worse
    from fastbcubed.results.gates import SIGNIFICANT, Bound, as_where, require_bound
    from fastbcubed.results.warnings import require_code

    bounds, worse = [], []
    for name, other in (("fail_under", "--fail-over"), ("fail_over", "--fail-under")):
        for score, value, where in given[name]:
            bound = Bound.of(score, value, name == "fail_under", as_where(where))
            bound = replace(bound, name=called(bound.name))
            flag = f"--{name.replace('_', '-')}"
            bounds.append(require_bound(bound, f"{flag} {score}={value:g}", f"{other} {score}={value:g}"))
    for score, value, where in given["fail_worse"]:
        significant = value == SIGNIFICANT
        bound = Bound(
            score, 0.0 if significant else value, where=as_where(where), end=SIGNIFICANT * significant
        )
        worse.append(require_worse(bound, f"--fail-worse {score}={value if significant else f'{value:g}'}"))
    try:
        for code in filter(None, codes):
            require_code(code)
    except OptionError as error:
        raise OptionError(
            f"--fail-on-warning: {error}. To fail on any warning, give the flag without a code: put it "
            "last, or directly before another flag"
        ) from None
    return bounds, worse


def with_slices(
    arguments: dict[str, Any], bounds: Sequence[Bound], usual: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the arguments of `evaluate` with the slices that have bounds, and the bounded scores.

    `usual` are the default scores, if they differ from those of `evaluate`.
    """
    in_slices = [bound for bound in bounds if bound.where]
    if not in_slices:
        return arguments
    from fastbcubed.results.gates import same_slicing
    from fastbcubed.results.slices import elements

    slices = list(arguments["slices"])
    for bound in in_slices:
        if not any(same_slicing(map(str, elements(key)), bound.by) for key in slices):
            slices.append(bound.by[0] if len(bound.by) == 1 else bound.by)
    return {**with_scores(arguments, [bound.name for bound in in_slices], usual), "slices": slices}
