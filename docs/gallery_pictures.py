"""Draw the pictures of the gallery, each with the block of code above it: ``python docs/gallery_pictures.py``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("gallery.md")
#: Matches blocks of Python code, and pictures.
PIECES = re.compile(r"```python\n(?P<code>.*?)```|!\[[^\]]*\]\((?P<picture>[^)]+)\)", re.DOTALL)


def main(folder: Path = PAGE.parent) -> None:
    """Run the blocks of the page in order, and write the last chart to the file of each picture, inside `folder`."""
    namespace: dict[str, Any] = {}
    for found in PIECES.finditer(PAGE.read_text(encoding="utf-8")):
        if found["code"] is not None:
            exec(found["code"], namespace)
        else:
            picture = folder / found["picture"]
            picture.parent.mkdir(parents=True, exist_ok=True)
            namespace["chart"].properties(padding=16).save(picture)


if __name__ == "__main__":
    main()
