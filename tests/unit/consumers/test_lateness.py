"""How late messages come to a consumer: counted by queue, told as text and to a registry."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from delayctl.consumers import Lateness
from delayctl.consumers.message import Message
from delayctl.publishers.frames import CONTENT_HEAD, Properties, encode_properties
from delayctl.topology.errors import BadOption
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.support.exposed import Exposed

DUE = 1_700_000_000_000
COUNT, SUM = "delayctl_consumer_lateness_seconds_count", "delayctl_consumer_lateness_seconds_sum"
EARLY, UNDATED = "delayctl_consumer_early_messages_total", "delayctl_consumer_undated_messages_total"


def message(queue: str = "work.queue", *, redelivered: bool = False, **headers: Any) -> Message:
    """A message with these headers, underscores as hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    header = CONTENT_HEAD.pack(60, 0, 0, 0)[:12] + encode_properties(Properties(headers=named))
    return Message(b"", queue, redelivered, "", "", header)


def measured(*late_ms: int) -> Lateness:
    """After messages that came so late."""
    lateness = Lateness()
    for late in late_ms:
        lateness.note(message(delay_due=DUE), DUE + late)
    return lateness


def test_nothing_came() -> None:
    """Nothing is told of queues that nothing came to."""
    assert Lateness().exposition() == ""


def test_arrival_minus_due() -> None:
    """By the header of the message and the moment it came."""
    found = Exposed(measured(3, 40, 2_000).exposition())

    assert (found.one(COUNT, queue="work.queue"), found.one(SUM)) == (3, 2.043)
    assert found.one("delayctl_consumer_lateness_seconds_bucket", le="0.005") == 1
    assert found.one("delayctl_consumer_lateness_seconds_bucket", le="0.05") == 2
    assert found.one("delayctl_consumer_lateness_seconds_bucket", le="+Inf") == 3
    assert found.one(EARLY) == 0


def test_early_is_counted_apart() -> None:
    """It is late by nothing; a few milliseconds are the clocks of two machines."""
    found = Exposed(measured(-30_000, -101, -100, -1).exposition())

    assert (found.one(COUNT), found.one(SUM), found.one(EARLY)) == (4, 0, 2)


def test_what_was_expedited_is_left_out() -> None:
    """It is early because somebody wanted it so, and its lateness says nothing."""
    lateness = measured(3)
    lateness.note(message(delay_due=DUE, delay_expedited=DUE - 600_000), DUE - 600_000)

    found = Exposed(lateness.exposition())

    assert (found.one(COUNT), found.one(EARLY)) == (1, 0)


def test_queues_are_told_apart() -> None:
    """Whatever they are called."""
    lateness = Lateness()
    for queue in ("b", 'a"\n\\', "b"):
        lateness.note(message(queue, delay_due=DUE), DUE)

    assert Exposed(lateness.exposition()).by("queue", COUNT) == {'a"\n\\': 1, "b": 2}


@pytest.mark.parametrize("headers", [{}, {"delay_due": "soon"}, {"delay_due": 1.5}, {"delay_due": True}])
def test_no_due_time(headers: dict[str, Any]) -> None:
    """Headers are written by anybody: such a message is counted, and has no lateness."""
    lateness = Lateness()
    lateness.note(message(**headers), DUE)

    found = Exposed(lateness.exposition())

    assert (found.all(COUNT), found.one(UNDATED, queue="work.queue")) == ([], 1)


def test_headers_that_can_not_be_read() -> None:
    """They end no worker."""
    lateness, sound = Lateness(), message(delay_due=DUE)
    lateness.note(Message(b"", "work.queue", False, "", "", sound._header.replace(b"l", b"?")), DUE)

    assert Exposed(lateness.exposition()).one(UNDATED) == 1


def test_what_comes_again_is_left_out() -> None:
    """When it first came is not known any more."""
    lateness = Lateness()
    lateness.note(message(delay_due=DUE, redelivered=True), DUE)

    assert lateness.exposition() == ""


def test_many_threads() -> None:
    """Workers count side by side, and nothing is forgotten."""
    lateness = Lateness()
    with ThreadPoolExecutor(8) as pool:
        for number in range(2_000):
            pool.submit(lateness.note, message(f"q{number % 3}", delay_due=DUE), DUE + 7)

    found = Exposed(lateness.exposition())

    assert sum(found.all(COUNT)) == 2_000
    assert sum(found.all(SUM)) == pytest.approx(14)


def test_own_bounds() -> None:
    """Where others matter."""
    lateness = Lateness((1, 60))
    lateness.note(message(delay_due=DUE), DUE + 1_500)

    found = Exposed(lateness.exposition()).by("le", "delayctl_consumer_lateness_seconds_bucket")

    assert found == {"1": 0, "60": 1, "+Inf": 1}


@pytest.mark.parametrize("bounds", [(), (0, 1), (-1,), (1, 1), (2, 1)])
def test_bounds_that_are_none(bounds: tuple[float, ...]) -> None:
    """Said at once."""
    with pytest.raises(BadOption, match="rise from above 0"):
        Lateness(bounds)


def test_in_a_registry() -> None:
    """A service that has prometheus_client registers it beside its own, and its text is the same."""
    lateness, registry = measured(3, -500), CollectorRegistry()
    registry.register(lateness)

    text = generate_latest(registry).decode()

    def samples(exposed: str) -> set[tuple[str, str, float]]:
        return {(s.name, str(sorted(s.labels.items())), s.value) for f in Exposed(exposed).families for s in f.samples}

    assert samples(text) == samples(lateness.exposition()) != set()


def test_in_the_strict_format() -> None:
    """OpenMetrics insists on order, names and a histogram that adds up."""
    registry = CollectorRegistry()
    registry.register(measured(3, -500))

    text = generate_openmetrics(registry).decode()  # type: ignore[no-untyped-call]
    found = list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]

    assert {family.name: family.type for family in found} == {
        "delayctl_consumer_lateness_seconds": "histogram",
        "delayctl_consumer_early_messages": "counter",
        "delayctl_consumer_undated_messages": "counter",
    }
