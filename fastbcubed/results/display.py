"""An evaluation for people: the text that a terminal shows, the tables that a notebook shows."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastbcubed.overlap.covers import Cover

if TYPE_CHECKING:
    from fastbcubed.results.evaluation import Evaluation

__all__ = [
    "Grid",
    "aligned",
    "amount",
    "as_html",
    "as_text",
    "count",
    "coverage",
    "definition",
    "label",
    "overview",
    "percent",
    "score",
]

WIDTH = 88
#: What became of items that one side lacks, in a sentence.
FATES = {
    "drop": "left out (drop)",
    "singleton": "each alone on the other side (singleton)",
    "outside": "not scored, but wrong company for their mates (outside)",
}


class Grid(NamedTuple):
    """A small table of texts. The first `names` columns name a row, the others hold figures."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1


def as_text(evaluation: Evaluation) -> str:
    """Return an evaluation as text for a terminal of 80 columns or more."""
    parts = [overview(evaluation)]
    if warned := [_paragraph(w["message"], "Warning: ") for w in evaluation.warnings]:
        parts.append("\n".join(warned))
    if steps := _next_steps(evaluation):
        parts.append(steps)
    return "\n\n".join(parts)


def overview(evaluation: Evaluation) -> str:
    """Return what was compared, how far the sides have the same items, and the overall scores."""
    parts = ["\n".join(_heading(evaluation)), aligned(_sides(evaluation))]
    if lines := coverage(evaluation):
        parts.append("\n".join(_paragraph(line, "  ", after="    ") for line in lines))
    parts.append(aligned(_scores(evaluation), figures_left=True))
    notes = [_paragraph(line) for line in (definition(evaluation), *_not_computed(evaluation))]
    return "\n\n".join([*parts, "\n".join(notes)])


def as_html(evaluation: Evaluation) -> str:
    """Return an evaluation as HTML for a notebook: plain tables, no style of its own but alignment."""
    title, *names = _heading(evaluation)
    parts = [f"<p><b>{_escaped(title)}</b>{''.join(f'<br>{_escaped(n)}' for n in names)}</p>"]
    parts.append(_html_table(_sides(evaluation)))
    if lines := coverage(evaluation):
        parts.append(f"<p>{'<br>'.join(map(_escaped, lines))}</p>")
    parts.append(_html_table(_scores(evaluation), text_last=True))
    notes = [definition(evaluation), *_not_computed(evaluation)]
    parts.append(f"<p>{'<br>'.join(map(_escaped, notes))}</p>")
    parts += [f"<p><b>Warning:</b> {_escaped(w['message'])}</p>" for w in evaluation.warnings]
    if steps := _next_steps(evaluation):
        parts.append(f"<pre>{html.escape(steps)}</pre>")
    return f"<div>{''.join(parts)}</div>"


# Numbers and names


def score(value: float) -> str:
    """Return a score in five significant digits, and more near 1: only 1 itself reads as 1.

    Examples
    --------
    >>> score(0.8072038), score(0.9999996), score(1.0), score(12345.67), score(float("nan"))
    ('0.80720', '0.9999996', '1', '12,346', 'n/a')
    """
    value = float(value)
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == round(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1e5:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.5g}"
    if abs(value) < 1e-4:
        return f"{value:.5g}"
    text = f"{value:#,.5g}".rstrip(".")
    if abs(float(text.replace(",", ""))) == 1:
        loss = abs(1 - abs(value))
        text = f"{value:.{1 - math.floor(math.log10(loss))}f}".rstrip("0")
    return text


def percent(part: float) -> str:
    """Return a share as a percentage; only all of it reads as 100 %, and only nothing as 0 %.

    Examples
    --------
    >>> percent(0.8767), percent(0.99996), percent(1.0), percent(0.00004), percent(0.0)
    ('87.7 %', '99.996 %', '100 %', '0.004 %', '0 %')
    """
    if math.isnan(part):
        return "n/a"
    rest = min(abs(part), abs(1 - part))
    if rest == 0:
        return f"{100 * part:.0f} %"
    decimals = max(1, -math.floor(math.log10(rest)) - 2) if rest < 0.0005 else 1
    return f"{100 * part:.{decimals}f} %"


def count(number: int) -> str:
    """Return a number of things, thousands apart."""
    return f"{number:,}"


def amount(weight: float) -> str:
    """Return a weight: whole as a count, else in six significant digits."""
    weight = float(weight)
    if math.isfinite(weight) and weight == round(weight) and abs(weight) < 1e15:
        return f"{int(weight):,}"
    return f"{weight:,.0f}" if 1e6 <= abs(weight) < 1e15 else f"{weight:,.6g}"


def label(value: Any) -> str:
    r"""Return the name of an item, cluster or slice on one line, with nothing that a terminal obeys.

    Examples
    --------
    >>> label("Zoë"), label({"source": "a", "id": 7}), label(None), label("two\nlines")
    ('Zoë', 'a, 7', '(null)', 'two\\nlines')
    """
    if value is None:
        return "(null)"
    if isinstance(value, Mapping):
        return ", ".join(map(label, value.values()))
    if isinstance(value, bytes):
        return value.hex()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(value))


# Parts of an evaluation


def coverage(evaluation: Evaluation) -> list[str]:
    """Return how far the sides have the same items, and what the policies did; nothing if nothing did."""
    found, policies = evaluation.coverage, evaluation.policies
    lines = []
    if found.n_truth_only or found.n_prediction_only:
        of_truth = found.n_common + found.n_truth_only
        share = found.n_common / of_truth
        line = f"Coverage: {percent(share)} of the truth's items"
        line += f" ({count(found.n_common)} of {count(of_truth)})"
        weighted = found.truth_coverage
        if evaluation.contingency.weighted and not math.isnan(weighted):
            line += f", {percent(weighted)} of their weight,"
        lines.append(f"{line} are in the prediction.")
    for side, number in (("truth", found.n_truth_only), ("prediction", found.n_prediction_only)):
        if number:
            lines.append(f"{_items(number)} only in the {side}: {_fate(getattr(policies, side))}.")
    if lines:
        lines.append("Clusters are counted and scored among the items that take part.")
    bounds = evaluation.bounds
    if bounds is not None and not math.isnan(bounds.precision_lower + bounds.precision_upper):
        low, high = score(bounds.precision_lower), score(bounds.precision_upper)
        lines.append(f"If the truth labelled them too, precision would be between {low} and {high}.")
    if found.n_null:
        lines.append(f"{_rows(found.n_null)} with a null cluster: {_fate(policies.nulls)}.")
    if found.n_noise:
        lines.append(f"{_rows(found.n_noise)} labelled {label(policies.noise)} (noise): each alone.")
    if found.n_duplicates:
        lines.append(f"{_rows(found.n_duplicates)} repeated an earlier one: left out (drop).")
    return lines


def definition(evaluation: Evaluation) -> str:
    """Return what the scores mean, in a sentence or two: average, weighting, beta."""
    table = evaluation.contingency
    if not table.weighted:
        how = "every item counts equally"
    elif table.weighting == "outer":
        how = "weights count in the mean alone"
    else:
        how = "weights count inside each item's confusion matrix and in the mean"
    if any(m.overall_only or "_by_" in m.name for m in evaluation.metrics):
        how += ". Scores by cluster, and of all items at once, say so"
    if isinstance(table, Cover):
        how += (
            ". Clusters may overlap (Extended BCubed): tp, fp and fn are in proportion to the mean share of the "
            "common clusters over an item's mates"
        )
    of_beta = f" Beta is {evaluation.beta:g}." if evaluation.beta != 1 else ""
    return f"Means are over items; {how}.{of_beta}"


def _heading(evaluation: Evaluation) -> list[str]:
    lines = [f"Evaluation of {_items(evaluation.summary['true']['items'])}"]
    names = {side: evaluation.names.get(side) or "" for side in ("truth", "prediction")}
    if any(name not in ("", f"the {side}") for side, name in names.items()):
        lines += [f"  {side:<12}{label(name)}" for side, name in names.items()]
    return lines


def _sides(evaluation: Evaluation) -> Grid:
    found, summary = evaluation.coverage, evaluation.summary
    rows = []
    for side, only, key in (
        ("truth", found.n_truth_only, "true"),
        ("prediction", found.n_prediction_only, "pred"),
    ):
        figures = summary[key]
        share = percent(figures["exact"] / figures["clusters"])
        shown = [found.n_common + only, *(figures[k] for k in ("clusters", "singletons", "largest"))]
        rows.append([side, *map(count, shown), f"{count(figures['exact'])} ({share})"])
    return Grid(["", "items", "clusters", "singletons", "largest", "exactly recovered"], rows)


def _scores(evaluation: Evaluation) -> Grid:
    known = {metric.name: metric for metric in evaluation.metrics}
    rows = []
    for name, value in evaluation.overall.items():
        meaning = ""
        if name in known:
            meaning = known[name].definition.replace("mean over items of ", "mean of ", 1)
            if known[name].best == "lower":
                meaning = f"lower is better; {meaning}"
        rows.append([name, score(value), meaning])
    return Grid(["score", "", "definition"], rows)


def _not_computed(evaluation: Evaluation) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for name, reason in evaluation.not_computed.items():
        by_reason.setdefault(reason, []).append(name)
    return [f"Not computed: {', '.join(names)}: {reason}." for reason, names in by_reason.items()]


def _next_steps(evaluation: Evaluation) -> str:
    """Return two or three calls that show where the score is lost."""
    if not evaluation.has_clusters:
        return ""
    steps = [('  .clusters("pred", limit=5)', 'the worst predicted clusters; or "true"')]
    try:
        items = evaluation.kept_items()
    except ValueError:  # there are clusters alone
        return aligned(Grid(["Next:", ""], [steps[0]]), figures_left=True)
    attributes = [name for names in items.attribute_sides().values() for name in names]
    if evaluation.attributes is not None:
        attributes += evaluation.attributes.names
    by = label(attributes[0] if attributes else "true_size")
    others = [o for o in dict.fromkeys(map(label, [*attributes[1:], "true_size", "pred_size"])) if o != by]
    listed = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
    steps.append((f'  .slices("{by}")', f"scores by {by}; or {listed}"))
    steps.append(("  .item(id)", "one item: its confusion matrix, and who is in it"))
    return aligned(Grid(["Next:", ""], steps), figures_left=True)


def _items(number: int) -> str:
    return f"{count(number)} item{'' if number == 1 else 's'}"


def _rows(number: int) -> str:
    return f"{count(number)} row{'' if number == 1 else 's'}"


def _fate(policy: str) -> str:
    return FATES.get(policy, policy)


# Layout


def aligned(grid: Grid, *, figures_left: bool = False) -> str:
    """Return a grid as lines: names to the left, figures to the right unless `figures_left`."""
    widths = [max(map(len, column)) for column in zip(grid.header, *grid.rows, strict=True)]
    lines = []
    for row in (grid.header, *grid.rows):
        cells = [
            text.ljust(width) if at < grid.names or figures_left else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        lines.append(line if len(line) <= 100 else line[:99] + "…")
    return "\n".join(lines)


def _paragraph(text: str, before: str = "", after: str = "") -> str:
    return textwrap.fill(
        before + text, WIDTH, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    )


def _escaped(text: str) -> str:
    return html.escape(text.strip())


def _html_table(grid: Grid, *, text_last: bool = False) -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        shown = []
        for at, text in enumerate(cells):
            left = at < grid.names or (text_last and at == len(grid.header) - 1)
            shown.append(f'<{tag} style="text-align:{"left" if left else "right"}">{_escaped(text)}</{tag}>')
        return f"<tr>{''.join(shown)}</tr>"

    body = "".join(row(cells, "td") for cells in grid.rows)
    return f"<table><thead>{row(grid.header, 'th')}</thead><tbody>{body}</tbody></table>"
