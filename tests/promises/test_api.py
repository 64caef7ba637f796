"""Names, keywords, columns, keys of JSON, flags and exit codes stay, as `api.json` describes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import public_api
import pytest

ROOT = Path(__file__).parents[2]
WRITE = "python tests/oracles/public_api.py"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return public_api.describe()


@pytest.fixture(scope="module")
def promised() -> dict[str, Any]:
    return json.loads(public_api.STORED.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_what_is_promised_stays(promised: dict[str, Any], found: dict[str, Any]) -> None:
    broken = list(public_api.broken(promised, found))
    advice = (
        "keep the old name beside the new one (fastbcubed/runtime/old_names.py); if a promise has to be broken, put "
        f"that first in CHANGELOG.md and describe the package anew: {WRITE}"
    )
    assert not broken, "\n".join(["promised to stay:", *broken, advice])


@pytest.mark.slow
def test_a_release_promises_all_that_it_has(promised: dict[str, Any], found: dict[str, Any]) -> None:
    """Additions break no promise; the next release makes them promises."""
    if re.search(r"^## Unreleased", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE):
        pytest.skip("no release: CHANGELOG.md has changes that are unreleased")
    added = list(public_api.broken(found, promised))
    assert not added, "\n".join(["in this release, but not described:", *added, f"Describe it: {WRITE}"])


PROMISED = ["truth", "prediction", "*", "beta=1.0", "out=None"]


@pytest.mark.parametrize(
    ("found", "broken"),
    [
        (PROMISED, []),
        ([*PROMISED, "more=None"], []),
        (["truth", "prediction", "unit=None", "*", "out=None", "beta=1.0"], []),
        (["truth", "prediction", "beta=1.0", "out=None"], []),
        (["truth", "prediction", "*", "beta=1.0"], ["'out=None' is gone"]),
        (["truth", "prediction", "*", "beta=2.0", "out=None"], ["'beta=1.0' is gone"]),
        (["truth", "prediction", "*", "beta", "out=None"], ["'beta=1.0' is gone"]),
        ([*PROMISED, "more"], ["'more' is new and has no default"]),
        (
            ["prediction", "truth", *PROMISED[2:]],
            ["the order truth, prediction has become prediction, truth"],
        ),
        (["truth", "*", "prediction", *PROMISED[3:]], ["the order truth, prediction has become truth, *"]),
    ],
)
def test_calls_that_a_signature_promised_go_on_to_work(found: list[str], broken: list[str]) -> None:
    assert [
        each.removeprefix("keywords → f: ")
        for each in public_api.broken({"f": PROMISED}, {"f": found}, "keywords")
    ] == broken


def test_broken_promises_are_named() -> None:
    promised = {
        "names": ["a", "b"],
        "exit codes": {"WRONG": 2, "STOPPED": 130},
        "flags": {"show": ["--json"]},
    }
    found = {
        "names": ["b", "c"],
        "exit codes": {"WRONG": 3},
        "flags": {"show": ["--json", "--more"], "new": []},
    }
    assert list(public_api.broken(promised, found)) == [
        "names: 'a' is gone",
        "exit codes → WRONG: 2 has become 3",
        "exit codes: 'STOPPED' is gone",
    ]
