"""A plan on disk: the same when it comes back, or refused."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from typing import Any

import pytest
from delayctl.topology.diff import diff
from delayctl.topology.errors import PlanUnreadable
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings, freeze_arguments
from delayctl.topology.plan import Create, Delete, Difference, Plan, Refusal, Replace, Update
from delayctl.topology.plan_file import FORMAT, dump_plan, load_plan
from delayctl.topology.record import Record, record_of

from tests.support.examples import first_plan, live_of, shop

SHOP = shop("5m")
NESTED = freeze_arguments({"x-match": "all", "list": [1, 2.5, True, None], "table": {"is": "set", "items": ["ü"]}})


def all_kinds() -> Plan:
    """A plan with one of everything in it."""
    queue, exchange = Queue("q", Settings("quorum", max_length=5), extra=NESTED), Exchange("e", extra=NESTED)
    binding, policy = Binding("e", "queue", "q", "ключ", NESTED), Policy("p", "^q$", "queues", 1, NESTED)
    return Plan(
        vhost="/",
        prefix="shop.",
        changes=(
            Create(binding, 1),
            Update(policy, policy, (Difference("ha-params", ("a", "b"), None),), 2),
            Replace(queue, queue, (Difference("x-max-length", 5, None),), (binding,), 3, accept_loss=True),
            Delete(exchange, 4),
        ),
        refusals=(Refusal("queue q", "why", "fix", (Difference("a", NESTED, ()),), blocking=True),),
        warnings=("careful",),
        record=record_of([queue, exchange, binding, policy]),
        intent=Record(restore=frozenset({binding})),
        existing=SHOP.existing,
        fingerprint="abc",
    )


@pytest.mark.parametrize(
    "plan",
    [first_plan(SHOP), diff(shop("1m 5m", max_length=9), live_of(SHOP, {"delay.5m.queue": 1})), all_kinds()],
    ids=["first", "with refusal", "all kinds"],
)
def test_a_plan_comes_back_as_it_was(plan: Plan) -> None:
    """Every value of it, sets and nested arguments included."""
    assert load_plan(dump_plan(plan), file="saved.plan") == plan


@pytest.mark.parametrize("aim", ["shop('5m', max_length=9)", "empty_topology('')"])
def test_the_same_plan_is_the_same_file(aim: str) -> None:
    """Although records are sets, whose order changes from run to run: of Python, that is."""
    program = (
        "from delayctl.topology.diff import diff, empty_topology\n"
        "from delayctl.topology.plan_file import dump_plan\n"
        "from tests.support.examples import live_of, shop\n"
        f"print(dump_plan(diff({aim}, live_of(shop('1s 1m 5m'), {{'delay.5m.queue': 3}}))))"
    )

    texts = {
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(texts) == 1


def content() -> Any:
    """A saved plan, taken apart."""
    return json.loads(dump_plan(first_plan(SHOP)))


def test_a_plan_that_was_changed_is_refused() -> None:
    """One name in it is another now."""
    text = dump_plan(first_plan(SHOP)).replace("orders.queue", "orders.other")

    with pytest.raises(PlanUnreadable) as caught:
        load_plan(text, file="saved.plan")
    assert str(caught.value) == (
        "Error: the plan was changed or damaged after it was made\n"
        "  at saved.plan\n"
        "  fix: make it anew: delayctl plan topology.yaml --out FILE"
    )


@pytest.mark.parametrize("version", [0, 1])
def test_a_plan_of_another_format_is_refused(version: int) -> None:
    """The file says which it is."""
    text = json.dumps(content() | {"format": f"delayctl plan {version}"})

    with pytest.raises(PlanUnreadable, match=f"the plan is of another format: 'delayctl plan {version}'"):
        load_plan(text, file="saved.plan")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not JSON",
        "null",
        "[]",
        '"text"',
        "{}",
        "[" * 100_000,
        "9" * 10_000,
        json.dumps({"format": FORMAT}),
        json.dumps({"format": FORMAT, "digest": "x"}),
        json.dumps(content() | {"digest": None}),
        dump_plan(first_plan(SHOP))[:-100],
    ],
    ids=range(12),
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    """Whatever is in the file, it is not a traceback that a user sees."""
    with pytest.raises(PlanUnreadable):
        load_plan(text, file="saved.plan")


@pytest.mark.parametrize(
    "body",
    [
        None,
        "text",
        {"is": "Plan"},
        {"is": "Unknown"},
        {"is": ["Plan"]},
        {"is": "set"},
        {"is": "set", "items": [{"is": "set", "items": []}]},
        {"is": "Record", "exchanges": {"is": "set", "items": []}, "unknown": 1},
        {"name": "without a class"},
        {"is": "Binding", "source": "a", "kind": "queue", "destination": "b"},
    ],
    ids=str,
)
def test_a_body_that_is_no_plan_is_refused(body: object) -> None:
    """Also one whose digest is right, as of a version that knew other classes."""
    with pytest.raises(PlanUnreadable):
        load_plan(json.dumps({"format": FORMAT, "digest": digest(body), "plan": body}), file="saved.plan")


def digest(body: object) -> str:
    """The digest that such a file would carry."""
    return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def test_names_stay_readable() -> None:
    """A plan is looked at before it is applied."""
    assert "ключ" in dump_plan(all_kinds())
