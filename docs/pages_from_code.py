"""The pages generated from the code: scores, commands, public names, keys of JSON, and a sample report."""

import inspect
import io
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import formulas
import numpy as np

import fastbcubed as fb
from fastbcubed.cli import commands, json_keys
from fastbcubed.cli.metrics_command import entry_of, range_of
from fastbcubed.metrics import registry
from fastbcubed.metrics.metric import Metric

#: The example of every page, as the items of each cluster.
TRUTH, PREDICTION = ("ab", "cd"), ("abc", "d")
OVERLAPPING_TRUTH, OVERLAPPING_PREDICTION = ("ab", "bcd"), ("abc", "cd")
#: For changes: right and wrong splits and merges, wrong pairs that stay, and an item that does not change.
BASELINE, EXPERIMENT = ("abcd", "e", "f"), ("a", "bcde", "f")
SETTLED = ("ab", "cde", "f")
#: The letters of an item's sets in formulas of changes that are judged by a truth.
LETTERS = {"truth": "I", "baseline": "B", "experiment": "E", "split": "S", "merged": "M"}
#: Names of the entries of confusion matrices, and of sums of pairs, in the order of the formulas' arguments.
MATRIX = ("tp", "fp", "fn", "tn")
PAIRS = {"pairs": ("TP", "FP", "FN", "TN"), "wrong pairs": ("FP", "FN")}
#: The derivation of the decimals of entropies.
ENTROPIES = (
    "In bits, H(C) = 1 for two true clusters of two items; H(K) = 3/4 × log2(4/3) + 1/4 × log2(4) = 0.8113; "
    "H(C|K) = 3/4 × (2/3 × log2(3/2) + 1/3 × log2(3)) = 0.6887; H(K|C) = 2/4 × 1."
)
#: Public classes and public functions, in the order of use.
CLASSES = (
    "Clustering", "Evaluation", "Comparison", "Diff", "Sweep", "Estimates", "EstimatedComparison", "Explanation",
    "Contingency", "Table",
)  # fmt: skip
FUNCTIONS = (
    "evaluate", "compare", "diff", "sweep", "estimate", "estimate_pairs", "load", "extended_bcubed", "cice_bcubed",
    "contingency", "bins", "example",
)  # fmt: skip
MODULES = ("charts", "constraints", "errors")


def write(docs: Path) -> None:
    """Write all generated pages below the folder of the documentation, replacing earlier ones."""
    reference = docs / "reference"
    pages = {
        **{
            f"scores/{name}": score_page(metric)
            for name, metric in registry.METRICS.items()
            if PAGE[name] == name
        },
        "scores/index": score_list(),
        **{f"commands/{each.name}": command_page(each.name, each.description) for each in commands.COMMANDS},
        **{f"api/{name}": api_page(name) for name in (*CLASSES, *FUNCTIONS, *MODULES)},
        "api/metrics": metrics_page(),
        "json/keys": keys_page(),
    }
    for folder in ("scores", "commands", "api", "json"):
        for old in (reference / folder).glob("*.md"):
            if f"{folder}/{old.stem}" not in pages:
                old.unlink()
    for name, text in pages.items():
        page = reference / f"{name}.md"
        page.parent.mkdir(exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:  # Sphinx rereads newer files only
            page.write_text(text, encoding="utf-8")
    extra = docs / "_generated"
    extra.mkdir(exist_ok=True)
    sample_report(extra / "sample-report.html")


#: The file of a family of scores, if it has another name.
FILES = {"pointwise": "bcubed", "elm": "bcubed_variants", "overlap": "overlap_scores", "diff": "change"}


def source_of(page: str) -> str:
    """Return the file that a generated page comes from, or "" for any other page.

    >>> source_of("docs/reference/scores/f1"), source_of("docs/reference/api/Sweep"), source_of("docs/start")
    ('fastbcubed/metrics/bcubed.py', 'fastbcubed/sweep_links/sweep_result.py', '')
    """
    folder, _, name = page.removeprefix("docs/reference/").partition("/")
    if not page.startswith("docs/reference/") or folder not in ("scores", "commands", "api", "json"):
        return ""
    root = Path(fb.__file__).parent
    if folder == "commands":
        path = root / "cli" / f"{name.replace('-', '_')}_command.py"
    elif folder == "scores":
        family = registry.METRICS[name].family if name in registry.METRICS else ""
        path = root / "metrics" / f"{FILES.get(family, family)}.py"
    else:
        path = Path(inspect.getsourcefile(inspect.unwrap(getattr(fb, name, json_keys))) or root)
    return path.relative_to(root.parent).as_posix() if path.is_file() else "docs/pages_from_code.py"


def sample_report(path: Path) -> None:
    """Write the report of an evaluation of the example data."""
    if not path.exists():
        patents = fb.example("patentsview")
        ev = fb.evaluate(patents.truth, patents.predictions["20211230"], slices=["country"])
        ev.report(path, columns=["first_name", "last_name", "city"], title="A sample report")


# Scores

#: The page of each score: all names of a score share a page; scores that compare two runs have their own pages.
PAGE = {name: (m.family != "diff" and m.alias_of) or name for name, m in registry.METRICS.items()}
#: Further names of scores, whose pages point to the page of the score.
MOVED = {f"docs/reference/scores/{name}": f"{page}.html" for name, page in PAGE.items() if name != page}


def score_list() -> str:
    """Return the page that lists all scores by family."""
    lines = ["# Scores by family", ""]
    for family, title in registry.FAMILIES.items():
        lines += [f"## {title}", "", "| score | better | summary |", "| --- | --- | --- |"]
        lines += [
            f"| [{m.name}]({PAGE[m.name]}.md) | {m.best} | {cell_text(m.summary)} |"
            for m in registry.METRICS.values()
            if m.family == family
        ]
        lines.append("")
    return "\n".join([*lines, *toctree(dict.fromkeys(PAGE.values()))])


def score_page(metric: Metric) -> str:
    """Return the page of a score, under all of its names."""
    named = [metric, *(m for m in registry.METRICS.values() if PAGE[m.name] == metric.name != m.name)]
    known = METRICS_ELSEWHERE.get(metric.alias_of or metric.name, ())
    entries = [entry_of(each) for each in named]
    apart = [name for name in (metric.alias_of, *aliases(metric)) if name and PAGE[name] != metric.name]
    facts = {
        "Names": ", ".join(f"`{each.name}` ({each.family})" for each in named) if named[1:] else "",
        "Family": "" if named[1:] else metric.family,
        "Range": f"{range_of(metric)}; {'neither end' if metric.best == 'neither' else metric.best} is better",
        "Weights": "not defined" if metric.unweighted_only else "yes",
        "By slice, cluster and item": by_part(metric),
        "Overlapping clusters": overlapping(metric),
        "Same values as": ", ".join(f"[{name}]({PAGE[name]}.md)" for name in apart),
        "Also called": ", ".join(f"`{name}`" for name in known),
    }
    lines = [f"# {metric.name}", "", metric.summary, ""]
    if named[1:]:
        others = " and ".join(f"`{each.name}`" for each in named[1:])
        names = "is another name" if named[2:] == [] else "are other names"
        lines += [f"{others} {names} of the same score.", ""]
    lines += ["| property | value |", "| --- | --- |"]
    lines += [f"| {name} | {text} |" for name, text in facts.items() if text]
    rest = formulas.words(formulas.read(metric.definition)[2], PAGE)
    lines += ["", "## Formula", "", f'<div class="formula">{formulas.block(metric.definition)}</div>', ""]
    if rest[:1].isdigit():
        rest = f"{'The score of an item' if metric.formula else 'The score'} is {rest}"
    lines += [f"{rest}.", ""] if rest else []
    lines += [line for note in entries[0]["notes"] for line in (note, "")]
    lines += ["## A small example", "", *example(metric), ""]
    if metric.family != "diff" and not metric.takes_three:
        lines += ["## What moves it", "", *moves(metric), ""]
    lines += ["## When to use it, and when not", "", linked(metric.use, metric.name), ""]
    lines += [linked(metric.caution, metric.name), ""]
    lines += [
        "[Which score for which job](../../explanation/which-score.md) compares the most common scores.",
        "",
    ]
    lines += ["## Source", ""]
    sources = {entry["reference"]: entry["name"] for entry in reversed(entries)}
    lines += [
        f"{source} (`{name}`)" if sources.keys() - {source} else source for source, name in sources.items()
    ]
    lines += ["", "## How to compute it", "", *calls(metric), ""]
    functions = [name for each in named for name in (each.name, *each.also) if name in fb.metrics.__all__]
    directives = [f".. autofunction:: fastbcubed.metrics.{name}" for name in functions]
    return "\n".join([*lines, "```{eval-rst}", *directives, "```", ""])


def linked(text: str, page: str) -> str:
    """Return text with a link at the first mention of each score that has another page."""
    found: set[str] = set()

    def link(match: re.Match[str]) -> str:
        name = match[0]
        if name in found or PAGE.get(name, page) == page:
            return name
        found.add(name)
        return f"[{name}]({PAGE[name]}.md)"

    return re.sub(r"\b[a-z][a-z0-9_]+\b", link, text)


def calls(metric: Metric) -> list[str]:
    """Return how to compute a score in Python and on the command line."""
    if metric.takes_three:
        python = f'fb.diff(baseline, experiment, truth=truth, metrics=["{metric.name}"])'
        return ["```py", python, "```"]
    if metric.family == "diff":
        return ["```py", f'fb.diff(baseline, experiment, metrics=["{metric.name}"])', "```"]
    flag, keyword = (" --overlapping", ", overlapping=True") if metric.covers_only else ("", "")
    python = f'fb.evaluate(truth, prediction, metrics=["{metric.name}"]{keyword})'
    shell = f"fastbcubed evaluate truth.parquet prediction.parquet --metric {metric.name}{flag}"
    lines = ["```py", python, "```", "", "```sh", shell, "```"]
    if metric.on_covers and not metric.covers_only:
        lines += [
            "",
            "If clusters overlap, pass `overlapping=True` in Python or `--overlapping` on the command line.",
        ]
    return lines


def example(metric: Metric) -> list[str]:
    """Return the small example of a score: the clusters, the arithmetic, and the value."""
    names = [each.name for each in (*metric.needs, metric)]
    if metric.takes_three or metric.family == "diff":
        sides = {"truth": SETTLED} if metric.takes_three else {}
        sides |= {"baseline": BASELINE, "experiment": EXPERIMENT}
        found = fb.diff(**{name: clustering(side) for name, side in sides.items()}, metrics=names)
        return [*drawn(sides), "", *by_item(metric, found, sides)]
    if metric.covers_only:
        sides = {"truth": OVERLAPPING_TRUTH, "prediction": OVERLAPPING_PREDICTION}
        found = fb.evaluate(*map(clustering, sides.values()), metrics=names, overlapping=True)
        return [*drawn(sides), "", *by_item(metric, found, sides)]
    ev = fb.evaluate(clustering(TRUTH), clustering(PREDICTION), metrics=names)
    return [*drawn({"truth": TRUTH, "prediction": PREDICTION}), "", *working(metric, ev)]


def by_item(metric: Metric, found: fb.Evaluation | fb.Diff, sides: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the derivation of a mean over items, from the clusters of each item, or of a score from other scores."""
    if metric.needs:
        return [from_others(metric, found)]
    items = found.items().to_pandas().set_index("item").sort_index()
    of = {
        side: [[set(c) for c in clusters if item in c] for item in items.index]
        for side, clusters in sides.items()
    }
    columns = {side: [" ".join(map(named, each)) for each in clusters] for side, clusters in of.items()}
    if "baseline" in of:
        before, after = ([each[0] for each in of[side]] for side in ("baseline", "experiment"))
        columns |= {
            "split": [named(b - e) for b, e in zip(before, after, strict=True)],
            "merged": [named(e - b) for b, e in zip(before, after, strict=True)],
        }
    columns["score"] = [number(score) for score in items.iloc[:, -1]]
    rows = [[item, *row] for item, *row in zip(items.index, *columns.values(), strict=True)]
    head = [f"{name} {LETTERS[name]}" if metric.takes_three and name in LETTERS else name for name in columns]
    value = number(found.overall[metric.name])
    return [*table(["item", *head], rows), "", f"The score is the mean of the last column, {value}."]


def from_others(metric: Metric, found: fb.Evaluation | fb.Diff) -> str:
    """Return the derivation of a score from the scores that it is a function of."""
    parts = [f"{need.name} is {number(found.overall[need.name])}" for need in metric.needs]
    value = number(found.overall[metric.name])
    return f"In the example, {', '.join(parts[:-1])} and {parts[-1]}, so the score is {value}."


def named(items: Iterable[str]) -> str:
    """Return the items of a set, as in a drawing; a dash if there are none."""
    return f"[ {' '.join(sorted(items))} ]" if items else "–"


def working(metric: Metric, ev: fb.Evaluation) -> list[str]:
    """Return the derivation of a score in the example, from items, means, pairs or cells."""
    value = number(ev.overall[metric.name])
    if metric.formula is not None:
        matrices = {item: matrix_of(item, metric.leave_one_out) for item in "abcd"}
        columns = np.array(list(matrices.values()), float).T
        scores = np.broadcast_to(metric.formula(*columns), 4)
        head = ["item", *MATRIX, "score"]
        rows = [[item, *matrices[item], number(s)] for item, s in zip(matrices, scores, strict=True)]
        without = "; the matrices leave out the item itself" if metric.leave_one_out else ""
        return [*table(head, rows), "", f"The score is the mean of the last column, {value}{without}."]
    if metric.needs:
        return [from_others(metric, ev)]
    if set(metric.sums) <= set(PAIRS):
        counts = {"TP": 1, "FP": 2, "FN": 1, "TN": 2}
        together = {"TP": "a b", "FP": "a c, b c", "FN": "c d", "TN": "a d, b d"}
        rows = [[name, counts[name], together[name]] for name in PAIRS[metric.sums[0]]]
        return [*table(["kind of pair", "number", "pairs"], rows), "", f"The score is {value}."]
    rows = [["a b", "a b c", "a b", 2], ["c d", "a b c", "c", 1], ["c d", "d", "d", 1]]
    return [
        *table(["true cluster", "predicted cluster", "cell", "items"], rows),
        "",
        f"The three cells give {worked(metric, value)}.",
        *(["", ENTROPIES] if metric.family == "entropy" else []),
    ]


def worked(metric: Metric, value: str) -> str:
    """Return the arithmetic of a score in the example; raise ValueError if its result is not the score."""
    found = eval(metric.worked, {"log2": math.log2, "sqrt": math.sqrt})
    if abs(found - float(Fraction(value.split()[0]))) > 3e-4:
        raise ValueError(f"{metric.name} is {value}, not {found}: {metric.worked}")
    sign = "≈" if re.search(r"\d\.\d", metric.worked) else "="
    return f"{metric.worked.replace('**2', '²').replace('*', '×')} {sign} {value}"


#: Changes to the clusters of a small truth: the predicted clusters, and items that are singletons on both sides.
MOVED_TRUTH = ("abcd", "ef", "gh")
MOVES = {
    "none: both sides are identical": (MOVED_TRUTH, ""),
    "one item is split off: [ a b c ] [ d ]": (("abc", "d", "ef", "gh"), ""),
    "a cluster is split in half: [ a b ] [ c d ]": (("ab", "cd", "ef", "gh"), ""),
    "two small clusters are merged: [ e f g h ]": (("abcd", "efgh"), ""),
    "a large and a small cluster are merged: [ a b c d e f ]": (("abcdef", "gh"), ""),
    "a large and a small cluster are merged, and eight more items are singletons on both sides": (
        ("abcdef", "gh"),
        "ijklmnop",
    ),
}


@cache
def scores_after(*, overlapping: bool) -> dict[str, dict[str, float]]:
    """Return all scores after each change of `MOVES`."""
    names = [m.name for m in registry.METRICS.values() if m.family != "diff" and m.covers_only == overlapping]
    found = {}
    for move, (prediction, alone) in MOVES.items():
        sides = (clustering((*side, *alone)) for side in (MOVED_TRUTH, prediction))
        found[move] = fb.evaluate(*sides, metrics=names, overlapping=overlapping).overall
    return found


def moves(metric: Metric) -> list[str]:
    """Return the table of a score's values after splits, merges, and added singletons."""
    known = scores_after(overlapping=metric.covers_only)
    rows = [[move, number(scores[metric.name])] for move, scores in known.items()]
    truth = " ".join(map(named, MOVED_TRUTH))
    return [f"The true clusters are {truth}.", "", *table(["change to the prediction", "score"], rows)]


def matrix_of(item: str, alone: bool) -> tuple[int, ...]:
    """Return the confusion matrix of an item in the example, with or without the item itself."""
    true, pred = (next(set(c) for c in side if item in c) for side in (TRUTH, PREDICTION))
    tp, fp, fn = len(true & pred), len(pred - true), len(true - pred)
    return tp - alone, fp, fn, 4 - tp - fp - fn


def clustering(clusters: Iterable[str]) -> fb.Clustering:
    """Return the clustering of these clusters, whose items are letters."""
    return fb.Clustering.from_clusters([list(cluster) for cluster in clusters])


def drawn(sides: dict[str, tuple[str, ...]]) -> list[str]:
    """Return a drawing of clusterings, with one line for each."""
    width = max(map(len, sides))
    rows = [f"{name:<{width}}  {'  '.join(map(named, side))}" for name, side in sides.items()]
    return ["```text", *rows, "```"]


def number(value: Any) -> str:
    """Return a figure with four digits, preceded by an equal fraction if there is a short one."""
    near = Fraction(float(value)).limit_denominator(120)
    if abs(float(near) - value) > 1e-12:
        return f"{value:.4f}"
    return str(near) if near.denominator == 1 else f"{near} = {float(near):.4f}"


def by_part(metric: Metric) -> str:
    """Return as text whether a score is also defined for slices, clusters and items."""
    if metric.overall_only:
        return "no, only for all items at once"
    return "yes" if metric.item_name else "yes, except by item"


def overlapping(metric: Metric) -> str:
    """Return as text whether a score is defined for overlapping clusters."""
    return "required" if metric.covers_only else "yes" if metric.on_covers else "not defined"


def aliases(metric: Metric) -> list[str]:
    """Return the further names of a score in the registry."""
    root = metric.alias_of or metric.name
    return [m.name for m in registry.METRICS.values() if m.alias_of == root and m is not metric]


def _elsewhere() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for theirs, ours in {**registry.SYNONYMS, **registry.ALSO_CALLED}.items():
        found.setdefault(ours, []).append(theirs)
    return found


METRICS_ELSEWHERE = _elsewhere()


# Commands and names


def command_page(name: str, description: str) -> str:
    """Return the page of a command: its help, as a terminal of 100 columns shows it."""
    shown = io.StringIO()
    with columns(100), redirect_stdout(shown), suppress(SystemExit):
        commands.parser().parse_args([name, "--help"])
    return f"# fastbcubed {name}\n\n{description}\n\n```text\n{shown.getvalue().rstrip()}\n```\n"


@contextmanager
def columns(n: int) -> Iterator[None]:
    """Set the width of the terminal to `n` columns."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(n)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)


def keys_page() -> str:
    """Return the page of the keys of JSON."""
    rows = [
        (
            ", ".join(f"`{name}`" for name in names.split(", ")),
            " ".join(of),
            cell_text(contents.replace("->", "→")),
        )
        for names, of, contents in json_keys.keys()
    ]
    lines = [
        "# Keys of JSON",
        "",
        "`a → b` is an object whose keys are data, such as names of scores. `{…}` lists the keys of an object.",
        "",
    ]
    return "\n".join([*lines, *table(["key", "commands", "contents"], rows), ""])


def api_page(name: str) -> str:
    """Return the page of a public name."""
    thing = getattr(fb, name)
    if inspect.ismodule(thing):
        names = [each for each in thing.__all__ if callable(getattr(thing, each))]
        directives = [d for each in names for d in (directive(getattr(thing, each), f"{name}.{each}"), "")]
        title = f"fastbcubed.{name}"
        return eval_rst(title, [".. currentmodule:: fastbcubed", "", *directives])
    return eval_rst(f"fastbcubed.{name}", [directive(thing, name)])


def metrics_page() -> str:
    """Return the page of the functions of `fastbcubed.metrics` that have no score's page."""
    shown = {each for metric in registry.METRICS.values() for each in (metric.name, *metric.also)}
    names = [name for name in fb.metrics.__all__ if name not in shown]
    directives = [d for each in names for d in (directive(getattr(fb.metrics, each), f"metrics.{each}"), "")]
    text = (
        "These functions take two labelings. [The scores' pages](../scores/index.md) document the functions of single"
        " scores."
    )
    return eval_rst("fastbcubed.metrics", directives, text)


def directive(thing: Any, name: str) -> str:
    """Return the line that documents a class or a function."""
    kind = "autoclass" if inspect.isclass(thing) else "autofunction"
    plain = inspect.isclass(thing) and issubclass(thing, tuple | Exception)
    without = "\n   :no-members:\n   :no-inherited-members:" if plain else ""
    return f".. {kind}:: fastbcubed.{name}{without}"


def eval_rst(title: str, lines: Iterable[str], text: str = "") -> str:
    """Return a Markdown page with a block of directives."""
    return "\n".join([f"# {title}", "", text, "", "```{eval-rst}", *lines, "```", ""])


# Markdown


def table(head: list[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, row))} |" for row in lines]


def cell_text(text: str) -> str:
    """Return text escaped for a cell of a Markdown table."""
    return text.replace("|", "\\|")


def toctree(names: Iterable[str]) -> list[str]:
    """Return the directive that lists pages below another page in the navigation."""
    return ["```{toctree}", ":hidden:", "", *names, "```", ""]


warnings.simplefilter("ignore", fb.EvaluationWarning)  # of four items
