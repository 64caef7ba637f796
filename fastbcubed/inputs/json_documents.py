"""JSON files with a single document: records, an object from item to label, columns, or a list of items per cluster."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa

from fastbcubed.errors import FileFormatError, first_few
from fastbcubed.inputs.file_formats import JsonFile, TextFile, reading
from fastbcubed.inputs.json_depth import Nesting
from fastbcubed.inputs.locations import LOCAL, Place

#: Advice for JSON of any other form.
ADVICE = (
    'Write records, [{"item": "a", "cluster": 1}, ...], or an object from item to label, {"a": 1}; or use json.load, '
    "and pass Clustering.from_clusters(...), Clustering.from_dict(...) or Clustering.from_links(...)."
)


def open_json(path: str, place: Place = LOCAL) -> TextFile:
    """Open a JSON file as a single document or, if the second line begins another object, as JSON lines."""
    with reading(path, "JSON"), place.open_text(path) as text:
        begin = text.read(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()
    first, _, rest = begin.partition(b"\n")
    # a single record from a pipe
    one = first.count(b"{") == 1 and b"[" not in first and b'"cluster"' in first
    alone = place.unnamed and not rest.strip() and one
    if first[:1] == b"{" and (rest.lstrip()[:1] == b"{" or alone):
        return JsonFile(path, place)
    return JsonDocument(path, place)


class JsonDocument(TextFile):
    """One file with one JSON document; keys of an object, which are always text, are read as untyped."""

    form = "JSON"

    def __init__(self, path: str, place: Place = LOCAL) -> None:
        with reading(path, self.form):
            with place.open_text(path) as text:
                content = text.read()
            Nesting(path, ADVICE).add(content)
            document = json.loads(content)
            columns = _columns(document, path)
            table = pa.table({name: _column(values, name, path) for name, values in columns.items()})
        super().__init__(path, table)
        if isinstance(document, dict) and not isinstance(next(iter(document.values()), None), dict | list):
            self.untyped = ("item",)


def _columns(document: Any, path: str) -> dict[str, list[Any]]:
    """Return the columns of a document; raise FileFormatError if no reading fits, or more than one."""
    named = isinstance(document, dict)
    values: list[Any] = list(document.values()) if named else document if isinstance(document, list) else []
    kinds = {next((kind for kind in (dict, list) if isinstance(value, kind)), None) for value in values}
    if kinds == {dict} and not named:
        return {
            name: [row.get(name) for row in values]
            for name in dict.fromkeys(key for row in values for key in row)
        }
    if kinds == {dict} and len(values) > 1 and all(rows.keys() == values[0].keys() for rows in values):
        # as written by pandas.DataFrame.to_json
        return {name: list(rows.values()) for name, rows in document.items()}
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
    """Return the items in each list and the number of the list; raise for lists of equal length that share values."""
    items = [item for own in document for item in own]
    if any(isinstance(item, dict | list) for item in items):
        raise FileFormatError(f"{path} is JSON with lists of lists of lists or objects. {ADVICE}")
    shared = [item for item, times in Counter(items).items() if times > 1]
    if shared and len({len(own) for own in document}) == 1:
        raise FileFormatError(
            f"{path} is JSON with {len(document)} lists of length {len(document[0])}, some of which share values "
            f"({len(shared)} in all, first: {first_few(shared[:4])}). They may be clusters of items, rows of item and "
            f"cluster, or links. {ADVICE}"
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
