"""The names that delayctl keeps for itself: every one of them, whatever a file has."""

import inspect

import pytest
from delayctl.topology.duration import Duration
from delayctl.topology.errors import InvalidTopology
from delayctl.topology.expand import expand
from delayctl.topology.model import Kind
from delayctl.topology.names import ANY, Names
from delayctl.topology.own_names import own_names_of
from delayctl.topology.parse import read_spec
from delayctl.topology.spec import LadderSpec, LevelSpec, Spec, WaitSpec

N = Names("shop.")
WHOLE = Spec(
    (LevelSpec("5m", Duration.parse("5m"), WaitSpec(shards=2)), LevelSpec("1h", Duration.parse("1h"), WaitSpec())),
    prefix="shop.",
    ladder=LadderSpec(steps=2),
    cancel=True,
)
# What each function of Names gives its name to, for that file.
OBJECTS: dict[str, dict[Kind, set[str]]] = {
    "exit": {"exchange": {N.exit()}},
    "entrance": {"exchange": set(map(N.entrance, ("5m", "5m.1", "5m.2", "1h", ANY, "any.00", "any.01")))},
    "delay_queue": {"queue": set(map(N.delay_queue, ("5m", "5m.1", "5m.2", "1h", "any.00", "any.01")))},
    "spread": {"exchange": {N.spread("5m")}},
    "gate": {"exchange": {N.gate(0), N.gate(1)}},
    "next": {"queue": {N.next(wait).queue for wait in ("5m", "5m.1", "5m.2", "1h", "any.00", "any.01")}},
    "next_entrance": {"exchange": {N.next(wait).entrance for wait in ("5m", "5m.1", "5m.2", "1h", "any.00", "any.01")}},
    "unrouted_exchange": {"exchange": {N.unrouted_exchange()}},
    "unrouted_queue": {"queue": {N.unrouted_queue()}},
    "cancellations": {"queue": {N.cancellations()}},
    "toggle": {"exchange": set(N.toggle())},
    "lock": {"queue": {N.lock()}},
    "verify_queue": {"queue": {N.verify_queue()}},
}
# Those that name no queue and no exchange, say of a name what it is, or draw one that nobody else hits upon.
OF_OTHER_THINGS = {
    "level_of", "policy", "spread_level", "shard_level", "shard_queues", "wait", "is_entrance", "is_gate", "is_given", "step_of", "retry_key", "park_key",
    "cancel_key", "verify_key", "verify_pattern", "record", "reserved",
    "calibration",
}  # fmt: skip


def test_every_name_is_kept() -> None:
    """Those of what stands on the broker for a moment, too."""
    kept: dict[Kind, set[str]] = {"exchange": set(), "queue": set()}
    for given in OBJECTS.values():
        for kind, names in given.items():
            kept[kind] |= names

    assert own_names_of(WHOLE) == kept


def test_no_name_is_forgotten() -> None:
    """A new function of Names has to be listed above, and with it what it names is kept or known to be no object."""
    functions = {name for name, _ in inspect.getmembers(Names, inspect.isroutine) if not name.startswith("_")}

    assert functions == OBJECTS.keys() | OF_OTHER_THINGS


def test_all_that_a_file_makes_by_itself_is_kept() -> None:
    """Nothing is declared that a file could declare, too."""
    own, made = own_names_of(WHOLE), expand(WHOLE)

    assert {exchange.name for exchange in made.exchanges} <= own["exchange"]
    assert {queue.name for queue in made.queues} <= own["queue"]


@pytest.mark.parametrize(
    "used",
    [
        "queues: {delay.1m.next.queue: {}}",
        "exchanges: {delay.move.exchange: {}}",
        "exchanges: {delay.move.after.exchange: {existing: true}}",
        "exchanges: {delay.1m.next.exchange: {}}",
        "routes: [{key: a, delay: 1m, to: delay.1m.next.queue}]",
        "routes: [{key: a, delay: 1m, to: {exchange: delay.move.exchange}}]",
        "retry: {orders.queue: {levels: [1m], park: delay.1m.next.queue}}",
    ],
)
def test_what_delayctl_makes_for_a_moment_is_nobody_elses(used: str) -> None:
    """Listed or used: it would be bound, emptied and deleted with what is in it."""
    with pytest.raises(InvalidTopology, match="is delayctl's own name"):
        read_spec(f"version: 1\ndelay: {{levels: [1m]}}\n{used}\n", {}, file="topology.yaml")


def test_the_way_round_another_level_is_free() -> None:
    """A file keeps no more than what it may come to need."""
    text = "version: 1\ndelay: {levels: [1m]}\nqueues: {delay.5m.next.queue: {}}\n"

    assert [queue.name for queue in read_spec(text, {}, file="topology.yaml").queues] == ["delay.5m.next.queue"]
