"""What publish says of a message by its file: how long it waits, and what its publisher should know."""

from typing import Any

import pytest
from delayctl.cli.forecast import Forecast, Forecaster, Tally
from delayctl.cli.message_lines import Outgoing
from delayctl.publishers.choice import Way, Ways
from delayctl.topology.expand import expand
from delayctl.topology.parse import read_spec

FILE = """\
version: 1
delay: {levels: [3s, 10s, 1m], any: {steps: 4}}
exchanges: {orders.exchange: {type: topic}, all.exchange: {type: fanout}, elsewhere.exchange: {existing: true}}
queues: {orders.timeout.queue: {}, short.queue: {arguments: {x-message-ttl: 5000, x-dead-letter-exchange: all.exchange}}}
routes:
  - {from: orders.exchange, key: order.created, delay: 3s, to: orders.timeout.queue}
  - {from: orders.exchange, key: order.both, delay: 10s, to: orders.timeout.queue}
  - {from: orders.exchange, key: "order.both", to: audit.queue}
  - {from: orders.exchange, key: order.short, to: short.queue}
  - {from: all.exchange, to: audit.queue}
  - {key: reminder, delay: 1m, to: reminders.queue}
  - {key: "any.#", delay: any, to: reminders.queue}
retry:
  orders.timeout.queue: {levels: [3s, 10s], max: 2, park: orders.dlq}
"""
SPEC = read_spec(FILE, {}, file="t.yaml")
UNROUTED = "the file has no way out for this key: unless others bound one to delay.exchange, it is parked in delay.unrouted.queue"


def forecast(way: Way, **fields: Any) -> Forecast:
    """What the file says of a message."""
    return Forecaster(SPEC, expand(SPEC)).of(Outgoing(**fields), way)


def published_to(exchange: str, key: str) -> Forecast:
    """What the file says of a message that a service publishes."""
    return forecast(Way(exchange), key=key, exchange=exchange)


@pytest.mark.parametrize(
    ("exchange", "key", "waits", "wait_ms"),
    [
        ("orders.exchange", "order.created", "waits 3s by orders.exchange → delay.3s.exchange", 3_000),
        ("delay.1m.exchange", "reminder", "waits 1m", 60_000),
        (
            "orders.exchange",
            "order.both",
            "has copies that wait 0s and 10s by orders.exchange → delay.10s.exchange",
            10_000,
        ),
        ("all.exchange", "x", "does not wait", 0),
        ("elsewhere.exchange", "x", "does not wait", 0),
        (
            "orders.exchange",
            "order.short",
            "does not wait; in short.queue it waits 5s unless it is consumed before",
            0,
        ),
        ("nobody.exchange", "x", "goes to nobody.exchange, of which the file knows nothing", None),
    ],
)
def test_the_way_from_an_exchange(exchange: str, key: str, waits: str, wait_ms: int | None) -> None:
    """A message that services publish waits as the routes say, not by what its publisher chose."""
    found = published_to(exchange, key)

    assert (found.waits, found.wait_ms, found.notes) == (waits, wait_ms, ())


@pytest.mark.parametrize(
    ("key", "note"),
    [
        ("reminder", "it does not wait, but the file's route for this key waits 1m: --delay 1m"),
        (
            "order.created",
            "it does not wait, but the file's route for this key waits 3s: --delay 3s or --exchange orders.exchange",
        ),
        (
            "any.thing",
            "it does not wait, but the file's route for this key waits as long as its publisher says: --delay DURATION",
        ),
        ("nobody.knows", UNROUTED),
    ],
)
def test_what_comes_out_at_once(key: str, note: str) -> None:
    """Without a way of its own it does not wait, which the routes of the file may not mean."""
    found = forecast(Ways.of(expand(SPEC)).for_wait(0, "refuse"), key=key)

    assert (found.waits, [str(each) for each in found.notes]) == ("does not wait", [note])


@pytest.mark.parametrize(
    ("wait_ms", "key", "notes"),
    [(3_000, "reminder", []), (3_000, "nobody.knows", [UNROUTED]), (5_000, "any.1", []), (5_000, "no", [UNROUTED])],
)
def test_no_way_out(wait_ms: int, key: str, notes: list[str]) -> None:
    """What nothing takes when its wait is over is parked, be it at a level or at the ladder."""
    found = forecast(Ways.of(expand(SPEC)).for_wait(wait_ms, "refuse"), key=key, delay=f"{wait_ms}ms")

    assert [str(note) for note in found.notes] == notes
    assert {end.after.ms for end in found.ends} == {wait_ms}


def test_many_messages_are_told_of_once() -> None:
    """Notes of lines are counted by what they say; each key is looked up once."""
    tally = Tally(Forecaster(SPEC, expand(SPEC)))

    for key in ("nobody.knows", "nobody.else", "nobody.knows"):
        tally.count(Outgoing(key, level="3s"))
    tally.count(Outgoing("reminder"))
    tally.count(Outgoing("reminder", delay="1m"))
    tally.count(Outgoing("nobody.knows", headers={"CC": ["reminder"]}))

    assert tally.told() == (
        "3 messages went where the file has no way out, such as for nobody.knows: unless others bound one to "
        "delay.exchange, they are parked in delay.unrouted.queue",
        "1 message came out at once where the file's routes wait, such as for reminder (1m)",
    )


def test_so_many_keys_are_not_kept() -> None:
    """Memory stays flat and publishing fast; then the count is the least that there are."""
    tally = Tally(Forecaster(SPEC, expand(SPEC)))

    for number in range(5_000):
        tally.count(Outgoing(f"key.{number}", level="3s"))

    assert tally.told()[0].startswith("at least 4,096 messages went where the file has no way out")
