"""The command line, beside the broker that is named or found."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import RunningBroker, find_broker
from testbed.needs import needed

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    """Give the broker that every test of this file names."""
    with needed(find_broker()) as found:
        yield found


def call(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command line with these variables added."""
    argv = [sys.executable, "-m", "testbed", *arguments]
    return subprocess.run(argv, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def naming(broker: RunningBroker) -> dict[str, str]:
    """Return the variables that name this broker."""
    return {"DELAYCTL_URL": broker.url, "DELAYCTL_MANAGEMENT_URL": broker.management_url}


def test_the_command_gets_the_brokers_addresses(broker: RunningBroker) -> None:
    """Both variables are set for the command, and its output is all that is on standard output."""
    done = call("run", "--", "sh", "-c", 'echo "$DELAYCTL_URL $DELAYCTL_MANAGEMENT_URL"', env=naming(broker))

    assert (done.returncode, done.stdout) == (0, f"{broker.url} {broker.management_url}\n")
    assert done.stderr == f"testbed: given by DELAYCTL_URL: {broker.management_url}\n"


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -TERM $$", 143)])
def test_the_commands_exit_code_is_returned(broker: RunningBroker, script: str, code: int) -> None:
    """A failure stays a failure, and a signal is 128 and its number, as in a shell."""
    assert call("run", "--", "sh", "-c", script, env=naming(broker)).returncode == code


def test_a_command_that_does_not_exist_is_named(broker: RunningBroker) -> None:
    """The message says what could not be run, without a traceback."""
    done = call("run", "--", "no-such-command", env=naming(broker))

    assert done.returncode == 127
    assert "Error: cannot run no-such-command: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_broker_the_reason_is_on_standard_error() -> None:
    """A broker that does not answer gives exit code 1 and a way out, without a traceback."""
    nowhere = {"DELAYCTL_URL": "amqp://guest:guest@127.0.0.1:1/", "DELAYCTL_MANAGEMENT_URL": "http://127.0.0.1:1"}

    done = call("run", "--", "true", env=nowhere)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: no RabbitMQ broker to be had\n  tried: DELAYCTL_URL: the broker at 127.0.0.1")
    assert "Traceback" not in done.stderr


def test_no_command_is_a_usage_error() -> None:
    """Nothing is started for nothing."""
    assert call("run", env={}).returncode == 64
