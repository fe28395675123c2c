"""Facts to a status, and a status to its verdict."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.figures import Early, Figures, Node, Rates, Statistics
from delayctl.topology.live import Live
from delayctl.topology.model import (
    Binding,
    Exchange,
    Policy,
    Queue,
    Reference,
    Settings,
    Topology,
    freeze_arguments,
)
from delayctl.topology.spec import ExchangeSpec, QueueSpec
from delayctl.topology.status import Facts, Status, status_of, waiting_queues
from delayctl.topology.verdict import Reason, Severity, is_healthy, verdict

from tests.support.examples import live_of, shop
from tests.support.memory_broker import MemoryBroker
from tests.support.switches import run_once
from tests.unit.topology.test_ladder import ladder

SHOP = shop("1m 5m")
NOW = 1_700_000_000_000
STEADY = tuple((NOW - ago * 1000, 10 * (1000 - ago)) for ago in range(600, -1, -5))


def status(
    desired: Topology = SHOP,
    live: Live | None = None,
    *,
    figures: Mapping[str, Figures] | None = None,
    nodes: tuple[Node, ...] | None = (),
    parks: tuple[str, ...] = (),
) -> Status:
    """The status of a shop after a clean apply, but for what is said."""
    live = live_of(desired) if live is None else live
    consumed = {"orders.queue": Figures(ready=0, consumers=1)}
    known = {name: Figures(ready=0, unacknowledged=0, consumers=0, state="running") for name in live.queues}
    queues = {**known, **consumed, **(figures or {})}
    return status_of(Facts(desired, parks, diff(desired, live), live, Statistics(queues, nodes)))


def said(found: Status) -> list[tuple[Severity, str]]:
    """The verdict, without the fixes."""
    return [(reason.severity, reason.what) for reason in verdict(found, source="topology.yaml")]


class TestWhichQueuesWait:
    """Levels, and whatever else has a TTL and a way out."""

    def test_levels_come_in_the_order_of_the_file(self) -> None:
        """Not by name: 5m is before 15m."""
        desired = shop("5m 15m 1h")

        assert waiting_queues(desired, live_of(desired)) == ("delay.5m.queue", "delay.15m.queue", "delay.1h.queue")

    def test_a_business_queue_with_ttl_and_dead_letter_exchange_waits_too(self) -> None:
        """As in files that describe what was built by hand; one with a TTL alone only forgets."""
        waits = {"x-message-ttl": 1000, "x-dead-letter-exchange": "orders.exchange"}
        desired = shop(
            "",
            routes=(),
            queues=(
                QueueSpec("theirs", arguments=freeze_arguments(waits)),
                QueueSpec("forgets", arguments=freeze_arguments({"x-message-ttl": 1000})),
            ),
        )

        assert waiting_queues(desired, live_of(desired)) == ("theirs",)

    def test_a_policy_can_make_a_queue_wait(self) -> None:
        """What counts is what is in force."""
        policy = Policy(
            "p", "^orders", "queues", 0, freeze_arguments({"message-ttl": 9, "dead-letter-exchange": "orders.exchange"})
        )
        live = replace(live_of(SHOP), policies=(policy,))

        assert waiting_queues(SHOP, live)[-1] == "orders.queue"

    def test_a_queue_that_exists_elsewhere_counts(self) -> None:
        """The file refers to it; the broker says what it does."""
        desired = replace(SHOP, existing=(Reference("queue", "theirs"),))
        queue = Queue("theirs", Settings(ttl=Duration(5), dead_letter_exchange="x"))
        live = replace(live_of(desired), queues={**live_of(desired).queues, "theirs": queue})

        found = status(desired, live)

        assert [(level.name, level.wanted) for level in found.levels][-1] == ("theirs", None)


class TestLevels:
    """What is said of one queue."""

    def test_all_messages_of_a_queue_wait(self) -> None:
        """Ready, held by a client, and expired without a taker."""
        found = status(figures={"delay.5m.queue": Figures(ready=5, unacknowledged=2, dead_lettering=1)})

        assert [(level.name, level.waiting) for level in found.levels] == [("1m", 0), ("5m", 8)]
        assert found.levels[1].fullness == 0.8

    def test_bytes_can_fill_a_queue_as_well(self) -> None:
        """The limit that is nearer counts."""
        found = status(shop("5m", max_bytes=100), figures={"delay.5m.queue": Figures(ready=1, size=90)})

        assert found.levels[0].fullness == 0.9

    def test_a_queue_that_refuses_lets_nothing_go_early(self) -> None:
        """Its count is exact, whatever was published to it."""
        figures = Figures(ready=10, published=STEADY, lengths=tuple((at, 10) for at, _ in STEADY))
        dropping, refusing, endless = (
            status(desired, figures={"delay.5m.queue": figures}).levels[0].early
            for desired in (shop("5m"), shop("5m", overflow="reject-publish"), shop("5m", max_length=None))
        )

        assert dropping == Early(2690, Duration.parse("4m30s"))
        assert refusing == endless == Early(0, None)

    def test_a_queue_that_hands_on_what_it_refuses_does(self) -> None:
        """reject-publish-dlx refuses to the publisher's face, and delivers at once all the same."""
        figures = Figures(ready=10, published=STEADY, lengths=tuple((at, 10) for at, _ in STEADY))
        live = live_of(SHOP)
        queue = live.queues["delay.5m.queue"]
        hands_on = replace(queue, settings=replace(queue.settings, overflow="reject-publish-dlx"))

        found = status(live=replace(live, queues={**live.queues, queue.name: hands_on}), figures={queue.name: figures})

        assert found.levels[1].early == Early(2690, Duration.parse("4m30s"))

    def test_a_queue_that_other_queues_feed_is_not_counted(self) -> None:
        """The broker counts what clients publish: of the rest, what came in is not known."""
        fed = Binding("delay.exchange", "exchange", "delay.5m.exchange", "again")
        live = live_of(SHOP)
        figures = Figures(ready=10, published=STEADY, lengths=tuple((at, 10) for at, _ in STEADY))

        level = status(live=replace(live, bindings=live.bindings | {fed}), figures={"delay.5m.queue": figures}).levels[
            1
        ]

        assert (level.rates, level.early, level.waiting) == (None, None, 10)
        assert level.oldest
        assert level.oldest.source == "ttl"

    def test_an_alternate_exchange_feeds_as_well(self) -> None:
        """The way of what has no other way."""
        live = live_of(SHOP)
        exit = Exchange("delay.exchange", "topic", alternate="delay.5m.exchange")
        found = status(live=replace(live, exchanges={**live.exchanges, "delay.exchange": exit}))

        assert [level.rates is None for level in found.levels] == [True, True]
        assert status().levels[1].early is None

    def test_rates_of_a_steady_queue(self) -> None:
        """Ten per second in, ten out."""
        figures = Figures(ready=10, published=STEADY, lengths=tuple((at, 10) for at, _ in STEADY))

        assert status(figures={"delay.5m.queue": figures}).levels[1].rates == Rates(10.0, 10.0)


class TestVerdict:
    """Each reason in words."""

    def test_all_is_well(self) -> None:
        """Nothing to say is the best answer."""
        assert said(status()) == []
        assert is_healthy(())

    def test_nothing_was_applied(self) -> None:
        """One reason, not one for every level."""
        found = status(live=Live())

        assert verdict(found, source="t.yaml") == (
            Reason("unhealthy", "nothing of the topology is on the broker", "delayctl apply t.yaml"),
        )

    def test_a_level_is_missing(self) -> None:
        """Named, and counted as drift."""
        live = live_of(SHOP)
        queues = {name: queue for name, queue in live.queues.items() if name != "delay.1m.queue"}

        found = said(status(live=replace(live, queues=queues)))

        assert ("unhealthy", "the broker differs from the file in 1 place") in found
        assert (
            "unhealthy",
            "delay.1m.queue is not there: what is meant to wait in it is lost or refused",
        ) in found

    @pytest.mark.parametrize("operator", [False, True])
    def test_a_policy_shortens_the_wait(self, operator: bool) -> None:
        """Who did it is named, and what is in force."""
        policy = Policy("short", "^delay.5m", "queues", 0, freeze_arguments({"message-ttl": 1000, "max-length": 5}))
        live = live_of(SHOP)
        live = replace(live, operator_policies=(policy,)) if operator else replace(live, policies=(policy,))
        who = "operator policy short" if operator else "policy short"

        reasons = verdict(status(live=live), source="t.yaml")

        assert [reason.what for reason in reasons] == [
            "the broker differs from the file in 1 place",
            f"delay.5m.queue waits 1s instead of 5m ({who})",
            f"delay.5m.queue holds 5 messages instead of 10 messages ({who})",
        ]
        assert reasons[1].fix == f"narrow or remove the {who}"

    def test_a_policy_of_the_owner_may_make_a_business_queue_wait(self) -> None:
        """As in files that were imported: plan sees no drift there, and neither does status."""
        definition = {"message-ttl": 7000, "max-length": 5, "dead-letter-exchange": "orders.exchange"}
        policy = Policy("theirs", "^orders.queue$", "queues", 0, freeze_arguments(definition))

        figures = {"orders.queue": Figures(ready=0, consumers=0)}

        found = status(live=replace(live_of(SHOP), policies=(policy,)), figures=figures)

        assert (found.levels[-1].queue, found.levels[-1].settings.ttl) == ("orders.queue", Duration(7000))
        assert is_healthy(verdict(found, source="t.yaml"))

    def test_a_policy_that_shortens_what_the_file_says_is_none_of_the_owners(self) -> None:
        """Plan refuses it, and status tells what it does."""
        waits = {"x-message-ttl": 9000, "x-dead-letter-exchange": "orders.exchange"}
        desired = shop("", routes=(), queues=(QueueSpec("theirs", arguments=freeze_arguments(waits)),))
        policy = Policy("short", "^theirs$", "queues", 0, freeze_arguments({"message-ttl": 1000, "max-length": 5}))

        assert said(status(desired, replace(live_of(desired), policies=(policy,)))) == [
            ("unhealthy", "the broker differs from the file in 1 place"),
            ("unhealthy", "theirs waits 1s instead of 9s (policy short)"),
        ]

    def test_a_wait_without_an_exit_loses_everything(self) -> None:
        """The file says so itself, and the broker is as the file wants it; the broker's own exchanges are there."""
        waits = {
            name: freeze_arguments({"x-message-ttl": 1000, "x-dead-letter-exchange": exit})
            for name, exit in {"a": "gone", "b": "amq.fanout", "c": "", "d": "orders.exchange"}.items()
        }
        desired = shop("", routes=(), queues=tuple(QueueSpec(name, arguments=waits[name]) for name in waits))

        assert verdict(status(desired), source="t.yaml") == (
            Reason(
                "unhealthy",
                "a hands on to exchange gone, which is not on the broker: what has waited is lost",
                "create it: with gone under exchanges: in the file, delayctl apply t.yaml does",
            ),
        )

    def test_a_level_without_the_exit_is_mended_by_apply(self) -> None:
        """One reason for each level: nothing that waits there gets out."""
        live = live_of(SHOP)
        exchanges = {name: exchange for name, exchange in live.exchanges.items() if name != "delay.exchange"}

        reasons = verdict(status(live=replace(live, exchanges=exchanges)), source="t.yaml")

        assert [reason.fix for reason in reasons if "which is not on the broker" in reason.what] == [
            "delayctl apply t.yaml"
        ] * 2

    @pytest.mark.parametrize(
        ("waiting", "overflow", "expected"),
        [
            (7, "drop-head", []),
            (8, "drop-head", [("warning", "delay.5m.queue is 80% full")]),
            (10, "drop-head", [("unhealthy", "delay.5m.queue is full: what comes in pushes the oldest out early")]),
            (11, "reject-publish", [("unhealthy", "delay.5m.queue is full: publishers are refused")]),
        ],
    )
    def test_a_level_fills_up(self, waiting: int, overflow: str, expected: list[tuple[str, str]]) -> None:
        """A warning from 80 % on, and no longer well when it is full."""
        desired = shop("5m", overflow="reject-publish" if overflow == "reject-publish" else "drop-head")

        assert said(status(desired, figures={"delay.5m.queue": Figures(ready=waiting)})) == expected

    def test_a_full_level_tells_how_early(self) -> None:
        """Ten places at ten per second are gone through in a second."""
        figures = Figures(ready=10, published=STEADY, lengths=tuple((at, 10) for at, _ in STEADY))

        assert said(status(figures={"delay.5m.queue": figures})) == [
            (
                "unhealthy",
                "delay.5m.queue is full: what comes in pushes the oldest out early, at this rate after 1s instead of 5m",
            ),
            ("warning", "at least 2,690 messages of the last 4m30s left delay.5m.queue before the time was up"),
        ]

    def test_parked_messages(self) -> None:
        """What had no way out is wrong; what failed every retry is where it belongs."""
        figures = {"delay.unrouted.queue": Figures(ready=1), "orders.dlq": Figures(ready=2, unacknowledged=1)}

        assert said(status(figures=figures, parks=("orders.dlq",))) == [
            ("unhealthy", "1 message had no way out and is parked in delay.unrouted.queue"),
            ("warning", "3 messages failed every retry and are parked in orders.dlq"),
        ]

    @pytest.mark.parametrize(
        ("figures", "expected"),
        [
            (
                Figures(ready=1, consumers=2),
                ("unhealthy", "2 consumers on delay.5m.queue: messages are taken before their time"),
            ),
            (
                Figures(ready=1, unacknowledged=1),
                ("unhealthy", "1 message of delay.5m.queue is held by a client, and can't expire"),
            ),
            (
                Figures(ready=0, dead_lettering=3),
                ("warning", "3 messages of delay.5m.queue expired and found no taker yet"),
            ),
            (
                Figures(ready=0, dead_lettering=32),
                ("unhealthy", "32 messages of delay.5m.queue expired and found no taker yet"),
            ),
            (
                Figures(ready=0, state="down"),
                ("unhealthy", "delay.5m.queue is down: it takes nothing and lets nothing go"),
            ),
            (Figures(), ("warning", "the broker has not said yet what waits in delay.5m.queue")),
            (
                Figures(1, published=tuple((a, 1) for a, _ in STEADY), lengths=tuple((a, 1) for a, _ in STEADY)),
                ("unhealthy", "delay.5m.queue is stuck: nothing has left it for 5m30s, and its TTL is 5m"),
            ),
        ],
        ids=["consumed", "held", "expired", "blocked", "down", "silent", "stuck"],
    )
    def test_a_queue_in_trouble(self, figures: Figures, expected: tuple[str, str]) -> None:
        """One figure, one reason."""
        desired = shop("5m", max_length=1000)

        assert said(status(desired, figures={"delay.5m.queue": figures})) == [expected]

    @pytest.mark.parametrize(
        ("figures", "expected"),
        [
            (Figures(ready=1, consumers=2), [("warning", "2 consumers on work, which has a TTL of 9s")]),
            (Figures(ready=1, unacknowledged=1, consumers=0), []),
        ],
        ids=["consumed", "held"],
    )
    def test_a_work_queue_with_a_ttl(self, figures: Figures, expected: list[tuple[str, str]]) -> None:
        """Somebody may well consume from it: whether it is a wait is not for us to say."""
        waits = {"x-message-ttl": 9000, "x-dead-letter-exchange": "orders.exchange"}
        desired = shop("", routes=(), queues=(QueueSpec("work", arguments=freeze_arguments(waits)),))

        assert said(status(desired, figures={"work": figures})) == expected

    def test_nodes_in_trouble(self) -> None:
        """An alarm stops every publisher, delayed or not."""
        nodes = (
            Node("a", memory_alarm=True),
            Node("b", disk_alarm=True),
            Node("c", False),
            Node("d", is_partitioned=True),
        )

        assert [what for _, what in said(status(nodes=nodes))] == [
            "node a is short of memory: publishers are blocked",
            "node b is short of disk: publishers are blocked",
            "node c is down",
            "node d has lost sight of others (partition)",
        ]
        assert [severity for severity, _ in said(status(nodes=None))] == ["note"]

    def test_a_target_that_nobody_consumes_is_worth_a_note(self) -> None:
        """It may well be meant so."""
        found = status(figures={"orders.queue": Figures(ready=4, consumers=0)})

        assert said(found) == [("note", "nobody consumes orders.queue")]
        assert is_healthy(verdict(found, source="t.yaml"))

    @pytest.mark.parametrize("queue", ["delay.verify.queue", "delay.cancelled.stream"])
    def test_delayctls_own_queues_at_the_exit_are_no_targets(self, queue: str) -> None:
        """Nobody is meant to consume them, so nothing is said of them and nothing counted."""
        live = live_of(SHOP)
        ours = Binding(SHOP.exit, "queue", queue, "delay.#")
        found = status(live=replace(live, queues={**live.queues, queue: Queue(queue)}, bindings=live.bindings | {ours}))

        assert [target.queue for target in found.targets] == ["orders.queue"]
        assert said(found) == []

    def test_what_plan_warns_of_is_passed_on(self) -> None:
        """A stranger behind an entrance does not wait."""
        stranger = Binding("delay.5m.exchange", "queue", "orders.queue", "#")
        live = live_of(SHOP)

        [(severity, what)] = said(status(live=replace(live, bindings=live.bindings | {stranger})))

        assert severity == "note"
        assert what.startswith("plan says: binding delay.5m.exchange → [#] orders.queue is not delayctl's")

    def test_what_is_unhealthy_comes_first(self) -> None:
        """Then warnings, then notes."""
        figures = {
            "orders.queue": Figures(ready=4, consumers=0),
            "delay.1m.queue": Figures(ready=9),
            "delay.unrouted.queue": Figures(ready=1),
        }

        assert [severity for severity, _ in said(status(figures=figures))] == ["unhealthy", "warning", "note"]


def test_a_file_without_levels_parks_nothing() -> None:
    """There is no exit, and no net behind it."""
    desired = shop("", routes=(), exchanges=(ExchangeSpec("orders.exchange"),))

    assert (status(desired).parked, status(desired).levels) == ((), ())


@pytest.mark.parametrize(
    ("before", "after", "queue"),
    [
        (shop("5m"), shop("5m", max_length=99), "delay.5m.queue"),
        (SHOP, shop("5m"), "delay.1m.queue"),
        (ladder(4), ladder(2), "delay.any.03.queue"),
    ],
    ids=["changes", "goes", "a shorter ladder"],
)
def test_a_change_is_due_until_somebody_applies_it(before: Topology, after: Topology, queue: str) -> None:
    """Nothing empties yet before that."""
    broker = MemoryBroker.holding(live_of(before, {queue: 3}))

    due = status(after, broker.live()).warnings
    run_once(broker, after)
    begun = status(after, broker.live()).warnings

    assert [text.partition(":")[0] for text in (*due, *begun)] == [
        "a change is due, and begins with the next apply",
        "a change is under way",
    ]
