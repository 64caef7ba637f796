"""Flags of several commands as arguments of the library, and gates that set the exit code."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.options import GATE_FLAGS, LINK_FLAGS, add_report_flags
from fastbcubed.cli.output import in_flags, say, with_scores
from fastbcubed.errors import Argument, EvaluationWarning, OptionError, rewording
from fastbcubed.inputs.suggestions import plain, split
from fastbcubed.results.slices import element_of

if TYPE_CHECKING:
    from fastbcubed.inputs.layouts import LinkColumns
    from fastbcubed.results.baseline import Baseline
    from fastbcubed.results.gates import Bound, Gate


def evaluate_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.evaluate` for the flags."""
    unknown = (*GATE_FLAGS, *LINK_FLAGS)
    given = {name: value for name, value in vars(options).items() if name not in unknown}
    for name in ("run", "json", "worst", "show", "order_by", "verify", "slice_pairs"):
        given.pop(name, None)
    report = given.pop("report", None)
    given.pop("report_columns", None)
    if (options.show or options.verify or options.slice_pairs or report) and options.out is None:
        given["keep"] = "items"
    if options.table is not None:
        given["truth"], given["prediction"] = column_names(options.truth), column_names(options.prediction)
    return given | read_flags(options)


def read_flags(
    options: argparse.Namespace, sides: tuple[str, ...] = ("truth's", "prediction's")
) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.evaluate` for flags of inputs and scores that need conversion."""
    given: dict[str, Any] = {
        "item": columns_of_sides(options.item, "item", sides),
        "cluster": columns_of_sides(options.cluster, "cluster", sides),
        "weight": _weight(options.weight),
        "slices": [_slice(text) for text in options.slices],
        "unmatched": _policy(options.unmatched),
        "noise": _label(options.noise),
    }
    if options.metrics is not None:
        given["metrics"] = score_names(options.metrics)
    return given


def column_names(text: str) -> str | list[str]:
    """Return the column named by a text, or the several columns of a composite id."""
    names = [plain(name) for name in split(text, "+")]
    return names[0] if len(names) == 1 else names


def columns_of_sides(text: str, flag: str, sides: tuple[str, ...] = ("truth's", "prediction's")) -> Any:
    """Return the columns named by a flag: for all sides, or one for each."""
    found = [column_names(side) for side in split(text, ",")]
    if len(found) > len(sides) or "" in found or any("" in side for side in found if isinstance(side, list)):
        several = "a pair of columns" if len(sides) == 2 else "a column of each side"
        raise OptionError(
            f"--{flag} is a column, {several} ({','.join(sides)}), or columns joined by + that "
            f"are one id, not {text!r}"
        )
    return found[0] if len(found) == 1 else tuple(found)


def score_names(texts: list[str]) -> list[str]:
    """Return the names of scores in a flag that may be repeated."""
    names = [name for text in texts for name in split(text, ",")]
    if "" in names:
        raise OptionError(
            "--metric is one score or family, or several with a comma between them; one has no name"
        )
    return names


def _slice(text: str) -> Any:
    found = [element_of(part) for part in split(text, ",")]
    if "" in found or len(set(map(str, found))) < len(found):
        raise OptionError(
            "--slice is an attribute, bins of one such as year:10, or different ones to be crossed, such as "
            f"country,year, not {text!r}"
        )
    return key_of(text)


def key_of(text: str) -> Any:
    """Return the slicing key in the syntax of ``--slice``."""
    found = tuple(element_of(part) for part in split(text, ","))
    return found[0] if len(found) == 1 else found


def _weight(text: str | None) -> Any:
    """Return a column's name unchanged, a file as a path, and the table at a URI."""
    if text is None:
        return None
    from pathlib import Path

    from fastbcubed.inputs.files import open_files
    from fastbcubed.inputs.formats import ENDS
    from fastbcubed.inputs.locations import is_uri

    if is_uri(text):
        return open_files(text)
    apart = os.sep in text or (os.altsep is not None and os.altsep in text)
    is_file = text.lower().endswith(ENDS) or (apart and os.path.exists(text))
    return Path(text) if is_file else text


def _policy(text: str | None) -> str | dict[str, str] | None:
    if text is None or "=" not in text:
        return text
    pairs = [part.partition("=") for part in split(text, ",")]
    return {side.strip(): policy.strip() for side, _, policy in pairs}


def _label(text: str | None) -> int | str | None:
    """Return an integer if the text is one; `call` finds out whether labels are strings."""
    if text is None or re.fullmatch(r"[+-]?\d+", text) is None:
        return text
    return int(text)


def columns_of(text: str | None) -> str | list[str] | None:
    """Return the column, or the columns of a composite id, named by a flag, if given."""
    return None if text is None else column_names(text)


def read_as(columns: LinkColumns) -> str:
    """Return a text of the columns read for each part of a link."""
    read = {"left": " + ".join(columns.left), "right": " + ".join(columns.right), "score": columns.score}
    return ", ".join(f"{part} = {name}" for part, name in read.items() if name)


def numbers_of(texts: list[str] | None) -> list[float]:
    """Return the thresholds named by a flag, which may be repeated."""
    try:
        return [float(part) for text in texts or () for part in split(text, ",")]
    except ValueError:
        raise OptionError(
            f"--threshold is a number, or several with commas between them, not {', '.join(texts or ())!r}"
        ) from None


def with_links(arguments: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `evaluate`, with a clustering in place of links, if flags declare any."""
    side = options.links
    if side is None:
        for name in LINK_FLAGS:
            if getattr(options, name) not in (None, False):
                raise OptionError(f"--{name.replace('_', '-')} goes with --links")
        return arguments
    if arguments["table"] is not None:
        raise OptionError("--links goes with two inputs; with --table both are columns of one table")
    from fastbcubed.inputs.clustering import Clustering

    item = arguments["item"]
    with rewording(_of_links), warnings_said():
        made = Clustering.from_links(
            arguments[side], columns_of(options.link_left), columns_of(options.link_right),
            score=options.link_score, threshold=options.threshold, ascending=options.ascending,
            items=options.link_items, item=item[side == "prediction"] if isinstance(item, tuple) else item,
            memory_limit=options.memory_limit,
        )  # fmt: skip
    return {**arguments, side: made}


@contextmanager
def warnings_said() -> Iterator[None]:
    """Print warnings as the command line does."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EvaluationWarning)
        yield
    for each in caught:
        say(f"warning: {in_flags(each.message.args[0])}")  # type: ignore[union-attr]


def _of_links(part: Any) -> Any:
    """Return a part of a message with the flags of links, which have other names where a clustering may be given."""
    is_of_links = isinstance(part, Argument) and part.name in ("left", "right", "score", "items")
    return replace(part, name=f"link_{part.name}") if is_of_links else part


#: The default order of clusters.
LOSS = "loss"


def with_order(arguments: dict[str, Any], asked: str) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of `evaluate` including the score to order clusters by, and this score; None for loss."""
    from fastbcubed.metrics.registry import resolve

    if asked == LOSS:
        return arguments, None
    found = resolve([asked])[0]
    if len(found) > 1 or found[0].overall_only:
        what = (
            f"a family of {len(found)} scores"
            if len(found) > 1
            else "one score of all items, which clusters lack"
        )
        raise OptionError(f"--order-by {asked} is {what}; name a mean over items, such as f1, or {LOSS}")
    name = found[0].alias_of or found[0].name
    return with_scores(arguments, [name]), name


#: Clusters of each side on a page, and members of each.
WORST, MEMBERS = 20, 10


def check_report(options: argparse.Namespace) -> None:
    """Raise, before the work, if a page cannot be made or written."""
    if options.report is None and getattr(options, "report_columns", None) is not None:
        raise OptionError("--report-columns goes with --report")
    if options.report is not None:
        from fastbcubed.results.page import require_packages, require_place

        require_packages("--report")
        require_place(options.report, overwrite=True)


def report_columns(text: str | None) -> list[str]:
    """Return the attributes named by a flag."""
    return [] if text is None else [plain(name) for name in split(text, ",")]


#: The exit code if a gate failed.
FAILED_GATE = 1


def finish(options: argparse.Namespace, result: Any, gates: Sequence[Gate] = ()) -> int:
    """Name the written files, write the page of a result if requested, and return 1 if a gate failed."""
    if getattr(options, "out", None) is not None:
        say(f"wrote {options.out}; in Python, fastbcubed.load({options.out!r}) reads it")
    if options.report is not None:
        from fastbcubed.results.page import report_of

        asked = {"columns": report_columns(options.report_columns)}
        report_of(lambda found: result._page(found, gates), options.report, asked, overwrite=True)
        say(f"wrote {options.report}")
    return 0 if all(gate.passed for gate in gates) else FAILED_GATE


def add_gate_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of gates; each gate that fails makes the exit code 1."""
    add = add_bound_flags(parser)
    add(
        "--baseline", metavar="PATH",
        help="an earlier result of the same truth, saved or as JSON, that --fail-worse compares with",
    )  # fmt: skip
    add(
        "--fail-worse", metavar="SCORE=VALUE[@NAME=SLICE]", **BOUND,
        help="fail if a score is worse than that of the baseline by more than a value, such as f1=0.002; repeatable",
    )  # fmt: skip
    add(
        "--summary", metavar="FILE",
        help="add verdict, gates, warnings, scores, slices and the clusters that cost most to a file as Markdown, such "
        "as $GITHUB_STEP_SUMMARY",
    )  # fmt: skip
    add_report_flags(parser)


def add_bound_flags(parser: argparse.ArgumentParser) -> Any:
    """Add the flags of gates that need no other result, and return the function that adds more to their group."""
    add = parser.add_argument_group("gates: the exit code is 1 if one fails").add_argument
    add(
        "--fail-under", metavar="SCORE=VALUE[@NAME=SLICE]", **BOUND,
        help="fail if a score is below a value, or truth_coverage or prediction_coverage is; in a slice, such as "
        "f1=0.9@country=US, f1=0.9@country=US,year=2020, or f1=0.9@year:10=1990-1999 of a bin, if one is named; "
        "repeatable",
    )  # fmt: skip
    add(
        "--fail-over", metavar="SCORE=VALUE[@NAME=SLICE]", **BOUND,
        help="fail if a score is above a value; for scores of which less is better, such as jaccard_distance",
    )  # fmt: skip
    add(
        "--fail-on-warning", action="append", default=[], nargs="?", const="", metavar="CODE",
        help="fail if there is a warning, or a warning or note of one CODE; repeatable",
    )  # fmt: skip
    return add


def bound_of(text: str) -> tuple[str, float, str]:
    """Return score, value and slice of SCORE=VALUE or SCORE=VALUE@SLICE."""
    bound, at, where = text.partition("@")
    name, _, value = bound.partition("=")
    try:
        if at and not where.strip():  # as from an unset variable: all items were not meant
            raise ValueError
        return name.strip(), float(value), where.strip()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form SCORE=VALUE, such as f1=0.9, or SCORE=VALUE@NAME=SLICE"
        ) from None


#: Syntax of a flag of bounds.
BOUND: Any = {"action": "append", "default": [], "type": bound_of}


class Gates:
    """The requested gates, checked before the work."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.bounds: list[Bound] = []
        self.worse: list[Bound] = []
        self.baseline: Baseline | None = None
        self.codes: list[str] = options.fail_on_warning
        if not any(getattr(options, flag) for flag in GATE_FLAGS):  # the imports below load all scores
            return
        from fastbcubed.results.baseline import Baseline

        self.bounds, self.worse = bounds_of(options)
        if bool(self.worse) != (options.baseline is not None):
            lacking = "--fail-worse" if options.baseline is not None else "--baseline"
            raise OptionError(f"--baseline and --fail-worse go together; {lacking} is missing")
        if options.baseline is not None:
            self.baseline = Baseline.read(options.baseline)

    def needs(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of `evaluate` with the slices, and the scores in them, that the gates need."""
        return with_slices(arguments, [*self.bounds, *self.worse])

    def judge(self, ev: Any) -> list[Gate]:
        """Evaluate all gates."""
        if not (self.bounds or self.worse or self.codes):
            return []
        from fastbcubed.results.gates import try_bound, try_warnings

        found = [try_bound(bound, ev) for bound in self.bounds]
        if self.baseline is not None:
            self.baseline.require_comparable(ev)
            worse = [self.baseline.try_bound(bound, ev) for bound in self.worse]
            found += [replace(gate, reason=in_flags(gate.reason)) for gate in worse]
        return found + try_warnings(self.codes, ev)


def bounds_of(
    options: argparse.Namespace, called: Callable[[str], str] = str
) -> tuple[list[Bound], list[Bound]]:
    """Return the bounds on scores, and on how much worse they may be; raise for unknown scores or warning codes.

    `called` returns the score that a name means.
    """
    given = {flag: getattr(options, flag, ()) for flag in ("fail_under", "fail_over", "fail_worse")}
    codes = getattr(options, "fail_on_warning", ())
    if not (codes or any(given.values())):  # the imports below load all scores
        return [], []
    from fastbcubed.results.baseline import require_worse
    from fastbcubed.results.gates import Bound, as_where, require_bound
    from fastbcubed.results.warnings import require_code

    bounds, worse = [], []
    for name, other in (("fail_under", "--fail-over"), ("fail_over", "--fail-under")):
        for score, value, where in given[name]:
            bound = Bound(called(score), value, name == "fail_under", as_where(where))
            flag = f"--{name.replace('_', '-')}"
            bounds.append(require_bound(bound, f"{flag} {score}={value:g}", f"{other} {score}={value:g}"))
    for score, value, where in given["fail_worse"]:
        bound = Bound(score, value, where=as_where(where))
        worse.append(require_worse(bound, f"--fail-worse {score}={value:g}"))
    for code in filter(None, codes):
        _require_code(code, require_code)
    return bounds, worse


def with_slices(
    arguments: dict[str, Any], bounds: Sequence[Bound], usual: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the arguments of `evaluate` with the slices that have bounds, and the scores of these bounds.

    `usual` are the scores of what has others than `evaluate` where none are named.
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


def _require_code(code: str, require: Any) -> None:
    try:
        require(code)
    except OptionError as error:
        raise OptionError(
            f"--fail-on-warning: {error}. For any warning, put the flag after TRUTH and PREDICTION, before "
            "another flag or last"
        ) from None


def append_page(path: str, ev: Any, gates: list[Gate]) -> None:
    """Append an evaluation to a file as Markdown; other steps of a job may have written to it."""
    from fastbcubed.cli.output import as_markdown
    from fastbcubed.runtime.output_files import append_text

    append_text(path, as_markdown(ev, gates))
