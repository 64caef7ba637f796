"""What several test files need of pytest."""

import pytest

from fastbcubed.alignment import aligner, item_join
from fastbcubed.cells import shards as disk
from fastbcubed.engines import disk as sharded


@pytest.fixture(params=["all in memory", "all spilled", "some spilled"])
def many_shards(request, monkeypatch):
    """Cut even small inputs into many blocks and shards, and spill nothing, all, or what comes late."""
    kept = {"all in memory": 1 << 30, "all spilled": 0, "some spilled": 600}[request.param]
    monkeypatch.setattr(disk.Layout, "of", lambda n_rows, limit: disk.Layout(2, kept, kept))
    monkeypatch.setattr(sharded, "_block_rows", lambda limit: 23)
    monkeypatch.setattr(item_join, "JOIN_BYTES", 1 << 22)
    monkeypatch.setattr(aligner, "kept_of", lambda limit: kept)
