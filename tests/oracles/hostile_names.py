"""Names that a page has to bear: markup, marks that turn the reading direction, very long ones, templates."""

from __future__ import annotations

from typing import Any

SCRIPT = "<script>document.title='broken'</script>"
TURNED, HEBREW = "\u202eabc\u202c", "שלום עולם"
LONG = "long" * 2560
CLOSING = "\"'></script><!--]]>&lt;"
TEMPLATE = "{{ 7 * 7 }}${7 * 7}"
NAMES = [SCRIPT, TURNED, HEBREW, LONG, CLOSING, TEMPLATE, "two\nlines", "\u2028", "' onload='x", "__proto__"]


def hostile_case() -> dict[str, Any]:
    """Return arguments of `evaluate` in which ids, labels, columns and values are such names."""
    truth = {name: (SCRIPT if k % 2 else TURNED) for k, name in enumerate(NAMES)}
    prediction = {name: (LONG if k % 3 else CLOSING) for k, name in enumerate(NAMES)}
    attributes = {"item": NAMES, SCRIPT: [*NAMES[:-1], None], LONG: [SCRIPT] * len(NAMES)}
    return {
        "truth": truth,
        "prediction": prediction,
        "attributes": attributes,
        "slices": [SCRIPT, (SCRIPT, LONG)],
    }
