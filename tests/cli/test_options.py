"""Options of the command line are declared once, as the signatures of the verbs have them."""

import argparse
import inspect
import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import fastbcubed as fb
from fastbcubed.cli import (
    compare_command,
    diff_command,
    estimate_command,
    evaluate_command,
    explain_command,
    flag_values,
    gate_options,
    sample_pairs_command,
    show_command,
    sweep_command,
)
from fastbcubed.cli.commands import COMMANDS, whole_parser
from fastbcubed.cli.main import main
from fastbcubed.cli.options import OPTIONS

VERBS = (fb.evaluate, fb.compare, fb.diff, fb.estimate, fb.sweep)
#: Options whose default is another one on the command line, and why.
OTHERWISE = {
    "slices": "an empty list, to append to",
    "seed": "a number, so that a run can be repeated",
    "edges": "a positional argument",
}


def _values(hint: Any) -> set[Any]:
    """Return the texts that a type allows, in a union with others."""
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return set().union(*map(_values, get_args(hint)))


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_signatures_are_as_declared(verb: Any) -> None:
    hints = get_type_hints(verb)
    shared = {
        name: each
        for name, each in inspect.signature(verb).parameters.items()
        if name in OPTIONS and each.kind is each.KEYWORD_ONLY
    }
    assert len(shared) >= 10
    for name, parameter in shared.items():
        how = OPTIONS[name].how
        if name not in OTHERWISE and (verb, name) != (
            fb.evaluate,
            "keep",
        ):  # which takes less if there is no room
            default = how.get("default", False if how.get("action") == "store_true" else None)
            assert parameter.default == default, name
        if values := set(how.get("choices", ())):
            assert values <= _values(hints[name]), name


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        (evaluate_command, fb.evaluate), (show_command, fb.evaluate), (explain_command, fb.evaluate),
        (compare_command, fb.compare),
        (diff_command, fb.diff), (sample_pairs_command, fb.diff), (estimate_command, fb.estimate),
        (sweep_command, fb.sweep),
    ],
    ids=lambda each: each.__name__.rpartition(".")[2],
)  # fmt: skip
def test_every_flag_is_an_argument_or_read_by_its_command(command: Any, verb: Any) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    command.add_flags(parser)
    code = "".join(map(inspect.getsource, (command, flag_values, gate_options)))
    read = {name for pair in re.findall(r'options\.(\w+)|"(\w+)"', code) for name in pair}
    flags = {action.dest for action in parser._actions}
    assert flags <= read.union(inspect.signature(verb).parameters)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_every_keyword_has_a_flag_of_its_name(verb: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb.__name__, "--help"]) == 0
    told = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
    keywords = [
        each.name for each in inspect.signature(verb).parameters.values() if each.kind is each.KEYWORD_ONLY
    ]
    other = {"sources": "link_sources"}  # of links, whose other flags are those of tables, too
    assert not {f"--{other.get(name, name).replace('_', '-')}" for name in keywords} - told


def test_only_commands_with_gates_tell_of_their_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        assert main([command.name, "--help"]) == 0
        told = capsys.readouterr().out
        assert ("a gate failed" in told) == ("--fail-under" in told), command.name


def test_every_help_is_filled_in(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in COMMANDS:
        assert main([command.name, "--help"]) == 0
        shown = capsys.readouterr().out
        options = shown.partition("JSON (--json)")[0]
        assert "{FIRST}" not in options and "{metrics}" not in options and "{link}" not in options
        assert max(map(len, shown.splitlines())) <= 80, command.name


def test_help_of_a_flag_is_a_phrase_and_the_rest_stands_below(capsys: pytest.CaptureFixture[str]) -> None:
    for command in whole_parser()._subparsers._group_actions[0].choices.values():  # type: ignore[union-attr]
        for action in command._actions:
            words = str(action.help).split()
            assert len(words) <= 12, f"{command.prog}: {action.option_strings or action.metavar}"
    assert main(["sweep", "--help"]) == 0
    flags, _, details = " ".join(capsys.readouterr().out.split()).partition(" Details ")
    assert "--rows N maximum number of rows of the curve in JSON (default: 1000)" in flags
    assert "--rows ends and extremes are kept" in details and "ends and extremes" not in flags
    assert "--left, --right a+b forms an id from two columns" in details


def test_help_speaks_of_what_a_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for command, links in (
        ("compare", False),
        ("diff", False),
        ("evaluate", True),
        ("show", True),
        ("explain", True),
    ):
        assert main([command, "--help"]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert ("but for links see below" in told) == links
        if command == "compare":
            assert "PREDICTION" not in told and "outside (for items that only a run has" in told
    assert main(["--help"]) == 0
    listed = re.findall(r"(?m)^    ([a-z][a-z-]+)(?:  |$)", capsys.readouterr().out)
    assert listed[:2] == ["demo", "evaluate"] and listed[-2:] == ["constraints", "warm-up"]


LONG = "q" * 10_000


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["evaluate", "a", "b", "--beta", LONG], "argument --beta: invalid"),
        (["evaluate", "a", "b", "--nulls", LONG], "argument --nulls: invalid"),
        (["evaluate", "a", "b", "--fail-under", LONG], "is not of the form SCORE=VALUE"),
        (["evaluate", "a", "b", f"--{LONG}"], "unrecognized arguments: --qqq"),
        (["compare", "a", f"x={LONG}", f"x={LONG}"], "two runs are named 'x'"),
        (["compare", "a", "b", "--run-item", LONG], "--run-item takes RUN=COLUMN"),
        (["sweep", "a", "b", "--threshold", LONG], "--threshold takes a number"),
        ([LONG], "argument COMMAND: invalid choice"),
    ],
)
def test_a_long_argument_is_not_quoted_whole(
    words: list[str], kept: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert kept in said
    assert len(said) < 800
