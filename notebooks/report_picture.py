"""Draw the top of a report of the bundled data, in both themes: ``python notebooks/report_picture.py``."""

from __future__ import annotations

import base64
import os
import shutil
import sys
import tempfile
from pathlib import Path

import fastbcubed as fb

#: The picture, and the same for the dark theme.
PICTURES = {
    scheme: Path(__file__).with_name(name)
    for scheme, name in (("light", "report.png"), ("dark", "report-dark.png"))
}
#: Size of the window, and pixels of the picture for each of its pixels.
WIDTH, HEIGHT, SCALE = 1180, 735, 1


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
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
            size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": SCALE, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            for scheme, picture in PICTURES.items():
                features = [{"name": "prefers-color-scheme", "value": scheme}]
                browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
                browser.get(page.as_uri())
                shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})
                picture.write_bytes(base64.b64decode(shot["data"]))
        finally:
            browser.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
