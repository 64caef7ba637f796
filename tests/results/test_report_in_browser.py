"""Pages as people meet them: by keyboard, on a telephone, in the dark, printed, with scripts and without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_names import LONG, SCRIPT, hostile_case
from in_browser import barriers, emulate, open_page, requests

import fastbcubed as fb

pytestmark = pytest.mark.browser


def _usual() -> Any:
    data = Path(fb.__file__).parent / "data" / "patentsview"
    ev = fb.evaluate(
        data / "truth.parquet", data / "pred_20211230.parquet",
        slices=["country", ("cpc_section", "country"), fb.bins("year", 10)],
    )  # fmt: skip
    return ev.report(columns=["first_name", "last_name", "city"], worst=8)


def _hostile() -> Any:
    case = hostile_case()
    ev = fb.evaluate(case.pop("truth"), case.pop("prediction"), **case)
    return ev.report(title=SCRIPT, columns=[SCRIPT, LONG], by={SCRIPT: [SCRIPT]})


def _hundred_slices() -> Any:
    rng = np.random.default_rng(3)
    attributes = {"slice": [f"slice number {k}" for k in rng.integers(0, 100, 4000)]}
    labels = [rng.integers(0, 900, 4000) for _ in range(2)]
    return fb.evaluate(*labels, attributes=attributes, slices=["slice"]).report(worst=3)


def _overlapping() -> Any:
    ev = fb.evaluate(
        {"a": {1, 2}, "b": {1}, "c": {2}}, {"a": {"x"}, "b": {"x", "y"}, "c": {"y"}}, overlapping=True
    )
    return ev.report()


def _comparison() -> Any:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 60, 400)
    runs = {
        "old": rng.integers(0, 60, 400),
        "new": truth + (rng.random(400) < 0.1),
        SCRIPT: rng.integers(0, 9, 400),
    }
    parts = np.array(["discarded_distance", "female | male", "of unknown origin, x", "a", "b"])
    parts = parts[rng.integers(0, 5, 400)]
    return fb.compare(truth, runs, attributes={"part": parts}, slices=["part"]).report(worst=5)


def _diff() -> Any:
    rng = np.random.default_rng(4)
    old = rng.integers(0, 60, 400)
    return fb.diff(old, old + (rng.random(400) < 0.2), truth=old // 2).report(worst=5, by="baseline_size")


MADE: dict[str, Callable[[], Any]] = {
    "usual": _usual,
    "hostile names": _hostile,
    "a hundred slices": _hundred_slices,
    "overlapping": _overlapping,
    "comparison": _comparison,
    "diff": _diff,
    "nothing lost": lambda: fb.evaluate([0, 0, 1], [0, 0, 1]).report(),
    "one cluster": lambda: fb.evaluate([0, 0, 0], [1, 1, 1]).report(),
    "one item": lambda: fb.evaluate([0], [1]).report(),
    "null": lambda: fb.evaluate({"a": 1, "b": None}, {"a": 1, "b": 2}, nulls="singleton").report(),
    "no clusters shown": lambda: fb.evaluate([0, 0, 1], [0, 1, 1]).report(worst=0),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    directory, found = tmp_path_factory.mktemp("pages"), {}
    for name, make in MADE.items():
        file = directory / f"{name.replace(' ', '_')}.html"
        make().write(file)
        found[name] = file.as_uri()
    return found


@pytest.fixture(params=MADE)
def opened(request: pytest.FixtureRequest, browser: Any, written: dict[str, str]) -> Any:
    return open_page(browser, written[request.param])


def test_nothing_is_asked_for_and_nothing_goes_wrong(opened: Any) -> None:
    assert opened.get_log("browser") == []
    assert requests(opened) == []
    assert opened.title != "broken"
    opened.execute_script("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    opened.execute_script("document.getElementById('save').click()")
    assert opened.get_log("browser") == []
    assert requests(opened) == []


@pytest.mark.parametrize("width", [320, 1600])
def test_nothing_sticks_out(opened: Any, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    opened.execute_script("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width


#: Texts of charts that stick out of their chart, or lie on another one that is turned the same way.
CUT = """
const found = [];
document.querySelectorAll("details").forEach((each) => (each.open = true));
for (const svg of document.querySelectorAll("figure svg")) {
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].filter((each) => each.textContent.trim());
  for (const each of texts) each.setAttribute("font-family", "DejaVu Sans, Verdana, sans-serif");
  const boxes = texts.map((each) => each.getBoundingClientRect());
  boxes.forEach((a, k) => {
    const name = texts[k].textContent;
    if (a.left < box.left - 1 || a.right > box.right + 1 || a.top < box.top - 1 || a.bottom > box.bottom + 1)
      found.push(`${name} sticks out`);
    if (texts[k].getAttribute("transform").includes("rotate(-60")) return;
    boxes.slice(0, k).forEach((b, j) => {
      if (texts[j].getAttribute("transform").includes("rotate(-60")) return;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) found.push(`${name} lies on ${texts[j].textContent}`);
    });
  });
}
return found;
"""


@pytest.mark.parametrize("width", [400, 1280])
def test_no_text_of_a_chart_is_cut(opened: Any, width: int) -> None:
    """In a wide font, too: charts were laid out for Arial, and cut where another font took its place."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    assert opened.execute_script(CUT) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(opened: Any, dark: bool) -> None:
    emulate(opened, dark=dark)
    opened.execute_script("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert barriers(opened) == []


@pytest.mark.parametrize("name", ["usual", "comparison", "diff", "hostile names"])
def test_every_cluster_opens_by_keyboard(browser: Any, written: dict[str, str], name: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    open_page(browser, written[name])
    clusters = browser.execute_script(
        "return [...document.querySelectorAll('details.cluster')].map((d) => d.id)"
    )
    assert clusters
    browser.execute_script("document.querySelector('.clusters input').focus()")
    reached: list[str] = []
    for _ in range(20 * len(clusters)):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        at = browser.execute_script(
            "const a = document.activeElement; return a.matches('.cluster > summary') ? a.parentElement.id : ''"
        )
        if at and at not in reached:
            ActionChains(browser).send_keys(Keys.ENTER).perform()
            if browser.execute_script("return document.activeElement.parentElement.open"):
                reached.append(at)
            ActionChains(browser).send_keys(Keys.ENTER).perform()
        if len(reached) == len(clusters):
            break
    assert reached == clusters


def test_a_link_opens_its_cluster(browser: Any, written: dict[str, str]) -> None:
    open_page(browser, written["usual"])
    last = browser.execute_script("return [...document.querySelectorAll('details.cluster')].at(-1).id")
    open_page(browser, f"{written['usual']}#{last}")
    browser.refresh()
    assert browser.execute_script(f"return document.getElementById('{last}').open")
    assert (
        browser.execute_script(f"return document.getElementById('{last}').getBoundingClientRect().top") < 900
    )


def test_the_filter_and_the_columns_work(browser: Any, written: dict[str, str]) -> None:
    from selenium.webdriver.common.by import By

    open_page(browser, written["usual"])
    field = browser.find_element(By.CSS_SELECTOR, ".clusters input")
    title = browser.find_element(By.CSS_SELECTOR, ".cluster .title").text
    field.send_keys(title)
    shown = "return [...document.querySelectorAll('.clusters')][0].querySelectorAll('details:not([hidden])').length"
    assert browser.execute_script(shown) == 1
    browser.execute_script("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    column = "[...document.querySelectorAll('#repairs tbody tr')].map((r) => Number(r.cells[4].dataset.v))"
    button = browser.find_elements(By.CSS_SELECTOR, "#repairs thead button")[4]
    button.click()
    values = browser.execute_script(f"return {column}")
    assert values == sorted(values)
    button.click()
    assert browser.execute_script(f"return {column}") == sorted(values, reverse=True)


def test_dark_and_light_differ(browser: Any, written: dict[str, str]) -> None:
    open_page(browser, written["usual"])
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(ground)
    emulate(browser, dark=True)
    assert browser.execute_script(ground) != light
    emulate(browser, dark=True, media="print")
    assert browser.execute_script(ground) == light


def test_print_has_the_members_of_clusters(browser: Any, written: dict[str, str]) -> None:
    open_page(browser, written["usual"], media="print")
    shown = (
        "return [...document.querySelectorAll('.clusters')].map((each) =>"
        " [...each.querySelectorAll('.cluster .inside')].map((e) => e.checkVisibility({contentVisibilityAuto: true})))"
    )
    first = [True] * 5 + [False] * 3  # of eight on either side, ten in all: others would be many pages
    assert browser.execute_script(shown) == [first, first]
    assert browser.execute_script("return getComputedStyle(document.querySelector('.toc')).display") == "none"
    assert len(browser.print_page()) > 10_000


def test_it_reads_without_scripts(browser: Any, written: dict[str, str]) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        open_page(browser, written["usual"])
        assert (
            browser.execute_script(
                "return document.querySelectorAll('.clusters .tools, thead button').length"
            )
            == 0
        )
        assert browser.execute_script("return document.querySelectorAll('svg[role=img]').length") > 5
        summary = browser.find_element("css selector", ".cluster > summary")
        summary.click()
        assert browser.execute_script("return document.querySelector('.cluster').open")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
