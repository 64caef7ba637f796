"""The disk engine for several runs, one after the other: each is kept to the items that all of them score."""

from __future__ import annotations

from collections.abc import Sequence

from fastbcubed.alignment.common_rows import CommonRows, RowsOfRun
from fastbcubed.alignment.row_aligner import Choice
from fastbcubed.alignment.together import require_some
from fastbcubed.clusterings.stretches import Pair, open_pairs
from fastbcubed.engines import disk
from fastbcubed.engines.request import Answer, Request
from fastbcubed.engines.room import require_room
from fastbcubed.engines.several import Answers
from fastbcubed.errors import EmptyInputError, OptionError, WeightError, naming
from fastbcubed.runtime.pool import Pool


def run(requests: Sequence[Request], names: Sequence[str], pool: Pool, *, common: bool) -> Answers:
    """Score the runs, each on the items that all of them score if these are to be `common`.

    All work with one hash function: the same key stands for a true cluster in all of them.
    """
    for request in requests:
        require_room(request)
    pairs = open_pairs([request.given for request in requests], names, disk.cut_for(requests[0]))

    def alone(request: Request, k: int) -> Answer:
        return disk.attempt(lambda choice: disk.score(pairs[k], request, choice, pool))

    if common and len(pairs) > 1:
        found = disk.attempt(lambda choice: _on_common_rows(pairs, requests, names, choice, pool))
        return found._replace(alone=alone)
    return _answers(disk.attempt(lambda choice: _one_by_one(pairs, requests, names, choice, pool)), None)


def _one_by_one(
    pairs: Sequence[Pair], requests: Sequence[Request], names: Sequence[str], choice: Choice, pool: Pool
) -> list[Answer]:
    found = []
    for pair, request, name in zip(pairs, requests, names, strict=True):
        with naming(name, *pair.names):
            found.append(disk.score(pair, request, choice, pool))
    return found


def _answers(answers: list[Answer], kept: list[RowsOfRun] | None) -> Answers:
    coverage = [answer.coverage for answer in answers]
    n_scored = [answer.cells.n_items for answer in answers]
    if kept is not None:
        coverage = [own.coverage for own in kept if own.coverage is not None]
        n_scored = [own.n_scored for own in kept]
    keys = [answer.ranges.keys.true for answer in answers if answer.ranges is not None]
    return Answers(answers, n_scored, coverage, keys)


def _on_common_rows(
    pairs: Sequence[Pair], requests: Sequence[Request], names: Sequence[str], choice: Choice, pool: Pool
) -> Answers:
    """Score the runs, those with fewer rows first; those that another one has narrowed since are scored again."""
    n_truth = sum(stretch.n_rows for stretch in pairs[0].stretches[0])
    rows, kept, found = CommonRows(n_truth), dict[int, RowsOfRun](), dict[int, Answer]()
    order = sorted(range(len(pairs)), key=lambda k: pairs[k].n_rows)
    for k in (*order, *order):
        if k in kept and kept[k].n_kept == rows.n_kept:
            continue
        found.pop(k, None)
        own = kept[k] = rows.next_run()
        try:
            with naming(names[k], *pairs[k].names):
                found[k] = disk.score(pairs[k], requests[k], choice, pool, own)
        except EmptyInputError:
            if own.coverage is None or own.n_kept:
                raise
        rows.narrow(own)
        _require_known(own, names[k])
        require_some(own.n_kept, [names[i] for i in sorted(kept)], [kept[i].n_scored for i in sorted(kept)])
    in_order = [kept[k] for k in range(len(pairs))]
    _require_same_weights(in_order, names)
    return _answers([found[k] for k in range(len(pairs))], in_order)


def _require_known(run: RowsOfRun, name: str) -> None:
    """Raise if a run scores items that the truth lacks: whether other runs have them is not looked up here."""
    if run.n_further:
        items = f"{run.n_further:,} item{'s' if run.n_further > 1 else ''}"
        raise OptionError(
            f"{name!r} has {items} that the truth lacks and that would be scored. The disk engine does not tell which "
            'of these all runs have: pass engine="memory", unmatched={"prediction": "drop"} or align="each"'
        )


def _require_same_weights(runs: Sequence[RowsOfRun], names: Sequence[str]) -> None:
    """Raise if an item weighs differently in two runs, as where only the predictions have weights."""
    for run, name in zip(runs[1:], names[1:], strict=True):
        if run.weights != runs[0].weights:
            raise WeightError(
                f"items weigh differently in the runs {names[0]!r} and {name!r}. The weight of an item belongs to the "
                "item: put it into the truth, or pass weight= a table of item and weight"
            )
