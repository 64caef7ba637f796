"""Charts as SVG within a page: one picture for a screen reader, with names of its own, in the colours of the page."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

from fastbcubed.results.report.axes import finished
from fastbcubed.results.report.palette import LIGHT, NAMES

SVG = "http://www.w3.org/2000/svg"
#: Digits behind the point that are seen.
NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
LINK = re.compile(r"url\(#([^)]+)\)")
#: How much wider a text may be in a font of the reader (DejaVu Sans, Verdana) than in Arial, in which it is measured.
ROOM = 1.3
#: How much larger than it is laid out a chart is shown, where there is room.
SCALE = 1.15
#: Attributes that say where another element is.
REFERENCES = ("clip-path", "fill", "stroke", "mask", "filter")


def drawn(chart: Any, name: str, said: str) -> str:
    """Return a chart as SVG; `name` makes its identifiers its own, `said` is what a screen reader says of it."""
    import vl_convert

    spec = _enlarged(finished(chart, LIGHT).to_dict(validate=False))
    spec["config"]["aria"] = False  # descriptions of Vega-Lite, which breaks on titles with a backslash
    return as_inline(vl_convert.vegalite_to_svg(json.dumps(spec)), name, said)


def _enlarged(spec: Any) -> Any:
    """Return a chart whose texts are laid out larger than they are shown, so that they fit in any usual font."""
    if isinstance(spec, dict):
        return {
            key: value * ROOM if key.endswith(("ontSize", "Limit")) else _enlarged(value)
            for key, value in spec.items()
        }
    return [_enlarged(each) for each in spec] if isinstance(spec, list) else spec


def as_inline(text: str, name: str, said: str) -> str:
    """Return SVG as an element of a page: without roles and styles of its own, and with numbers no longer than seen."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(text)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    own = {each: f"{name}-{k}" for k, each in enumerate(ids)}  # Vega counts on from chart to chart
    width, height = root.get("width", "0"), root.get("height", "0")
    for element in root.iter():
        for key in list(element.attrib):
            if key.startswith("aria-") or key in ("role", "class", "style", "pointer-events"):
                del element.attrib[key]
            elif key == "id":
                element.set(key, own[element.attrib[key]])
            elif key == "font-size":
                element.set(key, f"{float(element.attrib[key].removesuffix('px')) / ROOM:g}px")
            elif key in REFERENCES:
                value = LINK.sub(lambda link: f"url(#{own[link.group(1)]})", element.attrib[key])
                element.set(key, f"var(--{NAMES[value]})" if value in NAMES else value)
            elif key in ("d", "transform", "x2", "y2", "width", "height"):
                element.set(key, NUMBER.sub(_rounded, element.attrib[key]))
    if (ground := root.find(f"{{{SVG}}}rect")) is not None:  # that of the page
        root.remove(ground)
    root.attrib.clear()
    root.attrib |= {
        "viewBox": f"0 0 {width} {height}", "width": f"{SCALE * float(width):g}",
        "height": f"{SCALE * float(height):g}", "role": "img", "aria-label": said,
    }  # fmt: skip
    return ElementTree.tostring(root, encoding="unicode")


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match.group()):.2f}".rstrip("0").rstrip(".")
