"""Rows → cells → cells that know their margins: groupings and windows are Spark's, as are spilling and retries.

Rows are added up to cells before anything moves by cluster, so that many items of few clusters weigh nothing. A cluster
with very many counterparts is kept apart: its cells are spread over tasks by their other cluster, and its margin, which
partial sums give, comes to them as a small table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from fastbcubed.engines.spark.frames import FrameSide, functions
from fastbcubed.engines.spark.joined_items import PRED, TRUE, Join
from fastbcubed.engines.spark.looking import quoted

#: From so many rows of a side on, heavy clusters are looked for, in a sample of so many.
SKEW_FROM, SAMPLE = 1 << 22, 1 << 14
#: A cluster with this share of the rows is heavy.
HEAVY = 1 / 128
#: Clusters are few if a sample has fewer of them than this share of its rows.
FEW_SHARE = 1 / 2
#: Over how many groups the cells of a heavy cluster are spread, and those that a side lacks.
SPREAD, SPREAD_ABSENT = 64, 1 << 10

Label = tuple[Any, ...]


@dataclass(frozen=True)
class Heavy:
    """The clusters of either side that are kept apart, and whether both sides have few."""

    true: list[Label] = field(default_factory=list)
    pred: list[Label] = field(default_factory=list)
    few: bool = False

    def __bool__(self) -> bool:
        return bool(self.true or self.pred)

    def of(self, side: str) -> list[Label]:
        """Return those of a side."""
        return self.true if side == TRUE else self.pred


def find_heavy(sides: tuple[FrameSide, FrameSide], n_rows: tuple[int, int]) -> Heavy:
    """Return the clusters that a sample shows to be heavy; none of small inputs."""
    found: list[list[Label]] = []
    few = []
    for side, n in zip(sides, n_rows, strict=True):
        if n < SKEW_FROM:
            found.append([])
            few.append(False)
            continue
        labels = side.frame.select(*map(quoted, side.clusters)).sample(SAMPLE / n, seed=0)
        rows = list(map(tuple, labels.groupBy(*map(quoted, side.clusters)).count().collect()))
        found.append([row[:-1] for row in rows if None not in row and row[-1] > SAMPLE * HEAVY])
        few.append(len(rows) < FEW_SHARE * sum(row[-1] for row in rows))
    return Heavy(found[0], found[1], all(few))


@dataclass(frozen=True)
class Cells:
    """How cells are grouped: by both clusters, and by the slices that are asked for."""

    join: Join
    heavy: Heavy = field(default_factory=Heavy)

    @property
    def sliced(self) -> list[str]:
        """The columns that cells are cut by beside their clusters."""
        return self.join.extra

    @property
    def summed(self) -> list[str]:
        """What is added up."""
        return ["n", *(["w"] if self.join.weighted else [])]

    def grouped(self, rows: Any) -> Any:
        """Return the cells of rows: keys, `n`, `w`; `kind`, `again` and `fault` where policies do not tell them.

        Rows go to where their predicted cluster is added up, so that cells need no shuffle of their own; but where
        clusters are few, or heavy, cells are far fewer than rows, and one before is worth it.
        """
        sql, join = functions(), self.join
        asked = [sql.count(sql.lit(1)).alias("n")]
        asked += (
            [sql.max("kind").alias("kind")]
            if "singleton" in (join.policies.truth, join.policies.prediction)
            else []
        )
        asked += [sql.sum(name).alias(name) for name in ("again", "fault") if name in rows.columns]
        asked += [sql.sum("w").alias("w")] if join.weighted else []
        keys = [*join.keys(TRUE), *join.keys(PRED), *self.sliced]
        if self.heavy or self.heavy.few:
            return self._placed(rows.groupBy(*keys).agg(*asked), PRED, TRUE)
        by = self.together(PRED)
        return (
            self._placed(rows, PRED, TRUE).repartition(*by).groupBy(*dict.fromkeys([*by, *keys])).agg(*asked)
        )

    def together(self, side: str) -> list[str]:
        """Return the columns that bring the cells of a cluster together; see `_placed`."""
        if len(self.join.keys(side)) == 1 and not self.heavy.of(side):
            return [f"{side}_by"]
        return [*self.join.keys(side), f"{side}_by"]

    def with_margins(self, cells: Any) -> Any:
        """Return cells with the sums over their predicted and over their true cluster.

        `b_n`, `b_w` and `a_n`, `a_w` are of the scored items, `u_n`, `u_w` of those that only the prediction has,
        `l_n`, `l_w` of those that only the truth has. Where there are slices, `c_n` and `c_w` are of the cell as a
        whole, and `head` is true in one of its parts.
        """
        cells = self._summed_over(cells, PRED, TRUE, "b", "u").drop("p_by")
        cells = self._summed_over(self._placed(cells, TRUE, PRED), TRUE, PRED, "a", "l")
        return self._whole_cells(cells) if self.sliced else cells

    def _summed_over(self, cells: Any, side: str, other: str, scored: str, lacking: str) -> Any:
        """Add the sums over the clusters of a side: of items that the `other` side has, and of those it lacks."""
        from pyspark.sql import Window

        within = Window.partitionBy(*self.together(side))
        if self.sliced and side == TRUE:  # so that one sort serves the whole cells, too
            end = Window.unboundedPreceding, Window.unboundedFollowing
            order = [*self.join.keys(side), *self.join.keys(other), *self.sliced]
            within = within.orderBy(*(n for n in order if n not in self.together(side))).rowsBetween(*end)
        sums = self._sums(side, other, scored, lacking)
        found = cells.select("*", *(each.over(within).alias(name) for name, each in sums.items()))
        return self._with_heavy(found, cells, side, sums) if self.heavy.of(side) else found

    def _sums(self, side: str, other: str, scored: str, lacking: str) -> dict[str, Any]:
        """Return the sums over clusters of a side by name; cells without one may be beside those of any."""
        sql, join = functions(), self.join
        here, there = join.is_there(side), join.is_there(other)
        found = {}
        for name in self.summed:
            found[f"{scored}_{name}"] = sql.sum(sql.when(here & there, sql.col(name)).otherwise(0))
            found[f"{lacking}_{name}"] = sql.sum(sql.when(here & ~there, sql.col(name)).otherwise(0))
        return found

    def _placed(self, frame: Any, side: str, other: str) -> Any:
        """Add `t_by` or `p_by`, which spreads what has no cluster of this side, and the cells of heavy ones.

        It is the label itself where that is one column: Spark sorts by one column far faster than by several.
        """
        sql, join = functions(), self.join
        by_other = sql.xxhash64(*join.keys(other))
        name = join.keys(side)[0]
        if self.together(side) == [f"{side}_by"]:
            spread = by_other.cast("string").cast(frame.schema[name].dataType)
            return frame.withColumn(f"{side}_by", sql.coalesce(sql.col(name), spread))
        salt = sql.when(~join.is_there(side), sql.pmod(by_other, sql.lit(SPREAD_ABSENT)))
        if self.heavy.of(side):
            salt = salt.when(self._is_heavy(side), sql.pmod(by_other, sql.lit(SPREAD)))
        return frame.withColumn(f"{side}_by", salt.otherwise(0).cast("int"))

    def _is_heavy(self, side: str) -> Any:
        sql, names = functions(), self.join.labels(side)
        known = self.heavy.of(side)
        if len(names) == 1:
            return sql.coalesce(sql.col(names[0]).isin([label[0] for label in known]), sql.lit(False))
        matches = (
            reduce(lambda a, b: a & b, (sql.col(n) == sql.lit(v) for n, v in zip(names, label, strict=True)))
            for label in known
        )
        return sql.coalesce(reduce(or_, matches), sql.lit(False))

    def _with_heavy(self, found: Any, cells: Any, side: str, asked: dict[str, Any]) -> Any:
        """Put the margins of heavy clusters in the place of those of their groups: the sums of partial sums."""
        sql, names = functions(), self.join.labels(side)
        keys = [sql.col(name).alias(f"heavy_{name}") for name in names]
        margins = (
            cells.where(self._is_heavy(side))
            .groupBy(*keys)
            .agg(*(each.alias(f"heavy_{name}") for name, each in asked.items()))
        )
        on = reduce(lambda a, b: a & b, (sql.col(name) == sql.col(f"heavy_{name}") for name in names))
        joined = found.join(sql.broadcast(margins), on, "left")
        return joined.select(
            *(
                sql.coalesce(sql.col(f"heavy_{name}"), sql.col(name)).alias(name) if name in asked else name
                for name in found.columns
            )
        )

    def _whole_cells(self, cells: Any) -> Any:
        """Add the sums over each cell as a whole, and mark one of its parts."""
        from pyspark.sql import Window

        sql, join = functions(), self.join
        by = dict.fromkeys([*self.together(TRUE), *join.keys(TRUE), *join.keys(PRED)])
        within = Window.partitionBy(*by)
        ordered = within.orderBy(*self.sliced)
        whole = ordered.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
        columns = [sql.sum(name).over(whole).alias(f"c_{name}") for name in self.summed]
        return cells.select("*", *columns, (sql.row_number().over(ordered) == 1).alias("head"))
