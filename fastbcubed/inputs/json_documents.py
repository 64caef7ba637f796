"""JSON that is one document: records, an object from item to label, columns, or lists of the items of each cluster."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa

from fastbcubed.errors import FileFormatError, first_few
from fastbcubed.inputs.file_formats import JsonFile, TextFile, reading
from fastbcubed.inputs.locations import LOCAL, Place

#: What to do with JSON of another form.
ADVICE = (
    'Write records, [{"item": "a", "cluster": 1}, ...], or an object from item to label, {"a": 1}; or use json.load, '
    "and pass Clustering.from_clusters(...), Clustering.from_dict(...) or Clustering.from_links(...)."
)


def open_json(path: str, place: Place = LOCAL) -> TextFile:
    """Open a JSON file: a document, or JSON lines, which are told by their first line."""
    with reading(path, "JSON"), place.open_text(path) as text:
        begin = text.read(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()
    first, _, rest = begin.partition(b"\n")
    one = first.count(b"{") == 1 and b"[" not in first and b'"cluster"' in first  # a record of a pipe
    alone = place.unnamed and not rest.strip() and one
    if first[:1] == b"{" and (rest.lstrip()[:1] == b"{" or alone):
        return JsonFile(path, place)
    return JsonDocument(path, place)


class JsonDocument(TextFile):
    """One file with one JSON document; the names of an object, which are text always, have no type."""

    form = "JSON"

    def __init__(self, path: str, place: Place = LOCAL) -> None:
        with reading(path, self.form):
            with place.open_text(path) as text:
                content = text.read()
            try:
                document = json.loads(content)
            except RecursionError:
                raise FileFormatError(
                    f"{path} has arrays or objects nested too deeply to be read. {ADVICE}"
                ) from None
            columns = _columns(document, path)
            table = pa.table({name: _column(values, name, path) for name, values in columns.items()})
        super().__init__(path, table)
        if isinstance(document, dict) and not isinstance(next(iter(document.values()), None), dict | list):
            self.untyped = ("item",)


def _columns(document: Any, path: str) -> dict[str, list[Any]]:
    """Return the columns of a document; one that can be read in several ways, or in none, raises FileFormatError."""
    named = isinstance(document, dict)
    values: list[Any] = list(document.values()) if named else document if isinstance(document, list) else []
    kinds = {next((kind for kind in (dict, list) if isinstance(value, kind)), None) for value in values}
    if kinds == {dict} and not named:
        return {
            name: [row.get(name) for row in values]
            for name in dict.fromkeys(key for row in values for key in row)
        }
    if kinds == {dict} and len(values) > 1 and all(rows.keys() == values[0].keys() for rows in values):
        return {name: list(rows.values()) for name, rows in document.items()}  # as pandas writes a frame
    if kinds == {list} and not named:
        return _of_clusters(values, path)
    if kinds == {list} and "cluster" in document and len(set(map(len, values))) == 1:
        return dict(document)
    if kinds == {None} and named:
        return {"item": list(document), "cluster": values}
    found = {dict: "objects", list: "lists", None: "single values"}
    holds = " and ".join(found[kind] for kind in (dict, list, None) if kind in kinds) or "nothing"
    raise FileFormatError(
        f"{path} is JSON, {'an object' if named else 'a list'} of {holds}, which is not read as a "
        f"table. {ADVICE}"
    )


def _of_clusters(document: list[list[Any]], path: str) -> dict[str, list[Any]]:
    """Return the items of each list and its number; lists of two that share values may be pairs or rows, and raise."""
    items = [item for own in document for item in own]
    if any(isinstance(item, dict | list) for item in items):
        raise FileFormatError(f"{path} is JSON, lists of lists of lists or objects. {ADVICE}")
    shared = [item for item, times in Counter(items).items() if times > 1]
    if shared and len({len(own) for own in document}) == 1:
        raise FileFormatError(
            f"{path} is JSON, {len(document)} lists of {len(document[0])}; {len(shared)} values appear in "
            f"several of them (first: {first_few(shared[:4])}): the lists may be clusters of items, rows of "
            f"item and cluster, or links. {ADVICE}"
        )
    return {"item": items, "cluster": [k for k, own in enumerate(document) for _ in own]}


def _column(values: list[Any], name: str, path: str) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise FileFormatError(
            f"{path} has values of several types in {name!r} ({', '.join(kinds)}). Give them one type."
        ) from error
