"""How much memory some code takes, measured in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

__all__ = ["growth"]

PROGRAM = """\
import threading, time
import fastbcubed as fb

def resident():
    with open("/proc/self/status") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(("RssAnon", "RssShmem"))) * 1024

{before}
least, most, done = resident(), [0], []

def watch():
    while not done:
        most[0] = max(most[0], resident())
        time.sleep(0.002)

watcher = threading.Thread(target=watch, daemon=True)
watcher.start()
{measured}
done.append(1)
watcher.join()
print((most[0] - least) / 2**20)
"""


def growth(before: str, measured: str) -> float:
    """Return by how many MiB the process grows beyond what it has after `before`, files mapped left out.

    What is run before makes what the rest uses, and compiles.
    """
    program = PROGRAM.format(before=textwrap.dedent(before), measured=textwrap.dedent(measured))
    environment = {**os.environ, "FASTBCUBED_INTERPRET": "0"}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return float(ran.stdout)
