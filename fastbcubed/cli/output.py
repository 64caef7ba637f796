"""The terminal and the other outputs of a command: tables, progress, messages, JSON and Markdown."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from fastbcubed.errors import (
    SPACES,
    Argument,
    Either,
    EvaluationWarning,
    IdTypeError,
    Message,
    Part,
    alternatives,
    visible,
)
from fastbcubed.inputs.arrays import from_numpy, to_numpy
from fastbcubed.metrics.bcubed import LOSS_OF_SIDE, LOSSES
from fastbcubed.render import markdown
from fastbcubed.render.document import Block, Grid, Heading, Notices, Prose
from fastbcubed.render.number_formats import count, counted, label, percent, plus_minus, score_text
from fastbcubed.render.text import drawn
from fastbcubed.results.evaluation_text import outcomes, overview, score_rows, verdict
from fastbcubed.results.gates import Gate
from fastbcubed.results.slices import name_columns
from fastbcubed.results.table import LOSS, listed

if TYPE_CHECKING:
    import pyarrow as pa

    from fastbcubed.metrics.metric import Metric
    from fastbcubed.results.evaluation import Evaluation
    from fastbcubed.results.table import Table

#: Scores that a listing shows if they were computed; otherwise the first few computed ones.
LISTED = ("precision", "recall", "f1")
#: Explanation of the last columns of slices.
SHARES = "of P loss, of R loss: share of what all items lose of precision, and of recall"


def slice_grid(evaluation: Evaluation, table: pa.Table, *, of_all: bool = True) -> Grid:
    """Return slices: names, items, their share of all items (or weight) if `of_all`, scores, shares of losses.

    Scores have standard errors where the table has.
    """
    names = name_columns(table.column_names)
    scores = score_columns(evaluation.metrics, table.column_names)
    total, lost = evaluation.coverage.weight_scored(evaluation.policies), lost_by_all(evaluation)
    rows = [
        {
            **row,
            "share": row["weight"] / total,
            **{name: _part(row[name], whole) for name, whole in lost.items()},
        }
        for row in table.to_pylist()
    ]
    share = (f"of {'weight' if evaluation.contingency.weighted else 'items'}", "share", "percent")
    known = any(plus_minus(row.get(f"{name}_se")) for row in rows for name in scores)
    columns = [
        *((name, name, "name") for name in names),
        ("items", "n_items", "count"),
        *[share] * of_all,
        *(
            column
            for name in scores
            for column in [(name, name, "score"), *[("±", f"{name}_se", "error")] * known]
        ),
        *((f"of {name[0].upper()} loss", name, "percent") for name in lost),
    ]
    return Grid.of(rows, columns, len(names))


def cluster_grid(evaluation: Evaluation, table: pa.Table, lost: str) -> Grid:
    """Return a listing of clusters: label, items, parts, outcome, scores, and share of a loss."""
    scores = score_columns(evaluation.metrics, table.column_names)
    outcome = "outcome" in table.column_names
    whole = lost_by_all(evaluation)[lost]
    rows = [
        {**row, "cluster": "(alone by policy)" if row["cluster"] is None else row["cluster"],
         "share": _part(row[lost], whole)}
        for row in table.to_pylist()
    ]  # fmt: skip
    columns = [
        ("cluster", "cluster", "name"),
        *[("outcome", "outcome", "text")] * outcome,
        ("items", "n_items", "count"),
        *[("weight", "weight", "amount")] * evaluation.contingency.weighted,
        ("parts", "n_parts", "count"),
        *((name, name, "score") for name in scores),
        ("of loss", "share", "percent"),
    ]
    return Grid.of(rows, columns, 1 + outcome)


def score_columns(metrics: Sequence[Metric], there: Sequence[str]) -> list[str]:
    """Return the scores in a table that a listing shows."""
    listed = [name for name in LISTED if name in there]
    return listed if len(listed) == len(LISTED) else [m.name for m in metrics if m.name in there][:4]


def lost_by_all(evaluation: Evaluation) -> dict[str, float]:
    """Return the loss of precision and of recall over all items, if computed or still computable."""
    known = evaluation.overall
    return {
        name: known[metric.name] if metric.name in known else evaluation.metric(metric)
        for name, metric in LOSSES.items()
        if metric.name in known or evaluation.has_clusters
    }


def _part(loss: float, whole: float) -> float:
    return loss / whole if whole else 0.0


#: A slicing is shown as a whole up to this many slices.
FEW_SLICES = 12
#: Empty columns between two columns of a table.
GAP = 2
#: Characters of a name in a table; longer ones are cut, also in a pipe: JSON and Parquet have them whole.
LONGEST_NAME = 100


class Terminal:
    """Writes lines and tables to stdout; a pipe gets no colours, and names of up to `LONGEST_NAME` characters."""

    def __init__(self) -> None:
        self.to_people = sys.stdout.isatty()
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:  # a name that the encoding lacks must not be an error
            reconfigure(errors="backslashreplace")

    def line(self, text: str = "") -> None:
        """Write a line, or several, with nothing that a terminal obeys."""
        self._write(visible(text, SPACES))

    def _write(self, text: str) -> None:
        with to_stdout():
            sys.stdout.write(f"{text}\n")

    def title(self, text: str) -> None:
        """Write a heading after an empty line."""
        text = visible(text, SPACES)
        self._write(f"\n\033[1m{text}\033[0m" if self._styled else f"\n{text}")

    def show(self, blocks: Iterable[Block]) -> None:
        """Write headings, sentences and tables."""
        for block in blocks:
            match block:
                case Heading(text):
                    self.title(text)
                case Prose(sentences):
                    self.line("\n".join(sentences))
                case Grid():
                    self.grid(block)

    def flush(self) -> None:
        """Flush the output."""
        with to_stdout():
            sys.stdout.flush()

    @property
    def width(self) -> int | None:
        """The number of columns of the terminal; None if unbounded."""
        if not self.to_people:
            return None
        import shutil

        return shutil.get_terminal_size().columns

    def grid(self, grid: Grid, *, wrap: bool = False) -> None:
        """Write a table; one too wide for a terminal without standard errors.

        Names that do not fit even so are cut, or wrapped if `wrap`; figures never.
        """
        from rich.cells import cell_len
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        def needed(texts: Grid) -> list[int]:
            return [max(map(cell_len, column)) for column in zip(texts.header, *texts.rows, strict=True)]

        if self.width is not None and _length(needed(grid.texts)) > self.width:
            grid = grid.without("error")
        grid = grid.texts
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        widths = [
            width if wrap or at >= grid.names else min(width, LONGEST_NAME)
            for at, width in enumerate(needed(grid))
        ]
        if self.width is not None:
            widths = _fitted(widths, grid.names, self.width)
        for at, (name, width) in enumerate(zip(grid.header, widths, strict=True)):
            table.add_column(
                name,
                justify="left" if at < grid.names else "right",
                no_wrap=not wrap,
                overflow="fold" if wrap else "ellipsis",
                width=width,
            )
        for row in grid.rows:
            table.add_row(*map(Text, row))
        console = Console(
            width=_length(widths) + GAP,
            force_terminal=self._styled,
            highlight=False,
            markup=False,
            emoji=False,
        )
        with console.capture() as captured:
            console.print(table)
        self._write("\n".join(line.rstrip() for line in captured.get().splitlines()))

    def gates(self, gates: Sequence[Gate]) -> None:
        """Write the results of gates, if there are any."""
        if gates:
            self.line("\n" + "\n".join(gate.line for gate in gates))

    @property
    def _styled(self) -> bool:
        return self.to_people and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _length(widths: Sequence[int]) -> int:
    """Return the columns of a terminal that columns of these widths take."""
    return sum(widths) + GAP * (len(widths) - 1)


def _fitted(needed: list[int], names: int, width: int) -> list[int]:
    """Return column widths for a terminal: the widest names shrink first, down to eight columns.

    Examples
    --------
    >>> _fitted([30, 12, 9], 2, 40)
    [15, 12, 9]
    """
    widths = list(needed)
    while _length(widths) > width and max(widths[:names]) > 8:
        widths[widths.index(max(widths[:names]))] -= 1
    return widths


def print_evaluation(
    evaluation: Evaluation, terminal: Terminal, *, worst: int, order_by: str | None = None
) -> None:
    """Write an evaluation, its slices, and the costliest clusters of either side, or those with the worst score."""
    terminal.line(drawn(overview(evaluation), in_flags))
    terminal.flush()
    for name in evaluation._sliced:
        terminal.show(slices_of(evaluation, name, worst=worst))
    if evaluation.sliced and lost_by_all(evaluation):
        terminal.line(SHARES)
    if worst and evaluation.has_clusters:
        for side in ("pred", "true"):
            print_worst(evaluation, terminal, side, worst=worst, order_by=order_by)


def slices_of(
    ev: Evaluation, name: str, *, worst: int, whole: int = FEW_SLICES, of_all: bool = True
) -> Iterator[Block]:
    """Yield the slices by `name` below a title: all up to `whole`, otherwise the costliest."""
    table = ev._sliced[name]
    n, title = table.num_rows, f"By {label(name)}"
    if n > max(worst, whole):
        if not worst:
            yield Heading(f"{title}: {count(n)} slices; --worst N lists the N that cost most")
            return
        table = listed(table, ev.metrics, LOSS, worst)
        title += f": the {count(worst)} of {count(n)} slices that cost most"
    yield Heading(title)
    yield slice_grid(ev, table, of_all=of_all)


def print_worst(
    evaluation: Evaluation, terminal: Terminal, side: str, *, worst: int, order_by: str | None = None
) -> None:
    """Write the clusters of a side with the largest losses or the worst score, or a line that none is bad."""
    table = evaluation.clusters(side, limit=worst, order_by=order_by)
    kind = "predicted" if side == "pred" else "true"
    lost = LOSS_OF_SIDE[side]
    what = lost.removesuffix("_loss") if order_by is None else order_by
    by = lost if order_by is None else order_by
    metric = next((metric for metric in evaluation.metrics if metric.name == by), None)
    best = np.inf if metric is None else {"higher": metric.high, "lower": metric.low}.get(metric.best, np.inf)
    values = to_numpy(table[by])
    table = table.filter(from_numpy(values > 0 if metric is None else values != best))
    if not table.num_rows:
        terminal.title(f"Every {kind} cluster has the best {what}.")
        return
    listed = f"{count(table.num_rows)} of {count(evaluation.summary[side]['clusters'])}"
    whole = lost_by_all(evaluation)[lost]
    share = percent(_part(to_numpy(table[lost]).sum(), whole))
    how = f"that cost most {what}" if order_by is None else f"of worst {what}"
    terminal.title(f"{kind.capitalize()} clusters {how}: {listed}, with {share} of what is lost")
    terminal.grid(cluster_grid(evaluation, table, lost))


#: Slices of each slicing on a page, and clusters of either side: the costliest.
SLICES, CLUSTERS = 10, 3
KINDS = {"pred": "Predicted", "true": "True"}


def as_markdown(ev: Evaluation, gates: Sequence[Gate] = ()) -> str:
    """Return an evaluation as Markdown, with the results of gates; it ends with an empty line."""
    failed = any(not gate.passed for gate in gates)
    mark = "" if not gates else " ✗" if failed else " ✓"
    blocks: list[Block] = [
        Heading(f"fastbcubed: {counted(ev.coverage.n_scored(ev.policies), 'item')}{mark}", 2)
    ]
    names = [ev.names.get(side) for side in ("truth", "prediction")]
    if all(names):
        blocks.append(Prose([f"Prediction: {label(names[1])}, truth: {label(names[0])}"]))
    blocks += [Prose(verdict(ev)), Prose(outcomes(ev))]
    if not ev.coverage.complete:
        shares = percent(ev.coverage.truth_coverage), percent(ev.coverage.prediction_coverage)
        blocks.append(Prose([f"Coverage: {shares[0]} of the truth, {shares[1]} of the prediction."]))
    rows = list(score_rows(ev))
    n_columns = 3 if any(row[2] for row in rows) else 2  # are there standard errors?
    scores = Grid(("score", "value", "±")[:n_columns], [row[:n_columns] for row in rows])
    blocks += [*_gates(gates), Notices.of(ev.warnings), scores, *_slices(ev), *_clusters(ev)]
    return markdown.drawn(blocks, in_flags)


def _gates(gates: Sequence[Gate]) -> Iterator[Block]:
    """Yield a table of wanted and found values, and the reasons of failures that it does not show."""
    rows = [
        (
            "passed" if gate.passed else "failed",
            gate.figures.get("score", gate.subject),
            ",".join(f"{name}={value}" for name, value in (gate.figures.get("slice") or {}).items()),
            gate.found.removeprefix("is "),
            gate.wanted.removeprefix("wanted ") or "none",
        )
        for gate in gates
    ]
    yield Grid(("gate", "score", "slice", "value", "wanted"), rows, 5)
    yield from (Prose([f"{reason}."]) for reason in dict.fromkeys(gate.reason for gate in gates) if reason)


def _slices(ev: Evaluation) -> Iterator[Block]:
    """Yield the slices of each slicing that cost most."""
    for name in ev.sliced:
        yield from slices_of(ev, name, worst=SLICES, whole=SLICES, of_all=False)
    if ev.sliced and lost_by_all(ev):
        yield Prose([f"{SHARES}."])


def _clusters(ev: Evaluation) -> Iterator[Block]:
    for side, kind in KINDS.items() if ev.has_clusters else ():
        lost = LOSS_OF_SIDE[side]
        table: Any = ev.clusters(side, limit=CLUSTERS)
        table = table.filter(from_numpy(to_numpy(table[lost]) > 0))
        if table.num_rows:
            yield Heading(f"{kind} clusters that cost most {lost.removesuffix('_loss')}")
            yield cluster_grid(ev, table, lost)


#: Pairs of sources and repairs that are printed: all up to FEW, otherwise the first FIRST.
FEW, FIRST = 20, 10


def print_source_pairs(found: Mapping[str, Table], terminal: Terminal) -> None:
    """Write the performance of links within and across sources; of many pairs, those with most wrong links."""
    columns = [
        ("sources", "pair", "text"),
        ("right", "pair_tp", "amount"),
        ("wrongly together", "pair_fp", "amount"),
        ("wrongly apart", "pair_fn", "amount"),
        *((name, f"pair_{name}", "score") for name in LISTED),
    ]
    for name, table in found.items():
        rows = table.to_pylist()
        title = f"Links within and across {name}, in pairs of items"
        if len(rows) > FEW:
            rows = sorted(rows, key=lambda row: -(row["pair_fp"] + row["pair_fn"]))[:FIRST]
            title += f": the {FIRST} of {count(len(table))} pairs of sources with most wrong ones"
        terminal.title(title)
        terminal.grid(Grid.of(rows, columns))


def print_repairs(ev: Evaluation, repairs: Table, terminal: Terminal) -> None:
    """Write the gain of all repairs, and the first of them."""
    n = len(repairs)
    if not n:
        terminal.title("No repair would bring anything.")
        return
    before, after = ev.metric("f1"), repairs["running"][n - 1].as_py()
    which = f"these {count(n)}" if n > 1 else "this one"
    gain = score_text(after - before)
    terminal.title(f"Repair {which}: F1 +{gain}, from {score_text(before)} to {score_text(after)}")
    rows = [
        {**row, "repair": f"{row['kind']} {'predicted' if row['side'] == 'pred' else 'true'}",
         "gain": f"+{score_text(row['gain'])}"}
        for row in repairs.slice(0, n if n <= FEW else FIRST).to_pylist()
    ]  # fmt: skip
    columns = [
        ("repair", "repair", "text"),
        ("cluster", "cluster", "name"),
        ("items", "n_items", "count"),
        *[("weight", "weight", "amount")] * ev.contingency.weighted,
        ("gain alone", "gain", "figure"),
        ("F1 after", "running", "score"),
    ]
    terminal.grid(Grid.of(rows, columns, 2))
    if len(rows) < n:
        terminal.line(f"… {count(n - len(rows))} more; --out DIR writes all, as repairs.parquet")


def print_json(text: str) -> None:
    """Write JSON; names that the encoding of stdout lacks are escaped."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text), indent=2)
    with to_stdout():
        print(text)


@contextmanager
def to_stdout() -> Iterator[None]:
    """Name standard output in the error of a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


@contextmanager
def then(write: Callable[[], Any]) -> Iterator[None]:
    """Write files once the output is written, or its reader, such as head, has closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        write()
        raise
    write()


def say(message: str) -> None:
    """Write a message on stderr, which may be closed."""
    try:
        print(f"fastbcubed: {visible(message, SPACES)}", file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def say_warnings(notices: Iterable[Mapping[str, Any]], text: Callable[[Any], str] | None = None) -> None:
    """Write the warnings and notes of a result on stderr; `text` returns the message of one."""
    for each in notices:
        message = in_flags(each["message"]) if text is None else text(each)
        say(f"{each['level']}: {message} [{each['code']}]")


def print_result(found: Mapping[str, Any], gates: Sequence[Gate] = (), **asked: Any) -> None:
    """Write a result as JSON, with further entries that are not None, and with gates, if there are any."""
    from fastbcubed.render.json import as_json

    asked["gates"] = [gate.to_dict() for gate in gates] or None
    print_json(as_json({**found, **{name: each for name, each in asked.items() if each is not None}}))
    for gate in gates:
        if not gate.passed:
            say(gate.line)


def give_up(stream: TextIO) -> None:
    """Discard a stream's further output, so that Python does not fail on it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def in_flags(message: str) -> str:
    """Return a message of the library with its arguments written as flags.

    Examples
    --------
    >>> from fastbcubed.errors import arg
    >>> in_flags(Message(f"Pass {arg('unmatched', 'drop')} or {arg('unmatched', {'prediction': 'outside'})}."))
    'Pass --unmatched drop or --unmatched prediction=outside.'
    >>> in_flags(Message(f"Did you mean {arg('item', ('item', ['DATA_SOURCE', 'RECORD_ID']))}?"))
    'Did you mean --item item,DATA_SOURCE+RECORD_ID?'
    """
    return Message(message).render(_in_flags)


def _in_flags(part: str | Part) -> str:
    if isinstance(part, Either):
        return part.command
    from fastbcubed.cli.options import OPTIONS

    if not isinstance(part, Argument) or part.name not in OPTIONS:
        return str(part)
    flag = OPTIONS[part.name].flags[0]
    if by_run := [value[1] for value in part.values if _is_by_run(value)]:
        ((run, column),) = by_run[0].items()
        return f"--run-{part.name} {shlex.quote(f'{run}={_escaped(column)}')}"
    value = alternatives(_value(part.name, value) for value in part.values)
    return f"{flag} {value}".rstrip()


def _value(name: str, value: Any) -> str:
    """Return a value as a flag takes it; nothing for True, or where any value is meant."""
    if value is None or value is True:
        return ""
    if name in ("item", "cluster", "left", "right", "link_left", "link_right", "item_column"):
        return _columns(value)
    if isinstance(value, dict):
        return ",".join(f"{side}={policy}" for side, policy in value.items())
    if isinstance(value, float):
        return f"{value:.2g}"
    return ",".join(value) if isinstance(value, list) else str(value)


def _is_by_run(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict)


def _escaped(names: str | list[str] | None) -> str:
    each = [names or ""] if isinstance(names, str | None) else names
    return "+".join(re.sub(r"([,+\\])", r"\\\1", name) for name in each)


def _columns(names: str | list[str] | tuple[str | list[str] | None, ...]) -> str:
    r"""Return columns in the syntax of a flag; those of a side that are not named are left empty.

    Examples
    --------
    >>> _columns(("item", ["source", "no, or id"]))
    "'item,source+no\\, or id'"
    """
    sides = names if isinstance(names, tuple) else (names,)
    return shlex.quote(",".join(map(_escaped, sides)))


@contextmanager
def warnings_said() -> Iterator[None]:
    """Print the warnings that are not in a result, each once; those that are have a code."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EvaluationWarning)
        yield
    messages = [each.message.args[0] for each in caught if getattr(each.message, "code", None) is None]  # type: ignore
    for message in dict.fromkeys(messages):
        say(f"warning: {in_flags(message)}")


def call(function: Callable[..., Any], arguments: dict[str, Any], noise: str | None) -> Any:
    """Return a function's result; a noise label that looks like a number becomes text if labels are text."""
    with warnings_said():
        try:
            return function(**arguments)
        except IdTypeError:
            text: Any = noise
            given = arguments["noise"]
            if isinstance(given, dict):
                given, text = next(iter(given.values())), {side: str(of) for side, of in given.items()}
            if not isinstance(given, int):
                raise
            return function(**{**arguments, "noise": text})


def with_scores(
    arguments: dict[str, Any], names: Iterable[str], usual: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the arguments of `evaluate`, or of a verb with other `usual` scores, with these scores added."""
    from fastbcubed.metrics.registry import DEFAULT, known_as, members

    chosen = usual if arguments.get("metrics") is None else arguments["metrics"]
    listed = DEFAULT if chosen is None else chosen
    computed = [metric.name for each in map(known_as, listed) for metric in members(each)]
    more = [name for name in dict.fromkeys(names) if name not in computed]
    return {**arguments, "metrics": [*listed, *more]} if more else arguments


def print_opened(opened: Sequence[Any], terminal: Terminal, *, first: bool = True) -> None:
    """Write opened clusters and items in order, with an empty line between them."""
    for at, each in enumerate(opened):
        if at or not first:
            terminal.line()
        if "side" not in each:
            terminal.line(repr(each))
            continue
        grid, left_out = each.grid(terminal.width)
        terminal.line("\n".join(each.heading()) + "\n")
        terminal.grid(grid)
        if notes := each.notes(left_out):
            terminal.line("\n" + "\n".join(notes))
