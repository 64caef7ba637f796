"""What several test files of results need of pytest."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def paths(request, tmp_path: Path) -> list[str]:
    """Write the columns TRUTH and PREDICTION of a test file as Parquet, and return where they are."""
    found = {"truth": request.module.TRUTH, "pred": request.module.PREDICTION}
    for name, columns in found.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    return [str(tmp_path / f"{name}.parquet") for name in found]
