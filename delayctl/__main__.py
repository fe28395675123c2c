"""Run delayctl with `python -m delayctl`."""

from delayctl.cli.main import run

if __name__ == "__main__":
    run()
