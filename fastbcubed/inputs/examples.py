"""Example data shipped with the package: a truth and predictions."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import pyarrow as pa

from fastbcubed.errors import OptionError, quoted
from fastbcubed.inputs.files import read_table
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.suggestions import did_you_mean

__all__ = ["Example", "example"]

#: Descriptions of the data sets by name; the last entry says whether clusters overlap.
ABOUT = {
    "patentsview": (
        "Inventors named on US patents: items are mentions, clusters are persons. The truth is the release of June "
        "2022, the predictions are two earlier ones.",
        "PatentsView (patentsview.org), CC BY 4.0; rows and columns were selected.",
        False,
    ),
    "wordnet_verbs": (
        "English verbs and the senses they share: an item may be in several clusters, so pass "
        "overlapping=True.",
        "WordNet 3.0, Copyright 2006 by Princeton University.",
        True,
    ),
}


@dataclass(frozen=True, repr=False)
class Example:
    """A truth, predictions by name, and attributes of the items, as returned by `fastbcubed.example`.

    Attributes
    ----------
    name, about, source : str
        Name of the data set, a description of its items and clusters, and the origin of the data.
    truth : pyarrow.Table
        A table with the columns item, cluster and attributes, and one row per item or, if clusters overlap, per
        membership.
    predictions : dict of str to pyarrow.Table
        The tables of predictions by name, in the same form as the truth.
    attributes : pyarrow.Table or None
        Further attributes of the items, if they are in a separate table.
    overlapping : bool
        Whether items may be in several clusters.
    """

    name: str
    about: str
    source: str
    truth: pa.Table
    predictions: dict[str, pa.Table]
    attributes: pa.Table | None
    overlapping: bool

    def __repr__(self) -> str:
        tables = [("truth", self.truth), *((f"predictions[{n!r}]", t) for n, t in self.predictions.items())]
        tables += [] if self.attributes is None else [("attributes", self.attributes)]
        width = max(len(name) for name, _ in tables)
        lines = [
            f"  {name:<{width}}  {table.num_rows:>7,} rows  {', '.join(table.column_names)}"
            for name, table in tables
        ]
        about = textwrap.fill(f"Example {self.name!r}: {self.about}", 100, subsequent_indent="  ")
        return "\n".join([about, *lines, f"  Source: {self.source}"])


def example(name: str) -> Example:
    """Return one of the example data sets shipped with the package.

    Parameters
    ----------
    name : {"patentsview", "wordnet_verbs"}
        Name of the data set.

    Returns
    -------
    Example
        The truth, predictions by name, and attributes of the items if they are in a separate table.

    Raises
    ------
    OptionError
        If the package has no data set of this name.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> inventors = fb.example("patentsview")
    >>> inventors.truth.num_rows, list(inventors.predictions)
    (19602, ['20200929', '20211230'])
    >>> fb.evaluate(inventors.truth, inventors.predictions["20211230"]).summary["true"]["items"]
    19235
    """
    if not is_one_of(name, ABOUT):
        known = ", ".join(map(repr, ABOUT))
        raise OptionError(
            f"there is no example {quoted(name)}; the examples are {known}.{did_you_mean(name, ABOUT)}"
        )
    from importlib.resources import as_file, files

    with as_file(files("fastbcubed") / "data" / name) as folder:
        tables = {path.stem: read_table(path) for path in sorted(folder.glob("*.parquet"))}
    about, source, overlapping = ABOUT[name]
    predictions = {
        stem.removeprefix("pred_"): table for stem, table in tables.items() if stem.startswith("pred_")
    }
    return Example(name, about, source, tables["truth"], predictions, tables.get("items"), overlapping)
