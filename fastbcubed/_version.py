"""The version, and the command that installs it; a release changes only this file."""

__version__ = "1.0.0"


def install(extra: str = "") -> str:
    """Return the command that installs the package, optionally with an extra; the package is not on an index yet.

    >>> install("report")
    "python -m pip install '.[report]' in a checkout (for a wheel, use WHEEL[report])"
    >>> install()
    'python -m pip install . in a checkout'
    """
    if not extra:
        return "python -m pip install . in a checkout"
    return f"python -m pip install '.[{extra}]' in a checkout (for a wheel, use WHEEL[{extra}])"
