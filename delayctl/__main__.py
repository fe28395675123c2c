"""Runs delayctl, by its name or with `python -m delayctl`. Nothing heavy is imported here: Ctrl-C may come at any moment."""

import sys


def run() -> None:
    """Load the command line and run it; a Ctrl-C that comes while it loads ends it as any other does."""
    try:
        from delayctl.cli.main import run as run_commands  # noqa: PLC0415 (this is what takes its time)

        run_commands()
    except KeyboardInterrupt:
        sys.exit("\nStopped.")


if __name__ == "__main__":
    run()
