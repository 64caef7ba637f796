"""The version stands in one place, and what names it agrees; the changelog is in versions, breaking changes first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fastbcubed as fb

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
SECTIONS = ["Changed in ways that may break", "Added", "Changed", "Fixed"]
RELEASED = dict(re.findall(r"^## (\d\S+) - (\d{4}-\d{2}-\d{2})$", CHANGELOG, re.MULTILINE))


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CITATION.cff", r"^version: (\S+)$"),
        ("docs/packaging/conda/recipe.yaml", r"^  version: (\S+)$"),
    ],
)
def test_files_name_the_version_of_the_package(file: str, pattern: str) -> None:
    found = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found == [fb.__version__], f"fastbcubed/_version.py has {fb.__version__}"


def test_the_citation_has_the_date_of_the_release() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r'^date-released: "(\S+)"$', text, re.MULTILINE) == [RELEASED[fb.__version__]]


def test_versions_list_breaking_changes_first() -> None:
    for version in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        found = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert found == [name for name in SECTIONS if name in found], version.splitlines()[0]


def test_each_change_has_one_line() -> None:
    later = CHANGELOG[CHANGELOG.index("\n## ") : CHANGELOG.index("\n## 0.1.0 ")]
    others = [line for line in later.splitlines() if line and not line.startswith(("- ", "#"))]
    assert others == []
