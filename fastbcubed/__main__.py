"""Run the command line: ``python -m fastbcubed``."""

from fastbcubed.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
