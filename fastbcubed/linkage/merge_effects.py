"""What single merges do: to precision and recall, and which true clusters they make whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.linkage.tree_rows import Counts, Floats, TreeRows, find_meetings, merges_of
from fastbcubed.runtime.pool import Pool


@dataclass(frozen=True, eq=False)
class Effects:
    """What merges do; those of one level that come to one cluster are one merge, which stands at the last of them.

    `over` and `under` are by place between rows, in the weight of all items, and 0 where no merge stands.
    """

    over: Floats  #: what precision loses
    under: Floats  #: what recall gains
    merged: NDArray[np.bool_]  #: where a merge stands
    whole_at: Counts  #: by true cluster: the place of the merge that makes it whole, -1 for a single row


def merge_effects(rows: TreeRows, pool: Pool) -> Effects:
    """Work out what each merge does."""
    n = len(rows)
    over, under = np.zeros(n), np.zeros(n)
    whole_at = np.full(rows.true_sizes.size, -1)
    module, meetings = kernels.merge_effects, find_meetings(rows, pool)
    module.add_recall_by_merge(meetings.records, rows.true_masses, under)
    module.find_last_merges(meetings.records, rows.levels, whole_at)
    made = merges_of(rows, meetings.crosses, meetings.masses)
    del meetings  # its records need not be held while clusters are
    for merges in made:
        module.add_loss_by_merge(merges, over)
    heads = np.empty(n, rows.levels.dtype)
    module.join_ties(rows.levels, rows.n_levels, heads, np.empty_like(heads), over, under)
    merged = (rows.levels < rows.n_levels) & (heads == np.arange(n))
    whole_at[whole_at >= 0] = heads[whole_at[whole_at >= 0]]
    return Effects(over, under, merged, whole_at)
