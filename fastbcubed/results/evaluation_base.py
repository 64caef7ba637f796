"""Origin of an evaluation: its inputs as results show them, and the manifest."""

from __future__ import annotations

import inspect
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.cells.contingency import SIDES, Codes, Contingency, Excerpt, ScoredRows, excerpt_of
from fastbcubed.errors import FastBCubedError, Message, NotKeptError, arg
from fastbcubed.inputs.fingerprint import Content, contents
from fastbcubed.inputs.locations import at_home
from fastbcubed.inputs.pair import Pair
from fastbcubed.inputs.tables import is_path
from fastbcubed.metrics.registry import METRICS, known_as
from fastbcubed.metrics.score import Metric
from fastbcubed.render.json import as_json
from fastbcubed.results.items import AttributeTable, Items, without_noise
from fastbcubed.results.outcomes import by_side, count_outcomes
from fastbcubed.results.saved import set_state, state_of
from fastbcubed.results.slices import Bins, rows_for_json
from fastbcubed.results.summary import Bounds, Scores, precision_bounds, summarize
from fastbcubed.results.table import HasTable, Table, refuse_table_verb
from fastbcubed.results.warnings import Shape, found_in, same_source, shape_of, swapped_names
from fastbcubed.runtime.attributes import cached_property, documented
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import RowNumbers

if TYPE_CHECKING:
    from fastbcubed.results.clusters import ClusterRanges
    from fastbcubed.results.table import LazyTables

#: Arguments reported elsewhere, or that change no figure and differ between machines.
UNTOLD = ("truth", "prediction", "baseline", "experiment", "out", "progress", "threads", "spill_dir")


@dataclass(eq=False)
class Origin:
    """Where an evaluation comes from."""

    same_source: str | None = None  #: the kind of source that both sides share, if any
    swapped_names: str | None = None  #: why the sides may be in the wrong order, by their names
    by_name: bool = False  #: whether the sides are named: by path or column
    #: those that were not left out, as plain values
    arguments: Mapping[str, Any] = field(default_factory=dict)
    pair: Pair | None = field(default=None, repr=False)  #: both sides, to be read again
    contents: Sequence[Content] | None = None  #: contents of both sides, where already known
    saved: Mapping[str, Any] | None = None  #: the manifest, where it was read

    @classmethod
    def of(
        cls,
        given: Any,
        arguments: Mapping[str, Any],
        pair: Pair | None,
        contents: Sequence[Content] | None = None,
        say: Callable[[Any], Any] = lambda told: told,
    ) -> Origin:
        """Describe the inputs without reading them. `say` formats paths in arguments for display."""
        named = given.table is not None or is_path(given.truth)
        told = say({name: as_told(value) for name, value in arguments.items() if name not in UNTOLD})
        return cls(same_source(given), swapped_names(given), named, told, pair, contents)

    def manifest(self, engine: str, memory_limit: int | None) -> dict[str, Any]:
        """Return versions, engine, arguments, and rows and fingerprint of each side."""
        if self.saved is not None:
            return dict(self.saved)
        return {
            "versions": _versions(),
            "engine": engine,
            "memory_limit": memory_limit
            if "memory_limit" in self.arguments
            else None,  # else by what is free
            "arguments": dict(self.arguments),
            **self.sides,
        }

    @cached_property
    def sides(self) -> dict[str, dict[str, Any]]:
        """Rows and fingerprint of each side, computed from all rows on first access; None if they are gone."""
        found: list[dict[str, Any]] = [{"rows": None, "fingerprint": None}] * 2
        if self.contents is not None:
            found = [content._asdict() for content in self.contents]
        elif self.pair is not None:
            try:
                with Pool() as pool:
                    found = [content._asdict() for content in contents(self.pair, pool)]
            except (FastBCubedError, OSError):  # files that were moved since
                pass
        return dict(zip(("truth", "prediction"), found, strict=True))

    def at_rest(self, engine: str, memory_limit: int | None) -> Origin:
        """Return it with its manifest in place of the inputs."""
        return replace(self, pair=None, contents=None, saved=self.manifest(engine, memory_limit))


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {
        "fastbcubed": __version__,
        "numpy": np.__version__,
        "numba": version("numba"),
        "pyarrow": pa.__version__,
        "python": platform.python_version(),
    }


def not_default(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that differ from their defaults; data, shown by type only, are included."""
    found, defaults = {}, _defaults(function)
    for name, value in given.items():
        default = defaults[name]
        comparable = isinstance(value, tuple if isinstance(default, tuple) else (str, bool, int, float))
        if value is not default and not (comparable and value == default):
            found[name] = value
    return found


@cache
def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: each.default for name, each in inspect.signature(function).parameters.items()}


def by_names(arguments: Mapping[str, Any], sides: Iterable[str]) -> Callable[[Any], Any]:
    """Return a function that writes files in values by name, without the folders of this machine.

    Files of the same name keep the folders that differ. `sides` are the names of the sides, by path where
    they are files; arguments that are paths are taken as such. With ``paths=True``, values stay as they are.

    Examples
    --------
    >>> say = by_names({"table": "data/all.csv"}, ["/home/me/old/run.csv", "/home/me/new/run.csv", "the prediction"])
    >>> say(["column 'a' of /home/me/new/run.csv", {"table": "data/all.csv"}])
    ["column 'a' of new/run.csv", {'table': 'all.csv'}]
    """
    found = [side for side in sides if not side.startswith("the ")]
    places = ["table", "attributes", "weight"]
    if arguments.get("table") is None:  # else these are columns
        places += ["truth", "prediction", "baseline", "experiment", "runs"]
    for name in places:
        given, kind = arguments.get(name), os.PathLike if name == "weight" else str | os.PathLike
        each = given.values() if isinstance(given, Mapping) else [given]
        found += [os.fspath(path) for path in each if isinstance(path, kind)]
    if arguments.get("paths") or not found:
        return lambda value: value
    parts = {path: os.path.abspath(at_home(path)).split(os.sep) for path in found}
    shown: dict[str, str] = {}
    for path, own in parts.items():
        others = [each for each in parts.values() if each != own]
        n = next(n for n in range(1, len(own) + 1) if all(each[-n:] != own[-n:] for each in others))
        shown[path] = shown[at_home(path)] = "/".join(own[-n:])
    pattern = re.compile("|".join(map(re.escape, sorted(shown, key=len, reverse=True))))

    def say(value: Any) -> Any:
        if isinstance(value, Message):
            return value.replaced(lambda part: say(part) if isinstance(part, str) else part)
        if isinstance(value, str):
            return pattern.sub(lambda match: shown[match[0]], value)
        if isinstance(value, Mapping):
            return {key: say(each) for key, each in value.items()}
        return [say(each) for each in value] if isinstance(value, list | tuple) else value

    return say


def as_told(value: Any) -> Any:
    """Return an argument as shown in a manifest: plain values as they are, functions by name, data by type.

    Examples
    --------
    >>> as_told(["f1", len]), as_told({"truth": "drop"}), as_told(np.ones(3))
    (['f1', 'len'], {'truth': 'drop'}, 'numpy.ndarray')
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, os.PathLike | Bins):
        return str(value)
    if isinstance(value, list | tuple) and len(value) <= 1000:
        return [as_told(each) for each in value]
    if isinstance(value, Mapping) and len(value) <= 1000:
        return {str(name): as_told(each) for name, each in value.items()}
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


@dataclass(eq=False, repr=False)
class Evaluated(HasTable):
    """The data of an evaluation; the attributes are described at `Evaluation`."""

    contingency: Contingency
    metrics: list[Metric]
    beta: float
    coverage: Coverage
    policies: Policies
    overall: Scores
    _items: Items | None
    _labels: Callable[[str, RowNumbers], pa.Array] | None = None
    attributes: AttributeTable | None = None
    not_computed: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    sliced: dict[str, Table] = field(default_factory=dict)
    engine: str = "memory"
    ranges: ClusterRanges | None = None
    _summary: dict[str, dict[str, Any]] | None = None
    _bounds: Bounds | None = None
    _input_notes: list[dict[str, Any]] = field(default_factory=list)
    #: bytes that later computations may hold; None where there is no limit
    _memory_limit: int | None = None
    #: standard errors and units that were saved
    _saved_errors: Any = None
    _origin: Origin = field(default_factory=Origin)
    _change_if_alone: float | None = None
    #: where the tables of a large saved result are, so that nothing is computed from all items by default
    _lazy: LazyTables | None = None

    def __getattr__(self, name: str) -> float:
        overall: Scores | None = self.__dict__.get("overall")
        if overall is not None and not name.startswith("_") and (known := overall.named(name)) is not None:
            return float(overall[known])
        refuse_table_verb(name, "an evaluation", '.items(), .clusters("true") and .scores()')
        raise AttributeError(
            f"an evaluation has no attribute or computed score {name!r}{self._how_to_have(name)}"
        )

    def _how_to_have(self, name: str) -> str:
        """Return how to have a score that was not computed, or why it is not defined; nothing for what is no score."""
        known = METRICS.get(str(known_as(name))) if "contingency" in self.__dict__ else None
        if known is None:
            return f"; .metric({name!r}) computes a score"
        reason = known.undefined(
            weighted=self.contingency.weighted, weighting=self.contingency.weighting,
            outside=self.contingency.outside, overlapping=self.contingency.overlapping,
        )  # fmt: skip
        return f"; .metric({name!r}) computes it" if reason is None else f": {known.not_defined(reason)}"

    def __dir__(self) -> list[str]:
        return documented(self, self.overall)

    # What was scored

    @property
    def definition(self) -> dict[str, Any]:
        """Definition of the scores: average, weighting, policies."""
        return {
            "average": "item",
            "overlapping": self.contingency.overlapping,
            "weighted": self.contingency.weighted,
            "weighting": self.contingency.weighting,
            "beta": self.beta,
            "unmatched": {"truth": self.policies.truth, "prediction": self.policies.prediction},
            "nulls": self.policies.nulls,
            "duplicates": self.policies.duplicates,
            "noise": self.policies.noise,
            **{name: value for m in self.metrics if m.options for name, value in m.options.items()},
        }

    @cached_property
    def summary(self) -> dict[str, dict[str, Any]]:
        """Items, clusters, singletons, largest, size quantiles, exactly recovered and outcomes, of each side.

        Outcomes are numbers of clusters; not where clusters overlap, or the cells were not kept.
        """
        if self._outcomes is None:
            return self._sides
        outcomes = by_side(self._outcomes)
        return {side: {**figures, "outcomes": outcomes[side]} for side, figures in self._sides.items()}

    @cached_property
    def _sides(self) -> dict[str, dict[str, Any]]:
        """The same without outcomes, which take a look at all cells."""
        return summarize(self.contingency) if self._summary is None else self._summary

    @cached_property
    def _outcomes(self) -> pa.Table | None:
        """The result of `outcomes`; None where unknown or undefined."""
        table = self.contingency
        if table.overlapping or isinstance(table, NoCells):
            return None
        most = None if self.ranges is None else self.ranges.limit // 2
        with Pool() as pool:
            return count_outcomes(table, pool, most)

    @cached_property
    def bounds(self) -> Bounds | None:
        """Bounds of the precision, where prediction-only items were dropped; else None."""
        if self.policies.prediction != "drop" or not self.coverage.n_prediction_only:
            return None
        return precision_bounds(self.contingency) if self._bounds is None else self._bounds

    @property
    def _knows_sides(self) -> bool:
        """Whether the clusters have been counted."""
        return "_sides" in self.__dict__ or self._summary is not None

    @cached_property
    def _shape(self) -> dict[str, Shape]:
        """The shape of each side, where needed for warnings."""
        return shape_of(self)

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings and notes on the scores: code, level (warning or note), message, figures of each."""
        return [*found_in(self), *self._input_notes]

    @property
    def manifest(self) -> dict[str, Any]:
        """Provenance: versions, engine, arguments that were given, rows and fingerprint of each side.

        A fingerprint tells the rows of item and label, in whatever order and container. All rows are hashed when it
        is first requested, as it is for JSON and saved results.
        """
        return self._origin.manifest(self.engine, self._memory_limit)

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Attributes that cannot be kept with the items, such as "truth.shape", and why."""
        found = {} if self._items is None else self._items.left_out()
        return found if self.attributes is None else found | self.attributes.left_out()

    # Output

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        return self._described({name: rows_for_json(table) for name, table in self.sliced.items()})

    def _described(self, slices: Mapping[str, Any]) -> dict[str, Any]:
        """Return the same with a placeholder for the slices."""
        return {
            "fastbcubed": __version__,
            "truth": self.names.get("truth"),
            "prediction": self.names.get("prediction"),
            "definition": self.definition,
            "overall": dict(self.overall),
            "coverage": {
                **asdict(self.coverage),
                "truth_coverage": self.coverage.truth_coverage,
                "prediction_coverage": self.coverage.prediction_coverage,
                "bounds": None if self.bounds is None else asdict(self.bounds),
            },
            "summary": self.summary,
            "outcomes": None if self._outcomes is None else self._outcomes.to_pylist(),
            "slices": dict(slices),
            "warnings": self.warnings,
            "not_computed": self.not_computed,
            "manifest": self.manifest,
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return overall scores, coverage, summary, slices and warnings as JSON; NaN becomes null.

        Parameters
        ----------
        indent : int or None
            Spaces for each level; None for one line.

        Returns
        -------
        str

        Raises
        ------
        OptionError
            If `indent` is not a whole number up to 100, or None.

        Examples
        --------
        >>> import json
        >>> import fastbcubed as fb
        >>> json.loads(fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]).to_json())["overall"]["recall"]
        0.75
        """
        return as_json(self.to_dict(), indent)

    __getstate__, __setstate__ = state_of, set_state

    # ScoredRows and clusters

    @property
    def has_clusters(self) -> bool:
        """Whether the clusters were kept, so that they can be listed."""
        return self._labels is not None or self.has_items

    @property
    def has_items(self) -> bool:
        """Whether the items were kept, so that there are slices and listings."""
        return self._items is not None

    def kept_items(self) -> Items:
        """Return the items, or raise NotKeptError."""
        if self._items is None or self.contingency.rows is None:
            raise NotKeptError(
                "the items were not kept; to slice and to list them, evaluate or save with "
                f"{arg('keep', 'items')}"
            )
        return self._items

    def _rows(self) -> ScoredRows:
        self.kept_items()
        assert self.contingency.rows is not None
        return self.contingency.rows

    @cached_property
    def _first_rows(self) -> dict[str, RowNumbers]:
        """A row of each cluster, by side and code."""
        rows, table = self._rows(), self.contingency
        scored, none = np.flatnonzero(rows.cell >= 0)[::-1], rows.cell.size
        of_cell = np.full(table.n_cells, none)
        of_cell[rows.cell[scored]] = scored
        found = {}
        for side in SIDES:
            codes, n, cells = table.memberships(side)
            first = np.full(n, none)
            np.minimum.at(first, codes, of_cell if cells is None else of_cell[cells])
            found[side] = np.where(first < none, first, -1)
        return found

    def first_rows(self, side: str) -> RowNumbers:
        """Return a row of each cluster by code, -1 for one without a scored item."""
        return self._first_rows[side]

    def cluster_labels(self, side: str, codes: RowNumbers) -> pa.Array:
        """Return the labels of clusters by code, null for one that a policy has made."""
        if self._labels is not None:
            labels = self._labels(side, codes)
        else:
            labels = self.kept_items().labels(side, self._first_rows[side][codes])
        return without_noise(labels, self.policies.noise)

    def cell_excerpt(self, codes: Codes) -> Excerpt:
        """Return the cells of some clusters, by side and code."""
        return excerpt_of(self.contingency, codes, None if self._lazy is None else self._lazy.sizes_of)

    def all_cluster_labels(self, side: str) -> AbstractContextManager[Callable[[RowNumbers], pa.Array]]:
        """Return `cluster_labels` of a side, for reading all labels in batches."""
        every = getattr(self._labels, "all_of", None)
        return nullcontext(partial(self.cluster_labels, side)) if every is None else every(side)
