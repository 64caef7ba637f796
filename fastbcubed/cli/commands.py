"""The parser of the command line, its commands, and the text printed below the flags in their help."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from fastbcubed._version import __version__
from fastbcubed.cli.output import for_stderr, to_stdout
from fastbcubed.runtime.exit_codes import WRONG

NOTES = """\
Names of columns
  a,b             one column for the truth, one for the prediction: --item id,rec_id
  a+b             several columns that form one id: --item source+number
  a+b,c+d         several columns on each side: --item source+number,src+no
  Write a comma or plus within a name as \\, or \\+.
  If a table lacks the default name and only one column remains unassigned, that column is used. Columns written by
  Splink, Zingg, dedupe and Senzing are recognised, and a note names them.

Links
  With --links, the prediction has one row per pair of linked items instead of one per item. Items that only the
  truth has then become singletons, unless --unmatched says otherwise or --link-items names all items.

Remote tables and pipes
  pyarrow reads URIs such as s3://bucket/run7/*.parquet, and URIs that begin with gs://, abfs://, hdfs:// or file:///;
  options follow a question mark, as in s3://bucket/truth.parquet?region=eu-west-1. fsspec, if installed, reads other
  schemes.

  - is standard input. Pipes are read like files: Parquet, Arrow IPC, CSV or JSON lines, compressed or not.
  CSV fields may be separated by commas, tabs, semicolons or bars; the first line holds the column names.

Examples
  fastbcubed evaluate truth.parquet pred.parquet --weight w --slice country --slice country,year
  fastbcubed evaluate true_label pred_label --table items.parquet --metric all
  fastbcubed evaluate truth.parquet 'run7/*.parquet' --json | jq .overall.f1
  duckdb -csv crm.db 'select id as item, entity as cluster from matches' |
    fastbcubed evaluate truth.csv -
  fastbcubed evaluate truth.parquet splink_predictions.parquet --links --threshold 0.9
  fastbcubed evaluate truth.csv pred.csv --fail-under f1=0.9 --fail-under precision=0.95
"""

SHOWN = """\
What to open
  Write a label or id as it appears in its column, and bytes as hexadecimal digits. Separate the parts of a
  composite id with commas (write a comma within a part as \\,). Flags are repeatable.
  A result contains items if it was written with --out DIR --keep items.

Examples
  fastbcubed show results --pred 4711 --columns name,year
  fastbcubed show truth.parquet pred.parquet --true 'Ada Lovelace' --item crm,17 --members 50
  fastbcubed evaluate truth.parquet pred.parquet --show 3
"""

EXPLAINED = """\
How slices are found
  The connected components of truth and prediction are split into two halves. One half is searched for slices that
  lose more than the rest; these slices are tested on the other half. The test compares whole components, since the
  items of a component depend on each other. The same seed finds the same slices.
  A result contains items if it was written with --out DIR --keep items.

Examples
  fastbcubed explain results
  fastbcubed explain truth.parquet pred.parquet --loss recall --attribute country,year
  fastbcubed explain truth.parquet links.parquet --links --threshold 0.9 --report page.html
"""

DIFFED = """\
Names of columns
  a,b,c           one column each for baseline, experiment and truth: --item id,rec_id,id
  a+b             several columns that form one id: --item source+number
  With --table, baseline, experiment and truth are columns of it.

Examples
  fastbcubed diff run6.parquet run7.parquet --out diff --keep items
  fastbcubed diff run6.parquet run7.parquet --truth truth.parquet --slice country --worst 10
  fastbcubed diff run6.parquet run7.parquet --truth truth.parquet --fail-over split_rate=0.05
  fastbcubed show diff --baseline 4711
"""

COMPARED = """\
Runs
  new=out/run7.parquet  a run named new: the name comes before the first equals sign
  out/run7.parquet      a run named run7, after the stem of its file
  With --table, each run is a column: --table wide.parquet truth p50=cluster_p_0_5 p95=cluster_p_0_95

Gates
  --fail-under, --fail-over and --fail-on-warning apply to every run, including the baseline; --fail-worse applies to
  all runs but the baseline. To check only the new run, evaluate it: fastbcubed evaluate truth.parquet run7.parquet
  --fail-over largest_pred=500. Add --baseline RESULT --fail-worse f1=0.002 to compare it with a saved result.

Examples
  fastbcubed compare truth.parquet old=run6.parquet new=run7.parquet --slice country
  fastbcubed compare truth.parquet run*.parquet --baseline run6 --bootstrap 1000
  fastbcubed compare truth.parquet old=run6.parquet new=run7.parquet --fail-worse f1=0.002 --fail-on-warning
"""

PAIRS = """\
Scores (--score)
  rates                 the four rates below; half of the pairs are for splits, half for merges
  good_split_rate, bad_split_rate  share of an item's old cluster that was rightly or wrongly split off
  good_merge_rate, bad_merge_rate  share of an item's new cluster that was rightly or wrongly merged in
  good_split_distance, ...  likewise for splits and merges, as shares of the union of both clusters
  good_distance         good_split_distance plus good_merge_distance; likewise bad_distance
  delta_precision       BCubed precision after the change minus that before
  Pairs drawn for one score also serve others: those for good_split_rate serve bad_split_rate, those for
  delta_precision serve the four rates, and those for good_distance serve all distances.

The file
  pair            number of the pair; judge pairs in order, and stop wherever you like
  item, mate      the two items; with --column NAME, item.NAME and mate.NAME hold their attributes
  verdict         empty: fill in same, different, or unsure (or yes, no; or 1, 0)
  repeats         number of an earlier pair that this one repeats; if given, no verdict is needed
  Leave all other columns, and all rows, unchanged. Hide change and sign from the judges: these two columns reveal
  what the change did. In CSV files, text that begins with =, +, - or @ is preceded by an apostrophe, so that no
  spreadsheet takes it for a formula; the apostrophe is removed when the file is read.

Examples
  fastbcubed sample-pairs old.parquet new.parquet -n 300 --column name,city --out pairs.csv
  fastbcubed sample-pairs old.parquet new.parquet --score delta_precision --by country --out pairs.parquet
"""

VERDICTS = """\
Examples
  fastbcubed estimate-pairs pairs.csv
  fastbcubed estimate-pairs pairs.csv --by-stratum --json
  fastbcubed estimate-pairs labelled.csv --prediction old=old.parquet --prediction new=new.parquet --weight weight
"""

CLUSTERED = """\
Clusters
  Clusters are the connected components of the links that reach the threshold. They are numbered from 0 in the order
  of the items in --items, or else in the links. Links may be repeated, be reversed, or connect an item to
  itself. Several thresholds give columns such as cluster_p_0_9 and cluster_p_0_95, named as in Splink.

Examples
  fastbcubed cluster splink_predictions.parquet --threshold 0.9 --items records.parquet --out clusters.parquet
  fastbcubed cluster links.csv --left a --right b --score distance --ascending --threshold 0.2,0.3,0.4
  fastbcubed evaluate truth.parquet links.csv --links --threshold 0.9
"""

ESTIMATED = """\
Columns
  a,b             one column for the sample, one for the prediction: --item id,rec_id
  a+b             several columns that form one id: --item source+number

Examples
  fastbcubed estimate labelled.csv run7.parquet
  fastbcubed estimate labelled.csv run7.parquet --sampling cluster_size --draws times
  fastbcubed estimate labelled.csv run7.parquet --sampling weight --population-clusters 120000 --json
  fastbcubed estimate labelled.csv old=run6.parquet new=run7.parquet --slice country --fail-worse f1=significant
"""

SWEPT = """\
Thresholds
  A threshold keeps the links whose score is at least the threshold (with --ascending, at most); the clusters are
  the connected components of these links. Clusters change only at the scores of links, so no other thresholds need to
  be tried. Precision, recall, F1, pair scores, ELM and entropies are computed at every threshold; other scores, such
  as mean_f1, only at the thresholds named by --threshold.

Examples
  fastbcubed sweep truth.parquet splink_predictions.parquet
  fastbcubed sweep truth.parquet links.csv --report page.html
  fastbcubed sweep truth.parquet links.csv --score p --best recall --where 'precision>=0.98' --out swept
  fastbcubed sweep truth.csv pairs.csv --left a --right b --score distance --ascending --slice country
  fastbcubed sweep truth.parquet links.parquet --metric f1,mean_f1 --threshold 0.5,0.9,0.99
"""

WARM_UP = """\
Compile the kernels and cache them, so that no evaluation has to wait for compilation. When you build a
container image, for example, add this line to the Dockerfile:

  RUN python -m pip install . && fastbcubed warm-up

Compiling takes about a minute on two cores, and up to two minutes on one. The kernels are cached in the directory
named by NUMBA_CACHE_DIR, else next to the installed package, else in ~/.cache/numba. If you set NUMBA_CACHE_DIR,
set it to the same directory when the container runs; that directory may then be read-only. Cached kernels run only
on the kind of processor they were compiled on, unless NUMBA_CPU_NAME=generic is set during compilation and use.
"""

_EXIT_CODES = """\
Exit codes
  0    success{gate}
  2    wrong input or use, or out of memory or disk space; a message says what to do
  70   a bug in fastbcubed: please report it; FASTBCUBED_TRACEBACK=1 shows where it is
  130  Ctrl-C; 143 SIGTERM; 141 output pipe closed
No partial output and no spilled data remain in any case."""
EXIT_CODES = _EXIT_CODES.format(gate="")
#: Exit codes of commands with gates, and of all commands.
OF_GATES = _EXIT_CODES.format(
    gate="\n  1    a gate failed: a score, a size, a warning or a comparison with the baseline (see gates above)"
)
OF_ALL = _EXIT_CODES.format(gate="\n  1    a gate of evaluate, compare, diff or estimate failed")


class Command(NamedTuple):
    """A command, with the text that its help prints before and after the flags."""

    name: str
    module: str  #: name in `fastbcubed.cli`
    help: str
    description: str
    notes: str = ""
    exit_codes: str = EXIT_CODES

    @property
    def epilog(self) -> str:
        """The text printed below the flags: notes, the keys of JSON, and exit codes."""
        from fastbcubed.cli.json_keys import help_text

        return "\n".join(filter(None, (self.notes, help_text(self.name), self.exit_codes)))


COMMANDS = (
    Command(
        "demo", "demo_command", "evaluate sample data shipped with the package, step by step",
        "Evaluate two releases of inventors named on US patents, step by step, and explain what to\n"
        "look for. The data come with the package; no file is written.",
        exit_codes="",
    ),
    Command(
        "evaluate", "evaluate_command", "score a prediction against the truth",
        "Score a clustering against the truth. Each table has one row per item.",
        NOTES, OF_GATES,
    ),
    Command(
        "show", "show_command", "open clusters or items: list members and errors",
        "Show a saved result, or clusters and items of a saved result or of two inputs.",
        SHOWN,
    ),
    Command(
        "explain", "explain_command", "find the slices of items that lose more than the rest",
        "Find the slices of items that lose more than the rest, using any columns of the inputs.",
        EXPLAINED,
    ),
    Command(
        "report", "report_command", "turn a saved result into an HTML report",
        "Write a saved result as one HTML file that can be mailed and archived: verdict, charts, slices, "
        "and the costliest\nclusters with their members. Needs the extra fastbcubed[report].",
    ),
    Command(
        "compare", "compare_command", "compare several runs against one truth: which is better, and where",
        "Score several runs against one truth on the items that all of them score, and report how they differ.",
        COMPARED, OF_GATES,
    ),
    Command(
        "diff", "diff_command", (
            "show what changed between two clusterings, and whether the changes are right"
        ),
        "Show what an experiment changes in the clusters of a baseline. No truth is needed; if given, the "
        "diff also\nshows which changes are right.",
        DIFFED, OF_GATES,
    ),
    Command(
        "cluster", "cluster_command", "turn links (scored pairs of items) into clusters",
        "Connect linked items into clusters, at one score threshold or at several.",
        CLUSTERED,
    ),
    Command(
        "sweep", "sweep_command", "score the clusters of links at every threshold, and find the best threshold",
        "Score the clusters formed by links against a truth, at every threshold of the link scores, and "
        "report which\nthreshold is best and which merges cost most there.",
        SWEPT,
    ),
    Command(
        "estimate", "estimate_command", "estimate the scores of a whole prediction from a sample of true clusters",
        "Estimate the scores of a whole prediction from a random sample of complete true clusters.",
        ESTIMATED, OF_GATES,
    ),
    Command(
        "sample-pairs", "sample_pairs_command", "draw pairs of items from a change, for manual judgement",
        "Draw pairs of items that a change has separated or joined, for people to judge whether they "
        "belong together.",
        PAIRS,
    ),
    Command(
        "estimate-pairs", "estimate_pairs_command", "estimate how good a change is from judged pairs",
        "Estimate scores of a change from the output of sample-pairs, once its column verdict is filled in.",
        VERDICTS,
    ),
    Command(
        "metrics", "metrics_command", "list all scores and what they mean",
        "List all scores with family, range, direction, definition and source, or explain some of them.",
        exit_codes="",
    ),
    Command(
        "constraints", "constraints_command", "check which scores satisfy which formal constraints",
        "Check scores against the formal constraints of Amigó et al. (2009) and further properties,\n"
        "on small and random clusterings. No data are needed; the same seed gives the same table.",
        exit_codes="",
    ),
    Command(
        "warm-up", "warm_up_command", "compile the kernels ahead of use, for example in a container image",
        WARM_UP,
    ),
)  # fmt: skip


#: Column at which the explanation of a term begins if the term is too long to share its line.
BESIDE = 24
COMMAND = ("fastbcubed ", "duckdb ", "RUN ")


class Help(argparse.RawDescriptionHelpFormatter):
    """Help that wraps descriptions and notes, too, to the terminal but at most 80 columns."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(wrapped(line, min(width + 2, 80)) for line in _joined(text.splitlines()))


def _joined(lines: Sequence[str]) -> list[str]:
    """Join the lines of each paragraph; leave commands, and terms with an explanation, on lines of their own."""
    found, before = list[str](), ""
    for line in lines:
        prose = line.strip() and not TERM.match(line) and not line.lstrip().startswith(COMMAND)
        margin = " " * (len(line) - len(line.lstrip())) + "." if prose else ""
        if margin and margin == before:
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
        before = margin
    return found


#: A term and the spaces up to its explanation.
TERM = re.compile(r" *\S+(?: \S+)*?  +(?=\S)")


def wrapped(line: str, width: int) -> str:
    r"""Return a line wrapped, with explanations indented to their column and commands continued after a backslash.

    >>> print(wrapped("  a, b   the first two of all letters", 24))
      a, b   the first two
             of all letters
    >>> print(wrapped("  fastbcubed show 'a b' --true x", 26))
      fastbcubed show 'a b' \
        --true x
    """
    margin, end, term = len(line) - len(line.lstrip()), "", TERM.match(line)
    after, first = margin, ""
    if line.lstrip().startswith(COMMAND):
        line = re.sub("'.*?'|--[a-z-]+ (?!-)", lambda together: together[0].replace(" ", "\0"), line)
        after, end = margin + 2, " \\"
    elif term is not None:
        after = term.end()
        if after > BESIDE + 2:
            after, first, line = BESIDE, f"{term[0].rstrip()}\n", " " * BESIDE + line[term.end() :]
    parts = textwrap.wrap(
        line, width - len(end), subsequent_indent=" " * after, break_long_words=False, break_on_hyphens=False
    )
    return first + f"{end}\n".join(parts).replace("\0", " ")


#: Exceeds the length of any error of the parser without the arguments that it quotes.
LONGEST = 600


class Parser(argparse.ArgumentParser):
    """Parses flags; reports an invalid flag in two lines instead of printing the full usage message."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise for a command or value that is not among the choices, suggesting the most similar one."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            from fastbcubed.runtime.suggestions import did_you_mean

            asked = did_you_mean(str(value), map(str, action.choices or ()))
            error.message = f"{error.message}{asked and '.'}{asked}"
            raise

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a message; unlike argparse, raise if stdout is full or its reader has closed the pipe."""
        if file is not sys.stdout:
            super()._print_message(message, file)
            return
        with to_stdout():
            file.write(message)

    def error(self, message: str) -> NoReturn:
        """Report an error on stderr, with a long argument cut in its middle, and exit."""
        if len(message) > LONGEST:
            message = f"{message[: LONGEST // 2]}…{message[-LONGEST // 2 :]}"
        self.exit(WRONG, f"{for_stderr(f'{self.prog}: {message}')}\nTry: {self.prog} --help\n")


def _details(actions: Sequence[argparse.Action]) -> str:
    """Leave the first line of each action's help in place, and return the rest as a text on all actions."""
    found = dict[str, list[str]]()
    for action in actions:
        short, _, more = (action.help or "").partition("\n")
        if more:
            action.help = short
            found.setdefault(more.replace("%%", "%"), []).append(
                action.option_strings[0] if action.option_strings else str(action.metavar)
            )
    lines = [f"  {', '.join(names):<20}  {text}\n" for text, names in found.items()]
    return f"Details\n{''.join(lines)}" if lines else ""


class CommandParser(Parser):
    """Parses the flags of a command; the module of the command is imported only when needed."""

    command: Command | None = None

    def add_flags(self) -> None:
        """Import the module of the command and add its flags, unless this has been done."""
        if self.command is not None:
            module: Any = import_module(f"fastbcubed.cli.{self.command.module}")
            epilog, self.command = self.command.epilog, None
            module.add_flags(self)
            self.epilog = "\n".join(filter(None, (_details(self._actions), epilog)))
            self.set_defaults(run=module.run)

    def _with_minus(self, args: Sequence[str]) -> list[str]:
        """Return arguments with ``--flag=-value`` where a value begins with a minus, like a flag of argparse."""
        known, found = self._option_string_actions, list[str]()
        for text in args:
            flag = known.get(found[-1]) if found else None
            takes_one = flag is not None and flag.nargs is None and "--" not in found
            if takes_one and text[:1] == "-" and text[1:2] not in ("", "-") and text not in known:
                found[-1] += f"={text}"
            else:
                found.append(text)
        return found

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Add the flags of the command and parse; unknown flags are reported by the command's own parser."""
        self.add_flags()
        found, unknown = super().parse_known_args(self._with_minus(args or ()), namespace)
        if unknown:
            from fastbcubed.runtime.suggestions import did_you_mean

            flags = [name for name in self._option_string_actions if name.startswith("--")]
            asked = did_you_mean(unknown[0], flags) if unknown[0].startswith("--") else ""
            if os.path.isfile(unknown[0]):
                asked = " Quote a pattern for several files, so that the shell does not expand it"
            self.error(f"unrecognized arguments: {' '.join(unknown)}{asked and '.'}{asked}")
        return found, unknown


def parser() -> Parser:
    """Return the parser of the command line."""
    form: dict[str, Any] = {"formatter_class": Help, "allow_abbrev": False}
    whole = Parser(
        prog="fastbcubed",
        description="Score clusterings against the truth: overall, by cluster, by slice, by item.",
        epilog=f"Start with: fastbcubed demo\n\n{OF_ALL}",
        **form,
    )
    whole.add_argument("--version", action="version", version=f"fastbcubed {__version__}")
    group = whole.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for command in COMMANDS:
        made = group.add_parser(command.name, help=command.help, description=command.description, **form)
        made.command = command
    return whole


def whole_parser() -> Parser:
    """Return the parser with the flags of all commands, as needed by tools for shell completion."""
    whole = parser()
    for group in whole._subparsers._group_actions if whole._subparsers else ():
        for command in dict(group.choices or {}).values():
            command.add_flags()
    return whole
