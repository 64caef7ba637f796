"""The command line: flags → arguments of the library, its results → text or JSON, errors → exit codes.

Nothing heavy is imported before the flags are known to be right.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TextIO

from fastbcubed._version import __version__
from fastbcubed.cli.between_sources import print_source_pairs, with_source_pairs
from fastbcubed.cli.calling import call_evaluate
from fastbcubed.cli.flags import (
    add_constraints_flags,
    add_evaluate_flags,
    add_generate_flags,
    constraints_arguments,
    evaluate_arguments,
    generate_arguments,
)
from fastbcubed.cli.gates import Gates, add_gate_flags, append_page, with_gates
from fastbcubed.cli.notes import EXIT_CODES, NOTES, SHAPES, SHOWN, WARM_UP
from fastbcubed.cli.ordering import with_order
from fastbcubed.cli.repair_list import print_repairs, with_repairs
from fastbcubed.cli.rewording import in_flags
from fastbcubed.cli.show import add_show_flags, costliest, open_all, print_opened, with_opened
from fastbcubed.errors import FastBCubedError, VerificationError
from fastbcubed.results.slices.bins import element_of

OK, FAILED_GATE, WRONG, FAULT, STOPPED, READER_GONE, TERMINATED = 0, 1, 2, 70, 130, 141, 143


class Terminated(BaseException):
    """The process was asked to end, by SIGTERM."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    _open_streams()
    try:
        with _raising_on_sigterm():
            try:
                options = _parser().parse_args(argv)
                code: int = options.run(options)
            finally:
                sys.stdout.flush()
    except SystemExit as stop:  # argparse: --help, --version, a wrong flag
        return stop.code if isinstance(stop.code, int) else WRONG
    except KeyboardInterrupt:
        _say("stopped")
        return STOPPED
    except Terminated:
        _say("terminated")
        return TERMINATED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        _give_up(sys.stdout)
        return READER_GONE
    except VerificationError as error:
        _say(str(error))
        return FAULT
    except FastBCubedError as error:
        _say(in_flags(str(error)))
        return WRONG
    except MemoryError as error:
        _say(f"out of memory{f': {error}' if str(error) else ''}")
        return WRONG
    except OSError as error:
        if error.errno == errno.EBADF:  # a file that we have closed
            return _report(error)
        _give_up_if_full(sys.stdout)
        _say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return WRONG
    except Exception as error:
        return _report(error)
    return code


def _report(error: Exception) -> int:
    """Say that an error is ours, and how to report it; with its traceback if that is asked for."""
    if os.environ.get("FASTBCUBED_TRACEBACK", "0") not in ("", "0"):
        import traceback

        _say("".join(traceback.format_exception(error)).rstrip())
        how = "the traceback above"
    else:
        how = "what FASTBCUBED_TRACEBACK=1 shows"
    said = " ".join(str(error).split())
    _say(
        f"unexpected {type(error).__name__}{f': {said[:300]}' if said else ''}. This is an error of fastbcubed "
        f"{__version__}, not of yours; please report it, with the command and {how}"
    )
    return FAULT


def _open_streams() -> None:
    """Open streams that the caller has closed; what is written to them is for nobody."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))


def _give_up(stream: TextIO) -> None:
    """Let a stream write to nobody, so that Python need not fail with it again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _give_up_if_full(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        _give_up(stream)


@contextmanager
def _raising_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does: by an exception, so that everybody cleans up."""

    def terminate(*_: object) -> NoReturn:
        raise Terminated

    ours = threading.current_thread() is threading.main_thread()  # the only one that may set handlers
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in two lines; the usage would be twenty."""
        self.exit(WRONG, f"{self.prog}: {message}\nTry: {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    form: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = _Parser(
        prog="fastbcubed",
        description="Score clusterings against the truth: overall, by cluster, by slice, by item.",
        epilog=f"Begin with: fastbcubed demo\n{EXIT_CODES}",
        **form,
    )
    parser.add_argument("--version", action="version", version=f"fastbcubed {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    evaluate = commands.add_parser(
        "evaluate",
        help="score a prediction against the truth",
        description="Score a clustering against the truth. A table has one row for each item.",
        epilog=f"{NOTES}\n{EXIT_CODES}",
        **form,
    )
    add_evaluate_flags(evaluate)
    add_gate_flags(evaluate)
    evaluate.set_defaults(run=_evaluate)
    show = commands.add_parser(
        "show",
        help="open a cluster or an item: who is in it, and what is wrong with it",
        description="Open clusters and items of a saved result, or of a truth and a prediction.",
        epilog=f"{SHOWN}\n{EXIT_CODES}",
        **form,
    )
    add_show_flags(show)
    show.set_defaults(run=_show)
    demo = commands.add_parser(
        "demo",
        help="evaluate data that come with the package, and explain each step",
        description="Evaluate two releases of inventors named on US patents, step by step, and say what to\n"
        "look at. The data come with the package; no file is written.",
        **form,
    )
    demo.set_defaults(run=_demo)
    metrics = commands.add_parser(
        "metrics",
        help="list all scores and what they mean",
        description="List all scores, with family, range, direction, definition and source; or explain some.",
        **form,
    )
    metrics.add_argument(
        "names", nargs="*", metavar="NAME", help="a score, or a family of scores, to explain in full"
    )
    metrics.add_argument("--json", action="store_true", help="a JSON list of objects, for programs")
    metrics.set_defaults(run=_metrics)
    generate = commands.add_parser(
        "generate",
        help="write synthetic clusterings of any size, for trials and measurements",
        description="Write a synthetic truth and prediction as Parquet. However many items, memory stays the same.",
        epilog=f"{SHAPES}\n{EXIT_CODES}",
        **form,
    )
    add_generate_flags(generate)
    generate.set_defaults(run=_generate)
    warm_up = commands.add_parser(
        "warm-up",
        help="compile the kernels ahead of use, for example in the image of a container",
        description=WARM_UP,
        epilog=EXIT_CODES,
        **form,
    )
    warm_up.set_defaults(run=_warm_up)
    constraints = commands.add_parser(
        "constraints",
        help="check which score meets which formal constraint",
        description="Check scores against the formal constraints of Amigó et al. (2009) and further properties,\n"
        "on small and on random clusterings. No data are needed; the same seed gives the same table.",
        **form,
    )
    add_constraints_flags(constraints)
    constraints.set_defaults(run=_constraints)
    return parser


# Commands


def _evaluate(options: argparse.Namespace) -> int:
    gates = Gates(options)
    arguments, order_by = with_order(evaluate_arguments(options), options.order_by)
    ev = call_evaluate(gates.needs(arguments), options.noise)
    if options.json or not sys.stdout.isatty():  # a terminal gets them with the scores
        for warning in ev.warnings:
            _say(f"{warning['level']}: {in_flags(warning['message'])} [{warning['code']}]")
    opened = costliest(ev, options.show) if options.show else []
    repairs = ev.repairs(limit=options.repairs) if options.repairs else None
    pairs = {name: ev.source_pairs(element_of(name)) for name in options.slice_pairs}
    verified = ev.verify(options.verify) if options.verify else None
    tried = gates.judge(ev)
    if options.json:
        text = with_source_pairs(with_repairs(with_opened(ev.to_json(), opened), repairs), pairs)
        _print_json(with_gates(text, tried))
        for line in (gate.line for gate in tried if not gate.passed):
            _say(line)
        if verified is not None:
            _say(repr(verified))
    else:
        from fastbcubed.cli.terminal import Terminal, print_evaluation

        terminal = Terminal()
        print_evaluation(ev, terminal, worst=options.worst, order_by=order_by)
        print_source_pairs(pairs, terminal)
        print_opened(opened, terminal, first=False)
        if repairs is not None:
            print_repairs(ev, repairs, terminal)
        if terminal.to_people:
            terminal.line(f"\n{_more(ev, options)}")
        if verified is not None:
            terminal.line(f"\n{verified!r}")
        if tried:
            terminal.line("\n" + "\n".join(gate.line for gate in tried))
    if options.out is not None:
        _say(f"wrote {options.out}; in Python, fastbcubed.load({options.out!r}) reads it")
    if options.summary is not None:
        append_page(options.summary, ev, tried)
    return OK if all(gate.passed for gate in tried) else FAILED_GATE


def _more(ev: Any, options: argparse.Namespace) -> str:
    """Return which flags would show more."""
    from fastbcubed.results.slices.slicing import id_parts
    from fastbcubed.results.text.wording import label, paragraph

    hints = [f"--worst {max(20, 4 * options.worst)}"] if ev.has_clusters else []
    if ev.has_items:
        items = ev.kept_items()
        known = [name for side in items.attribute_sides().values() for name in side] + [*id_parts(items)]
        left = [label(n) for n in dict.fromkeys([*known, "true_size", "pred_size"]) if n not in ev.sliced]
        if left:
            hints.append(f"--slice NAME ({', '.join(left[:4])}{', …' if left[4:] else ''})")
    if options.out is None or not ev.has_clusters:
        hints.append(f"--out DIR --keep {'items' if ev.has_items else 'cells'}")
    return paragraph(f"More: {'; '.join(hints)}; see --help")


def _show(options: argparse.Namespace) -> int:
    opened = open_all(options)
    if options.json:
        _print_json(with_opened("{}", opened))
    else:
        from fastbcubed.cli.terminal import Terminal

        print_opened(opened, Terminal())
    return OK


def _demo(options: argparse.Namespace) -> int:
    from fastbcubed.cli.demo import show
    from fastbcubed.cli.terminal import Terminal
    from fastbcubed.runtime.reporting import announcing_compilation

    with announcing_compilation():
        show(Terminal())
    return OK


def _metrics(options: argparse.Namespace) -> int:
    from fastbcubed.cli import glossary

    chosen = glossary.choose(options.names)
    if options.json:
        _print_json(glossary.as_json(chosen))
    else:
        from fastbcubed.cli.terminal import Terminal

        if options.names:
            glossary.print_entries(chosen, Terminal())
        else:
            glossary.print_list(chosen, Terminal())
    return OK


def _generate(options: argparse.Namespace) -> int:
    from fastbcubed.synthetic.generate import generate

    generate(**generate_arguments(options))
    for path in filter(None, (options.path, options.prediction_out)):
        _say(f"wrote {path}: {options.n_items:,} rows, {os.path.getsize(path):,} bytes")
    return OK


def _warm_up(options: argparse.Namespace) -> int:
    from fastbcubed.cli.warm_up import warm_up

    _say(warm_up())
    return OK


def _constraints(options: argparse.Namespace) -> int:
    from fastbcubed.constraints import table
    from fastbcubed.runtime.reporting import announcing_compilation

    with announcing_compilation():
        checked = table(**constraints_arguments(options))
    if options.json:
        _print_json(checked.to_json())
        return OK
    from fastbcubed.cli.terminal import Terminal

    terminal = Terminal()
    terminal.grid(checked.grid())
    terminal.line("\n" + "\n".join(checked.legend()))
    for report in checked.reports.values() if options.examples else ():
        terminal.line(f"\n{report!r}")
    return OK


# Output


def _print_json(text: str) -> None:
    """Write JSON; names that the encoding of stdout lacks are escaped."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text), indent=2)
    print(text)


def _say(message: str) -> None:
    """Write a message on stderr, where nobody may be listening."""
    try:
        print(f"fastbcubed: {message}", file=sys.stderr, flush=True)
    except OSError:
        _give_up(sys.stderr)
