"""What a reader of a diff should know: those of an evaluation's warnings that make sense of one, in its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastbcubed.changes.judgement import Verdict
from fastbcubed.changes.naming import PLACES, reworded
from fastbcubed.clusterings.input_notes import CODES as OF_INPUT
from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.text.wording import count, percent
from fastbcubed.results.warnings.codes import found_in
from fastbcubed.results.warnings.notices import NOTE, WARNING

#: Warnings of an evaluation that say something of a diff, too; and what they say there, where words do not suffice.
TOLD: dict[str, str] = {
    "same-input": "Baseline and experiment are the same data, so that nothing has changed.",
    "few-ids-match": "",
    "all-singleton-truth": "Every item is alone in the baseline, so that nothing can be split. Check that its column "
    "of clusters is one, and not a column of ids.",
    "unlinked-alone": "",
    "giant-cluster": "",
    "slices-without-scores": "",
    "small-slice": "",
}
#: Where the truth labels less of the items, what it says of the others is worth a warning.
MOSTLY_LABELLED, ALL_BUT_FEW = 0.5, 0.99


def cautions(ev: Evaluated, verdict: Verdict | None) -> list[dict[str, Any]]:
    """Return what is to be said of a diff: code, level, message, figures."""
    chosen = [code for code in TOLD if code != "same-input" or ev._origin.same_source is not None]
    found = [
        {**each, "message": TOLD[each["code"]] or reworded(each["message"])} for each in found_in(ev, chosen)
    ]
    inputs = [note for note in ev._input_notes if note["code"] in OF_INPUT]
    found += [{**note, **_of_side(note), "message": reworded(note["message"])} for note in inputs]
    return found if verdict is None else [*found, *_partly_labelled(verdict)]


def _of_side(note: Mapping[str, Any]) -> dict[str, str]:
    """Return the side that a note is about, if it is about one."""
    known = {place: side for side, place in PLACES.items()}
    return {"side": known[note["side"]]} if note.get("side") in known else {}


def _partly_labelled(verdict: Verdict) -> list[dict[str, Any]]:
    """Return a note, or a warning, that the truth labels a part of the items alone."""
    n = verdict.n_items + verdict.n_unlabelled
    share = verdict.n_items / n
    if share >= ALL_BUT_FEW or verdict.unlabelled == "outside":
        return []
    message = (
        f"The truth labels {percent(share)} of the {count(n)} items: it judges what happened among these, and the "
        "others are left out of all clusters that it judges. If true clusters are complete, so that no other item "
        'belongs to them, pass unlabelled="outside".'
    )
    level = WARNING if share < MOSTLY_LABELLED else NOTE
    return [{"code": "few-items-labelled", "level": level, "message": message, "share": share, "n_items": n}]
