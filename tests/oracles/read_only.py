"""Directories that nobody may write to, as those of a container."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


def read_only(path: Path) -> Callable[[], object]:
    """Let nobody write below a directory, and return what undoes that."""
    if os.geteuid():
        for folder, _, _ in os.walk(path):
            os.chmod(folder, 0o555)
        return lambda: [os.chmod(folder, 0o755) for folder, _, _ in os.walk(path)]
    commands = (["mount", "--bind", path, path], ["mount", "-o", "remount,ro,bind", path])
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            pytest.skip(f"no mount: {error}")
        if done.returncode:
            subprocess.run(["umount", path], capture_output=True)
            pytest.skip(f"cannot mount a directory read-only: {done.stderr.strip()}")
    return lambda: subprocess.run(["umount", path], check=True)
