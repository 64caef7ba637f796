# ruff: noqa: E501
"""Whether each call keeps to its memory limit, also when its result is shown, saved, loaded and listed."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from benchmarks.harness import ROOT
from benchmarks.markdown import markdown, rewrite_regions

__all__ = ["SETTINGS", "Setting", "measure", "write_files"]

#: Memory in MiB that the library states it needs in addition to a limit; the default limit; and that of links.
BESIDE, LIMIT, OF_LINKS = 256, 64, 192
#: Rows of the files, and of those with long texts, slices and links.
ROWS, TEXTS, SLICES, LINKED = 4_000_000, 600_000, 600_000, 1_000_000
FEW = 600  # rows of the small files that a process reads first, to import and compile


class Setting(NamedTuple):
    """A call under a memory limit, and the calls on its result.

    `code` can use `LIMIT`, the folder `OUT`, and `file(name)`, the path of a file that `write_files` wrote.
    """

    verb: str
    shape: str
    code: str
    limit: int = LIMIT


def _save(result: str) -> str:
    """Return code that shows a result in all ways, saves it, loads it, and shows the loaded one."""
    keep = ", keep='cells'" if "fb.evaluate(" in result or "fb.diff(" in result else ""
    return f"""
{result}
repr(r), r._repr_html_(), r.to_dict(), r.to_json(), r.report().html
r.save(OUT / "saved"{keep})
again = fb.load(OUT / "saved", memory_limit=LIMIT)
repr(again), again.to_json(), again.report(OUT / "page.html", overwrite=True)
"""


JOINED = "file('t'), file('a'), engine='disk', memory_limit=LIMIT"
TABLE = "'t', 'p', table=file('rows'), item='item', engine='disk', memory_limit=LIMIT"
LISTED = "r.clusters('true', limit=20), r.clusters('pred', limit=20), r.repairs(limit=20), r.outcomes()"

SETTINGS = (
    Setting("evaluate", "two files joined, saved and loaded", _save(f"r = fb.evaluate({JOINED})")),
    Setting(
        "evaluate",
        "the same, written with `out`",
        f"r = fb.evaluate({JOINED}, out=OUT / 'out', keep='items')\nrepr(r), r.report().html",
    ),
    Setting("evaluate", "one file, first clusters, repairs, outcomes", f"r = fb.evaluate({TABLE})\n{LISTED}"),
    Setting("evaluate", "all scores", _save(f"r = fb.evaluate({TABLE}, metrics='all')")),
    Setting(
        "evaluate",
        "standard errors, intervals and gates",
        f"r = fb.evaluate({TABLE}, metrics=['f1', 'pairs'])\nr.errors, r.scores(), r.interval('pair_f1'), r.check('f1>=0.1')",
    ),
    Setting(
        "evaluate",
        "weights from a table of their own",
        _save(f"r = fb.evaluate({JOINED}, weight=Path(file('w')))"),
    ),
    Setting(
        "evaluate",
        "frames in memory, spilled",
        "r = fb.evaluate(FRAMES[0], FRAMES[1], engine='disk', memory_limit=LIMIT)\nrepr(r), r.report().html",
    ),
    Setting(
        "evaluate",
        "two files of CSV",
        _save("r = fb.evaluate(file('t.csv'), file('a.csv'), engine='disk', memory_limit=LIMIT)"),
    ),
    Setting(
        "evaluate",
        "labels and ids of 400 letters",
        _save(
            "r = fb.evaluate('t', 'p', table=file('texts'), item='item', engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "evaluate",
        "the same, items listed",
        "r = fb.evaluate('t', 'p', table=file('texts'), item='item', engine='disk', memory_limit=LIMIT, keep='items')\nr.items(pred_cluster=FIRST, limit=20), r.cluster('true', FIRST), r.item(ITEM)",
    ),
    Setting(
        "evaluate",
        "600,000 slices of 100 letters",
        _save(
            "r = fb.evaluate('t', 'p', table=file('slices'), item='item', slices='many', engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "evaluate",
        "the same crossed with another column",
        _save(
            "r = fb.evaluate('t', 'p', table=file('slices'), item='item', slices=('many', 'few'), engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "evaluate",
        "slices of labels of 400 letters",
        _save(
            "r = fb.evaluate('t', 'p', table=file('slices'), item='item', slices='long', engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "evaluate",
        "twelve slices, errors of slices",
        f"r = fb.evaluate({TABLE}, slices=['few', ('few', 'small')], keep='items')\nr.slices('few'), r.slices('few', errors=True), r.macro('few'), r.source_pairs('few')",
    ),
    Setting(
        "evaluate",
        "attributes of a table of their own",
        _save(f"r = fb.evaluate({JOINED}, attributes=Path(file('attributes')), slices='kind')"),
    ),
    Setting(
        "evaluate",
        "attributes of 100 letters for each item",
        _save(
            "r = fb.evaluate(file('slices t'), file('slices p'), attributes=Path(file('names')), slices='many', engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "evaluate",
        "overlapping clusters",
        _save("r = fb.evaluate(file('cover t'), file('cover p'), overlapping=True, memory_limit=LIMIT)"),
    ),
    Setting(
        "evaluate",
        "one giant predicted cluster",
        _save(
            "r = fb.evaluate('t', 'giant', table=file('rows'), item='item', engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "evaluate",
        "the command, `--out` and `--report`",
        "run('evaluate', file('t'), file('a'), '--engine', 'disk', '--memory-limit', SIZE, '--out', OUT / 'out', '--report', OUT / 'page.html')",
    ),
    Setting(
        "compare",
        "two runs",
        _save(
            "r = fb.compare(file('t'), {'old': file('a'), 'new': file('b')}, engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "compare",
        "four runs",
        _save("r = fb.compare(file('t'), {k: file(k) for k in 'abcd'}, engine='disk', memory_limit=LIMIT)"),
    ),
    Setting(
        "compare",
        "four runs, first clusters, ranks, agreement",
        "r = fb.compare(file('t'), {k: file(k) for k in 'abcd'}, engine='disk', memory_limit=LIMIT)\nr.clusters(limit=20), r.ranks(), r.agreement(), r.coverage()",
    ),
    Setting(
        "compare",
        "600,000 slices of 100 letters",
        _save(
            "r = fb.compare('t', {'old': 'p', 'new': 'q'}, table=file('slices'), item='item', slices='many', engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "compare",
        "labels of 400 letters",
        _save(
            "r = fb.compare('t', {'old': 'p', 'new': 'q'}, table=file('texts'), item='item', engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "compare",
        "the command, `--out` and `--report`",
        "run('compare', file('t'), file('a'), file('b'), '--engine', 'disk', '--memory-limit', SIZE, '--out', OUT / 'out', '--report', OUT / 'page.html')",
    ),
    Setting(
        "diff", "two files", _save("r = fb.diff(file('a'), file('b'), engine='disk', memory_limit=LIMIT)")
    ),
    Setting(
        "diff",
        "four slices, changes by slice",
        "r = fb.diff('p', 'q', table=file('rows'), item='item', slices=['few', 'small'], engine='disk', memory_limit=LIMIT, keep='items')\nrepr(r), r.changes('few'), r.slices('small'), r.report().html",
    ),
    Setting(
        "diff",
        "ids, retired, registry",
        "r = fb.diff(file('a'), file('b'), engine='disk', memory_limit=LIMIT)\nr.ids(), r.retired(), r.registry()",
    ),
    Setting(
        "diff",
        "600,000 slices of 100 letters",
        _save(
            "r = fb.diff('p', 'q', table=file('slices'), item='item', slices='many', engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "diff",
        "pairs to judge, changes",
        "r = fb.diff(file('a'), file('b'), engine='disk', memory_limit=LIMIT, keep='items')\nr.changes(), r.clusters('baseline', limit=20), r.sample_pairs(20)",
    ),
    Setting(
        "diff",
        "the command, `--ids` and `--registry`",
        "run('diff', file('a'), file('b'), '--engine', 'disk', '--memory-limit', SIZE, '--ids', OUT / 'ids.parquet', '--registry', OUT / 'registry.parquet')",
    ),
    Setting(
        "sweep",
        "all scores, saved and loaded",
        _save("r = fb.sweep(file('linked'), file('links'), memory_limit=LIMIT)"),
        OF_LINKS,
    ),
    Setting(
        "sweep",
        "the chosen threshold",
        "r = fb.sweep(file('linked'), file('links'), memory_limit=LIMIT)\nr.chosen('f1', draws=9)",
        OF_LINKS,
    ),
    Setting(
        "sweep",
        "the chosen threshold of pairs, errors of the curve",
        "r = fb.sweep(file('linked'), file('links'), memory_limit=LIMIT)\nr.chosen('pair_f1', draws=9), r.curve(errors=True), r.interval('v_measure', 0.5)",
        OF_LINKS,
    ),
    Setting(
        "sweep",
        "stages",
        "r = fb.sweep(file('linked'), file('links'), memory_limit=LIMIT)\nr.stages(0.5), r.merges(), r.weakest_links(), r.report(stages=True).html",
        OF_LINKS,
    ),
    Setting(
        "sweep",
        "slices",
        "r = fb.sweep(file('linked'), file('links'), slices='few', memory_limit=LIMIT)\nrepr(r), r.slices('few', errors=True), r.save(OUT / 'saved')",
        OF_LINKS,
    ),
    Setting(
        "sweep",
        "clusters at thresholds",
        "r = fb.sweep(file('linked'), file('links'), metrics='f1', memory_limit=LIMIT)\nr.at(0.5), r.clusterings([0.3, 0.5, 0.7]), r.evaluate(0.5)",
        OF_LINKS,
    ),
    Setting(
        "sweep",
        "the command, `--stages` and `--out`",
        "run('sweep', file('linked'), file('links'), '--memory-limit', SIZE, '--stages', '--out', OUT / 'out', '--report', OUT / 'page.html')",
        OF_LINKS,
    ),
    Setting(
        "estimate",
        "one run",
        _save("r = fb.estimate(file('sample'), file('a'), engine='disk', memory_limit=LIMIT)"),
    ),
    Setting(
        "estimate",
        "four runs",
        _save(
            "r = fb.estimate(file('sample'), {k: file(k) for k in 'abcd'}, engine='disk', memory_limit=LIMIT)"
        ),
    ),
    Setting(
        "estimate",
        "one run, in memory",
        _save("r = fb.estimate(file('sample'), file('a'), engine='memory', memory_limit=LIMIT)"),
    ),
    Setting(
        "cluster",
        "links to clusters",
        "r = fb.Clustering.from_links(file('links'), threshold=0.5, memory_limit=LIMIT)\nrepr(r), r.to_table()",
        OF_LINKS,
    ),
    Setting(
        "cluster",
        "the command, three thresholds",
        "run('cluster', file('links'), '--threshold', '0.3,0.5,0.7', '--memory-limit', SIZE, '--out', OUT / 'clusters.parquet')",
        OF_LINKS,
    ),
    Setting(
        "explain",
        "of an evaluation",
        f"r = fb.evaluate({TABLE}, keep='items')\nrepr(r.explain(['few', 'small']))",
    ),
    Setting(
        "explain",
        "of a comparison",
        "r = fb.compare('t', {'old': 'p', 'new': 'q'}, table=file('rows'), item='item', engine='memory', memory_limit=LIMIT)\nrepr(r.explain('new', ['few', 'small']))",
    ),
    Setting(
        "explain",
        "the command",
        "run('explain', 't', 'p', '--table', file('rows'), '--item', 'item', '--attribute', 'few,small', '--engine', 'disk', '--memory-limit', SIZE)",
    ),
    Setting(
        "load",
        "a result with items, clusters and an item shown",
        "r = fb.load(file('saved'), memory_limit=LIMIT)\nrepr(r), r.clusters('true', limit=20), r.item(7), r.cluster('pred', FIRST_CODE)",
    ),
    Setting(
        "load", "slices of kept items", "r = fb.load(file('saved'), memory_limit=LIMIT)\nr.slices('few')"
    ),
    Setting(
        "show",
        "the command, a cluster",
        "run('show', file('saved'), '--true', FIRST_CODE, '--memory-limit', SIZE)",
    ),
    Setting(
        "report",
        "the command",
        "run('report', file('saved'), '--out', OUT / 'page.html', '--memory-limit', SIZE)",
    ),
)


#: The code of a process: it runs the small files first, to compile, then the others, and prints its growth in MiB.
PROGRAM = """
import contextlib, io, os, shutil, sys, threading, time, warnings
from pathlib import Path
import fastbcubed as fb
import pyarrow as pa
import pyarrow.parquet as pq
from fastbcubed.cli.main import main

warnings.simplefilter("ignore")
FOLDER, CODE, LIMIT = Path({folder!r}), {code!r}, {limit} << 20
SIZE, FIRST_CODE = str(LIMIT), "0"

def held():
    with open("/proc/self/status") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(("RssAnon", "RssShmem"))) << 10

def run(*words):
    error = io.StringIO()
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(error):
        code = main(list(map(str, words)))
    if code:
        raise SystemExit("refused: " + error.getvalue())

def work(size):
    out = FOLDER / f"out {{os.getpid()}}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    def file(name):
        return str(FOLDER / size / (name if "." in name or name == "saved" else name + ".parquet"))
    frames = [pq.read_table(file(k)).to_pandas() for k in "ta"] if "FRAMES" in CODE else []
    first = next(pq.ParquetFile(file("texts")).iter_batches(1)).to_pylist()[0] if "FIRST" in CODE and "texts" in CODE else {{}}
    names = dict(fb=fb, Path=Path, LIMIT=LIMIT, SIZE=SIZE, OUT=out, file=file, run=run, FRAMES=frames, FIRST=first.get("t"),
                 FIRST_CODE=FIRST_CODE if "run(" in CODE else 0, ITEM=first.get("item"))
    pa.default_memory_pool().release_unused()
    least = held()
    try:
        exec(CODE, names)
        shutil.rmtree(out)
    except fb.FastBCubedError as error:
        raise SystemExit("refused: " + str(error)) from None
    return least

LIMIT, given = max(LIMIT, 1 << 30), LIMIT
work("few")
LIMIT = given
SIZE = str(LIMIT)
before, most, done = held(), [0], []

def watch():
    while not done:
        most[0] = max(most[0], held())
        time.sleep(0.002)

watcher = threading.Thread(target=watch, daemon=True)
watcher.start()
before = max(before, 0) and work("many")
done.append(1)
watcher.join()
print((most[0] - before) >> 20)
"""


def text_of(numbers: Any, width: int) -> pa.Array:
    """Return numbers as texts of this many characters, which differ only at the end."""
    return pa.array(np.char.zfill(numbers.astype(str), width))


def write_files(folder: Path, share: float = 1.0) -> None:
    """Write the files that settings read, each with all rows and with few rows."""
    for size in ("few", "many"):
        (folder / size).mkdir(parents=True, exist_ok=True)

        def n_of(n: int, size: str = size) -> int:
            return FEW if size == "few" else int(n * share)

        def write(name: str, *, size: str = size, **columns: Any) -> None:
            pq.write_table(pa.table(columns), folder / size / f"{name}.parquet", row_group_size=1 << 17)

        rng, n = np.random.default_rng(0), n_of(ROWS)
        true, items = np.arange(n) // 3, np.arange(n)
        labels = {"t": true}
        for name, moved in {"a": 0.1, "b": 0.15, "c": 0.2, "d": 0.25}.items():
            labels[name] = np.where(rng.random(n) < moved, rng.integers(0, n // 3, n), true)
        for name, label in labels.items():
            at = rng.permutation(n)
            write(name, item=at, cluster=label[at])
        first = true < n // 60
        write("sample", item=items[first], cluster=true[first])
        write("w", item=items, weight=rng.random(n) + 0.1)
        write("attributes", item=items, kind=items % 12)
        few, small = pa.array([f"value {k}" for k in range(12)]), items % 5
        of_rows: dict[str, Any] = {
            "item": items,
            "few": few.take(items % 12),
            "small": small,
            "giant": np.zeros(n, int),
        }
        write("rows", t=labels["t"], p=labels["a"], q=labels["b"], **of_rows)
        for name in "ta":
            table = pa.table({"item": items, "cluster": labels[name]}).slice(0, n // 4)
            pa_csv.write_csv(table, folder / size / f"{name}.csv")

        n = n_of(TEXTS)
        at = np.arange(n)
        texts: dict[str, Any] = {"t": at // 3, "p": at // 4, "q": at // 5}
        write("texts", item=text_of(at, 400), **{name: text_of(codes, 400) for name, codes in texts.items()})

        n = n_of(SLICES)
        at = np.arange(n)
        many: dict[str, Any] = {
            "many": text_of(rng.permutation(n), 100),
            "long": text_of(rng.permutation(n) // 3, 400),
        }
        sides: dict[str, Any] = {"t": at // 3, "p": at // 4, "q": at // 5}
        write("slices", item=at, few=at % 7, **sides, **many)
        write("names", item=at, many=many["many"])
        write("slices t", item=at, cluster=at // 3)
        write("slices p", item=at, cluster=at // 4)

        n = n_of(LINKED)
        near, far = np.arange(n - 1), rng.integers(0, n, (2, n // 2))
        left, right = (
            np.concatenate([near, near[::2], far[0]]),
            np.concatenate([near + 1, near[::2] + 1, far[1]]),
        )
        same = left // 3 == right // 3
        scores = np.where(same, rng.beta(5, 2, left.size), rng.beta(1.2, 6, left.size))
        write("links", left=left, right=right, score=scores)
        write("linked", item=np.arange(n), cluster=np.arange(n) // 3, few=np.arange(n) % 7)

        n = n_of(SLICES)
        owner = np.concatenate([np.arange(n), np.arange(0, n, 5)])
        write("cover t", item=owner, cluster=np.concatenate([np.arange(n) // 3, np.arange(0, n, 5) // 3 + 1]))
        write("cover p", item=owner, cluster=np.concatenate([np.arange(n) // 4, np.arange(0, n, 5) // 4 + 1]))

        rows = str(folder / size / "rows.parquet")
        made = f"import fastbcubed as fb; fb.evaluate('t', 'p', table={rows!r}, item='item', slices='few', keep='items', out={str(folder / size / 'saved')!r})"
        subprocess.run([sys.executable, "-W", "ignore", "-c", made], check=True, cwd=ROOT)


def measure(setting: Setting, folder: Path) -> dict[str, Any]:
    """Run a setting in a separate process; if it is refused, run it again with the limit that the error names.

    If kernels were compiled in a process, another one, which finds them compiled, is measured; the growth of the first
    is kept as `compiling`.
    """
    limit, refused, compiling = setting.limit, "", None
    for _ in range(6):
        program = PROGRAM.format(folder=str(folder), code=setting.code, limit=limit)
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "FASTBCUBED_INTERPRET": "0"},  # includes compilation with the small files
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        if not ran.returncode and "compiling kernels" in ran.stderr and compiling is None:
            compiling = int(ran.stdout)
            continue
        if not ran.returncode:
            break
        asked = re.search(r'at least (\d+) MiB|"(\d+)MiB"|--memory-limit (\d+)MiB', ran.stderr)
        if "refused: " not in ran.stderr or asked is None:
            return {"outcome": "error", "message": ran.stderr[-600:]}
        refused += ran.stderr
        limit = int(asked[1] or asked[2] or asked[3])
    else:
        return {"outcome": "error", "message": refused}
    found = {"outcome": "ok", "limit": limit, "grown": int(ran.stdout), "refused": refused}
    return found if compiling is None else {**found, "compiling": compiling}


def table_of(found: Iterable[tuple[Setting, dict[str, Any]]]) -> str:
    """Return the measured settings as a table."""
    rows = []
    for setting, record in found:
        if record["outcome"] == "error":
            rows.append([setting.verb, setting.shape, "", "", "", "fails"])
            continue
        most = record["limit"] + BESIDE
        verdict = "kept" if record["grown"] <= most else "ABOVE"
        asked = f"{record['limit']} MiB" + (", as asked for" if record["refused"] else "")
        rows.append([setting.verb, setting.shape, asked, f"{record['grown']} MiB", f"{most} MiB", verdict])
    return markdown(["verb", "what", "limit", "growth", "allowed", ""], rows, left=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, help="where the files are kept (default: a temporary directory)"
    )
    parser.add_argument("--share", type=float, default=1.0, help="write this share of the rows")
    parser.add_argument("--only", help="measure settings with this text in their verb and shape")
    parser.add_argument("--tables", type=Path, help="page whose table to write again")
    parser.add_argument(
        "--results", type=Path, help="file of JSON lines to add to and to take measured settings from"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "many" / "saved").exists():
            write_files(folder, given.share)
        found = []
        for setting in SETTINGS:
            if given.only is None or given.only in f"{setting.verb} {setting.shape}":
                record = measure(setting, folder)
                found.append((setting, record))
                print(json.dumps({"verb": setting.verb, "shape": setting.shape, **record}), flush=True)
    if given.tables is not None:
        text, _ = rewrite_regions(given.tables.read_text(encoding="utf-8"), {"limits": table_of(found)})
        given.tables.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
