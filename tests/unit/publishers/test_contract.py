"""What every message carries, however it was described."""

from collections.abc import Mapping
from typing import Any

import pytest
from delayctl.publishers.contract import ContentMaker, without_deaths, without_steps
from delayctl.publishers.frames import FrameReader, Properties, decode_properties


def stamped(
    headers: Mapping[str, Any] | None = None,
    properties: Properties | None = None,
    *,
    due_ms: int = 5000,
    level: str | None = "1m",
    units: int = 0,
) -> Properties:
    """The properties as they are sent."""
    maker = ContentMaker(4096)
    content = maker.make(
        b"body", "id-1", due_ms=due_ms, level=level, headers=headers, properties=properties, units=units
    )
    (_, _, header), (_, _, body) = FrameReader().feed(content)
    assert body == b"body"
    return decode_properties(header)


@pytest.mark.parametrize(
    "properties", [None, Properties(), Properties(delivery_mode=1), Properties(delivery_mode=None)]
)
def test_every_message_is_persistent_and_stamped(properties: Properties | None) -> None:
    """Even where its author asks for less."""
    assert stamped({"shop": "eu", "delay-due": 1}, properties) == Properties(
        headers={"delay-due": 5000, "delay-level": "1m", "shop": "eu"}, message_id="id-1", delivery_mode=2
    )


def test_a_message_that_does_not_wait_has_no_stamps() -> None:
    """What is published to an exchange of one's own carries one's own headers."""
    assert stamped({"shop": "eu"}, due_ms=0, level=None).headers == {"shop": "eu"}


def test_other_properties_are_kept() -> None:
    """Content type, correlation and the like are the author's."""
    given = Properties(content_type="text/plain", correlation_id="c", priority=3, headers={"a": 1, "b": 1})

    found = stamped({"b": 2}, given)

    assert (found.content_type, found.correlation_id, found.priority) == ("text/plain", "c", 3)
    assert found.headers == {"a": 1, "b": 2, "delay-due": 5000, "delay-level": "1m"}


def test_traces_of_dead_lettering_are_stripped() -> None:
    """Older brokers take a copied x-death for a cycle."""
    headers = {"x-death": [], "x-first-death-queue": "q", "x-last-death-reason": "expired", "x-delivery-count": 2}

    assert without_deaths({**headers, "x-mine": 1, "shop": "eu"}) == {"x-mine": 1, "shop": "eu"}


@pytest.mark.parametrize("properties", [None, Properties(), Properties(headers={"delay-1": True, "a": 1})])
def test_a_message_for_the_ladder_names_its_steps_alone(properties: Properties | None) -> None:
    """Those that an earlier wait left behind would add to it."""
    found = stamped({"delay-top": "7", "delay-7": True, "shop": "eu"}, properties, level="any", units=37)

    steps = {"delay-top": "5", "delay-5": True, "delay-2": True, "delay-0": True}
    more = {"a": 1} if properties and properties.headers else {}
    assert found.headers == {"delay-due": 5000, "delay-level": "any", "shop": "eu", **steps, **more}


def test_the_steps_of_a_wait_are_stripped() -> None:
    """From what is sent on after it."""
    assert without_steps({"delay-top": "1", "delay-1": True, "delay-due": 5, "shop": "eu"}) == {
        "delay-due": 5,
        "shop": "eu",
    }
