"""The command line: run a command beside a broker or a Spark cluster, or prepare what they need."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import FrameType

from testbed import BrokerUnavailable, RunningBroker, container_broker, find_broker, native_node
from testbed.cache import say
from testbed.java import JavaUnavailable
from testbed.prepare import prepare
from testbed.spark import SparkUnavailable
from testbed.spark_cluster import standalone_cluster

KINDS: dict[str, Callable[[], AbstractContextManager[RunningBroker]]] = {
    "any": find_broker,
    "native": native_node,
    "container": container_broker,
}
UNAVAILABLE, USAGE, NOT_FOUND, INTERRUPTED = 1, 64, 127, 130
EXAMPLES = """examples:
  python -m testbed run -- pytest tests
  python -m testbed run --kind container -- delayctl plan topology.yaml
  python -m testbed prepare --kind native
  python -m testbed spark -- sh -c 'spark-submit --master $DELAYCTL_SPARK_MASTER job.py'
"""


def main(arguments: Sequence[str]) -> int:
    """Carry out one command and return its exit code."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if options.command == "run":
            return run(options.kind, options.argv)
        if options.command == "spark":
            return run_on_spark(options.argv)
        prepare(options.kind)
        return 0
    except (BrokerUnavailable, JavaUnavailable, SparkUnavailable) as error:
        print(f"Error: {error}", file=sys.stderr)
        return UNAVAILABLE
    except KeyboardInterrupt:
        return INTERRUPTED


def run(kind: str, argv: Sequence[str]) -> int:
    """Run a command beside a broker of this kind and return the command's exit code."""
    argv = _command("run", argv)
    if not argv:
        return USAGE
    with KINDS[kind]() as broker:
        say(f"{broker.how}: {broker.management_url}")
        urls = {"DELAYCTL_URL": broker.url, "DELAYCTL_MANAGEMENT_URL": broker.management_url}
        return _call(argv, {**os.environ, **urls})


def run_on_spark(argv: Sequence[str]) -> int:
    """Run a command beside a standalone Spark cluster and return the command's exit code."""
    argv = _command("spark", argv)
    if not argv:
        return USAGE
    with standalone_cluster() as cluster:
        say(f"Spark cluster: {cluster.master}")
        return _call(argv, cluster.environment(os.environ))


def _command(name: str, argv: Sequence[str]) -> Sequence[str]:
    argv = argv[1:] if argv[:1] == ["--"] else argv
    if not argv:
        print(f"Error: no command to run\n  fix: python -m testbed {name} -- COMMAND ARGUMENTS", file=sys.stderr)
    return argv


def _call(argv: Sequence[str], env: Mapping[str, str]) -> int:
    try:
        process = subprocess.Popen(argv, env=env)
    except OSError as error:
        print(f"Error: cannot run {argv[0]}: {error.strerror}\n  fix: check its name and your PATH", file=sys.stderr)
        return NOT_FOUND
    try:
        return _exit_code(process.wait())
    except KeyboardInterrupt:
        # The command had the same Ctrl-C, or gets the TERM that we got; the broker outlives it, so it can end well.
        process.terminate()
        process.wait()
        raise


def _exit_code(code: int) -> int:
    return 128 - code if code < 0 else code


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m testbed", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="run a command with DELAYCTL_URL and DELAYCTL_MANAGEMENT_URL set")
    prepare_parser = commands.add_parser("prepare", help="fetch or build beforehand what a broker needs")
    spark_parser = commands.add_parser("spark", help="run a command with DELAYCTL_SPARK_MASTER set")
    for each in (run_parser, prepare_parser):
        each.add_argument("--kind", choices=sorted(KINDS), default="any", help="which broker (default: any)")
    for each in (run_parser, spark_parser):
        each.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND ARGUMENTS")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
