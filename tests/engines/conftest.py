"""A cluster of Spark on this machine: a master and two workers, each a process of its own, and one session."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HOST = "127.0.0.1"
#: Memory of a worker, and of its executors; small, as tests are.
WORKER, EXECUTOR = "1g", "600m"
#: Quick to compile and to collect: six virtual machines that live for minutes.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, "a process of Spark has ended"
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("a process of Spark does not answer")


@pytest.fixture(scope="session")
def spark_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a master with two workers on loopback; skip where there is no Java or no Spark.

    FASTBCUBED_SPARK_MASTER=local[2] is a quicker one while tests are written.
    """
    pytest.importorskip("pyspark", reason="Spark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java, which Spark needs")
    if named := os.environ.get("FASTBCUBED_SPARK_MASTER"):
        yield named
        return
    import pyspark

    home = Path(pyspark.__file__).parent
    logs = tmp_path_factory.mktemp("spark")
    environment = {
        **os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(logs / "local"), "SPARK_DAEMON_MEMORY": "256m", "SPARK_WORKER_DIR": str(logs / "work"),
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
    }  # fmt: skip
    port, started = _free_port(), []

    def start(kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [
            str(home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{kind}",
            "--host",
            HOST,
            *arguments,
        ]
        with (logs / f"{kind}-{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        return started[-1]

    try:
        _wait_for(port, start("master.Master", "--port", str(port), "--webui-port", str(_free_port())))
        for _ in range(2):
            ports = "--port", str(_free_port()), "--webui-port", str(_free_port())
            start("worker.Worker", *ports, "--cores", "1", "--memory", WORKER, f"spark://{HOST}:{port}")
        yield f"spark://{HOST}:{port}"
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


@pytest.fixture(scope="session")
def spark(spark_master: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Give a session on that cluster."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(spark_master).appName("tests")
    settings = {
        "spark.driver.memory": "1g", "spark.executor.memory": EXECUTOR, "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST, "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2", "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")), "spark.executor.cores": "1",
        "spark.driver.extraJavaOptions": JAVA, "spark.executor.extraJavaOptions": JAVA,
    }  # fmt: skip
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
