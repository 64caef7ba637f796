"""The documentation: it builds without a warning, asks for nothing elsewhere, and can be read and searched by all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from in_browser import barriers, open_page, requests

import fastbcubed as fb
from fastbcubed.metrics.registry import METRICS
from fastbcubed.results.warnings import CODES

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
PAGES = (
    "docs/index", "docs/start", "docs/how-to/gates", "docs/explanation/which-score", "docs/reference/warnings",
    "docs/reference/scores/f1", "docs/reference/scores/pair_f1", "docs/reference/api/Evaluation",
    "docs/reference/commands/evaluate", "docs/gallery", "notebooks/quickstart", "notebooks/which_metric",
    "benchmarks/README", "CHANGELOG",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built documentation, which `FASTBCUBED_SITE` names if it is built already."""
    if found := os.environ.get("FASTBCUBED_SITE"):
        return Path(found)
    if find_spec("sphinx") is None:
        pytest.skip("Sphinx is not there; pip install '.[docs]' installs it")
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-c", "docs", ".", str(built)]
    subprocess.run(command, cwd=ROOT, check=True)
    return built


def test_every_score_command_and_code_has_its_place(site: Path) -> None:
    reference = site / "docs" / "reference"
    assert {page.stem for page in (reference / "scores").glob("*.html")} == {*METRICS, "index"}
    warnings = (reference / "warnings.html").read_text(encoding="utf-8")
    assert [code for code in CODES if f">{code}<" not in warnings] == []
    for command, flag in (("evaluate", "--fail-under"), ("sweep", "--where"), ("cluster", "--threshold")):
        assert flag in (reference / "commands" / f"{command}.html").read_text(encoding="utf-8")
    assert (site / "sample-report.html").stat().st_size > 100_000


def test_further_names_lead_to_the_page_of_their_score(site: Path) -> None:
    page = (site / "docs" / "reference" / "scores" / "bcubed_f1.html").read_text(encoding="utf-8")
    assert "url=f1.html" in page
    assert "<math" in (site / "docs" / "reference" / "scores" / "f1.html").read_text(encoding="utf-8")


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=[\"'](https?:)?//", re.IGNORECASE)
    pages = [page for page in site.rglob("*.html") if page.name != "sample-report.html"]
    assert len(pages) > 200
    found = {str(page.relative_to(site)): loaded.search(page.read_text(encoding="utf-8")) for page in pages}
    assert {name: match[0] for name, match in found.items() if match} == {}


@pytest.mark.parametrize("page", ["docs/index", "docs/gallery", "notebooks/which_metric"])
@pytest.mark.parametrize("dark", [False, True])
def test_each_theme_shows_its_picture(site: Path, browser: Any, page: str, dark: bool) -> None:
    open_page(browser, (site / f"{page}.html").as_uri(), dark=dark)
    pictures = browser.find_elements("css selector", ".bd-article img")
    shown = [each.get_attribute("src") for each in pictures if each.is_displayed()]
    assert shown and all(("-dark." in source) is dark for source in shown)


@pytest.mark.parametrize("page", ["docs/index", "docs/gallery", "notebooks/which_metric"])
def test_wide_pictures_keep_their_size_on_a_phone(site: Path, browser: Any, page: str) -> None:
    open_page(browser, (site / f"{page}.html").as_uri(), 400)
    wide = [each for each in browser.find_elements("css selector", "img.wide") if each.is_displayed()]
    assert wide
    for each in wide:
        assert each.size["width"] == int(each.get_property("naturalWidth")) > 500
        assert each.find_element("xpath", "..").get_property("tabIndex") == 0


def test_code_fits_its_column(site: Path, browser: Any) -> None:
    wide = "return [...document.querySelectorAll('pre')].filter((each) => each.scrollWidth > each.clientWidth + 1)"
    for page in (
        "docs/index",
        "docs/start",
        "docs/how-to/tools",
        "docs/how-to/threshold",
        "docs/explanation/which-score",
    ):
        open_page(browser, (site / f"{page}.html").as_uri())
        assert [each.text[:80] for each in browser.execute_script(wide)] == [], page


def test_the_version_is_in_the_list(site: Path) -> None:
    versions = json.loads((site / "_static" / "versions.json").read_text(encoding="utf-8"))
    assert versions[0]["version"] == fb.__version__
    assert all({"version", "name", "url"} == set(each) for each in versions)
    page = (site / "docs" / "how-to" / "gates.html").read_text(encoding="utf-8")
    assert f"{versions[0]['name']}</a>" in page and f"Version {fb.__version__}" in page


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_pages_have_no_barriers(site: Path, browser: Any, page: str, width: int, dark: bool) -> None:
    open_page(browser, (site / f"{page}.html").as_uri(), width, dark=dark)
    assert [url for url in requests(browser) if not url.startswith("file:")] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert barriers(browser) == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("adjusted_rand", "reference/scores/adjusted_rand"),
        ("exit codes", "reference/exit-codes"),
        ("Splink", "how-to/tools"),
        ("memory limit", "how-to/large-data"),
        ("treshold", "how-to/threshold"),  # misspelt
        ("json report ci", "how-to/gates"),
        ("kpi", "how-to/what-scores-mean"),
        ("macro average", "how-to/what-scores-mean"),
        ("blocking", "how-to/plan"),
        ("kernels", "explanation/speed"),
    ],
)
def test_search_finds(site: Path, browser: Any, words: str, page: str) -> None:
    found = _found(browser, site, words)
    assert any(f"docs/{page}.html" in each for each in found[:10]), found[:10]
    lists = [bool(re.search(r"/(CHANGELOG|CONTRIBUTING|benchmarks/\w+)\.html", each)) for each in found]
    assert lists == sorted(lists), "changes and benchmarks come last"


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("first call slow", "how-to/systems.html#why-is-the-first-call-or-run-slow-and-what-speeds-it-up"),
        (
            "pairs to clusters",
            "how-to/prepare-data.html#pairs-to-clusters-transitive-closure-my-prediction-is-pairs",
        ),
        ("NaN", "explanation/partial-truth.html#null-labels-nan-and-noise"),
        ("lumping splitting", "coming-from.html#author-disambiguation-lumping-splitting-k-metric"),
        ("compare two runs", "how-to/two-runs.html"),
        ("plot precision recall curve", "gallery.html#the-precision-recall-curve"),
        ("zzqx precision recall curve", "gallery.html#the-precision-recall-curve"),  # no page has zzqx
        ("to_dict", "reference/api/Evaluation.html#fastbcubed.Evaluation.to_dict"),
        ("V-measure", "reference/scores/v_measure.html"),
        (
            "low recall",
            "how-to/find-errors.html#low-recall-low-precision-a-few-large-errors-or-many-small-ones",
        ),
        ("column meaning", "reference/glossary.html#what-do-the-columns-mean"),
        ("SQLAlchemy", "how-to/tables.html#a-query-through-sqlalchemy-psycopg-or-sqlite3"),
        (
            "rank five runs",
            "how-to/two-runs.html#rank-several-runs-corrected-for-multiple-comparisons",
        ),  # its page has no "five"
        ("Can it read xlsx", "how-to/prepare-data.html#does-it-read-excel-xlsx-or-google-sheets"),
        (
            "UnicodeDecodeError",
            "how-to/prepare-data.html#unicodedecodeerror-latin-1-or-another-encoding-of-a-csv-file",
        ),
        (
            "OOM killed",
            "how-to/systems.html"
            "#memoryerror-oom-ran-out-of-memory-or-ram-process-killed-jupyter-kernel-died-notebook-crashed",
        ),
        ("cuda", "how-to/systems.html#does-it-use-a-gpu"),  # no page has it
        ("which metric", "explanation/which-score.html#which-metric-should-i-report"),  # by a stop word
        ("all-singleton-truth", "reference/warnings.html"),  # by its code
        ("component meaning", "reference/glossary.html#term-component"),
        ("record linkage toolkit", "how-to/tools.html#recordlinkage-a-multiindex-of-pairs"),  # one word there
        (
            "There is no file nofile.csv. Check the path.",
            "reference/errors.html#fileformaterror-a-file-is-not-found-damaged-or-in-an-unsupported-format",
        ),
        ("delta lake", "how-to/tables.html#delta-lake-iceberg-and-hudi"),
        ("time budget", "reference/limits.html#time-limit"),
        (
            "merge two result files",
            "how-to/use-results.html#combine-two-result-files-several-saved-results-in-one-table-or-merged-into-one",
        ),
        ("weighted F-score", "how-to/what-scores-mean.html#how-do-i-get-f0-5-or-f2"),
        (
            "normalisation of unicode",
            "how-to/prepare-data.html#upper-and-lower-case-spaces-accents-emojis-are-labels-and-ids-normalised",
        ),
    ],
)
def test_search_leads_to_the_heading_that_has_the_words(
    site: Path, browser: Any, words: str, place: str
) -> None:
    first = _found(browser, site, words)[0]
    assert re.sub(r"\?[^#]*", "", first).endswith(f"docs/{place}"), first


def _raised(call: Callable[[], object]) -> str:
    with pytest.raises(fb.FastBCubedError) as caught:
        call()
    return f"{caught.type.__name__}: {caught.value}"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: fb.evaluate([1, 2, 3], [1, 2]), "AlignmentError"),
        (lambda: fb.evaluate({"a": 1}, {"b": 1}), "EmptyInputError"),
        (lambda: fb.evaluate({"a": 1}, {1: 1}), "IdTypeError"),
        (lambda: fb.evaluate([1, None], [1, 2]), "NullError"),
        (lambda: fb.evaluate([1, 1], [1, 2], engine="disc"), "OptionError"),
    ],
)
def test_the_text_of_an_error_leads_to_its_section(
    site: Path, browser: Any, call: Callable[[], object], name: str
) -> None:
    message = _raised(call)
    assert message.startswith(name)
    first = _found(browser, site, message)[0]
    assert "docs/reference/errors.html" in first and name.lower() in first.partition("#")[2]


def test_old_addresses_lead_to_the_new_places(site: Path, browser: Any) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    open_page(browser, (site / "docs/how-to/short-answers.html").as_uri() + "#does-it-use-a-gpu")
    WebDriverWait(browser, 10).until(lambda page: page.current_url.endswith("systems.html#does-it-use-a-gpu"))


def test_results_show_the_page_and_the_words(site: Path, browser: Any) -> None:
    _found(browser, site, "dtype mismatch")
    first = browser.find_element("css selector", "ul.search li")
    assert "in Prepare your data" in first.text
    assert first.find_element("css selector", ".context b").text == "dtype"
    browser.get(first.find_element("css selector", "a").get_attribute("href"))
    assert browser.execute_script("return document.querySelector(location.hash) !== null")
    _found(browser, site, "cupy")  # with a hint
    assert barriers(browser) == []


def test_the_index_is_small_and_its_places_are_there(site: Path) -> None:
    text = (site / "sections.js").read_text(encoding="utf-8")
    assert len(text) < 1_500_000
    places = json.loads(re.search(r"const SECTIONS = (.*);", text)[1])
    pages = {page: (site / f"{page}.html").read_text(encoding="utf-8") for page, *_ in places}
    assert [place[:2] for place in places if f'id="{place[1]}"' not in pages[place[0]] and place[1]] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("cupy", "No guide has “cupy”; these sections have “gpu”."),
        ("zzqx recall", "No guide has “zzqx”."),
        ("recall", ""),
    ],
)
def test_search_says_which_words_no_guide_has(site: Path, browser: Any, words: str, said: str) -> None:
    _found(browser, site, words)
    browser.implicitly_wait(0)
    hints = browser.find_elements("css selector", "p.search-hint")
    assert [each.text for each in hints] == [f"{said} See also All questions and the Glossary."] * bool(said)
    for link in browser.find_elements("css selector", "p.search-hint a"):
        assert Path(link.get_attribute("href").removeprefix("file://")).is_file()


def _found(browser: Any, site: Path, words: str) -> list[str]:
    """Return the addresses that the site's search lists."""
    open_page(browser, (site / "search.html").as_uri() + f"?q={words.replace(' ', '+')}")
    browser.find_element("css selector", "p.search-summary")
    return [link.get_attribute("href") for link in browser.find_elements("css selector", "ul.search li a")]
