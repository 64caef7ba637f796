"""The table of JSON keys, which help and documentation read, has the keys that commands print, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fastbcubed.cli.json_keys import keys
from fastbcubed.cli.main import main
from fastbcubed.metrics.registry import METRICS

STORED = Path(__file__).parents[1] / "promises" / "api.json"
PROMISED: dict[str, list[str]] = json.loads(STORED.read_text(encoding="utf-8"))["keys of JSON"]
#: Names in the table that no stored call prints: they take other data or flags.
UNSEEN = {
    "n_slices", "n_rows", "own_scores", "chosen", "similarity", "n_components", "n_outside", "opened", "gates",
    "to_dict", "away_by", "at_most_away_by", "precision_lower", "precision_upper", "unlabelled_mates",
    "baseline_cluster",
}  # fmt: skip
#: Keys that are data: runs, columns, sides, packages, arguments, quantiles, outcomes, checks.
DATA = re.compile(
    r"(runs\.\w+\.)?manifest\.(arguments|versions)\..+|.*\.(size_quantiles|outcomes|hill|attributes)\..+"
    r"|(runs|slices|source_pairs|reading|scores|checks|attributes)\.\w+|runs\.\w+\.slices\.country|.*\[\]\.country"
    r"|scores\.f1\.checks\.\w+|.*\.smallest\..+|.*\.scores\.(better|worse)"
)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]\w*", text))


def _told(command: str) -> dict[str, set[str]]:
    """Return the words that describe each key at the top, with those of what a description refers to."""
    told: dict[str, set[str]] = {}
    for names, _, contents in keys(command):
        for name in re.split(r", | of ", names):
            told.setdefault(name.partition("[")[0], set()).update(_words(contents))
    for words in told.values():
        if "curve" in words:
            words |= told["curve"]
        if "evaluate" in words and command != "evaluate":
            words |= {*_told("evaluate")}.union(*_told("evaluate").values())
    if command == "estimate":
        told["runs"] |= {*told}.union(*told.values())
    if "opened" in told and command != "show":
        told["opened"] |= _told("show")["opened"]
    return told


@pytest.mark.parametrize("command", PROMISED)
def test_every_key_is_described(command: str) -> None:
    told, missing = _told(command), []
    for key in PROMISED[command]:
        head, *inner = key.replace("[]", "").split(".")
        last = re.sub(r"_(se|low|high|delta(_se|_low|_high)?|at_common)$", "", inner[-1]) if inner else ""
        names = {
            last,
            last.replace("weight_", "n_"),
            last.removeprefix("item_"),
        }  # "their weights as weight_..."
        if head not in told or (inner and not names & {*told[head], *METRICS} and not DATA.fullmatch(key)):
            missing.append(key)
    assert not missing, " ".join(missing)


@pytest.mark.parametrize("command", PROMISED)
def test_no_described_key_is_gone(command: str) -> None:
    printed = {part.removesuffix("[]") for key in PROMISED[command] for part in key.split(".")} | UNSEEN
    for names, _, contents in keys(command):
        heads = {name.partition("[")[0] for name in names.split(", ")}
        assert heads <= printed
        if not heads <= UNSEEN:
            inner = {word for word in _words(re.sub(r"\.\.\._\w+", "", contents)) if "_" in word.strip("_")}
            assert not inner - printed, names


def test_help_ends_with_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "\nJSON (--json). Later versions may add keys; these stay.\n  fastbcubed   " in shown
    assert re.search(r"\n  n_links, n_items +links and items that were read\n", shown)
    assert main(["sample-pairs", "--help"]) == 0
    assert "JSON (--json)" not in capsys.readouterr().out
