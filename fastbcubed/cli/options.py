"""The options of the command line, each declared only once."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple, get_args

from fastbcubed.align.policies import Duplicates, Nulls, Weighting
from fastbcubed.cells.contingency import MAX_PAIRS
from fastbcubed.inputs.tables import CLUSTER, ITEM

#: The kinds of input. Text after a line break is printed below the flags; see `Option`.
FILES = "\nfile, glob or directory (Parquet, Arrow IPC, CSV, JSON, JSON lines), by path or URI; - is standard input"
OR_COLUMNS = f"{FILES}; with --table, a column"

#: Flags of gates, which are not arguments of `evaluate`; see `cli.gate_options`.
GATE_FLAGS = ("fail_under", "fail_over", "fail_worse", "baseline", "fail_on_warning", "summary")
#: Flags for an input that consists of links; see `add_link_flags`.
LINK_FLAGS = (
    "links",
    "threshold",
    "ascending",
    "link_left",
    "link_right",
    "link_score",
    "verdict",
    "sources",
    "link_items",
)


def number(text: str) -> int:
    """Return the whole number given by a flag, which must not be negative."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return int(text)


class Option(NamedTuple):
    """A library argument as a flag; each command fills in the braces in its help.

    The first line of a help stands next to the flag; the rest is printed below all flags.
    """

    flags: tuple[str, ...]
    help: str
    how: dict[str, Any]


def _option(*flags: str, help: str, **how: Any) -> Option:
    return Option(flags, help, how)


#: Explains the number of clusters and slices to list.
PER_SIDE = "\nclusters: this many of each side"
#: Number of clusters listed per side by default.
WORST_LISTED = 5
_REPEATED: dict[str, Any] = {"action": "append"}
#: Options that several commands share, or that are arguments of the library, by the argument's name.
OPTIONS = {
    # input
    "table": _option(
        "--table", metavar="PATH",
        help="one table with all labels; {FIRST} and {SECOND} name its columns",
    ),
    "item": _option(
        "--item", default=ITEM, metavar="NAME", help="column of item ids (default: item); {item}"
    ),
    "cluster": _option(
        "--cluster", default=CLUSTER, metavar="NAME", help="column of clusters (default: cluster)"
    ),
    **{
        f"run_{part}": _option(
            f"--run-{part}", **_REPEATED, default=[], metavar="RUN=NAME",
            help=f"column of {part}s for one run, if it differs from --{part}; repeatable",
        )
        for part in ("item", "cluster")
    },
    "weight": _option(
        "--weight", metavar="NAME",
        help="column of weights, or a file with the columns item and weight{weight}",
    ),
    "attributes": _option(
        "--attributes", metavar="PATH", help="table of further columns, joined on item ids"
    ),
    "unmatched": _option(
        "--unmatched", metavar="POLICY",
        help="policy for items missing from one side\ndrop (default{of_links}), raise, singleton, or "
        "outside (for items that only {second_side} has: {outside}); or {first}=POLICY,{second}=POLICY",
    ),
    "nulls": _option(
        "--nulls", default="raise", choices=get_args(Nulls),
        help=(
            "policy for items whose cluster is null (default: raise)\n"
            "raise, singleton, or drop (treat as missing from that side)"
        ),
    ),
    "duplicates": _option(
        "--duplicates", default="raise", choices=get_args(Duplicates),
        help="policy for rows that repeat an earlier one (default: raise)",
    ),
    "noise": _option(
        "--noise", metavar="LABEL",
        help="treat items with this label, such as -1, as singletons\nfor one side only: {first}=-1",
    ),
    "overlapping": _option(
        "--overlapping", action="store_true",
        help="allow items in several clusters, one row per membership; compute Extended BCubed",
    ),
    "max_pairs": _option(
        "--max-pairs", type=float, default=MAX_PAIRS, metavar="N",
        help=(
            "with --overlapping, maximum number of pairs of cells to compare (default: "
            f"1e{len(f'{MAX_PAIRS:.0f}') - 1})"
        ),
    ),
    "truth": _option(
        "--truth", metavar="TRUTH", help="the true clustering that judges the change\ngiven in the same way"
    ),
    "unlabelled": _option(
        "--unlabelled", default="drop", choices=("drop", "outside"),
        help="policy for items missing from the truth (default: drop)\ndrop leaves them out of all clusters; "
        "outside, for a truth whose clusters are complete, treats them as belonging with no other item",
    ),
    "sampling": _option(
        "--sampling", default="uniform", metavar="uniform|cluster_size|NAME",
        help="how true clusters were drawn (default: uniform)\nwith equal probability (uniform), in proportion "
        "to size (cluster_size), as when items were drawn, or with probabilities whose inverses are in "
        "this column of SAMPLE",
    ),
    "draws": _option(
        "--draws", metavar="NAME", help=(
            "column of SAMPLE: how often each cluster was drawn (default: once)"
        )
    ),
    "population_clusters": _option(
        "--population-clusters", type=int, metavar="N",
        help=(
            "number of true clusters in the population\nreduces the errors of a uniform sample without "
            "replacement"
        ),
    ),
    "missing": _option(
        "--missing", default="singleton", choices=("singleton", "drop"),
        help="policy for items of SAMPLE missing from PREDICTION (default: singleton)\n"
        "singleton treats each as a singleton; drop leaves it out of its true cluster",
    ),
    # scores
    "metrics": _option("--metric", "--metrics", **_REPEATED, metavar="NAME,...", help="{metrics}; repeatable{usual}"),
    "beta": _option("--beta", type=float, default=1.0, help=(
        "weight of recall in F (default: 1)\nany value but 1 adds {beta}"
    )),
    "weighting": _option(
        "--weighting", default="pointwise", choices=get_args(Weighting),
        help="where weights count (default: pointwise)\npointwise: in each item's confusion matrix and in the "
        "mean; outer: only in the mean",
    ),
    "slices": _option(
        "--slice", "--slices", **_REPEATED, default=[], metavar="NAME",
        help="score by an attribute, several crossed, or bins; repeatable\nan attribute, or several crossed, such as "
        "country,year; bins by width (year:10), edges (year:1990:2000) or calendar (day:month; year, quarter, "
        "month, or several, such as 6mo). Always available: {sizes}, cluster sizes in powers of two",
    ),
    "level": _option(
        "--level", type=float, default=0.95, metavar="P", help="{level}"
    ),
    "thresholds": _option("--threshold", "--thresholds", **_REPEATED, metavar="T,...", help="{thresholds}"),
    "where": _option(
        "--where", **_REPEATED, metavar="CONDITION",
        help="choose only among thresholds that meet this bound; repeatable\na bound on a score, clusters, "
        "largest, singletons or threshold, such as \"precision>=0.98\" or \"largest<=500\"",
    ),
    # explain
    "attribute": _option(
        "--attribute", **_REPEATED, default=[], metavar="NAME,...",
        help="attributes to search, or bins such as year:10; repeatable\ndefault: all columns of "
        "the inputs except ids; true_size and pred_size only if named",
    ),
    "loss": _option(
        "--loss", default="f1", metavar="SCORE",
        help="score whose loss to explain (default: f1)\nf1, precision, recall, or another mean over items",
    ),
    "depth": _option(
        "--depth", type=number, default=2, metavar="N",
        help="maximum number of attributes per slice, 1 to 4 (default: 2)",
    ),
    "min_items": _option(
        "--min-items", type=number, default=50, metavar="N", help=(
            "minimum number of items per slice (default: 50)"
        )
    ),
    "limit": _option(
        "--limit", type=number, default=20, metavar="N",
        help="maximum number of slices to test (default: 20)\nfewer tests have more power",
    ),
    # stable ids of a diff
    "release": _option(
        "--release", metavar="NAME", help="name of EXPERIMENT in the registry (default: its own name)"
    ),
    "revive": _option("--revive", action="store_true", help=(
        "allow new clusters to take retired ids of the registry"
    )),
    "mint": _option("--mint", metavar="TEXT", help="form new ids from this prefix and a running number"),
    # links
    "threshold": _option(
        "--threshold", type=float, metavar="T", help=(
            "minimum score for a link to connect its items (default: all connect)"
        )
    ),
    "ascending": _option(
        "--ascending", action="store_true",
        help="scores are distances: keep links at or below the threshold",
    ),
    **{
        side: _option(
            f"--{side}", metavar="NAME",
            help=f"column of the {side} item of each {{link}}\na+b forms an id from two columns; default: names used "
            "by Splink, dedupe, Zingg and others, such as unique_id_l and unique_id_r",
        )
        for side in ("left", "right")
    },
    "score": _option(
        "--score", metavar="NAME",
        help=(
            "column of scores\ndefault: match_probability, match_weight, score, ... or the only remaining "
            "column"
        ),
    ),
    "verdict": _option(
        "--verdict", metavar="NAME",
        help="column that says whether two items match\nyes or no, 1 or 0, ...{matches}",
    ),
    "no_verdict": _option(
        "--no-verdict", dest="verdict", action="store_const", const=False,
        help="treat all rows as links, even if a column looks like verdicts",
    ),
    "sources": _option(
        "--link-sources", dest="sources", metavar="A,B", type=lambda text: tuple(text.split(",")),
        help="names of the left and right tables, which make each id source+id",
    ),
    "no_sources": _option(
        "--no-link-sources", dest="sources", action="store_const", const=False,
        help="treat equal left and right ids as the same item",
    ),
    "items": _option(
        "--items", metavar="PATH",
        help="table of all items; unlinked ones become singletons\ndefault: the items of the links",
    ),
    # comparison
    "baseline": _option(
        "--baseline", metavar="NAME",
        help="run to compare the others with (default: the first)\nbest: the run with the best F1",
    ),
    "align": _option(
        "--align", default="common", choices=("common", "each"),
        help=(
            "items to score each run on (default: common)\ncommon: the items that every run scores; "
            "each: each run's own items"
        ),
    ),
    "bootstrap": _option(
        "--bootstrap", type=number, default=0, metavar="N",
        help="compute intervals from N bootstrap replicates, such as 1000\ninstead of Student's t; --level 0.95 "
        "needs at least 40 for each run other than the baseline",
    ),
    "seed": _option("--seed", type=number, default=0, metavar="N", help="seed of the {seed} (default: 0)"),
    "unit": _option(
        "--unit", default="component", metavar="component|true_cluster|NAME",
        help="sampling unit (default: component)\na connected component of truth and runs, a "
        "true cluster (valid only with --unmatched outside), or all items that share a value in a column",
    ),
    # output
    "intervals": _option(
        "--no-intervals", dest="intervals", action="store_false",
        help="omit intervals\non large inputs, they take up to half as long as the scores",
    ),
    "json": _option("--json", action="store_true", help=(
        "print one JSON object on stdout, as described below"
    )),
    "paths": _option(
        "--paths", action="store_true",
        help="show file paths as given, in all output (default: file names only)",
    ),
    "worst": _option(
        "--worst", type=number, default=WORST_LISTED, metavar="N",
        help=f"number of {{worst}} to list (default: {WORST_LISTED}){{per_side}}",
    ),
    "show": _option("--show", type=number, default=0, metavar="N", help="open the N {show}"),
    "repairs": _option(
        "--repairs", type=number, default=0, metavar="N",
        help=(
            "list the N splits or merges of clusters that gain most\nwith --out, also write "
            "repairs.parquet"
        ),
    ),
    "out": _option("--out", metavar="DIR", help=(
        "write the result to this directory, as JSON and Parquet files"
    )),
    "keep": _option(
        "--keep", default="cells", choices=("scores", "cells", "items"),
        help="how much of the result to write to --out (default: cells)\n{room}keep items to be able to slice later",
    ),
    "summary": _option(
        "--summary", metavar="FILE",
        help="append a summary as Markdown to this file\nverdict, gates, warnings{summary}; the file may be "
        "$GITHUB_STEP_SUMMARY",
    ),
    "overwrite": _option("--overwrite", action="store_true", help="replace existing files"),
    "report": _option(
        "--report", metavar="FILE", help="write {report} as one HTML file\nan existing file is replaced{takes}"
    ),
    # work
    "engine": _option("--engine", choices=("memory", "disk"), help="{engine}"),
    "memory_limit": _option("--memory-limit", metavar="SIZE", help="{memory}"),
    "spill_dir": _option(
        "--spill-dir", metavar="DIR",
        help="directory for data that do not fit in memory (default: /var/tmp)\nemptied at the end",
    ),
    "threads": _option(
        "--threads", type=int, metavar="N",
        help="number of threads (default: all cores)\nthe {results} not depend on it",
    ),
    "progress": _option(
        "--progress", action=argparse.BooleanOptionalAction,
        help="show progress on stderr (default: on a terminal)",
    ),
}  # fmt: skip
#: Where a clustering may also be given, flags for the columns of links have a prefix; where --item names an item, its
#: column is named by --item-column.
OPTIONS |= {
    f"link_{name}": OPTIONS[name]._replace(flags=(f"--link-{name}",))
    for name in ("left", "right", "score", "items")
}
OPTIONS["item_column"] = OPTIONS["item"]._replace(
    flags=("--item-column",), how={**OPTIONS["item"].how, "dest": "item"}
)
#: Texts that fill in the help of most commands' options.
WORDS = {
    "item": "see below", "first": "truth", "of_links": "", "link": "link",
    "matches": "; only matches are links", "metrics": "scores, families, or all (see: fastbcubed metrics)",
    "beta": "fbeta and mean_fbeta",
    "weight": "\na name with a file suffix, a slash or a URI scheme denotes a file",
    "usual": "", "per_side": "",
    "results": "scores do", "memory": (
        "memory limit of the disk engine (default: half of the free memory)\nsuch as 2GiB"
    ),
    "level": "confidence level of intervals (default: 0.95)", "room": "", "takes": "; needs the report extra",
    "engine": "where to do the work\ndefault: disk for Parquet and Arrow files that would not fit in memory",
}  # fmt: skip


def add_options(group: Any, names: str, **words: Any) -> None:
    """Add options by name to a parser or group; `words` fill in their help, or set `choices` and `default`."""
    for name in names.split():
        flags, text, how = OPTIONS[name]
        how = {"dest": name, **how, **{key: words[key] for key in ("choices", "default") if key in words}}
        group.add_argument(*flags, help=text.format_map(WORDS | words), **how)


def add_evaluate_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each argument of `fastbcubed.evaluate`, and some that only the command line has."""
    parser.add_argument("truth", metavar="TRUTH", help=f"the true clustering{OR_COLUMNS}")
    parser.add_argument(
        "prediction", metavar="PREDICTION", help="the clustering to score, given in the same way"
    )
    add_input_flags(parser, links=True)
    group = add_score_flags(parser)
    group.add_argument(
        "--slice-pairs", action="append", metavar="NAME", default=[],
        help="count links within and between the sources named by this column; repeatable",
    )  # fmt: skip
    group = parser.add_argument_group("output")
    add_options(
        group,
        "json paths intervals show",
        show="costliest clusters of either side, with their members",
    )
    add_options(group, "worst repairs", worst="worst clusters and slices", per_side=PER_SIDE)
    add = group.add_argument
    add(
        "--order-by", default="loss", metavar="loss|excess|SCORE",
        help="order of clusters and slices (default: loss)\nloss, a score (worst first), or, for slices, "
        "excess loss",
    )  # fmt: skip
    add_options(group, "out")
    add_options(
        group, "keep", default=None, room="only scores if cells would not fit and nothing needs them; "
    )
    add_engine_flags(parser, spark=True)


def add_score_flags(
    parser: argparse.ArgumentParser, sizes: str = "true_size and pred_size", *, beta: bool = True
) -> Any:
    """Add the flags for scores and slices, and return their group."""
    group = parser.add_argument_group("scores")
    add_options(group, "metrics beta weighting slices" if beta else "metrics weighting slices", sizes=sizes)
    return group


def add_input_flags(
    parser: argparse.ArgumentParser,
    item: str = "item",
    sides: tuple[str, str] = ("truth", "prediction"),
    outside: str = "they are not scored, but count as false positives for the items they are clustered with",
    *,
    by_run: bool = False,
    overlapping: bool = True,
    links: bool = False,
) -> None:
    """Add the flags of the two sides and of policies; `outside` says in the help what that policy does."""
    runs, more = "run_item run_cluster " * by_run, " overlapping max_pairs" * overlapping
    names = f"table {item} cluster {runs}weight attributes unmatched nulls duplicates noise{more}"
    first, second = sides
    words = {"first": first, "second": second, "FIRST": first.upper(), "SECOND": second.upper()}
    words |= {"second_side": f"the {second}", "of_links": ", but for links see below" * links}
    words |= {"SECOND": "the runs", "second_side": "a run"} if by_run else {}
    add_options(parser.add_argument_group("input"), names, outside=outside, **words)


def add_engine_flags(parser: argparse.ArgumentParser, *, spark: bool = False, **words: Any) -> None:
    """Add the flags of the engine and its resources, including Spark if `spark`; `words` fill in the help."""
    group = parser.add_argument_group("work")
    if spark:
        on_spark = "; spark, under spark-submit, for tables too large for one machine"
        add_options(group, "engine", choices=("memory", "disk", "spark"), engine=WORDS["engine"] + on_spark)
    else:
        add_options(group, "engine")
    add_options(group, "memory_limit spill_dir threads progress", **words)


def limit_of(work: str) -> str:
    """Return the help of a memory limit for work that is never done on disk."""
    return f"memory limit for {work} (default: no limit)\nsuch as 8GiB; exceeding it is an error"


def add_link_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags for TRUTH or PREDICTION given as links."""
    group = parser.add_argument_group("links (rows of paired items instead of items and clusters)")
    group.add_argument(
        "--links", nargs="?", const="prediction", choices=("prediction", "truth", "both"), metavar="SIDE",
        help="read the prediction as links, one row per pair of items\n--links=truth reads the truth as links, "
        "--links=both both sides; connected items form clusters. With both, --threshold and --ascending "
        "apply to the prediction, and columns may be given in pairs, the truth's first",
    )  # fmt: skip
    add_options(
        group,
        "threshold ascending link_left link_right link_score verdict no_verdict sources no_sources "
        "link_items",
    )


#: A flag for the attributes in a section that explains losses; without a value it means all attributes.
EXPLAIN: dict[str, Any] = {"nargs": "?", "const": "", "metavar": "NAME,..."}


def add_report_flags(parser: argparse.ArgumentParser, explained: str = "slices that explain lost F1") -> None:
    """Add ``--report`` and ``--report-columns``, and, if there is something `explained`, ``--report-explain``."""
    group = parser.add_argument_group("HTML report (needs the report extra)")
    add_options(group, "report", report="verdict, charts, slices and costliest clusters", takes="")
    group.add_argument(
        "--report-columns", metavar="NAME,...",
        help="attributes to show next to cluster members in the report (default: none)",
    )  # fmt: skip
    if explained:
        group.add_argument(
            "--report-explain", **EXPLAIN,
            help=f"add a section on {explained}\nsee fastbcubed explain",
        )  # fmt: skip
