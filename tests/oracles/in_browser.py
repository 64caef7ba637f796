"""A browser for tests: Chromium, the requests of a page, and the barriers that axe-core finds in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
#: Where axe.min.js of axe-core is.
AXE = os.environ.get("FASTBCUBED_AXE", "")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no Chromium, or no chromedriver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield found
    found.quit()


def open_page(browser: Any, address: str, width: int = 1280, *, dark: bool = False, media: str = "") -> Any:
    """Open a page in a window of a width, in light or dark, and return the browser."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    emulate(browser, dark=dark, media=media)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(address)
    return browser


def emulate(browser: Any, *, dark: bool = False, media: str = "") -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})


def requests(browser: Any) -> list[str]:
    """Return what the page has asked for, but itself."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [
        each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"
    ]
    return [
        url
        for url in sent
        if not url.startswith(("data:", "blob:")) and url.partition("#")[0] != browser.current_url
    ]


def barriers(browser: Any) -> list[tuple[str, str, str]]:
    """Return the serious barriers that axe-core finds in the page; skip the test where it is not there."""
    if not Path(AXE).is_file():
        pytest.skip("axe-core is not there; FASTBCUBED_AXE is the path of its axe.min.js")
    browser.execute_script(Path(AXE).read_text(encoding="utf-8"))
    found = browser.execute_async_script(
        "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then((r) => done(r.violations))"
    )
    return [
        (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"][:300])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
