"""Debian packages without root and without touching the system: a private apt that downloads and unpacks."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.broker import BrokerUnavailable
from testbed.cache import cache_folder, cached, say, scratch_folder
from testbed.sources import Source

STATUS = Path("/var/lib/dpkg/status")
STALL = 60
# A field and the lines that continue it.
DEMANDS = re.compile(r"^(?:Pre-Depends|Depends|Conflicts|Breaks):.*\n(?:[ \t].*\n)*", re.MULTILINE)
HOOKS = ("Pre-Invoke", "Post-Invoke", "Post-Invoke-Success")


def unpacked(
    name: str,
    packages: Sequence[str],
    *,
    anew: Sequence[str] = (),
    finish: Callable[[Path], None] | None = None,
) -> Path:
    """Return a folder with these packages and what they need beyond the installed ones, fetched once.

    Packages whose names start with one of `anew` are fetched even where they are installed; `finish` does what their
    own scripts would have done.
    """

    def fetch(folder: Path) -> None:
        installed = STATUS.read_text() if STATUS.exists() else ""
        others = without(installed, tuple(anew) or tuple(packages))
        fetch_into(folder, packages, installed=undemanding(others))
        if finish:
            finish(folder)

    return cached(cache_folder() / "packages" / release() / name, fetch)


def fetch_into(folder: Path, packages: Sequence[str], *, installed: str, source: Source | None = None) -> None:
    """Download the packages and what they need beyond `installed`, and unpack all of it into `folder`.

    They come from `source`, or else from the system's own sources.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise BrokerUnavailable(f"Debian's packages ({' '.join(packages)}): this system has no apt-get and dpkg")
    folder.mkdir(parents=True, exist_ok=True)
    with scratch_folder(folder.parent) as scratch:
        options = _private_apt(scratch, installed, source)
        say(f"reading Debian's package lists into {cache_folder()}")
        _run(["apt-get", *options, "-q", "update"], "apt-get update")
        say(f"downloading {' '.join(packages)} and what they need")
        install = ["-q", "-y", "--no-install-recommends", "--download-only", "install", *packages]
        _run(["apt-get", *options, *install], f"apt-get download of {' '.join(packages)}")
        for archive in sorted((scratch / "cache" / "archives").glob("*.deb")):
            _run(["dpkg", "-x", str(archive), str(folder)], f"dpkg -x {archive.name}")


def library_path(root: Path) -> dict[str, str]:
    """Return the variable by which programs unpacked at `root` find the libraries that were unpacked with them."""
    folders = [str(folder) for folder in (*root.glob("usr/lib/*-linux-gnu*"), *root.glob("lib/*-linux-gnu*"))]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


def release() -> str:
    """Name the system that packages are fetched for: those of another release would not run."""
    system = os_release()
    return f"{system.get('ID', 'unknown')}-{system.get('VERSION_CODENAME', 'unknown')}-{platform.machine()}"


def os_release() -> dict[str, str]:
    """Return what the system says about itself, or nothing."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def without(status: str, prefixes: tuple[str, ...]) -> str:
    """Drop from dpkg's list of installed packages those whose names start with one of the prefixes."""
    stanzas = [stanza for stanza in status.split("\n\n") if stanza.strip()]
    kept = [stanza for stanza in stanzas if not _package(stanza).startswith(prefixes)]
    return "".join(stanza.strip("\n") + "\n\n" for stanza in kept)


def undemanding(status: str) -> str:
    """Drop from dpkg's list what installed packages ask of others: nothing is installed, so nobody's demands are hurt."""
    return DEMANDS.sub("", status)


def _package(stanza: str) -> str:
    found = re.search(r"^Package: *(\S+)", stanza, re.MULTILINE)
    return found.group(1) if found else ""


def _private_apt(scratch: Path, installed: str, source: Source | None) -> list[str]:
    """Options that leave the system's keys and proxies in force and move every written file away."""
    for part in ("state/lists/partial", "cache/archives/partial", "empty"):
        (scratch / part).mkdir(parents=True)
    (scratch / "status").write_text(installed)
    settings = {
        "Dir::State": scratch / "state",
        "Dir::State::lists": scratch / "state" / "lists",
        "Dir::State::status": scratch / "status",
        "Dir::Cache": scratch / "cache",
        "Acquire::http::Timeout": STALL,
        "Acquire::https::Timeout": STALL,
        "Acquire::Retries": 2,
        "Acquire::Languages": "none",
        # Root would drop to the user _apt, who may not enter a folder below root's home.
        "APT::Sandbox::User": "",
        "Debug::NoLocking": 1,
    }
    if source:
        (scratch / "debian.sources").write_text(source.text())
        settings["Dir::Etc::sourcelist"] = scratch / "debian.sources"
        settings["Dir::Etc::sourceparts"] = settings["Dir::Etc::preferencesparts"] = scratch / "empty"
    # A file named with -c is read last, so it can also clear the system's hooks, which clean the system's own cache.
    hooks = [f"#clear APT::Update::{hook};\n" for hook in HOOKS]
    lines = [f'{key} "{value}";\n' for key, value in settings.items()]
    (scratch / "apt.conf").write_text("".join(hooks + lines))
    return ["-c", str(scratch / "apt.conf")]


def _run(argv: Sequence[str], what: str) -> None:
    env = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise BrokerUnavailable(f"{what} failed with exit code {done.returncode}: {' | '.join(lines)}")
