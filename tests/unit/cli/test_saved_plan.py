"""A saved plan is for one virtual host, whatever says which one is meant."""

from pathlib import Path

import pytest
from delayctl.topology.diff import diff
from delayctl.topology.live import Live
from delayctl.topology.plan_file import dump_plan

from tests.support.commands import delayctl
from tests.support.examples import shop

BY_URL = "the plan was made for virtual host 'shop', and the URL names 'other': plan again with this URL, or name the other with --vhost"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--url", "amqp://127.0.0.1:1/other"), BY_URL),
        (
            ("--url", "amqp://127.0.0.1:1/shop", "--vhost", "other"),
            "the plan was made for virtual host 'shop', not 'other'",
        ),
    ],
    ids=["URL", "option"],
)
def test_another_virtual_host_is_refused(options: tuple[str, ...], what: str, tmp_path: Path) -> None:
    """Nobody is asked, and nothing is looked at."""
    ran = delayctl("apply", "--plan", saved_plan(tmp_path), *options)

    assert (ran.code, ran.out) == (64, "")
    assert what in ran.err


@pytest.mark.parametrize(
    "options",
    [
        ("--url", "amqp://127.0.0.1:1/"),
        ("--url", "amqp://127.0.0.1:1/shop"),
        ("--url", "amqp://127.0.0.1:1/other", "--vhost", "shop"),
    ],
    ids=["none", "URL", "option"],
)
def test_the_same_virtual_host_is_fine(options: tuple[str, ...], tmp_path: Path) -> None:
    """The option overrides the URL, and neither has to name one; the broker is asked then."""
    ran = delayctl("apply", "--plan", saved_plan(tmp_path), "--yes", *options)

    assert (ran.code, ran.out.count("Error")) == (1, 0)
    assert "listens" in ran.err


def saved_plan(folder: Path) -> str:
    """A plan for the virtual host shop."""
    file = folder / "today.plan"
    file.write_text(dump_plan(diff(shop(), Live("4.0.5"), vhost="shop")), encoding="utf-8")
    return str(file)
