"""What there is to prove of a file, and what is done for it on a broker."""

import re
from dataclasses import replace

import pytest
from delayctl.topology.canary import Flight, Probe, Task
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.expand import expand
from delayctl.topology.figures import Figures
from delayctl.topology.model import Binding, Exchange, Policy, Queue
from delayctl.topology.parse import read_spec
from delayctl.topology.verify_plan import HASTEN_MS, Effort, tasks_for
from delayctl.topology.verify_probes import longest_wait, probes_at, probes_of
from delayctl.topology.verify_ways import Seen, unproved_waits

from tests.support.examples import live_of

SPEC = read_spec(
    """
version: 1
delay:
  levels: {5s: {max_length: 100}, 15m: {}}
  any: {unit: 1s, steps: 4}
exchanges:
  orders.exchange: {}
  hidden.exchange: {internal: true}
routes:
  - {from: orders.exchange, key: [order.created, "bill.*"], delay: 5s, to: orders.queue}
  - {from: orders.exchange, key: order.seen, to: seen.queue}
  - {from: hidden.exchange, key: a, delay: 5s, to: orders.queue}
  - {key: late, delay: any, to: {exchange: site.exchange}}
retry:
  orders.queue: {levels: [5s], max: 2, park: orders.parked}
""",
    {},
    file="topology.yaml",
)
TOPOLOGY = expand(SPEC)
UP_TO = Duration(8_000)
PROBES = probes_of(SPEC, TOPOLOGY, run="cafe", up_to=UP_TO)
EFFORT = Effort(3, UP_TO, Duration(1_000), Duration(10_000))
SEEN = Seen(live_of(TOPOLOGY), {queue.name: Figures(0) for queue in TOPOLOGY.queues})


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        ("levels: [5s, 15m]", "15m"),
        ("levels: [5s], any: {unit: 1s, steps: 4}", "15s"),
        ("levels: [1m], any: {unit: 1s, steps: 4}", "1m"),
    ],
)
def test_how_long_a_canary_can_wait(delay: str, expected: str) -> None:
    """At the longest level, or at all steps of the ladder."""
    spec = read_spec(f"version: 1\ndelay: {{{delay}}}\n", {}, file="topology.yaml")

    assert longest_wait(expand(spec)) == Duration.parse(expected)


def test_nothing_waits_without_delays() -> None:
    """As where a file says so."""
    assert longest_wait(expand(read_spec("version: 1\ndelay: none\n", {}, file="topology.yaml"))) == Duration(0)


def task_for(name: str, seen: Seen = SEEN, effort: Effort = EFFORT) -> Task:
    """What is done for the way of this name."""
    tasks = tasks_for(PROBES, seen, effort, desired=TOPOLOGY, run="cafe", file="topology.yaml")
    return next(task for task in tasks if task.probe.name == name)


def bound(*bindings: Binding) -> Seen:
    """The broker with more bindings, and with the queues that they lead to."""
    queues = {binding.destination: Queue(binding.destination) for binding in bindings}
    live = replace(SEEN.live, bindings=SEEN.live.bindings | set(bindings), queues={**queues, **SEEN.live.queues})
    return replace(SEEN, live=live)


def test_all_ways_of_a_file() -> None:
    """The exit, levels, rungs and a sum of them; then routes with a sample of each key, retries and parking."""
    assert [(probe.kind, probe.name, str(probe.wait)) for probe in PROBES] == [
        ("exit", "delay.exchange", "0s"),
        ("level", "5s", "5s"),
        ("level", "15m", "15m"),
        ("rung", "any.00", "1s"),
        ("rung", "any.01", "2s"),
        ("rung", "any.02", "4s"),
        ("rung", "any.03", "8s"),
        ("ladder", "any.02 down to any.00", "7s"),
        ("route", "orders.exchange 'order.created' to orders.queue", "5s"),
        ("route", "orders.exchange 'bill.any' (of bill.*) to orders.queue", "5s"),
        ("route", "orders.exchange 'order.seen' to seen.queue", "0s"),
        ("route", "hidden.exchange 'a' to orders.queue", "5s"),
        ("route", "delay.any.exchange 'late' to site.exchange", "1s"),
        ("route", "retries of orders.queue", "5s"),
        ("route", "parking in orders.parked", "0s"),
    ]


def test_a_rung_is_entered_at_its_gate() -> None:
    """With the header of its step alone; the sum as clients send it that know nothing but the headers."""
    rung, ladder = PROBES[4], PROBES[7]

    assert rung == Probe(
        "rung",
        "any.01",
        "delay.any.01.gate.exchange",
        "delay.verify.cafe.4",
        Duration(2_000),
        ("delay.any.01.queue",),
        {"delay-1": True},
    )
    assert (ladder.exchange, set(ladder.headers)) == (
        "delay.any.exchange",
        {"delay-0", "delay-1", "delay-2", "delay-top"},
    )
    assert ladder.queues == ("delay.any.02.queue", "delay.any.01.queue", "delay.any.00.queue")


def test_no_sum_where_no_two_rungs_fit() -> None:
    """A single rung is proved by itself."""
    probes = probes_of(SPEC, TOPOLOGY, run="cafe", up_to=Duration(2_000))

    assert "ladder" not in {probe.kind for probe in probes}


def test_a_file_without_delays() -> None:
    """It has routes at most."""
    spec = read_spec("version: 1\ndelay: none\nqueues: {a.queue: {}}\n", {}, file="topology.yaml")

    assert probes_of(spec, expand(spec), run="cafe", up_to=UP_TO) == ()


def test_some_levels_only() -> None:
    """The exit, the level or rung, and whatever else waits there."""
    assert [probe.name for probe in probes_at(["5s", "any.01"], PROBES, TOPOLOGY)] == [
        "delay.exchange",
        "5s",
        "any.01",
        "any.02 down to any.00",
        "orders.exchange 'order.created' to orders.queue",
        "orders.exchange 'bill.any' (of bill.*) to orders.queue",
        "hidden.exchange 'a' to orders.queue",
        "retries of orders.queue",
    ]
    assert probes_at([], PROBES, TOPOLOGY) == PROBES


def test_a_level_that_is_not_in_the_file() -> None:
    """What there is is named."""
    with pytest.raises(BadOption, match=re.escape("there is no level 'an.00' (did you mean 'any.00'?)")) as caught:
        probes_at(["an.00"], PROBES, TOPOLOGY)

    assert caught.value.fix == "name one of 5s, 15m, any.00, any.01, any.02, any.03"


def test_what_is_short_is_waited_for() -> None:
    """And nothing speaks against it."""
    task = task_for("5s")

    assert task == Task(PROBES[1], Flight(PROBES[1], 3))


def test_what_is_long_is_hastened() -> None:
    """While nobody waits there; the note says so."""
    task = task_for("15m")

    assert task.flight == Flight(PROBES[2], 3, HASTEN_MS)
    assert task.note == "longer than --up-to 8s: sent with an expiration of 500ms"


def test_what_waits_is_not_passed() -> None:
    """Only the head of a queue can be hastened."""
    busy = replace(SEEN, figures={**SEEN.figures, "delay.15m.queue": Figures(2)})

    assert (task_for("15m", busy).flight, task_for("15m", busy).expected) == (None, ())
    assert "can't pass 2 messages waiting there" in (task_for("15m", busy).note or "")
    assert task_for("15m", SEEN, replace(EFFORT, hasten=False)).flight is None


@pytest.mark.parametrize(("waiting", "is_sent"), [(0, True), (92, True), (93, False), (100, False)])
def test_a_full_queue_is_left_alone(waiting: int, is_sent: bool) -> None:
    """Of a hundred places five are left free, since the count may be some seconds old."""
    busy = replace(SEEN, figures={**SEEN.figures, "delay.5s.queue": Figures(waiting)})

    task = task_for("5s", busy)

    assert (task.flight is not None) is is_sent
    assert [trouble.name for trouble in task.expected] == ([] if is_sent else ["full"])


@pytest.mark.parametrize(("waiting", "said"), [(99, []), (100, ["refused"]), (101, ["refused"])])
@pytest.mark.parametrize("hasten", [True, False])
def test_a_full_queue_that_refuses_is_not_proved(waiting: int, said: list[str], *, hasten: bool) -> None:
    """No canary can pass what waits there and be refused, so that its figures speak."""
    levels = "levels: {15m: {max_length: 100, overflow: reject-publish}}"
    spec = read_spec(f"version: 1\ndelay: {{{levels}}}\n", {}, file="topology.yaml")
    desired = expand(spec)
    seen = Seen(live_of(desired), {"delay.15m.queue": Figures(waiting)})
    _, probe = probes_of(spec, desired, run="cafe", up_to=UP_TO)

    (task,) = tasks_for(
        [probe], seen, replace(EFFORT, hasten=hasten), desired=desired, run="cafe", file="topology.yaml"
    )

    assert task.flight is None
    assert [trouble.name for trouble in task.expected] == said


@pytest.mark.parametrize(("untaken", "said"), [(31, []), (32, ["stuck"])])
def test_a_queue_that_hands_nothing_on_is_not_proved(untaken: int, said: list[str]) -> None:
    """What expired and found no taker is in front of any canary."""
    seen = replace(SEEN, figures={**SEEN.figures, "delay.15m.queue": Figures(0, dead_lettering=untaken)})

    task = task_for("15m", seen)

    assert (task.flight, [trouble.name for trouble in task.expected]) == (None, said)


def test_routes_are_looked_at() -> None:
    """Consumers get no canary."""
    task = task_for("orders.exchange 'order.created' to orders.queue")

    assert (task.flight, task.expected, task.note) == (None, (), None)


def test_routes_are_flown_through_where_that_is_asked_for() -> None:
    """With a second key that leads to the catcher, so that the canary comes to its target and is seen."""
    task = task_for(
        "orders.exchange 'bill.any' (of bill.*) to orders.queue", effort=replace(EFFORT, through_routes=True)
    )

    assert task.flight is not None
    assert (task.flight.probe.key, task.flight.probe.headers) == ("bill.any", {"CC": ["delay.verify.cafe.9"]})


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("parking in orders.parked", "nobody consumes what is parked, and a canary would stay there"),
        ("hidden.exchange 'a' to orders.queue", "hidden.exchange is internal, and nobody can publish to it"),
        ("orders.exchange 'order.seen' to seen.queue", "it does not pass the exit, where canaries are seen"),
    ],
)
def test_where_canaries_do_not_go(name: str, note: str) -> None:
    """Not even where it is asked for."""
    task = task_for(name, effort=replace(EFFORT, through_routes=True))

    assert (task.flight, task.note) == (None, note)


def test_a_second_key_that_somebody_else_takes() -> None:
    """What the messages of a route don't go to gets no canary either."""
    nosy = bound(Binding("orders.exchange", "queue", "nosy.queue", "delay.#"))

    task = task_for("orders.exchange 'order.created' to orders.queue", nosy, replace(EFFORT, through_routes=True))

    assert (task.flight, task.note) == (None, "nosy.queue would get canaries that its messages don't go to")


def test_nobody_else_gets_a_canary() -> None:
    """Whoever is bound to all that comes out keeps the delays from being flown through, unless that is asked for."""
    nosy = bound(Binding("delay.exchange", "queue", "audit.queue", "#"))

    assert (task_for("5s", nosy).flight, task_for("5s", nosy).expected) == (None, ())
    assert "audit.queue would get the canaries too" in (task_for("5s", nosy).note or "")
    assert task_for("5s", nosy, replace(EFFORT, through_routes=True)).flight is not None


def test_where_a_policy_can_not_be_read() -> None:
    """An exchange that leads nowhere may have an alternate that nobody knows: nothing is sent there."""
    bindings = frozenset(binding for binding in SEEN.live.bindings if binding.source != "delay.5s.exchange")
    broken = replace(SEEN, live=replace(SEEN.live, bindings=bindings))
    veiled = replace(broken, veiled=frozenset({"delay.5s.exchange"}))

    assert (task_for("5s", broken).flight is None, task_for("5s", veiled).flight is None) == (False, True)
    assert [trouble.name for trouble in task_for("5s", veiled).expected] == ["unroutable"]


def test_own_exchanges_of_a_plugins_type() -> None:
    """Where they lead is not known here, and canaries tell; those of others are left alone."""

    def spread(name: str) -> Seen:
        exchanges = {**SEEN.live.exchanges, name: Exchange(name, "x-modulus-hash")}
        return replace(SEEN, live=replace(SEEN.live, exchanges=exchanges))

    assert task_for("5s", spread("delay.5s.exchange")) == Task(PROBES[1], Flight(PROBES[1], 3))
    others = bound(Binding("delay.5s.exchange", "exchange", "others.exchange"))
    exchanges = {**others.live.exchanges, "others.exchange": Exchange("others.exchange", "x-random")}
    assert task_for("5s", replace(others, live=replace(others.live, exchanges=exchanges))).flight is None


CREATED = "orders.exchange 'order.created' to orders.queue"
SECOND_WAYS = {
    "at once": (Binding("orders.exchange", "queue", "orders.queue", "order.*"), "0s and 5s"),
    "by another level": (Binding("orders.exchange", "exchange", "delay.15m.exchange", "order.#"), "5s and 15m"),
    "from the entrance": (Binding("delay.5s.exchange", "queue", "orders.queue"), "0s and 5s"),
}


@pytest.mark.parametrize(("binding", "times"), SECOND_WAYS.values(), ids=SECOND_WAYS)
def test_a_second_way_to_the_target(binding: Binding, times: str) -> None:
    """What somebody bound by hand lets messages come twice, and is named."""
    (trouble,) = task_for(CREATED, bound(binding)).expected

    assert trouble.name == "doubled"
    assert trouble.what.startswith(f"messages come to orders.queue 2 times, after {times}: the file knows nothing of")
    assert f"{binding.source} →" in trouble.what
    assert trouble.fix == "remove that binding"


def test_what_the_file_sends_twice_comes_twice() -> None:
    """A reminder now and one later are what its author asked for."""
    spec = read_spec(
        """
version: 1
delay: {levels: [5s, 1m]}
exchanges: {orders.exchange: {}}
routes:
  - {from: orders.exchange, key: order.created, delay: 5s, to: orders.queue}
  - {from: orders.exchange, key: order.created, delay: 1m, to: orders.queue}
""",
        {},
        file="topology.yaml",
    )
    topology = expand(spec)
    probes = probes_of(spec, topology, run="cafe", up_to=UP_TO)

    tasks = tasks_for(probes, Seen(live_of(topology)), EFFORT, desired=topology, run="cafe", file="topology.yaml")

    assert [task.expected for task in tasks if task.probe.kind == "route"] == [(), ()]


def test_what_comes_back_from_behind_a_target_is_no_second_way() -> None:
    """Others may let messages wait behind the exchange that a route leads to, and pass it again."""
    name, retries = "delay.any.exchange 'late' to site.exchange", Queue("site.retries")
    waits = replace(retries, settings=replace(retries.settings, ttl=UP_TO, dead_letter_exchange="site.exchange"))
    behind = bound(Binding("site.exchange", "queue", "site.retries", "late"))
    behind = replace(behind, live=replace(behind.live, queues={**behind.live.queues, "site.retries": waits}))

    assert task_for(name, behind).expected == task_for(name).expected


def test_waits_that_are_no_levels_are_not_proved() -> None:
    """By arguments or by a policy, and of the file's queues alone."""
    waits = Policy("p", "^(orders|others)", "queues", 0, (("message-ttl", 7_000), ("dead-letter-exchange", "due")))
    live = replace(SEEN.live, policies=(waits,), queues={**SEEN.live.queues, "others.queue": Queue("others.queue")})
    seen = replace(SEEN, live=live, policies={"orders.queue": "p"})

    assert list(unproved_waits(seen, TOPOLOGY)) == [
        "orders.parked (7s, then to due)",
        "orders.queue (7s (policy p), then to due)",
    ]
    assert list(unproved_waits(SEEN, TOPOLOGY)) == []
