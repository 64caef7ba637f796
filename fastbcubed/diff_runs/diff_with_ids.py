"""The ids of a diff: which cluster of the experiment keeps which id of the baseline, and the registry of all ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastbcubed.diff_runs.identity import (
    Carried,
    IdRule,
    IdStability,
    carry,
    ids_of,
    registry_and_ids,
    retired_of,
)
from fastbcubed.errors import OptionError, arg, quoted
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.result import ScoredResult
from fastbcubed.results.table import Table
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.object_attributes import cached_property


class DiffWithIds(ScoredResult):
    """A diff whose baseline labels are ids, which are carried over to the clusters of the experiment."""

    #: the evaluation of the experiment with the baseline as truth, saved figures, names and warnings
    evaluation: Evaluation
    _saved: Mapping[str, Any]
    names: Any
    warnings: Any

    @cached_property
    def id_stability(self) -> IdStability:
        """Share of the common weight that keeps its id: `as_named`, by the present labels, and `best`, by `ids`.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.diff(list("aabbc"), list("xxyyc")).id_stability  # c alone kept its id; all could
        IdStability(as_named=0.2, best=1.0)
        """
        saved = self._saved.get("id_stability")
        return self._carried.stability if saved is None else IdStability(**saved)

    def ids(
        self, *, known_ids: Any = None, revive: bool = False, mint: IdRule = None, by: str = "cluster"
    ) -> Table:
        """Return the id of each cluster of the experiment: that of a baseline cluster, or a new one.

        The labels of the baseline are the ids. Each is given to at most one cluster, such that as much weight as
        possible keeps its id. Ties are broken by the heaviest cell, then by the larger share of both clusters, the
        smaller old id, and the smaller label.

        Parameters
        ----------
        known_ids : array-like, optional
            Ids of earlier releases, such as the column id of `registry`, which are not used again.
        revive : bool
            Whether known ids that the baseline does not have may be used again as new ids.
        mint : callable, str, optional
            How new ids are made: a function of the cluster's label; a string to prefix to consecutive numbers; or the
            builtin `min`, for the cluster's smallest item that is not an id. By default, integer ids continue from
            the largest known id, and other ids are the labels of the experiment. An id that is already taken raises
            OptionError, and a mix of numbers and strings IdTypeError.
        by : {"cluster", "item"}
            Whether to list clusters, or items as a baseline for the next release.

        Returns
        -------
        Table
            experiment_cluster, id, event, by label: "kept"; "merged", if it also replaces ids that are retired;
            "split", with a new id, because its items come from clusters whose ids other clusters keep; "new", without
            items of the baseline. By item: item and cluster, which holds the id. Clusters created by a policy have no
            id.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> d = fb.diff([7, 7, 7, 8, 8, 9], list("xxyzzz"))
        >>> d.ids()
        experiment_cluster  id  event
        x                   7   kept
        y                   10  split
        z                   8   merged
        <BLANKLINE>
        3 rows
        """
        if not is_one_of(by, ("cluster", "item")):
            raise OptionError(f'{arg("by")} must be "cluster" or "item", not {quoted(by)}')
        return Table(ids_of(self, known_ids, mint, revive=revive, by_item=by == "item"))

    def retired(self) -> Table:
        """Return the ids that no cluster keeps: id, replaced_by (id of the cluster with most of its weight, or null).

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.diff([7, 7, 7, 8, 8, 9], list("xxyzzz")).retired().to_pylist()
        [{'id': 9, 'replaced_by': 8}]
        """
        return Table(retired_of(self))

    def registry(
        self, previous: Any = None, *, release: str | None = None, revive: bool = False, mint: IdRule = None
    ) -> Table:
        """Return the registry of all ids after this release: id, first_seen, last_seen, replaced_by.

        Parameters
        ----------
        previous : table or path, optional
            The registry of the previous release, whose ids are known. They come first.
        release : str, optional
            The name of the release; by default that of the experiment, without a file name extension.
        revive, mint
            As for `ids`.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.diff([7, 7, 8], [1, 1, 1]).registry(release="May").to_pylist()[0]
        {'id': 8, 'first_seen': 'the baseline', 'last_seen': 'the baseline', 'replaced_by': 7}
        """
        return Table(registry_and_ids(self, previous, release, mint, revive=revive)[0])

    @cached_property
    def _carried(self) -> Carried:
        found = carry(self.evaluation)
        self.warnings.extend(found.notes())
        return found
