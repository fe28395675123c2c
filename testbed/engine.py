"""A Docker engine: the one that answers, else a private one where we may start it."""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import docker  # type: ignore[import-untyped]
import requests

from testbed import apt, wait
from testbed.broker import BrokerUnavailable
from testbed.cache import cache_folder, say
from testbed.processes import Command, kept

ANSWERS_WITHIN = 3
# A ping needs no agreement on the newest version, which would be a question of its own.
ANY_VERSION = "1.24"
LONGEST_SOCKET = "/delayctl-docker-12345678/exec/containerd/containerd-debug.sock.ttrpc"
SOCKET_PATH_LIMIT = 107
READY_WITHIN = 60.0
STOPS_WITHIN = 60.0


@dataclass(frozen=True)
class Engine:
    """A Docker engine that answers at `host`; a private one was started by us and forgets everything at its end."""

    host: str
    is_private: bool = False

    @contextmanager
    def client(self) -> Iterator[docker.DockerClient]:
        """Open a client of this engine for the length of the block."""
        client = docker.DockerClient(base_url=self.host)
        try:
            yield client
        finally:
            client.close()

    def env(self) -> dict[str, str]:
        """Return the environment that points Docker's own programs at this engine."""
        return {"DOCKER_HOST": self.host}


@contextmanager
def engine() -> Iterator[Engine]:
    """Give the engine that answers, or a private one for the length of the block, or raise with the reason."""
    found = find_engine()
    if found:
        yield found
        return
    refusal = why_not_private(dict(os.environ), os.geteuid())
    if refusal:
        raise BrokerUnavailable(f"container: no Docker engine answers, and none is started: {refusal}")
    with private_engine() as started:
        yield started


def find_engine() -> Engine | None:
    """Return the engine that answers at one of the usual places, or None."""
    for host in candidates(dict(os.environ)):
        if _answers(host):
            return Engine(host)
    return None


def candidates(env: dict[str, str]) -> list[str]:
    """List the addresses where an engine may be; a named one is the only one."""
    if env.get("DOCKER_HOST"):
        return [env["DOCKER_HOST"]]
    sockets = [Path("/var/run/docker.sock"), Path("~/.docker/run/docker.sock").expanduser()]
    if env.get("XDG_RUNTIME_DIR"):
        sockets.insert(1, Path(env["XDG_RUNTIME_DIR"]) / "docker.sock")
    return [f"unix://{path}" for path in sockets if path.exists()]


def why_not_private(env: dict[str, str], uid: int) -> str | None:
    """Say why no engine of our own may be started here, or None if it may."""
    if env.get("DOCKER_HOST"):
        return "DOCKER_HOST names one, which does not answer: start it, or unset DOCKER_HOST"
    if not (env.get("CI") or env.get("DELAYCTL_START_DOCKER") == "1"):
        return "set DELAYCTL_START_DOCKER=1 to have a private one started"
    if uid != 0:
        return "that needs root"
    if not (shutil.which("dockerd") or shutil.which("apt-get")):
        return "that needs dockerd, or apt-get to fetch it"
    return None


@contextmanager
def private_engine() -> Iterator[Engine]:
    """Run a Docker engine of our own, beside and unseen by any other, until the block ends."""
    env = _programs()
    # The images go into the cache, as the folder for temporary files may be in memory.
    folder = Path(tempfile.mkdtemp(prefix="delayctl-docker-", dir=socket_parent(tempfile.gettempdir())))
    cache_folder().mkdir(parents=True, exist_ok=True)
    data = Path(tempfile.mkdtemp(prefix="engine-", dir=cache_folder()))
    host = f"unix://{folder}/docker.sock"
    command = Command(_arguments(folder, data, env), env, folder / "dockerd.log")
    say("starting a private Docker engine")
    with kept([command], folder, grace=STOPS_WITHIN, remove=[data, folder]) as process:
        try:
            wait.until(lambda: process.end() or _answers(host), READY_WITHIN, what="the private Docker engine's answer")
        except TimeoutError as error:
            raise BrokerUnavailable(f"container: {error}; its last words: {process.tail()}") from error
        if process.end():
            raise BrokerUnavailable(f"container: {process.end()}; its last words: {process.tail()}")
        yield Engine(host, is_private=True)


def socket_parent(temporary: str) -> str:
    """Return where an engine's sockets can be: below the usual folder, or below /tmp where that has too long a path."""
    return temporary if len(temporary) + len(LONGEST_SOCKET) <= SOCKET_PATH_LIMIT else "/tmp"  # noqa: S108


def _arguments(folder: Path, data: Path, env: dict[str, str]) -> list[str]:
    return [
        shutil.which("dockerd", path=env["PATH"]) or "dockerd",
        f"--host=unix://{folder}/docker.sock",
        f"--data-root={data}",
        f"--exec-root={folder}/exec",
        f"--pidfile={folder}/dockerd.pid",
        f"--userland-proxy-path={shutil.which('docker-proxy', path=env['PATH'])}",
        # Ports are published by a plain proxy process on 127.0.0.1, and each network has a bridge of its own that goes
        # with it: nothing of the machine's firewall or routing is changed, and two such engines do not meet.
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
        "--ip-masq=false",
        "--ip-forward=false",
    ]


def _programs() -> dict[str, str]:
    """Return an environment whose PATH has dockerd and its helpers: the installed ones, else Debian's, unpacked."""
    env = dict(os.environ)
    env["PATH"] = f"{env.get('PATH', '')}:/usr/sbin:/sbin"
    if shutil.which("dockerd", path=env["PATH"]):
        return env
    root = apt.unpacked("docker", ["docker.io", "iptables"])
    _link_iptables(root)
    places = ("usr/bin", "usr/sbin", "usr/libexec/docker", "bin", "sbin")
    env["PATH"] = ":".join([*(f"{root}/{place}" for place in places), env["PATH"]])
    # Some packages still unpack to /lib, which an installed system merges into /usr/lib.
    for folder in (*root.glob("lib/*-linux-gnu*"), *root.glob("usr/lib/*-linux-gnu*")):
        env["LD_LIBRARY_PATH"] = f"{folder}:{env.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    for folder in root.glob("usr/lib/*-linux-gnu*/xtables"):
        env["XTABLES_LIBDIR"] = str(folder)
    return env


def _link_iptables(root: Path) -> None:
    """Give iptables its plain name, which an installation script would do; containers find each other through it."""
    for name in ("iptables", "ip6tables"):
        link = root / "usr/sbin" / name
        with suppress(FileExistsError):
            link.symlink_to(f"{name}-nft")


def _answers(host: str) -> bool:
    scheme, _, path = host.partition("://")
    # Docker's client leaves a socket open for every refused connection to a local engine, so these are asked plainly.
    return _socket_answers(path) if scheme == "unix" else _address_answers(host)


def _socket_answers(path: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(ANSWERS_WITHIN)
            link.connect(path)
            link.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return b" 200 " in link.recv(64)
    except OSError:
        return False


def _address_answers(host: str) -> bool:
    try:
        client = docker.APIClient(base_url=host, timeout=ANSWERS_WITHIN, version=ANY_VERSION)
    except docker.errors.DockerException:
        return False
    try:
        return bool(client.ping())
    except (docker.errors.DockerException, requests.RequestException, OSError):
        return False
    finally:
        client.close()
