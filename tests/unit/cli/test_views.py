"""Values to text and JSON, compared whole."""

import json
from dataclasses import replace

import click
import pytest
from delayctl.cli.views import (
    applied_text,
    left_text,
    outcome_text,
    outcomes_json,
    plan_json,
    plan_text,
    resource_json,
    to_json_text,
)
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.errors import Refused, Unreachable
from delayctl.topology.execute import Done, Failed, Outcome, Skipped
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Resource, freeze_arguments
from delayctl.topology.plan import Create, Difference, Plan, Refusal
from delayctl.topology.record import Record
from delayctl.topology.spec import ExchangeSpec

from tests.support.examples import first_plan, live_of, shop
from tests.support.golden import check_golden

DESIRED = shop("1m 5m", settings="policy", max_length=99)
THEIR_POLICY = Policy("theirs", "^delay\\.1m", "queues", 20, freeze_arguments({"expires": 60_000}))


def eventful() -> Plan:
    """A plan with every kind of change, a refusal and a warning."""
    before = shop("1m 5m 1h", settings="policy")
    live = live_of(before, {"orders.queue": 1_500, "delay.1h.queue": 2})
    queues = {**live.queues, "orders.queue": Queue("orders.queue", extra=freeze_arguments({"x-max-priority": 5}))}
    queues["their.queue"] = Queue("their.queue")
    exchanges = {**live.exchanges, "delay.5m.exchange": Exchange("delay.5m.exchange", "direct")}
    missing = Binding("delay.exchange", "queue", "orders.queue", "order.created")
    stranger = Binding("delay.5m.exchange", "queue", "their.queue", "#")
    return diff(
        DESIRED,
        replace(
            live,
            queues=queues,
            exchanges=exchanges,
            bindings=live.bindings - {missing} | {stranger},
            policies=(*live.policies, THEIR_POLICY),
        ),
        accept_loss=["delay.1h.queue"],
    )


def shown(plan: Plan, version: str = "4.3.6") -> str:
    """A plan as a pipe gets it: without colours."""
    return click.unstyle(plan_text(plan, source="topology.yaml", version=version)) + "\n"


class TestPlan:
    """What plan prints."""

    def test_a_first_plan(self) -> None:
        """Everything is to be made."""
        check_golden("plan_first.txt", shown(diff(shop("1m 5m"), Live())))

    def test_a_first_plan_with_policies(self) -> None:
        """Their definitions are shown where queues have none of their own."""
        check_golden("plan_first_policies.txt", shown(diff(shop("5m", settings="policy", type="quorum"), Live())))

    def test_an_eventful_plan(self) -> None:
        """Every symbol, differences, refusals with their fix, warnings, and the summary."""
        check_golden("plan_eventful.txt", shown(eventful()))

    def test_names_can_not_move_a_cursor(self) -> None:
        """Others name objects too: what a terminal would obey is shown by its number."""
        name, plan = "\x1b[2J", first_plan(shop("5m"))
        binding = Create(Binding("delay.exchange", "queue", name, "k\n"), 1)
        refusal = Refusal(f"queue {name}", f"is {name}'s", f"ask {name}")
        made = replace(plan, vhost=name, changes=(binding,), refusals=(refusal,), warnings=(f"policy {name}",))

        text = shown(made) + outcome_text(Done(made.changes[0]))

        assert [line for line in text.splitlines() if not line.isprintable()] == []
        assert text.count("\\x1b[2J") == 7

    def test_a_plan_to_change_a_level(self) -> None:
        """What is done now, what has to be waited for, and how long."""
        plan = diff(shop(max_length=20, levels="5m"), live_of(shop("5m"), {"delay.5m.queue": 3}))
        check_golden("plan_switch.txt", shown(plan))

    def test_what_is_left_is_told_at_the_end(self) -> None:
        """And how to go on."""
        plan = diff(shop(max_length=20, levels="5m"), live_of(shop("5m"), {"delay.5m.queue": 3}))
        assert left_text(plan, source="topology.yaml") == (
            "Not all of topology.yaml is done yet:\n"
            "  level 5m: delay.5m.queue empties by itself (3 messages now, up to 5m), then it is declared anew\n"
            "Go on with the same command at any time; --wait does it all, up to 10m."
        )

    def test_a_plan_to_destroy(self) -> None:
        """What goes, and what can't go yet."""
        plan = diff(empty_topology(""), live_of(shop("1m 5m"), {"delay.5m.queue": 3}))

        check_golden("plan_destroy.txt", shown(plan))

    def test_a_blocked_plan(self) -> None:
        """Nothing is applied, and it says so."""
        desired = shop("5m", exchanges=(ExchangeSpec("orders.exchange", existing=True),))

        check_golden("plan_blocked.txt", shown(diff(desired, Live())))

    def test_what_is_unusual_is_told(self) -> None:
        """Lifetimes, further arguments, and what a headers exchange looks for."""
        headers = freeze_arguments({"x-match": "any", "kind": "order", "vip": True, "count": "5"})
        desired = replace(
            empty_topology(""),
            exchanges=(Exchange("e", "headers", "a", False, True, True, freeze_arguments({"x-owner": "shop"})),),
            queues=(Queue("q", durable=False, auto_delete=True, extra=freeze_arguments({"x-max-priority": 5})),),
            bindings=(Binding("e", "queue", "q", "", headers),),
        )
        live = replace(live_of(desired), bindings=frozenset({Binding("e", "queue", "q", "k", headers)}))
        moved = diff(desired, replace(live, record=Record(frozenset("e"), frozenset("q"), bindings=live.bindings)))
        created = [line.strip() for line in shown(diff(desired, Live())).splitlines() if line.startswith("    ")]

        told = '(count: "5", kind: order, vip: true, x-match: any)'
        assert created == [
            "+ exchange e  (headers, alternate a, not durable, auto-delete, internal, x-owner shop)",
            "+ queue q  (not durable, auto-delete, x-max-priority 5)",
            f"+ binding e → q  {told}",
        ]
        assert f"    - binding e → [k] q  {told}\n" in shown(moved)

    def test_nothing_to_do(self) -> None:
        """Said plainly."""
        assert shown(diff(DESIRED, live_of(DESIRED))) == "No changes. The broker matches topology.yaml.\n"

    def test_nothing_to_do_and_something_to_know(self) -> None:
        """A warning comes first."""
        plan = replace(diff(DESIRED, live_of(DESIRED)), warnings=("mind the gap",))

        assert shown(plan) == "Warning: mind the gap\n\nNo changes. The broker matches topology.yaml.\n"

    def test_the_version_is_shown_where_it_is_known(self) -> None:
        """Over AMQP alone it is not."""
        plan = diff(shop("1m 5m"), Live())

        assert shown(plan).splitlines()[0] == "topology.yaml → virtual host /, RabbitMQ 4.3.6"
        assert shown(plan, version="").splitlines()[0] == "topology.yaml → virtual host /"

    def test_symbols_are_coloured(self) -> None:
        """A terminal gets colours; click takes them away elsewhere."""
        text = plan_text(eventful(), source="topology.yaml", version="")

        assert [code in text for code in ("\x1b[32m", "\x1b[33m", "\x1b[31m")] == [True] * 3

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, "not set"),
            (10, "10"),
            (True, "true"),
            ("drop-head", "drop-head"),
            ("60000", '"60000"'),
            (("rabbit@a", "rabbit@b"), '["rabbit@a", "rabbit@b"]'),
            (freeze_arguments({"a": {"b": [1]}})[0][1], '{"b": [1]}'),
        ],
    )
    def test_any_value_can_be_shown(self, value: object, text: str) -> None:
        """As JSON where it is no plain word."""
        plan = replace(
            diff(DESIRED, live_of(DESIRED)),
            refusals=(Refusal("queue q", "why", "how", (Difference("x-some", value, "other"),)),),
        )

        assert f"        x-some: {text} → other" in shown(plan).splitlines()


def outcomes() -> tuple[Plan, list[Outcome]]:
    """An eventful apply that met a refusal half way."""
    plan = eventful()
    *done, refused, skipped = plan.changes
    error = Refused("queue 'delay.1h.queue' in vhost '/' not empty", code=406, fix="apply again once it is empty")
    return plan, [*map(Done, done), Failed(refused, error), Skipped(skipped)]


class TestApply:
    """What apply prints."""

    def test_an_apply_that_failed_half_way(self) -> None:
        """One line per change as it happens, the error with its fix, and the summary."""
        plan, happened = outcomes()
        lines = [*map(outcome_text, happened), applied_text(plan, happened)]

        check_golden("apply_failed.txt", click.unstyle("\n".join(lines)) + "\n")

    def test_an_apply_that_worked(self) -> None:
        """Nothing is missed, nothing is refused."""
        plan = diff(shop("1m 5m"), Live())
        happened = [Done(change) for change in plan.changes]
        lines = [*map(outcome_text, happened), applied_text(plan, happened)]

        check_golden("apply_first.txt", "\n".join(lines) + "\n")

    def test_an_error_without_a_fix_is_one_line(self) -> None:
        """No empty fix."""
        (change, *_) = diff(shop("1m 5m"), Live()).changes

        assert click.unstyle(outcome_text(Failed(change, Unreachable("gone")))) == (
            "failed exchange delay.unrouted.exchange: gone"
        )


class TestJson:
    """What programs read."""

    def test_an_eventful_plan(self) -> None:
        """Every kind of change, with its differences."""
        plan = replace(eventful(), fingerprint="…")

        check_golden("plan_eventful.json", to_json_text(plan_json(plan, version="4.3.6")) + "\n")

    def test_what_became_of_each_change(self) -> None:
        """Done, failed with its error, or skipped."""
        _, happened = outcomes()

        found = [(item["action"], item["outcome"], item.get("error")) for item in outcomes_json(happened)]

        assert found[-3:] == [
            ("delete", "done", None),
            ("delete", "failed", "queue 'delay.1h.queue' in vhost '/' not empty"),
            ("delete", "skipped", None),
        ]

    @pytest.mark.parametrize(
        ("resource", "expected"),
        [
            (
                Exchange("e", "fanout", "a"),
                {
                    "kind": "exchange",
                    "name": "e",
                    "type": "fanout",
                    "durable": True,
                    "auto_delete": False,
                    "internal": False,
                    "arguments": {"alternate-exchange": "a"},
                },
            ),
            (
                DESIRED.queues[0],
                {
                    "kind": "queue",
                    "name": "delay.1m.queue",
                    "durable": True,
                    "auto_delete": False,
                    "arguments": {
                        "x-queue-type": "classic",
                        "x-dead-letter-exchange": "delay.exchange",
                    },
                },
            ),
            (
                THEIR_POLICY,
                {"kind": "policy", "name": "theirs", "pattern": "^delay\\.1m", "definition": {"expires": 60_000}},
            ),
            (
                Binding("a", "exchange", "b", "k"),
                {
                    "kind": "binding",
                    "source": "a",
                    "destination": "b",
                    "destination_type": "exchange",
                    "routing_key": "k",
                    "arguments": {},
                },
            ),
        ],
        ids=["exchange", "queue", "policy", "binding"],
    )
    def test_an_object_in_the_words_of_the_management_api(self, resource: Resource, expected: object) -> None:
        """Each kind in its own."""
        assert resource_json(resource) == expected

    def test_names_stay_readable(self) -> None:
        """JSON is UTF-8, and a terminal can show it."""
        assert json.loads(to_json_text({"a": "→"})) == {"a": "→"}
        assert "→" in to_json_text({"a": "→"})


def test_an_empty_record_is_no_part_of_a_view() -> None:
    """What delayctl remembers is its own business."""
    plan = replace(diff(DESIRED, live_of(DESIRED)), record=Record())

    assert "record" not in plan_json(plan, version="")
