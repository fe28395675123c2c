"""The compose files, brought up and taken down."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed import apt, wait
from testbed.broker import BrokerUnavailable, RunningBroker
from testbed.engine import Engine
from testbed.ports import LOOPBACK, free_ports
from testbed.probe import answers

FOLDER = Path(__file__).resolve().parent.parent / "compose"
READY_WITHIN = 180.0
PORT_VARIABLES = {
    "single.yaml": (("RABBITMQ_AMQP_PORT", "RABBITMQ_MANAGEMENT_PORT"),),
    "cluster.yaml": tuple((f"RABBITMQ_AMQP_PORT_{n}", f"RABBITMQ_MANAGEMENT_PORT_{n}") for n in (1, 2, 3)),
}


@dataclass(frozen=True)
class Compose:
    """Docker Compose: its command and the environment that it needs besides the usual one."""

    argv: Sequence[str]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Project:
    """A compose file that is up: its brokers, and how to ask compose about it."""

    brokers: tuple[RunningBroker, ...]
    compose: Compose
    name: str
    file: Path

    def containers(self) -> list[str]:
        """Return the ids of the project's containers."""
        return _call(self.compose, self.name, self.file, "ps", "-q").split()


def find_compose() -> Compose:
    """Return the installed Docker Compose, plugin or program, else Debian's, unpacked into the cache."""
    if shutil.which("docker") and _works(["docker", "compose", "version"]):
        return Compose(["docker", "compose"], {})
    installed = shutil.which("docker-compose")
    return Compose([installed], {}) if installed else unpacked_compose(apt.unpacked("compose", ["docker-compose"]))


def unpacked_compose(root: Path) -> Compose:
    """Return the Docker Compose of Debian's package unpacked at `root`: a program, or a script with its modules."""
    program = root / "usr/bin/docker-compose"
    if program.read_bytes()[:2] != b"#!":
        return Compose([str(program)], {})
    python = root / "usr/bin/python3"
    modules = {"PYTHONPATH": str(root / "usr/lib/python3/dist-packages")}
    return Compose([str(python) if python.exists() else "/usr/bin/python3", str(program)], modules)


@contextmanager
def composed(file: str, *, engine: Engine, image: str) -> Iterator[Project]:
    """Bring a compose file up on free ports until the block ends, and give it once every broker answers."""
    found = find_compose()
    name, path = f"delayctl{secrets.token_hex(4)}", FOLDER / file
    ports = _ports(file)
    settings = {variable: str(port) for pair in ports for variable, port in pair.items()}
    env = {**found.env, **engine.env(), **settings, "RABBITMQ_IMAGE": image}
    compose = Compose(found.argv, env)
    try:
        _call(compose, name, path, "up", "-d")
        try:
            brokers = tuple(_ready(file, *pair.values()) for pair in ports)
        except TimeoutError as error:
            words = _call(compose, name, path, "ps", "-a"), _call(compose, name, path, "logs", "--tail", "30")
            raise TimeoutError("\n".join((str(error), *words))) from error
        yield Project(brokers, compose, name, path)
    finally:
        _call(compose, name, path, "down", "-v", "-t", "10")


def _ports(file: str) -> list[dict[str, int]]:
    pairs = PORT_VARIABLES[file]
    free = iter(free_ports(2 * len(pairs)))
    return [{variable: next(free) for variable in pair} for pair in pairs]


def _ready(file: str, amqp_port: int, management_port: int) -> RunningBroker:
    url, management_url = f"amqp://guest:guest@{LOOPBACK}:{amqp_port}/", f"http://{LOOPBACK}:{management_port}"
    how = f"compose/{file} {{version}}"
    broker = wait.until(
        lambda: answers(how, url=url, management_url=management_url), READY_WITHIN, what=f"a broker of {file}"
    )
    assert broker is not None
    return broker


def _call(compose: Compose, name: str, file: Path, *arguments: str) -> str:
    argv = [*compose.argv, "-p", name, "-f", str(file), *arguments]
    done = subprocess.run(argv, env={**os.environ, **compose.env}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BrokerUnavailable(f"docker compose {' '.join(arguments)} of {file.name}: {done.stderr.strip()[-800:]}")
    return done.stdout


def _works(argv: Sequence[str]) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0
