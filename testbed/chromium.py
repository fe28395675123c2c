"""A browser for tests of the web page: the Chromium that is installed, else Debian's, unpacked into the cache."""

import os
import shutil
from collections.abc import Mapping
from ctypes.util import find_library
from dataclasses import dataclass, field
from pathlib import Path

from testbed import apt
from testbed.broker import BrokerUnavailable

WAY = "install one: sudo apt-get install chromium"
NAMES = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium", "fonts-dejavu-core", "fonts-liberation")
# It talks to nobody but the page, keeps nothing, and needs neither a screen nor a sandbox of the kernel.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{root}/usr/share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>{folder}/fonts</cachedir>
  <alias><family>system-ui</family><prefer><family>Liberation Sans</family></prefer></alias>
  <alias><family>sans-serif</family><prefer><family>Liberation Sans</family></prefer></alias>
  <alias><family>ui-monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <match target="pattern">
    <test qual="all" name="family" compare="not_eq"><string>monospace</string></test>
    <edit name="family" mode="append_last"><string>Liberation Sans</string></edit>
  </match>
</fontconfig>
"""


class ChromiumUnavailable(Exception):
    """No browser could be had; the text says why and how to get one."""

    def __init__(self, *reasons: str) -> None:
        self.reasons = reasons
        tried = (f"  tried: {reason}" for reason in reasons)
        super().__init__("\n".join(["no browser to be had", *tried, f"  fix: {WAY}"]))


@dataclass(frozen=True)
class Chromium:
    """A browser that runs without a screen, and where its packages were unpacked, if they were."""

    program: Path
    root: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def environment(self, base: Mapping[str, str], folder: Path) -> dict[str, str]:
        """Return `base` with what makes it find its libraries and fonts; `folder` takes what it writes down."""
        if self.root is None:
            return dict(base)
        fonts = folder / "fonts.conf"
        fonts.write_text(FONTS.format(root=self.root, folder=folder))
        return {**base, **self.env, "FONTCONFIG_FILE": str(fonts)}


def find_chromium() -> Chromium:
    """Return the browser that CHROMIUM or PATH name, else Debian's, fetched once."""
    named = os.environ.get("CHROMIUM")
    installed = named or next(filter(None, map(shutil.which, NAMES)), None)
    if installed:
        return Chromium(Path(installed))
    try:
        found = unpacked_chromium(apt.unpacked("chromium", PACKAGES))
    except BrokerUnavailable as error:
        raise ChromiumUnavailable(*error.reasons) from error
    if not found.program.exists():
        raise ChromiumUnavailable("the package chromium has no browser in it (Ubuntu's installs a snap)")
    return found


def driver_environment() -> dict[str, str]:
    """Return what the program that drives the browser needs besides: a library that a small system may lack."""
    if find_library("atomic"):
        return {}
    try:
        return apt.library_path(apt.unpacked("libatomic", ("libatomic1",)))
    except BrokerUnavailable as error:
        raise ChromiumUnavailable(*error.reasons) from error


def unpacked_chromium(root: Path) -> Chromium:
    """Return the browser of Debian's packages unpacked at `root`; some of its libraries are in folders of their own."""
    path = apt.library_path(root).get("LD_LIBRARY_PATH", "")
    folders = [folder for place in path.split(":") if place for folder in (Path(place), *_with_libraries(Path(place)))]
    return Chromium(
        root / "usr/lib/chromium/chromium", root, {"LD_LIBRARY_PATH": ":".join(map(str, dict.fromkeys(folders)))}
    )


def _with_libraries(place: Path) -> list[Path]:
    return sorted({library.parent for library in place.glob("*/lib*.so*")})
