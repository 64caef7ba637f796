"""Draw README's picture, the first screen of the page of the bundled data: ``python notebooks/report_picture.py``."""

from __future__ import annotations

import base64
import os
import shutil
import sys
import tempfile
from pathlib import Path

import fastbcubed as fb

PICTURE = Path(__file__).with_name("report.png")
#: Size of the window, and pixels of the picture for each of its pixels.
WIDTH, HEIGHT, SCALE = 1180, 800, 1


def main() -> int:
    """Write the picture; it takes Chromium, chromedriver and Selenium."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        print("chromium and chromedriver are needed to draw a page", file=sys.stderr)
        return 2
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(flag)
    os.chdir(Path(fb.__file__).parents[1])  # so that paths are shown as README has them
    data = Path("fastbcubed", "data", "patentsview")
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "report.html"
        ev = fb.evaluate(data / "truth.parquet", data / "pred_20211230.parquet", slices=["country"])
        ev.report(page, title="Inventors on US patents, as released in 2021")
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            browser.get(page.as_uri())
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
            size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": SCALE, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})
        finally:
            browser.quit()
    PICTURE.write_bytes(base64.b64decode(shot["data"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
