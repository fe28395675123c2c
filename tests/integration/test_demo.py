"""`make demo`: what it sets up, and what is seen of it on a broker that is there already."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from testbed import RunningBroker

# Notes what it is told, and makes itself the Python of a virtual environment.
PYTHON = """#!/bin/sh
echo "$@" >>told
case "$*" in *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;; esac
"""
RECEIVED = re.compile(r"received  order 4711 from orders\.timeout\.queue with key order\.created, after ([0-9.]+)s\n")
REPOSITORY = Path(__file__).parents[2]
# What delayctl itself needs.
NEEDED = ("click", "jinja2", "markupsafe", "pika", "urllib3", "yaml", "_yaml")
LEAN = f"""
import runpy, sys, sysconfig
from importlib.machinery import PathFinder


class Lean:
    @staticmethod
    def find_spec(name, path=None, target=None):
        found = PathFinder.find_spec(name, path, target)
        installed = found and (found.origin or "").startswith(sysconfig.get_path("purelib"))
        if installed and name.partition(".")[0] not in {NEEDED}:
            raise ModuleNotFoundError(f"{{name}} would not be installed", name=name)
        return None


sys.meta_path.insert(0, Lean)
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def test_a_message_is_delayed_before_your_eyes(broker: RunningBroker) -> None:
    """On a broker that is named to it, the demo asks for nothing that delayctl itself does not need."""
    lean = [sys.executable, "-c", LEAN]
    ran = subprocess.run(
        [*lean, "testbed", "run", "--", *lean, "examples.demo"],
        env={**os.environ, "DELAYCTL_URL": broker.url, "DELAYCTL_MANAGEMENT_URL": broker.management_url},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    (seconds,) = RECEIVED.findall(ran.stdout)
    assert float(seconds) >= 3
    assert ran.stdout.endswith("Applied: 0 added, 0 changed, 0 replaced, 24 deleted.\n")


def test_the_demo_is_set_up_with_what_starts_a_container(tmp_path: Path) -> None:
    """A machine that has Docker and no RabbitMQ gets its broker that way."""
    (tmp_path / "scripts").mkdir()
    setup = shutil.copy(REPOSITORY / "scripts" / "setup", tmp_path / "scripts")
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)

    subprocess.run([setup, "demo"], env={**os.environ, "DELAYCTL_PYTHON": str(python)}, check=True)

    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert (tmp_path / "told").read_text().endswith(" -e .[demo]\n")
    assert [each.partition(">")[0] for each in extras["demo"]] == ["testcontainers"]
