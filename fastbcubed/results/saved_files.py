"""Files of a saved evaluation: the manifest, tables, items and cells of overlapping clusters."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed._version import __version__
from fastbcubed.cells.cell_parts import RowBlock
from fastbcubed.cells.contingency import SIDES, ScoredRows
from fastbcubed.errors import FileFormatError, Message, NotKeptError, SpillError, arg, short
from fastbcubed.inputs import files
from fastbcubed.inputs.arrays import chunked, combined, from_numpy, table_of
from fastbcubed.inputs.file_formats import read_groups
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.overlap_scores import cice
from fastbcubed.metrics.registry import METRICS
from fastbcubed.overlap.cover import MATES, PARTS, Cover
from fastbcubed.overlap.extended_bcubed import Shares
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.results.items import Kept, TableItems
from fastbcubed.results.saved_checks import require_names
from fastbcubed.results.table import Table
from fastbcubed.runtime.output_files import (
    OwnPlace,
    Staging,
    Stamp,
    is_staging_name,
    maybe_with_nulls,
    open_regular,
    without_nulls,
)
from fastbcubed.types import RowNumbers

#: The manifest, which is written last and lists the other files; the file of items, which is streamed; that of slices.
MANIFEST, ITEMS, SLICES = files.MANIFEST, "items.parquet", "slices.parquet"
#: The page of a large result as plain data.
PAGE = "page.json"
#: Version of the layout of the files.
LAYOUT = 3
#: Larger than any manifest, in bytes.
TOO_LARGE = 1 << 30
#: Bytes of cells, and of items, above which a result is not loaded whole by default; and the key of a diff's manifest.
LARGE, LARGE_ITEMS, DIFF_MARK = 6_000_000, 800_000_000, "diff"


def sealed(head: Mapping[str, Any], files: Mapping[str, Stamp], staged_in: str) -> str:
    """Return the manifest as text with its checksum, in which messages keep their marked arguments."""
    stamps = {name: stamp._asdict() for name, stamp in files.items()}
    marked = {str(each): each.marked for each in _messages(head) if each.marked != each}
    whole = {"layout": LAYOUT, **head, "files": stamps, "staged_in": staged_in, "marked": marked}
    return json.dumps({**whole, "crc32": _checksum(whole)}, indent=2, ensure_ascii=False) + "\n"


def _messages(value: Any) -> Iterator[Message]:
    """Yield the messages in nested content."""
    if isinstance(value, Message):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _messages(each)


def _with_messages(value: Any, marked: Mapping[str, str]) -> Any:
    """Return content in which texts that were messages are messages again."""
    if isinstance(value, str):
        return Message(marked[value]) if value in marked else value
    if isinstance(value, Mapping):
        return {name: _with_messages(each, marked) for name, each in value.items()}
    return [_with_messages(each, marked) for each in value] if isinstance(value, list) else value


def _checksum(head: Mapping[str, Any]) -> int:
    """Return a checksum of JSON content that does not depend on spacing and order."""
    text = json.dumps(head, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return zlib.crc32(text.encode("utf-8"))


def tables_of(directory: Path) -> set[str]:
    """Return the names of the tables of the result in a directory; empty if it has no readable manifest."""
    with suppress(FileFormatError):
        names = read_manifest(directory)["files"]
        return {name for name in names if name.endswith(".parquet") and PurePath(name).name == name}
    return set()


class NotKept:
    """Placeholder for a part of a result that was not saved; any access raises NotKeptError."""

    def __init__(self, message: str) -> None:
        self._message = message

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotKeptError(self._message)


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of a saved result, checked and with its messages restored."""
    path = directory / MANIFEST
    try:
        head = _parsed(path)
    except FileFormatError as error:
        raise FileFormatError(f"{short(str(directory))} holds no saved evaluation: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(
            f"{short(str(directory))} holds no saved evaluation: {MANIFEST}: {error}"
        ) from error
    if head.get("layout") != LAYOUT:
        raise FileFormatError(_of_another_version(path, head))
    try:
        changed = _checksum({k: v for k, v in head.items() if k != "crc32"}) != head.get("crc32")
    except ValueError:  # text that cannot be encoded
        changed = True
    if changed:
        raise FileFormatError(f"{path} is not as it was saved: its checksum differs. Evaluate and save anew")
    if not is_staging_name(head.get("staged_in")):
        raise FileFormatError(
            f"{path} names a place outside {directory} for its files. Evaluate and save anew"
        )
    marked = head.pop("marked", {})
    try:
        stamps = [Stamp(**each) for each in head["files"].values()]
        if any(type(figure) is not int for stamp in stamps for figure in stamp):
            raise ValueError("its files have no sizes and checksums")
        require_names(head["files"])
        return dict(_with_messages(head, marked)) if marked else head
    except (AttributeError, KeyError, SyntaxError, TypeError, ValueError) as error:
        raise FileFormatError(f"{directory} holds no saved evaluation: {MANIFEST}: {error}") from error


def _of_another_version(path: Path, head: Mapping[str, Any]) -> str:
    """Return a message on a manifest of another layout, or on JSON that is not a manifest."""
    if type(head.get("layout")) is not int or not {"overall", "kind"} & head.keys():
        return (
            f"{path} is not the manifest of a saved evaluation. "
            f"Load a directory that `save` or {arg('out', ...)} wrote"
        )
    version = head.get("fastbcubed")
    by = f"fastbcubed {version}" if isinstance(version, str) else "another version of fastbcubed"
    return (
        f"{path} was saved by {by} in layout {head['layout']}; fastbcubed {__version__} reads layout {LAYOUT} only. "
        "Load it with the version that saved it, or evaluate and save anew"
    )


def may_be_read_in_parts(head: Mapping[str, Any]) -> bool:
    """Return whether a saved result is of a kind that can be read part by part."""
    overlapping = head["definition"]["overlapping"]
    return not (head["keep"] == "scores" or overlapping or head["outcomes"] is None or DIFF_MARK in head)


def is_large(files: Mapping[str, Stamp]) -> bool:
    """Return whether a result with these files is too large to be loaded whole by default."""
    return files["cells.parquet"].bytes >= LARGE or (ITEMS in files and files[ITEMS].bytes >= LARGE_ITEMS)


def _parsed(path: Path) -> dict[str, Any]:
    with open_regular(path) as file:
        text = file.read(TOO_LARGE)
    if len(text) == TOO_LARGE:
        raise ValueError("it is too large")
    head = json.loads(text.decode("utf-8"), parse_constant=_refuse)
    if not isinstance(head, dict):
        raise ValueError("it is not a JSON object")
    return head


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def is_in_file(value: Any) -> bool:
    """Return whether an entry of the manifest refers to slices that are only in their file."""
    return isinstance(value, Mapping)


def read_table(file: BinaryIO, path: Path, *, frugal: bool = False) -> pa.Table:
    """Return the table in a Parquet file; raise FileFormatError if it cannot be read.

    If `frugal`, columns are read one after the other, so that the compressed bytes of only one are held.
    """
    import pyarrow.parquet as pq

    try:
        opened = pq.ParquetFile(file)
        names, groups = opened.schema_arrow.names, range(opened.num_row_groups)
        if not frugal or not names or len({*names}) < len(names):
            return maybe_with_nulls(read_groups(opened, groups, None).combine_chunks())
        columns = [
            read_groups(opened, groups, [name]).select([name]).combine_chunks()[name] for name in names
        ]
        return maybe_with_nulls(pa.table(columns, opened.schema_arrow))
    except Exception as error:  # of any type, as the file may contain anything
        raise FileFormatError(f"cannot read {path}: {str(error)[:200]}") from error


#: Bytes per value by physical type in Parquet, 8 for others; texts also take their own length.
VALUE_BYTES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT96": 12}


def bytes_of_table(file: BinaryIO) -> int:
    """Return the approximate bytes that the table in a Parquet file takes in memory; 0 if it cannot be read."""
    import pyarrow.parquet as pq

    try:
        metadata = pq.ParquetFile(OwnPlace(file)).metadata
    except Exception:  # of any type; it will be reported when the file is read
        return 0
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    columns = (group.column(k) for group in groups for k in range(group.num_columns))
    return sum(
        each.num_values * VALUE_BYTES.get(each.physical_type, 8)
        + each.total_uncompressed_size * (each.physical_type == "BYTE_ARRAY")
        for each in columns
    )


def in_one(tables: Mapping[str, Table]) -> Iterator[pa.Table]:
    """Yield the rows of several tables in parts, with the name of the table in a column ``by``."""
    none = [_with_name(name, table.schema.empty_table()) for name, table in tables.items()]
    blank = pa.concat_tables(none, promote_options="permissive")
    for name, table in tables.items():
        for part in table._batches():
            yield pa.concat_tables([blank, _with_name(name, part)], promote_options="permissive")


def _with_name(name: str, table: pa.Table) -> pa.Table:
    named = table.rename_columns(beside_by(table.column_names))
    return named.append_column("by", pa.array([name] * table.num_rows, pa.string()))


def beside_by(names: Sequence[str]) -> list[str]:
    """Return column names in which an attribute named ``by`` is renamed, as this is the column of table names."""
    return ["attribute.by" if name == "by" else name for name in names]


def integers(table: pa.Table, name: str) -> NDArray[np.int64]:
    """Return a column as int64, with -1 for null."""
    return np.ascontiguousarray(table[name].cast(pa.int64()).fill_null(-1).to_numpy())


def floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    """Return a column as float64."""
    return np.ascontiguousarray(table[name].to_numpy())


def _memberships(table: pa.Table, name: str, n_clusters: int) -> Memberships:
    lists = table[name].combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    codes = lists.flatten().to_numpy().astype(np.int32 if n_clusters < 2**31 else np.int64)
    return Memberships(offsets - offsets[0], codes, n_clusters)


def from_table(
    cells: pa.Table,
    n_clusters: tuple[int, int],
    *,
    rows: ScoredRows | None,
    weighted: bool,
    weighting: str,
    outside: bool,
) -> Cover:
    """Make a cover from the table of its `batches`, and from the number of clusters of each side."""
    n_scored = len(cells) - cells[PARTS[0]].null_count
    scored, (n_true, n_pred) = cells.slice(0, n_scored), n_clusters
    shares = Shares(
        np.column_stack([floats(scored, name) for name in PARTS]),
        np.column_stack([integers(scored, name) for name in MATES]),
    )
    return Cover(
        _memberships(cells, "true_clusters", n_true),
        _memberships(cells, "pred_clusters", n_pred),
        integers(cells, "n"),
        floats(cells, "weight") if weighted else None,
        n_scored=n_scored,
        rows=rows,
        weighting=weighting,
        outside=outside,
        shares=shares,
    )


class TableLabels:
    """The labels of clusters, by side and code, held in tables."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def __call__(self, side: str, codes: RowNumbers) -> pa.Array:
        """Return the labels of clusters by code; null for clusters created by a policy."""
        return combined(chunked(self._columns[side].take(from_numpy(codes))))


def labels_by_code(labels_of: Callable[[RowNumbers], Any], first: int, there: NDArray[np.bool_]) -> Any:
    """Return the labels of consecutive clusters from code `first` on; null where `there` is false."""
    labels = labels_of(first + np.flatnonzero(there))
    if there.all():
        return labels
    return labels.take(from_numpy(np.maximum(np.cumsum(there) - 1, 0), ~there))


def item_table(kept: Kept) -> pa.Table:
    """Return all rows of an evaluation as a table: ids, labels, weight, cell (null if not scored), attributes."""
    items, rows = kept.require_items(), kept.rows
    columns: dict[str, Any] = {
        "item": items.ids(),
        "true_cluster": items.labels("true"),
        "pred_cluster": items.labels("pred"),
        "weight": rows.weight,
        "cell": from_numpy(rows.cell, rows.cell < 0),
    }
    left_out = kept.left_out
    for side, names in items.attribute_sides().items():
        own = [name for name in names if f"{side}.{name}" not in left_out]
        columns |= {f"{side}.{name}": items.attribute(side, name) for name in own}
    if kept.attributes is not None:
        own = [name for name in kept.attributes.names if f"attributes.{name}" not in left_out]
        columns |= {f"attributes.{name}": kept.attributes.attribute(name) for name in own}
    return table_of(columns)


def metrics_by_name(names: Iterable[str], beta: float, options: Mapping[str, Any]) -> list[Metric]:
    """Return scores of the registry by name; `options` say how CICE-BCubed was defined."""
    known = dict(METRICS)
    if "match" in options:
        known |= {m.name: m for m in cice(options["match"], options["similarity"])}
    return [known[name].at(beta) for name in names if name in known]


def state_of(ev: Any) -> dict[str, Any]:
    """Return the picklable state of an evaluation, in which scores of the registry are represented by name."""
    kept, figures = ev.kept, ev.figures
    if kept.lazy is not None:
        return state_of(kept.lazy.whole())
    state: dict[str, Any] = {k: v for k, v in ev.__dict__.items() if k not in ("standard_errors", "losses")}
    own = [m for m in ev.metrics if m.name not in METRICS]
    state["metrics"] = ([m.name for m in ev.metrics], own, ev.definition)
    state["figures"] = replace(figures, metrics=[], errors=ev.standard_errors.known)
    state["origin"] = ev.origin.at_rest(kept.memory_limit)
    state["kept"] = replace(
        kept,
        items=None if kept.items is None else TableItems(item_table(kept), kept.left_out),
        labels=TableLabels({side: _all_labels(kept, side) for side in SIDES}) if kept.has_clusters else None,
        attributes=None,
        ranges=None,
    )
    return state


def set_state(ev: Any, state: Mapping[str, Any]) -> None:
    """Restore an evaluation from the result of `state_of`."""
    names, own, definition = state["metrics"]
    found = {m.name: m for m in (*metrics_by_name(names, state["beta"], definition), *own)}
    metrics = [found[name] for name in names]
    ev.__dict__.update(state, metrics=metrics, figures=replace(state["figures"], metrics=metrics))


def _all_labels(kept: Kept, side: str) -> Any:
    n = kept.cells.true_n if side == "true" else kept.cells.pred_n
    with kept.all_labels(side) as labels_of:
        return labels_by_code(labels_of, 0, n > 0)


#: The first columns of the table of items.
FIRST = ("item", "true_cluster", "pred_cluster", "weight", "cell")


def items_of_block(block: RowBlock) -> pa.Table:
    """Return the rows of a block as written by `save`: ids, labels, weight, cell (null if not scored), attributes."""
    cell = block.found["cell"].astype(np.int64)
    weight = np.ones(cell.size) if block.weight is None else block.weight
    columns = dict(zip(block.columns.column_names, block.columns.columns, strict=True))
    columns |= {"weight": from_numpy(weight), "cell": from_numpy(cell, cell < 0)}
    rest = [name for name in columns if "." in name]
    return without_nulls(pa.table({name: columns[name] for name in (*FIRST, *rest)}), ["weight"])


class Destination(NamedTuple):
    """A file to write items to, and its staging place (None for an unnamed file)."""

    file: Any
    staging: Staging | None


@contextmanager
def destination(out: Path | None, spill_directory: Path) -> Iterator[Destination]:
    """Yield the file to write items to: one that will be published in `out`, or else an unnamed one."""
    if out is not None:
        staging = Staging(out, MANIFEST)
        try:
            path = staging.path(ITEMS)
            path.touch()
            yield Destination(path, staging)
        except BaseException as error:
            staging.discard()
            if isinstance(error, OSError):
                raise FileFormatError(f"cannot write {out / ITEMS}: {error.strerror or error}") from error
            raise
        return
    try:
        file = tempfile.TemporaryFile(dir=spill_directory)
    except OSError as error:
        raise SpillError(
            f"cannot write to {spill_directory}: {error.strerror}. Name a directory with {arg('spill_dir', ...)}"
        ) from error
    try:
        yield Destination(file, None)
    except BaseException:
        file.close()
        raise
