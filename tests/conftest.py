"""What several test files need of pytest."""

import os

import pytest
from hypothesis import settings

from fastbcubed.alignment import aligner
from fastbcubed.cells import shards as disk
from fastbcubed.engines import disk as sharded

#: Of 100 examples that a test of generated input states, so many are tried; see tests/oracles/effort.py.
settings.register_profile("laptop", deadline=None, max_examples=20)
settings.register_profile("ci", deadline=None, max_examples=100, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "laptop"))


@pytest.fixture(params=["all in memory", "all spilled", "some spilled"])
def many_shards(request, monkeypatch):
    """Cut even small inputs into many blocks and shards, and spill nothing, all, or what comes late."""
    kept = {"all in memory": 1 << 30, "all spilled": 0, "some spilled": 600}[request.param]
    monkeypatch.setattr(disk.Layout, "of", lambda n_rows, limit: disk.Layout(2, kept, kept))
    monkeypatch.setattr(sharded, "_block_rows", lambda limit: 23)
    monkeypatch.setattr(aligner, "join_bits", lambda *_: 3)
    monkeypatch.setattr(aligner, "kept_of", lambda limit: kept)
