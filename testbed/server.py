"""Where RabbitMQ's programs are: the installed ones, else Debian's packages unpacked into the cache."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from testbed import apt

# Debian's and RabbitMQ's own packages put the real script here; the one on the PATH switches to the user `rabbitmq`.
PACKAGED_SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
WRAPPER = "rabbitmq-script-wrapper"
HARD_CODED_ROOT = "ROOTDIR=/usr/lib/erlang"
MOVABLE_ROOT = 'ROOTDIR="${ERL_ROOTDIR:-/usr/lib/erlang}"'


@dataclass(frozen=True)
class Server:
    """The programs of one RabbitMQ, and the environment that they need besides the usual one."""

    script: Path
    epmd: Path
    env: dict[str, str] = field(default_factory=dict)


def installed_server() -> Server | None:
    """Return the RabbitMQ that is installed on this system, or None."""
    script = _installed_script()
    epmd = _installed_epmd()
    return Server(script, epmd) if script and epmd else None


def fetched_server() -> Server:
    """Return Debian's RabbitMQ from the cache folder, fetched there if it is not yet."""
    # Erlang is fetched even where a part of it is installed: its libraries are found under one root only.
    root = apt.unpacked("rabbitmq-server", ["rabbitmq-server"], anew=["rabbitmq-server", "erlang-"])
    return unpacked_server(root)


def unpacked_server(root: Path) -> Server:
    """Return the RabbitMQ of Debian's packages unpacked at `root`."""
    erlang = root / "usr/lib/erlang"
    for script in (erlang / "bin/erl", *erlang.glob("erts-*/bin/erl")):
        _make_movable(script)
    env = {"ERL_ROOTDIR": str(erlang), "PATH": f"{root}/usr/bin:{root}/usr/sbin", **apt.library_path(root)}
    return Server(root / "usr/lib/rabbitmq/bin/rabbitmq-server", erlang / "bin/epmd", env)


def _make_movable(script: Path) -> None:
    text = script.read_text()
    if HARD_CODED_ROOT in text:
        script.write_text(text.replace(HARD_CODED_ROOT, MOVABLE_ROOT))


def _installed_script() -> Path | None:
    if PACKAGED_SCRIPT.exists():
        return PACKAGED_SCRIPT
    found = shutil.which("rabbitmq-server")
    return Path(found) if found and Path(found).resolve().name != WRAPPER else None


def _installed_epmd() -> Path | None:
    found = shutil.which("epmd")
    others = Path("/usr/lib/erlang").glob("erts-*/bin/epmd")
    return Path(found) if found else next(others, None)
