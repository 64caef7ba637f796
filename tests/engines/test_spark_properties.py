"""Any two tables score on Spark as they do in memory: ids and labels of every type, nulls, weights, crossed slices."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from on_spark import assert_same, both

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves its sockets to be collected
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: The types that ids and labels have, and what makes a value of a number.
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "byte": (pa.int8(), int), "integer": (pa.int32(), int), "long": (pa.int64(), lambda k: k * 2**54 - 2**60),
    "string": (pa.string(), lambda k: f"é {k}"), "binary": (pa.binary(), lambda k: bytes([255, k])),
}  # fmt: skip
#: Attributes to slice by.
ATTRIBUTES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "day": (pa.date32(), [datetime.date(2020, 2, 29), datetime.date(1969, 1, 1), None]),
    "price": (pa.decimal128(6, 2), [Decimal("1.50"), Decimal("-0.01"), None]),
    "name": (pa.string(), ["", "a", None]),
    "flag": (pa.bool_(), [True, False, None]),
}


@st.composite
def evaluations(draw: st.DrawFn) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """Draw a truth, a prediction, and how they are scored."""
    nulls = draw(st.sampled_from(["raise", "singleton", "drop"]))
    item, *labels = (draw(st.sampled_from(list(KINDS))) for _ in range(3))
    composite = draw(st.booleans())
    chosen = draw(st.lists(st.sampled_from(list(ATTRIBUTES)), min_size=1, max_size=2, unique=True))
    n_clusters = draw(st.sampled_from([1, 4, 20]))
    tables = []
    for k, kind in enumerate(labels):
        own = draw(st.sets(st.integers(0, 24), min_size=6)) | {25, 26}
        rows = draw(st.permutations(sorted(own)))
        type_, value = KINDS[kind]
        codes = draw(st.lists(st.integers(0, n_clusters - 1), min_size=len(rows), max_size=len(rows)))
        values = [None if nulls != "raise" and code == 3 else value(code) for code in codes]
        columns = _ids(rows, item, composite=composite) | {"cluster": pa.array(values, type_)}
        if k == 0:
            columns["w"] = pa.array([0.5 + row % 3 for row in rows])
            for name in chosen:
                kind_, known = ATTRIBUTES[name]
                columns[name] = pa.array([known[row % len(known)] for row in rows], kind_)
        tables.append(pa.table(columns))
    policies = ["drop", "singleton", "outside", {"truth": "singleton", "prediction": "outside"}]
    weighted = draw(st.booleans())
    options = {
        "item": ["source", "id"] if composite else "item", "cluster": "cluster", "nulls": nulls,
        "slices": [chosen[0], (*chosen, "pred_size")],
        "unmatched": "drop" if weighted else draw(st.sampled_from(policies)), "weight": "w" if weighted else None,
        "metrics": ["pointwise", "pairs", "entropy"] if not weighted else ["pointwise"],
    }  # fmt: skip
    return tables[0], tables[1], options


def _ids(rows: list[int], kind: str, *, composite: bool) -> dict[str, pa.Array]:
    type_, value = KINDS[kind]
    if not composite:
        return {"item": pa.array(list(map(value, rows)), type_)}
    return {
        "source": pa.array([value(row % 3) for row in rows], type_),
        "id": pa.array([row // 3 for row in rows]),
    }


@examples(5, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(evaluations())
def test_any_tables_score_as_in_memory(spark: Any, drawn: tuple[pa.Table, pa.Table, dict[str, Any]]) -> None:
    truth, prediction, options = drawn
    assert_same(*both(spark, truth, prediction, **options))
