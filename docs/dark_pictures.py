"""Pictures for the dark theme: a picture is followed by its dark twin, and each theme shows one of them.

The twin of an SVG is the same in the dark colours of our charts. The twin of another picture is next to it in the
repository: that of `report.png` is `report-dark.png`. The theme puts pictures without a twin on a white card.

An SVG that would be too small to read on a phone has the class `wide`: there, it scrolls instead.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import asdict
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from fastbcubed.render.plots import DARK, LIGHT

#: The dark colour of each colour in charts; below, of what Vega takes where a chart names no colour.
COLOURS = dict(zip(asdict(LIGHT).values(), asdict(DARK).values(), strict=True))
COLOURS |= {"#000": DARK.ink, "#888": DARK.soft, "#ddd": DARK.faint}
#: The width in pixels up to which an SVG is still readable if it shrinks to the width of a phone.
NARROW = 500
WIDTH = re.compile(r"<svg[^>]*? width=[\"'](\d+)")
COLOUR = re.compile(r"#[0-9a-fA-F]+\b")


def in_dark(svg: str) -> str:
    """Return a picture in dark colours.

    >>> in_dark('<rect fill="#ffffff"/><text fill="#000">5</text>')
    '<rect fill="#15181c"/><text fill="#e6e9ed">5</text>'
    """
    return COLOUR.sub(lambda found: COLOURS.get(found[0].lower(), found[0]), svg)


def is_wide(svg: str) -> bool:
    """Return whether a picture is too wide to shrink.

    >>> is_wide('<svg width="772" height="312">'), is_wide('<svg class="marks" width="370">')
    (True, False)
    """
    width = WIDTH.search(svg)
    return width is not None and int(width[1]) > NARROW


class DarkTwins(SphinxTransform):
    """Add the dark twin of each picture that has one."""

    default_priority = 500

    def apply(self) -> None:
        """Change the document."""
        for picture in list(self.document.findall(nodes.image)):
            twin = self.twin(picture["uri"])
            if twin is not None and twin.suffix == ".svg" and is_wide(twin.read_text(encoding="utf-8")):
                picture["classes"] = [*picture["classes"], "wide"]
            if twin is not None:
                dark = picture.copy()
                dark["uri"] = "/" + Path(os.path.relpath(twin, self.env.srcdir)).as_posix()
                picture["classes"] = [*picture["classes"], "only-light"]
                dark["classes"] = [*dark["classes"], "only-dark"]
                picture.parent.insert(picture.parent.index(picture) + 1, dark)

    def twin(self, uri: str) -> Path | None:
        """Return the file of a picture's twin; that of an SVG is written."""
        if "://" in uri or uri.startswith("data:"):
            return None
        path = Path(self.env.relfn2path(uri, self.env.docname)[1])
        if path.suffix != ".svg":
            beside = path.with_stem(f"{path.stem}-dark")
            return beside if beside.exists() else None
        dark = in_dark(path.read_text(encoding="utf-8"))
        name = f"{path.stem[:40]}-{hashlib.sha256(dark.encode()).hexdigest()[:12]}-dark.svg"
        folder = Path(self.app.doctreedir) / "dark"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(dark, encoding="utf-8")
        return folder / name


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(DarkTwins)
    return {"parallel_read_safe": True}
