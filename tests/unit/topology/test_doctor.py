"""What a doctor finds, check by check: where something is wrong, and where nothing is."""

from dataclasses import replace

import pytest
from delayctl.topology.clients import Client, Clients
from delayctl.topology.diagnosis import diagnose
from delayctl.topology.doctor import CHECKS
from delayctl.topology.duration import Duration
from delayctl.topology.examination import Look, Seen
from delayctl.topology.expand import expand
from delayctl.topology.figures import Figures, Node
from delayctl.topology.findings import Finding, Severity
from delayctl.topology.lint import lint
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings, freeze_arguments
from delayctl.topology.parse import read_spec
from delayctl.topology.recorded import recorded_parks, recorded_spec, recorded_topology
from delayctl.topology.rules_live import RULES
from delayctl.topology.spec import QueueSpec
from delayctl.topology.verdict import verdict

from tests.support.examples import live_of, shop
from tests.support.patients import ALONE, IDLE, SHOP, busy, codes, examination, found, status

THREE = (Node("rabbit@a"), Node("rabbit@b"), Node("rabbit@c"))
MEMBERS = ("rabbit@a", "rabbit@b", "rabbit@c")
SHORTER = Policy("shorter", "^delay\\.5m", "queues", 1, freeze_arguments({"message-ttl": 1000}))
SAFE_SETTINGS = {
    "x-queue-type": "quorum",
    "x-message-ttl": 1000,
    "x-dead-letter-exchange": "orders.exchange",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}


SAFE = shop("", routes=(), queues=(QueueSpec("wait.queue", arguments=freeze_arguments(SAFE_SETTINGS)),))
LEVELS = shop("1m 2m 3m", routes=())


def finding(code: str) -> Finding:
    """What lint said."""
    return Finding(code, Severity.ERROR, "delay.5m.queue", f"{code} it says", "for a reason", "mend it", 3)


def bent() -> tuple[Live, tuple[Finding, ...]]:
    """A broker with somebody's policy, and what lint says of it."""
    live = replace(live_of(SHOP), policies=(SHORTER,))
    return live, lint(recorded_spec(SHOP), SHOP, live=live, rules=RULES).findings


def test_a_topology_that_is_well() -> None:
    """Nothing is found, not even a note."""
    assert codes(examination()) == []


def test_codes_are_in_order_and_unlike() -> None:
    """Each is a promise to those who filter by it."""
    assert [check.code for check in CHECKS] == sorted({check.code for check in CHECKS})


class TestTheBroker:
    """Nodes, alarms, versions, figures."""

    def test_h101_a_memory_alarm(self) -> None:
        """With its figures, and what shows where the memory is."""
        node = Node("rabbit@a", memory_alarm=True, memory_used=2_100_000_000, memory_limit=2_000_000_000)

        [diagnosis] = found(examination(nodes=(node,)), "H101")

        assert (diagnosis.severity, diagnosis.at) == (Severity.ERROR, "rabbit@a")
        assert diagnosis.details == ("uses 2,100 MB; its limit is 2,000 MB",)
        assert diagnosis.commands == (
            "rabbitmq-diagnostics -n rabbit@a memory_breakdown",
            "rabbitmqctl -n rabbit@a set_vm_memory_high_watermark 0.7",
        )

    def test_h102_a_disk_alarm(self) -> None:
        """A broker that has just begun does not say how much is free."""
        [diagnosis] = found(examination(nodes=(Node("rabbit@a", disk_alarm=True, disk_free=9_000_000),)), "H102")

        assert diagnosis.details == ("9 MB are free; it stops at an unknown amount",)

    def test_h103_a_node_is_down(self) -> None:
        """It is told what waits nowhere else."""
        figures = {
            "delay.1m.queue": replace(IDLE, node="rabbit@b"),
            "delay.5m.queue": replace(IDLE, node="rabbit@b", members=MEMBERS, online=MEMBERS[:2]),
        }
        nodes = (Node("rabbit@a"), Node("rabbit@b", is_running=False))

        [diagnosis] = found(examination(figures=figures, nodes=nodes), "H103")

        assert diagnosis.message == "node rabbit@b is down"
        assert diagnosis.details == ("1 wait of this topology only there: delay.1m.queue",)

    def test_h104_a_partition(self) -> None:
        """By node."""
        nodes = (Node("rabbit@a", is_partitioned=True), Node("rabbit@b"))

        assert [diagnosis.at for diagnosis in found(examination(nodes=nodes), "H104")] == ["rabbit@a"]

    def test_h105_lint_knows_the_bugs(self) -> None:
        """What it says is passed on, and nothing else that it says."""
        [diagnosis] = found(examination(lint=(finding("D403"), finding("D999"))), "H105")

        assert (diagnosis.at, diagnosis.message, diagnosis.fix) == ("delay.5m.queue", "D403 it says", "mend it")
        assert diagnosis.severity is Severity.WARNING

    def test_h106_no_figures(self) -> None:
        """Switched off is another thing than not said yet."""
        silent = {"delay.5m.queue": Figures()}

        [off] = found(examination(statistics_are_off=True, figures=silent), "H106")
        [late] = found(examination(figures=silent), "H106")

        assert off.commands[0].startswith("rabbitmqctl eval 'application:set_env(rabbitmq_management_agent, ")
        assert late.message == "the broker has not said yet what waits in delay.5m.queue"

    def test_h107_nodes_that_can_not_be_seen(self) -> None:
        """That is no illness."""
        assert [d.severity for d in found(examination(nodes=None), "H107")] == [Severity.INFO]


class TestWaits:
    """What is there, has room, and lets go in time."""

    def test_h201_a_wait_is_missing(self) -> None:
        """Apply brings it back."""
        live = live_of(SHOP)
        queues = {name: queue for name, queue in live.queues.items() if name != "delay.5m.queue"}

        [diagnosis] = found(examination(live=replace(live, queues=queues)), "H201")

        assert (diagnosis.at, diagnosis.commands) == ("delay.5m.queue", ("delayctl apply topology.yaml",))

    @pytest.mark.parametrize(("count", "severity"), [(1, Severity.WARNING), (32, Severity.ERROR)])
    def test_h202_expired_and_untaken(self, count: int, severity: Severity) -> None:
        """32 of them block the queue; that the exit leads nowhere is seen."""
        figures = {"wait.queue": replace(IDLE, dead_lettering=count)}

        [diagnosis] = found(examination(SAFE, figures=figures), "H202")

        assert diagnosis.severity is severity
        assert diagnosis.details == (
            "exchange orders.exchange leads nowhere, and has no alternate exchange for the rest",
        )

    def test_h202_grows_while_it_is_watched(self) -> None:
        """And by how much."""
        earlier = status(SAFE, figures={"wait.queue": replace(IDLE, dead_lettering=1)})
        now = {"wait.queue": replace(IDLE, dead_lettering=4)}

        [diagnosis] = found(examination(SAFE, figures=now, earlier=earlier), "H202")

        assert diagnosis.details[-1] == "3 messages more within 10s"

    @pytest.mark.parametrize(
        ("target", "expected"),
        [
            (replace(IDLE, ready=1), "full.queue, behind it, is full with 1 message and refuses more"),
            (replace(IDLE, state="down"), "full.queue, behind it, is down"),
        ],
        ids=["full", "down"],
    )
    def test_h202_the_target_does_not_take_it(self, target: Figures, expected: str) -> None:
        """Which queue, and what is wrong with it."""
        live = live_of(SAFE)
        full = Queue("full.queue", Settings(max_length=1, overflow="reject-publish"))
        way = Binding("orders.exchange", "queue", "full.queue", "#")
        live = replace(live, queues={**live.queues, full.name: full}, bindings=live.bindings | {way})
        figures = {"wait.queue": replace(IDLE, dead_lettering=1), "full.queue": target}

        [diagnosis] = found(examination(SAFE, live, figures=figures), "H202")

        assert diagnosis.details[0] == expected

    def test_h202_the_exit_is_missing(self) -> None:
        """Which is what to mend first."""
        live = replace(live_of(SAFE), exchanges={})

        [diagnosis] = found(examination(SAFE, live, figures={"wait.queue": replace(IDLE, dead_lettering=1)}), "H202")

        assert diagnosis.details == ("exchange orders.exchange, which it hands on to, is not there",)
        assert diagnosis.commands == ("delayctl apply topology.yaml",)

    def test_h202_the_exit_has_lost_its_net(self) -> None:
        """Apply puts the alternate exchange back."""
        desired = shop("5m", type="quorum", overflow="reject-publish")
        live = live_of(desired)
        bare = Exchange("delay.exchange", "topic")
        queue = live.queues["delay.5m.queue"]
        safe = replace(queue, settings=replace(queue.settings, dead_letter_strategy="at-least-once"))
        live = replace(live, exchanges={**live.exchanges, bare.name: bare}, queues={**live.queues, safe.name: safe})

        [diagnosis] = found(examination(desired, live, figures={safe.name: replace(IDLE, dead_lettering=1)}), "H202")

        assert diagnosis.fix == "put its alternate exchange back, which catches what has no route"
        assert diagnosis.details == (
            "exchange delay.exchange leads on for 'order.created' alone, and has no alternate exchange for the rest",
        )

    def test_h203_the_exit_of_a_level_is_missing(self) -> None:
        """Both levels lead nowhere."""
        live = live_of(SHOP)
        exchanges = {name: exchange for name, exchange in live.exchanges.items() if name != "delay.exchange"}

        diagnoses = found(examination(live=replace(live, exchanges=exchanges)), "H203")

        assert [diagnosis.at for diagnosis in diagnoses] == ["delay.1m.queue", "delay.5m.queue"]

    def test_h204_a_level_is_full(self) -> None:
        """Ten a second for five minutes need 3,000 places, and some to spare."""
        [diagnosis] = found(examination(figures={"delay.5m.queue": busy(10, 10)}), "H204")

        assert diagnosis.details == (
            "10 messages of 10 wait",
            "10.0 came in per second of the last minute, and wait 5m",
        )
        assert diagnosis.fix == "write max_length: 3750 for it, and apply"

    def test_h205_a_level_is_nearly_full(self) -> None:
        """Without a rate there is nothing to work out."""
        [diagnosis] = found(examination(figures={"delay.5m.queue": replace(IDLE, ready=8)}), "H205")

        assert (diagnosis.message, diagnosis.severity) == ("delay.5m.queue is 80% full", Severity.WARNING)
        assert diagnosis.fix == "raise max_length before messages leave early"

    def test_h206_early_once_is_a_warning(self) -> None:
        """To know whether it goes on, look twice."""
        [diagnosis] = found(examination(figures={"delay.5m.queue": busy(10, 5)}), "H206")

        assert diagnosis.severity is Severity.WARNING
        assert diagnosis.commands == ("delayctl doctor topology.yaml --watch-for 30s",)

    @pytest.mark.parametrize(
        ("before", "severity"), [(busy(1, 5), Severity.ERROR), (busy(10, 5), Severity.WARNING)], ids=["rising", "over"]
    )
    def test_h206_early_again_and_again_is_an_error(self, before: Figures, severity: Severity) -> None:
        """More than when the watch began: it goes on."""
        earlier = status(figures={"delay.5m.queue": before})

        [diagnosis] = found(examination(figures={"delay.5m.queue": busy(10, 5)}, earlier=earlier), "H206")

        assert diagnosis.severity is severity
        assert any("it goes on" in detail for detail in diagnosis.details) == (severity is Severity.ERROR)

    def test_h207_a_consumer(self) -> None:
        """By the name of its connection."""
        takers = {"delay.5m.queue": (Client("10.0.0.1:5 -> 10.0.0.2:5672", "shop", "mailer"),)}
        figures = {"delay.5m.queue": replace(IDLE, consumers=1)}

        [diagnosis] = found(examination(figures=figures, clients=Clients(takers=takers)), "H207")

        assert diagnosis.details == ("consumed by 10.0.0.1:5 -> 10.0.0.2:5672 (mailer) of user shop",)

    def test_h208_a_client_holds_a_message(self) -> None:
        """A consumer is a finding of its own."""
        held = replace(IDLE, unacknowledged=1)

        assert codes(examination(figures={"delay.5m.queue": held})) == ["H208"]
        assert codes(examination(figures={"delay.5m.queue": replace(held, consumers=1)})) == ["H207"]

    def test_h209_overdue_behind_a_longer_ttl(self) -> None:
        """A policy has made it shorter; what came before it has the old time."""
        live = replace(live_of(SHOP), policies=(SHORTER,))
        stuck = busy(0, 1)

        [diagnosis] = found(examination(live=live, figures={"delay.5m.queue": stuck}), "H209")

        assert diagnosis.details == (
            "its TTL in force is 1s by policy shorter; what came before that has the queue's own, 5m, and leaves by then",
        )

    def test_h209_overdue_for_another_reason(self) -> None:
        """The queue's own TTL is in force: an older policy gave the message a longer one."""
        [diagnosis] = found(examination(figures={"delay.1m.queue": busy(0, 1)}), "H209")

        assert diagnosis.details == ("its TTL in force is 1m; what is in front came when a longer one was",)
        assert diagnosis.commands[-1] == "delayctl expedite topology.yaml --level 1m --all --dry-run"

    def test_h209_what_is_blocked_for_a_known_reason_is_not_told_twice(self) -> None:
        """What nobody takes, or a client holds, is a finding of its own."""
        blocked = replace(busy(0, 1), dead_lettering=40)

        assert codes(examination(figures={"delay.1m.queue": blocked})) == ["H202", "H204"]

    def test_h210_lint_knows_transient_messages(self) -> None:
        """A warning here as there."""
        assert [d.severity for d in found(examination(lint=(finding("D402"),)), "H210")] == [Severity.WARNING]


class TestPlaces:
    """On which nodes, with how many replicas, in queues that stay."""

    def test_h211_a_classic_queue_whose_node_is_down(self) -> None:
        """It is nowhere else."""
        [diagnosis] = found(examination(figures={"delay.5m.queue": Figures(state="down", node="rabbit@a")}), "H211")

        assert diagnosis.details == ("it is on rabbit@a alone",)

    def test_h211_a_quorum_queue_without_a_majority(self) -> None:
        """The broker calls it running all the same."""
        figures = replace(IDLE, members=MEMBERS, online=MEMBERS[:1])

        [diagnosis] = found(examination(figures={"delay.5m.queue": figures}), "H211")

        assert diagnosis.details == ("1 of 3 replicas, those on rabbit@b, rabbit@c are missing",)
        assert diagnosis.commands == ("rabbitmq-queues quorum_status --vhost / delay.5m.queue",)

    def test_h212_a_replica_is_missing(self) -> None:
        """Two of three go on."""
        figures = replace(IDLE, members=MEMBERS, online=MEMBERS[:2])

        assert codes(examination(figures={"delay.5m.queue": figures})) == ["H212"]

    @pytest.mark.parametrize(
        ("nodes", "members", "commands"),
        [
            (THREE, MEMBERS[:1], 2),
            ((*THREE, Node("rabbit@d"), Node("rabbit@e")), MEMBERS, 0),
            (THREE[:2], MEMBERS[:2], 0),
        ],
        ids=["one of three", "three of five", "two of two"],
    )
    def test_h213_few_replicas(self, nodes: tuple[Node, ...], members: tuple[str, ...], commands: int) -> None:
        """Three are enough, and no more than there are nodes."""
        figures = {"delay.5m.queue": replace(IDLE, members=members, online=members)}

        diagnoses = found(examination(figures=figures, nodes=nodes), "H213")

        assert sum(len(diagnosis.commands) for diagnosis in diagnoses) == commands

    @pytest.mark.parametrize(
        ("leaders", "is_skewed"),
        [("aaa", True), ("aab", False), ("abc", False), ("aaaaaa", True), ("aaaabc", True), ("aaabbc", False)],
    )
    def test_h214_leaders_on_one_node(self, leaders: str, is_skewed: bool) -> None:
        """One more than its share is nothing to speak of."""
        desired = shop(" ".join(f"{number}m" for number in range(1, len(leaders) + 1)), routes=())
        figures = {
            f"delay.{number}m.queue": replace(IDLE, node=f"rabbit@{leader}", members=MEMBERS, online=MEMBERS)
            for number, leader in enumerate(leaders, start=1)
        }

        diagnoses = found(examination(desired, figures=figures, nodes=THREE), "H214")

        assert [diagnosis.at for diagnosis in diagnoses] == ["rabbit@a"] * is_skewed

    def test_h214_is_not_asked_while_a_node_is_down(self) -> None:
        """Leaders go where they can."""
        figures = dict.fromkeys(live_of(LEVELS).queues, replace(IDLE, node="rabbit@a"))
        nodes = (*THREE[:2], replace(THREE[2], is_running=False))

        assert found(examination(LEVELS, figures=figures, nodes=nodes), "H214") == []

    def test_h214_a_classic_queue_can_not_be_moved(self) -> None:
        """So the fix is another one than for quorum queues."""
        figures = dict.fromkeys(live_of(LEVELS).queues, replace(IDLE, node="rabbit@a"))

        [diagnosis] = found(examination(LEVELS, figures=figures, nodes=THREE), "H214")

        assert diagnosis.fix.startswith("a classic queue stays where it was declared")

    @pytest.mark.parametrize(
        ("queue", "how"),
        [
            (Queue("orders.queue", durable=False), "it does not outlive a restart of its node (not durable)"),
            (Queue("orders.queue", auto_delete=True), "it goes with its last consumer (auto-delete)"),
            (
                Queue("orders.queue", Settings(expires=Duration(60_000))),
                "it is deleted when unused for 1m (expires)",
            ),
        ],
        ids=["transient", "auto-delete", "expires"],
    )
    def test_h215_a_target_that_does_not_stay(self, queue: Queue, how: str) -> None:
        """Whatever comes out after it has gone has no way to go."""
        live = live_of(SHOP)

        [diagnosis] = found(examination(live=replace(live, queues={**live.queues, queue.name: queue})), "H215")

        assert diagnosis.message == f"orders.queue does not stay: {how}"

    def test_the_queue_that_catches_canaries_is_no_target(self) -> None:
        """It is meant to go, and nobody but delayctl verify consumes it."""
        live = live_of(SHOP)
        catcher = Queue("delay.verify.queue", Settings(expires=Duration(86_400_000)))
        way = Binding(SHOP.exit, "queue", catcher.name, "delay.verify.#")
        live = replace(live, queues={**live.queues, catcher.name: catcher}, bindings=live.bindings | {way})

        assert codes(examination(live=live, figures={catcher.name: IDLE})) == []


class TestParked:
    """What went no further, and why."""

    def test_h301_by_key(self) -> None:
        """Which has a route by now, which has none, and which looks like a slip."""
        seen = (
            *[Seen("order.craeted", waited_in="delay.5m.queue")] * 2,
            Seen("order.created"),
            Seen("mail"),
        )
        figures = {"delay.unrouted.queue": replace(IDLE, ready=7)}
        earlier = status(figures={"delay.unrouted.queue": replace(IDLE, ready=5)})

        [diagnosis] = found(
            examination(figures=figures, looks={"delay.unrouted.queue": Look(seen)}, earlier=earlier), "H301"
        )

        assert diagnosis.details == (
            "2 × key 'order.craeted', waited in delay.5m.queue: no route; 'order.created' has one",
            "1 × key 'order.created': has a route by now",
            "1 × key 'mail': no route",
            "that is the first 4 of 7",
            "2 messages more within 10s",
        )

    def test_h301_what_has_routes_only_needs_to_be_moved(self) -> None:
        """There is nothing to apply."""
        looks = {"delay.unrouted.queue": Look((Seen("order.created"),))}

        [diagnosis] = found(examination(figures={"delay.unrouted.queue": replace(IDLE, ready=1)}, looks=looks), "H301")

        assert diagnosis.fix == "they have a route by now: move them back"
        assert diagnosis.commands[0] == "delayctl redrive topology.yaml --queue delay.unrouted.queue --dry-run"

    def test_h301_canaries_need_no_route(self) -> None:
        """Where nothing else is parked, it may be purged."""
        seen = tuple(Seen(f"delay.verify.cafe.{n}", waited_in="delay.5m.queue", is_canary=True) for n in range(2))
        figures = {"delay.unrouted.queue": replace(IDLE, ready=2)}

        [diagnosis] = found(examination(figures=figures, looks={"delay.unrouted.queue": Look(seen)}), "H301")

        assert diagnosis.severity is Severity.WARNING
        assert diagnosis.details == ("2 × a canary of delayctl verify, waited in delay.5m.queue: needs no route",)
        assert diagnosis.fix == "they need no route: purge the queue, nothing else is in it"
        assert diagnosis.commands == ("rabbitmqctl purge_queue -p / delay.unrouted.queue",)

    @pytest.mark.parametrize(
        ("seen", "fix"),
        [
            (
                (Seen("mail"), Seen("k", is_canary=True)),
                "add routes for their keys to the file and apply it, then move",
            ),
            ((Seen("order.created"), Seen("k", is_canary=True)), "they have a route by now: move them back"),
            ((Seen("k", is_canary=True),), "add routes for their keys to the file and apply it, then move"),
        ],
        ids=["with one that has no route", "with one that has", "not all were looked at"],
    )
    def test_h301_canaries_among_others(self, seen: tuple[Seen, ...], fix: str) -> None:
        """What is said is said of the others, and nothing is purged."""
        figures = {"delay.unrouted.queue": replace(IDLE, ready=2)}

        [diagnosis] = found(examination(figures=figures, looks={"delay.unrouted.queue": Look(seen)}), "H301")

        assert (diagnosis.severity, diagnosis.fix.startswith(fix)) == (Severity.ERROR, True)
        assert not any("purge" in command for command in diagnosis.commands)

    def test_h301_by_the_way_that_redrive_would_go(self) -> None:
        """What the ladder has no step for needs no route, but a longer ladder."""
        headers = {"delay-top": "30", "delay-30": True}
        seen = Seen("order.created", exchange="delay.any.exchange", headers=headers)
        text = "version: 1\ndelay: any\nroutes:\n  - {key: order.created, delay: any, to: orders.queue}\n"
        desired = expand(read_spec(text, {}, file="topology.yaml"))
        figures = {"delay.unrouted.queue": replace(IDLE, ready=1)}

        [diagnosis] = found(
            examination(desired, figures=figures, looks={"delay.unrouted.queue": Look((seen,))}), "H301"
        )

        assert diagnosis.details == ("1 × key 'order.created': delay.any.exchange has no step '30' for it",)
        assert diagnosis.fix.startswith("give the ladder (any) more steps")

    def test_h301_many_keys(self) -> None:
        """The most frequent are named."""
        seen = tuple(Seen(f"key{number}") for number in range(8))
        figures = {"delay.unrouted.queue": replace(IDLE, ready=8)}

        [diagnosis] = found(examination(figures=figures, looks={"delay.unrouted.queue": Look(seen)}), "H301")

        assert len(diagnosis.details) == 6
        assert diagnosis.details[-1] == "and 3 other kinds"

    def test_h301_a_slip_among_many_keys(self) -> None:
        """It is named before those that are as frequent, since it tells what to do."""
        seen = tuple(Seen(key) for key in (*(f"key{number}" for number in range(8)), "order.craeted"))
        figures = {"delay.unrouted.queue": replace(IDLE, ready=9)}

        [diagnosis] = found(examination(figures=figures, looks={"delay.unrouted.queue": Look(seen)}), "H301")

        assert diagnosis.details[0] == "1 × key 'order.craeted': no route; 'order.created' has one"
        assert diagnosis.details[-1] == "and 4 other kinds"

    def test_h302_by_reason(self) -> None:
        """As the consumer wrote it."""
        looks = {
            "orders.dlq": Look(
                (Seen("delay.park.x", "ValueError: no such order", first_key="order.created"), Seen("order.created"))
            )
        }
        figures = {"orders.dlq": replace(IDLE, ready=2)}

        [diagnosis] = found(examination(figures=figures, looks=looks, parks=("orders.dlq",)), "H302")

        assert (diagnosis.severity, diagnosis.details) == (
            Severity.WARNING,
            (
                "1 × key 'order.created': ValueError: no such order",
                "1 × key 'order.created': no reason given",
            ),
        )

    def test_what_was_not_looked_into_is_said(self) -> None:
        """With the reason."""
        looks = {"orders.dlq": Look(obstacle="it is dark")}
        figures = {"orders.dlq": replace(IDLE, ready=2)}

        [diagnosis] = found(examination(figures=figures, looks=looks, parks=("orders.dlq",)), "H302")

        assert diagnosis.details == ("not looked into: it is dark",)


class TestSettings:
    """What differs, and who set it."""

    def test_h401_drift(self) -> None:
        """What is missing, and what apply can't mend."""
        live = live_of(SHOP)
        way = Binding("delay.exchange", "queue", "orders.queue", "order.created")

        [diagnosis] = found(examination(live=replace(live, bindings=live.bindings - {way})), "H401")

        assert diagnosis.details == ("missing: binding delay.exchange → [order.created] orders.queue",)
        assert diagnosis.commands == ("delayctl plan topology.yaml", "delayctl apply topology.yaml")

    def test_h401_nothing_was_applied(self) -> None:
        """One finding for all of it."""
        diagnoses = found(examination(live=Live("4.3.6")), "H401")

        assert [(d.message, d.details) for d in diagnoses] == [("nothing of the topology is on the broker", ())]

    def test_h402_a_policy_is_told_once(self) -> None:
        """Not as drift as well; with the command that clears it."""
        live, said = bent()

        examined = examination(live=live, lint=said)

        assert codes(examined) == ["H402"]
        assert found(examined, "H402")[0].commands == ("rabbitmqctl clear_policy -p / shorter",)

    def test_h402_an_operator_policy(self) -> None:
        """Which only an administrator may clear."""
        live = replace(live_of(SHOP), operator_policies=(SHORTER,))
        said = lint(recorded_spec(SHOP), SHOP, live=live, rules=RULES).findings

        [diagnosis] = found(examination(live=live, lint=said), "H402")

        assert diagnosis.commands == ("rabbitmqctl clear_operator_policy -p / shorter",)

    def test_h403_a_user_without_its_rights(self) -> None:
        """Lint knows; permissions prints what to grant."""
        [diagnosis] = found(examination(lint=(finding("D404"),)), "H403")

        assert (diagnosis.severity, diagnosis.commands) == (Severity.ERROR, ("delayctl permissions topology.yaml",))

    def test_h404_what_the_record_remembers(self) -> None:
        """Only where there is no file to say what there should be."""
        live = live_of(SHOP)
        queues = {name: queue for name, queue in live.queues.items() if name != "delay.5m.queue"}
        damaged = replace(live, queues=queues)
        assert damaged.record is not None
        desired = recorded_topology(damaged, damaged.record, prefix="", levels=SHOP.levels[:1], ladder=None)

        [diagnosis] = found(examination(desired, damaged, file=None), "H404")

        assert diagnosis.message == "of what was applied, queue delay.5m.queue is not there any more"
        assert found(examination(live=damaged), "H404") == []

    def test_h405_what_plan_warns_of(self) -> None:
        """A stranger behind an entrance."""
        live = live_of(SHOP)
        stranger = Binding("delay.5m.exchange", "queue", "orders.queue", "#")

        diagnoses = found(examination(live=replace(live, bindings=live.bindings | {stranger})), "H405")

        assert [diagnosis.severity for diagnosis in diagnoses] == [Severity.INFO]

    def test_h406_what_lint_says_of_the_broker(self) -> None:
        """With its own code, weight, reason and fix, and with what is there that no file asks for."""
        live = live_of(SHOP)
        second = Binding("orders.exchange", "queue", "orders.queue", "order.*")

        [diagnosis] = found(
            examination(live=replace(live, bindings=live.bindings | {second}), lint=(finding("D103"),)), "H406"
        )

        assert (diagnosis.severity, diagnosis.at) == (Severity.ERROR, "delay.5m.queue")
        assert (diagnosis.message, diagnosis.reason) == ("D103 it says (D103)", "for a reason")
        assert (diagnosis.fix, diagnosis.commands) == ("mend it", ("delayctl validate topology.yaml --live",))
        assert diagnosis.details == ("binding orders.exchange → [order.*] orders.queue is not in the file",)

    def test_h406_a_limit_names_its_policy(self) -> None:
        """Which may be an operator's."""
        limit = replace(SHORTER, pattern="^orders", definition=(("max-length", 5),))
        said = (replace(finding("D212"), at="orders.queue"),)

        [diagnosis] = found(examination(live=replace(live_of(SHOP), operator_policies=(limit,)), lint=said), "H406")

        assert diagnosis.details == ("operator policy 'shorter' applies to it",)

    @pytest.mark.parametrize("code", ["D208", "D401", "D402", "D403", "D404"])
    def test_h406_leaves_to_others_what_they_tell(self, code: str) -> None:
        """Each has a check of its own, or a command."""
        assert found(examination(lint=(finding(code),)), "H406") == []

    def test_h406_is_silent_where_another_check_speaks_of_the_same_queue(self) -> None:
        """A full wait is told once; what is only told is not told here."""
        full = {"delay.5m.queue": replace(IDLE, ready=10)}
        examined = examination(shop("1m 5m", max_length=10), figures=full, lint=(finding("D205"),))
        told = replace(finding("D108"), severity=Severity.INFO)

        assert (codes(examined), found(examination(lint=(told,)), "H406")) == (["H204"], [])


class TestClients:
    """Who is connected, and who is not."""

    def test_h501_blocked_connections(self) -> None:
        """The first few are named."""
        clients = Clients(blocked=tuple(Client(f"c{number}") for number in range(7)))

        [diagnosis] = found(examination(clients=clients), "H501")

        assert diagnosis.message.startswith("7 connections can't publish")
        assert diagnosis.details == ("c0, c1, c2, c3, c4 and 2 more",)

    def test_h502_publishers_without_confirms(self) -> None:
        """They never hear what became of their messages."""
        [diagnosis] = found(examination(clients=Clients(unconfirmed=(Client("c", "shop"),))), "H502")

        assert diagnosis.message == "1 connection publishes without confirms"
        assert diagnosis.details == ("c of user shop",)

    def test_h503_nobody_consumes(self) -> None:
        """It may well be meant so."""
        diagnoses = found(examination(figures={"orders.queue": IDLE}), "H503")

        assert [(d.severity, d.message) for d in diagnoses] == [(Severity.INFO, "nobody consumes orders.queue")]


class TestAgreement:
    """Status and doctor judge alike."""

    @pytest.mark.parametrize(
        "figures",
        [
            {"delay.5m.queue": replace(IDLE, ready=10)},
            {"delay.5m.queue": replace(IDLE, consumers=1)},
            {"delay.5m.queue": replace(IDLE, unacknowledged=1)},
            {"delay.5m.queue": replace(IDLE, dead_lettering=40)},
            {"delay.5m.queue": Figures(state="down")},
            {"delay.5m.queue": busy(0, 1)},
            {"delay.unrouted.queue": replace(IDLE, ready=1)},
        ],
        ids=["full", "consumed", "held", "untaken", "down", "overdue", "unrouted"],
    )
    def test_what_is_unhealthy_is_an_error(self, figures: dict[str, Figures]) -> None:
        """As many, with the same words."""
        examined = examination(figures=figures)

        unhealthy = {r.what for r in verdict(examined.status, source="t") if r.severity == "unhealthy"}

        assert unhealthy == {d.message for d in diagnose(CHECKS, examined) if d.severity is Severity.ERROR}

    def test_the_gravest_comes_first(self) -> None:
        """Then by code."""
        figures = {"orders.queue": IDLE, "delay.1m.queue": replace(IDLE, ready=9), "delay.5m.queue": busy(10, 10)}

        assert codes(examination(figures=figures)) == ["H204", "H205", "H206", "H503"]


class TestTheRecord:
    """What is known where there is no file."""

    def test_a_topology_as_it_is_remembered(self) -> None:
        """Its own objects as they are, and nobody else's."""
        live = live_of(SHOP)
        live = replace(live, queues={**live.queues, "theirs": Queue("theirs")})
        assert live.record is not None

        assert recorded_topology(live, live.record, prefix="", levels=SHOP.levels, ladder=None) == SHOP

    def test_where_retries_end(self) -> None:
        """The queues that the exit leads to by a key for parking."""
        way = Binding("delay.exchange", "queue", "orders.dlq", "delay.park.orders.dlq")

        assert recorded_parks(replace(SHOP, bindings=(*SHOP.bindings, way))) == ("orders.dlq",)
        assert recorded_parks(SHOP) == ()

    def test_its_nodes_are_looked_at_as_ever(self) -> None:
        """A file makes no difference to them."""
        assert codes(examination(file=None, nodes=(replace(ALONE[0], memory_alarm=True),))) == ["H101"]
