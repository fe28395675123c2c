"""A minimal Debian tree with RabbitMQ 4.3, made from packages without root, for machines with no image registry.

It behaves like the official image where it matters: the same configuration paths, variables and entrypoint rules.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

from testbed import apt
from testbed.broker import BrokerUnavailable
from testbed.cache import cache_folder, cached, say, scratch_folder
from testbed.sources import PUBLIC_MIRROR, Source, debian_mirror, system_sources

SERIES = "4.3"
# The release that has this series; when it has moved on, the next in line is asked.
SUITES = ("forky", "sid")
PACKAGES = ("base-files", "base-passwd", "bash", "coreutils", "dash", "grep", "sed", "util-linux")
NOT_NEEDED = ("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale")
KEYRING = "usr/share/keyrings/debian-archive-keyring.gpg"
USER = 999
ENTRYPOINT = """#!/bin/sh
set -e
if [ "$(id -u)" = 0 ] && [ "$1" = rabbitmq-server ]; then
    chown -R rabbitmq:rabbitmq /var/lib/rabbitmq /var/log/rabbitmq
    exec setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups "$0" "$@"
fi
exec "$@"
"""
FILES = {
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "etc/rabbitmq/conf.d/10-defaults.conf": "loopback_users.guest = false\nlog.console = true\nlog.file = false\n",
    "etc/rabbitmq/enabled_plugins": "[rabbitmq_management].\n",
    "usr/local/bin/docker-entrypoint.sh": ENTRYPOINT,
}
CHANGES = (
    "ENV PATH=/usr/lib/rabbitmq/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV HOME=/var/lib/rabbitmq LANG=C.UTF-8",
    "EXPOSE 4369 5672 15672 25672",
    "VOLUME /var/lib/rabbitmq",
    'ENTRYPOINT ["/usr/local/bin/docker-entrypoint.sh"]',
    'CMD ["rabbitmq-server"]',
)


def recipe() -> str:
    """Return a short mark of everything that goes into the tree: a change of it makes a new one."""
    parts = (SERIES, *PACKAGES, *NOT_NEEDED, *FILES, *FILES.values(), *CHANGES)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:10]


def rootfs_path() -> Path:
    """Return where the tree is kept as one archive; it may not be there yet."""
    return cache_folder() / "images" / f"rabbitmq-{SERIES}-debian-{recipe()}.tar"


def rootfs() -> Path:
    """Return the archive of the tree, made if it is not there."""
    return cached(rootfs_path(), _make)


def _make(archive: Path) -> None:
    with scratch_folder(archive.parent) as scratch:
        tree = scratch / "tree"
        _fetch(tree)
        _finish(tree)
        say("packing the image")
        # Unpacked by an ordinary user the files are his: in the image they are root's, whoever made it.
        ours = ["--owner=0", "--group=0", "--numeric-owner", "--mode=a+rX"]
        subprocess.run(["tar", *ours, "-C", str(tree), "-cf", str(archive), "."], check=True)


def _fetch(tree: Path) -> None:
    reasons: list[str] = []
    for suite in SUITES:
        try:
            apt.fetch_into(tree, [f"rabbitmq-server={SERIES}.*", *PACKAGES], installed="", source=_source(suite))
            return
        except BrokerUnavailable as error:
            reasons += [f"Debian {suite}: {reason}" for reason in error.reasons]
            shutil.rmtree(tree, ignore_errors=True)
    raise BrokerUnavailable(*reasons)


def _source(suite: str) -> Source:
    mirror = debian_mirror(system_sources(), apt.os_release().get("VERSION_CODENAME", ""))
    if mirror and apt.os_release().get("ID") == "debian":
        return Source(mirror.uri, (suite,), ("main",), mirror.options)
    # Ubuntu and others trust their own keys only, but have Debian's as a package.
    keyring = apt.unpacked("debian-archive-keyring", ["debian-archive-keyring"]) / KEYRING
    return Source(PUBLIC_MIRROR, (suite,), ("main",), {"Signed-By": str(keyring)})


def _finish(tree: Path) -> None:
    """Do what the packages' own scripts would have done, as far as RabbitMQ needs it."""
    for folder in NOT_NEEDED:
        shutil.rmtree(tree / folder, ignore_errors=True)
    masters = tree / "usr/share/base-passwd"
    users = (masters / "passwd.master").read_text().replace(":*:", ":x:")
    _write(tree / "etc/passwd", f"{users}rabbitmq:x:{USER}:{USER}::/var/lib/rabbitmq:/bin/sh\n")
    _write(tree / "etc/group", f"{(masters / 'group.master').read_text()}rabbitmq:x:{USER}:\n")
    for name, text in FILES.items():
        _write(tree / name, text)
    (tree / "usr/local/bin/docker-entrypoint.sh").chmod(0o755)
    for folder in ("var/lib/rabbitmq", "var/log/rabbitmq"):
        (tree / folder).mkdir(parents=True, exist_ok=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
