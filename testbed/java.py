"""Java for Spark: the one that is installed, else Debian's packages unpacked into the cache."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed import apt
from testbed.broker import BrokerUnavailable

# What Spark 4 runs on. Debian 12 has the first, Debian 13 the second, and Ubuntu both.
RELEASES = (17, 21)
WAYS = (
    "install one: sudo apt-get install openjdk-17-jre-headless",
    "name one: export JAVA_HOME=/path/to/a/Java (17 or newer)",
)
ANSWERS_WITHIN = 60
VERSION = re.compile(r'version "(?:1\.)?(\d+)')


class JavaUnavailable(Exception):
    """No Java could be had; the text says why and how to get one."""

    def __init__(self, *reasons: str) -> None:
        self.reasons = reasons
        lines = ["no Java for Spark to be had", *(f"  tried: {reason}" for reason in reasons)]
        super().__init__("\n".join([*lines, *(f"  fix: {way}" for way in WAYS)]))


@dataclass(frozen=True)
class Java:
    """A Java that runs Spark, and the environment that it needs besides the usual one."""

    home: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return `base` with what makes Spark use this Java."""
        path = os.pathsep.join([str(self.home / "bin"), base.get("PATH", os.defpath)])
        return {**base, **self.env, "JAVA_HOME": str(self.home), "PATH": path}


def find_java() -> Java:
    """Return the Java that JAVA_HOME or PATH name, where it is new enough, else Debian's, fetched once."""
    reasons: list[str] = []
    for home in _installed_homes():
        release = release_of(home / "bin/java")
        if release >= min(RELEASES):
            return Java(home)
        reasons.append(f"{home}: " + (f"Java {release} is too old" if release else "no Java that runs"))
    return fetched_java(reasons)


def fetched_java(reasons: Sequence[str] = ()) -> Java:
    """Return Debian's Java from the cache folder, fetched there if it is not yet; `reasons` are told if it can't be."""
    failed = list(reasons)
    for release in RELEASES:
        package = f"openjdk-{release}-jre-headless"
        try:
            return unpacked_java(apt.unpacked(package, [package], anew=["openjdk-"], finish=settle))
        except BrokerUnavailable as error:
            failed += error.reasons
    raise JavaUnavailable(*dict.fromkeys(failed))


def unpacked_java(root: Path) -> Java:
    """Return the Java of Debian's packages unpacked at `root`."""
    home = next(root.glob("usr/lib/jvm/java-*-openjdk-*"))
    return Java(home, apt.library_path(root))


def settle(root: Path) -> None:
    """Let the links of an unpacked tree lead into the tree: Debian keeps Java's settings in /etc, which is not touched."""
    for path in root.glob("usr/lib/jvm/**/*"):
        target = path.readlink() if path.is_symlink() else Path()
        inside = root / target.relative_to("/") if target.is_absolute() else path
        # Some lead to what only an installation makes, such as the certificates; Spark does without.
        if target.is_absolute() and inside.exists():
            path.unlink()
            path.symlink_to(os.path.relpath(inside, path.parent))


def release_of(java: Path) -> int:
    """Return the release of this Java as it tells it itself, such as 17, or 0 where none runs."""
    try:
        # A Java tells its version on its error output.
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=ANSWERS_WITHIN, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = VERSION.search(done.stderr)
    return int(found[1]) if found and done.returncode == 0 else 0


def _installed_homes() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parents[1]
