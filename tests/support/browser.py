"""A real browser without a screen, and what it says of a page."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from testbed.chromium import ARGUMENTS, ChromiumUnavailable, driver_environment, find_chromium
from testbed.needs import give_up

SOON_MS = 45_000  # Machines may be slow; nothing is judged by how long it took.
expect.set_options(timeout=SOON_MS)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a file. While it is there, no other event loop can run in this thread."""
    try:
        found, needed = find_chromium(), driver_environment()
    except ChromiumUnavailable as error:
        give_up(str(error))
    folder: Path = tmp_path_factory.mktemp("chromium")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in needed.items():
            patch.setenv(name, value)
        playwright = sync_playwright().start()
    try:
        program = playwright.chromium.launch(
            executable_path=found.program, args=list(ARGUMENTS), env=dict(found.environment(os.environ, folder))
        )
        yield program
        program.close()
    finally:
        playwright.stop()


@contextmanager
def opened(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """A page that is looked at; whatever it complains of on the console fails the test."""
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        # A question that is refused on purpose is told of, too.
        if message.type == "error" and "responded with a status of 422" not in message.text:
            complaints.append(message.text)

    context = browser.new_context(**options)
    context.set_default_timeout(SOON_MS)
    page = context.new_page()
    page.on("console", listen)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        page.goto(address)
        yield page
    finally:
        context.close()
    assert complaints == []


def grave_faults(page: Page) -> list[str]:
    """What axe finds serious or worse."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
