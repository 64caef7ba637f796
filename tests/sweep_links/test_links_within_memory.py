"""The memory limit of links and sweeps: what would not fit raises before it is begun, and what fits stays within."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from growth import growth

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import OptionError

#: What the library states beside a limit, in MiB.
BESIDE = 256
N, M = 600_000, 2_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a truth of N items, most of them in links, and M links of different scores."""
    path, rng = tmp_path_factory.mktemp("links"), np.random.default_rng(0)
    truth = rng.permutation(N) // 3
    order = np.argsort(truth)
    near = rng.integers(0, N - 1, M)
    sides = order[near], np.where(rng.random(M) < 0.6, order[near + 1], rng.integers(0, N, M))
    named = dict(zip(("left", "right"), sides, strict=True)) | {"score": rng.random(M)}
    pq.write_table(pa.table({"item": np.arange(N), "cluster": truth}), path / "truth.parquet")
    pq.write_table(pa.table(named), path / "links.parquet")
    return path


def told(error: OptionError) -> str:
    """Return the limit that a message asks for."""
    found = re.search(r'Pass memory_limit="(\d+MiB)" or more', str(error))
    assert found is not None, error
    return found[1]


@pytest.mark.slow
def test_links_are_refused_before_they_are_read(folder: Path) -> None:
    """Two million links take 32 bytes each while they are sorted, 24 while they are read with scores, 12 without."""
    links = folder / "links.parquet"
    told_of_links = r"memory_limit is 10 MiB, but the 2,000,000 links of .*links.parquet would take about "
    with pytest.raises(OptionError, match=told_of_links + "62 MiB"):
        fb.sweep(folder / "truth.parquet", links, memory_limit="10MiB")
    with pytest.raises(OptionError, match=told_of_links + "47 MiB"):
        fb.Clustering.from_links(links, threshold=0.5, memory_limit="10MiB")
    with pytest.raises(OptionError, match=told_of_links + "23 MiB"):
        fb.Clustering.from_links(links, memory_limit="10MiB")


@pytest.mark.slow
def test_a_stream_is_refused_when_it_shows(folder: Path) -> None:
    def reader() -> Any:
        return pq.ParquetFile(folder / "links.parquet").iter_batches(1 << 16)

    schema = pq.read_schema(folder / "links.parquet")
    stream = pa.RecordBatchReader.from_batches(schema, reader())
    with pytest.raises(
        OptionError, match=r"the first [\d,]+ links of the links, with [\d,]+ items, would take"
    ):
        fb.Clustering.from_links(stream, threshold=0.5, memory_limit="4MiB")


@pytest.mark.slow
def test_text_is_refused_before_it_is_read(folder: Path) -> None:
    pa.csv.write_csv(pq.read_table(folder / "links.parquet").slice(0, 200_000), folder / "links.csv")
    with pytest.raises(
        OptionError, match=r"the text of .*links.csv, which is held as a whole, .* as Parquet"
    ):
        fb.Clustering.from_links(folder / "links.csv", threshold=0.5, memory_limit="8MiB")


@pytest.mark.process
@pytest.mark.slow
def test_the_limit_that_a_message_asks_for_is_enough_and_is_held(folder: Path) -> None:
    """A message tells what the next step takes; those of later steps may ask for more."""
    paths, limit = (folder / "truth.parquet", folder / "links.parquet"), "1MiB"
    for _ in range(6):
        try:
            assert len(fb.sweep(*paths, memory_limit=limit).links) == M
            break
        except OptionError as error:
            limit = told(error)
    before = """
        fb.sweep({1: 1, 2: 1, 3: 2}, [(1, 2, 0.5), (2, 3, 0.4)], memory_limit="1GiB")
    """
    grown = growth(before, f"fb.sweep(*{tuple(map(str, paths))}, memory_limit={limit!r})")
    assert 64 < grown < int(limit.removesuffix("MiB")) + BESIDE


def test_the_command_line_has_the_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    commands = (
        "sweep truth.parquet links.parquet",
        "cluster links.parquet --threshold 0.5",
        "evaluate truth.parquet links.parquet --links --threshold 0.5",
    )
    for command in commands:
        assert cli.main([*command.split(), "--memory-limit", "10MiB"]) == 2
        said = capsys.readouterr().err
        assert "--memory-limit is 10 MiB, but the 2,000,000 links of links.parquet would take about" in said
        assert re.search(r"Pass --memory-limit \d+MiB or more", said)
