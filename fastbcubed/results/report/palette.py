"""Colours of charts and pages: told apart by people who do not see red and green alike, in light, dark and print."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Palette:
    """What each thing is drawn in; a colour of CSS.

    Truth and prediction are blue and orange, which all kinds of colour vision tell apart; they differ in lightness
    as well.
    """

    ink: str = "#22262b"
    soft: str = "#666e78"  #: axes and notes
    faint: str = "#dfe3e8"  #: grid
    paper: str = "#ffffff"
    true: str = "#1d5f8f"
    pred: str = "#c8600f"
    both: str = "#7a4a8c"  #: split and merged
    calm: str = "#b7c0ca"  #: exact, and small slices


LIGHT = Palette()
DARK = Palette(
    ink="#e6e9ed", soft="#a3acb7", faint="#343b44", paper="#15181c", true="#6fb3e6", pred="#f29b4c",
    both="#c99bdb", calm="#66717d",
)  # fmt: skip

#: Names of the colours, by what charts are drawn in; in a page they follow the reader's preference.
NAMES = {colour: name for name, colour in asdict(LIGHT).items()}


def as_style(palette: Palette) -> str:
    """Return the colours as properties of a style.

    Examples
    --------
    >>> as_style(LIGHT)[:14]
    '--ink:#22262b;'
    """
    return "".join(f"--{name}:{colour};" for name, colour in asdict(palette).items())
