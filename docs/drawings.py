"""Draw the logo, the icon and the picture that explains BCubed: ``python docs/drawings.py``."""

from __future__ import annotations

from pathlib import Path

from fastbcubed.render.plots import LIGHT

STATIC = Path(__file__).with_name("_static")
#: Colours of true clusters, distinguishable on white and on black, also for colour-blind readers.
ANNA, BOB = "#0072b2", "#e69f00"
FONT = "font-family='system-ui, sans-serif'"


def svg(width: int, height: int, content: str, title: str) -> str:
    """Return a picture with a title for screen readers."""
    size = f"viewBox='0 0 {width} {height}' width='{width}' height='{height}'"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' {size} role='img'><title>{title}</title>{content}</svg>\n"
    )


def dot(x: float, y: float, colour: str, label: str = "", radius: float = 15) -> str:
    """Return an item in the colour of its true cluster."""
    ink = "black" if colour == BOB else "white"
    name = f"<text x='{x}' y='{y + 5}' text-anchor='middle' font-size='14' fill='{ink}' {FONT}>{label}</text>"
    return f"<circle cx='{x}' cy='{y}' r='{radius}' fill='{colour}'/>{name if label else ''}"


def box(x: float, y: float, width: float, height: float, colour: str = "#8a8f98", thick: float = 2) -> str:
    """Return a predicted cluster."""
    shape = f"x='{x}' y='{y}' width='{width}' height='{height}' rx='{min(width, height) / 2.6:.1f}'"
    return f"<rect {shape} fill='none' stroke='{colour}' stroke-width='{thick}'/>"


def mark() -> str:
    """Return the logo: two clusters, and one item between them that is in the wrong one."""
    parts = (box(2, 6, 40, 36, "#0072b2", 3), box(46, 6, 16, 36, "#8a8f98", 3))
    dots = ((14, 16, ANNA), (14, 32, ANNA), (30, 16, ANNA), (30, 32, BOB), (54, 24, BOB))
    return "".join(parts) + "".join(dot(x, y, colour, radius=6) for x, y, colour in dots)


def text(
    x: float, y: float, words: str, size: int = 15, weight: str = "normal", colour: str = LIGHT.ink
) -> str:
    """Return a text element."""
    return f"<text x='{x}' y='{y}' font-size='{size}' font-weight='{weight}' fill='{colour}' {FONT}>{words}</text>"


def bcubed() -> str:
    """Return the picture of one item with its two clusters, precision and recall."""
    items = (("a", 60, ANNA), ("b", 100, ANNA), ("c", 140, BOB), ("d", 230, BOB), ("e", 270, BOB))
    parts = [f"<rect width='640' height='248' rx='8' fill='{LIGHT.paper}'/>"]
    parts += [text(24, 32, "Colours are true clusters, boxes are predicted ones. Take item c:", 16, "bold")]
    parts += [box(36, 52, 128, 46), box(206, 52, 88, 46)]
    parts += [dot(x, 75, colour, name) for name, x, colour in items]
    parts += [f"<circle cx='140' cy='75' r='19' fill='none' stroke='{LIGHT.ink}' stroke-width='2.5'/>"]
    rows = (
        (
            132,
            "Precision of c",
            ((ANNA, "a"), (ANNA, "b"), (BOB, "c")),
            "1 of 3 in its box has its colour: 1/3",
        ),
        (172, "Recall of c", ((BOB, "c"), (BOB, "d"), (BOB, "e")), "1 of 3 of its colour is in its box: 1/3"),
    )
    for y, name, dots, words in rows:
        parts += [text(24, y + 5, name, 15, "bold")]
        parts += [dot(160 + 32 * at, y, colour, label, 12) for at, (colour, label) in enumerate(dots)]
        parts += [text(268, y + 5, words)]
    lines = (
        "BCubed precision and recall are the means over all items:",
        "(2/3 + 2/3 + 1/3 + 1 + 1) / 5 = 11/15 and (1 + 1 + 1/3 + 2/3 + 2/3) / 5 = 11/15.",
    )
    parts += [text(24, 210 + 22 * at, line) for at, line in enumerate(lines)]
    return "".join(parts)


def main() -> None:
    """Write the pictures."""
    pictures = {
        "logo.svg": svg(64, 48, mark(), "fastbcubed"),
        "bcubed.svg": svg(640, 248, bcubed(), "BCubed precision and recall of one item"),
    }
    for name, picture in pictures.items():
        (STATIC / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
