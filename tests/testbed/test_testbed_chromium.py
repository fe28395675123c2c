"""Where a browser comes from; whether it runs is seen in tests/browser."""

import os
from pathlib import Path

import pytest

from testbed import apt, chromium
from testbed.chromium import Chromium, ChromiumUnavailable, find_chromium, unpacked_chromium


def test_the_one_that_is_named_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is used as it is."""
    monkeypatch.setenv("CHROMIUM", "/opt/browser")

    found = find_chromium()

    assert found == Chromium(Path("/opt/browser"))
    assert found.environment({"A": "b"}, Path("/nowhere")) == {"A": "b"}


def test_unpacked_packages_find_their_libraries_and_fonts(tmp_path: Path) -> None:
    """Also those libraries that have a folder of their own."""
    root = tmp_path / "packages"
    (root / "usr/lib/x86_64-linux-gnu/pulseaudio").mkdir(parents=True)
    (root / "usr/lib/x86_64-linux-gnu/pulseaudio/libpulse.so.1").touch()
    (root / "usr/lib/x86_64-linux-gnu/gconv").mkdir()

    found = unpacked_chromium(root)
    environment = found.environment({}, tmp_path)

    libraries = root / "usr/lib/x86_64-linux-gnu"
    assert environment["LD_LIBRARY_PATH"] == f"{libraries}{os.pathsep}{libraries}/pulseaudio"
    assert f"<dir>{root}/usr/share/fonts</dir>" in Path(environment["FONTCONFIG_FILE"]).read_text()


def test_a_package_without_a_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is said what to do."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "NAMES", ())
    monkeypatch.setattr(apt, "unpacked", lambda *_: tmp_path)

    with pytest.raises(ChromiumUnavailable, match="fix: install one: sudo apt-get install chromium"):
        find_chromium()
