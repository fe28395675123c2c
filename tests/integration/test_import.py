"""What was made by hand is described, and planning the description changes nothing."""

import json
import secrets
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.commands import Ran, delayctl
from tests.support.hand_made import HandMade
from tests.support.rabbit import Rabbit


@pytest.fixture
def made(rabbit: Rabbit) -> HandMade:
    """A virtual host to fill by hand."""
    return HandMade(rabbit)


def imported(rabbit: Rabbit, file: Path, *options: str) -> tuple[Ran, str]:
    """Import into a file; planning it changes nothing, neither then nor after an apply."""
    before = rabbit.definitions()
    ran = rabbit.delayctl("import", "--out", str(file), *options)
    assert ran.code == 0, ran.err
    planned = rabbit.delayctl("plan", str(file), "--detailed-exitcode")
    assert planned.code == 0, planned.out + planned.err
    assert f"No changes. The broker matches {file}." in planned.out
    assert rabbit.definitions() == before
    return ran, file.read_text(encoding="utf-8")


@pytest.mark.parametrize("exit_type", ["topic", "direct"])
def test_the_well_known_recipe(made: HandMade, tmp_path: Path, exit_type: str) -> None:
    """delay.exchange, three delay queues, bindings made in the management UI."""
    made.recipe(exit_type)

    ran, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "Found 3 waiting queues." in ran.err
    assert "# delay.15m.queue: waits 15m, at most 1,000,000; then to delay.exchange → orders.timeout.queue\n" in text
    assert "#   entered from orders.exchange [order.wait.15m]\n" in text
    assert "#   ! no safety net: delay.exchange has no alternate exchange" in text
    assert "\ndelay: none\n" in text
    assert "  - {from: orders.exchange, key: order.wait.5m, to: delay.5m.queue}\n" in text


def test_an_imported_file_can_be_applied_and_destroys_nothing_else(made: HandMade, tmp_path: Path) -> None:
    """Applying takes the objects over without touching them; then the file is the broker's, and still no changes."""
    made.recipe()
    made.queue("unrelated.queue")
    file = tmp_path / "topology.yaml"
    imported(made.rabbit, file)
    before = made.rabbit.definitions()

    applied = made.rabbit.delayctl("apply", str(file), "--yes")

    assert applied.code == 0, applied.err
    assert made.rabbit.definitions() == before
    again, _ = imported(made.rabbit, tmp_path / "again.yaml")
    assert "Found 3 waiting queues." in again.err


FULL = """
version: 1
delay: {levels: [1m, 5m, 15m]}
exchanges: {orders.exchange: {}}
routes:
  - {from: orders.exchange, key: order.wait.1m, delay: 1m, to: orders.timeout.queue}
  - {from: orders.exchange, key: order.wait.5m, delay: 5m, to: orders.timeout.queue}
  - {from: orders.exchange, key: order.wait.15m, delay: 15m, to: orders.timeout.queue}
"""


def test_the_way_to_a_full_topology(made: HandMade, tmp_path: Path) -> None:
    """As docs/import.md tells it: nothing waiting is touched, nothing is doubled, and the exit comes last."""
    rabbit, file = made.rabbit, tmp_path / "topology.yaml"
    made.recipe()
    imported(rabbit, file)
    assert rabbit.delayctl("apply", str(file), "--yes").code == 0
    made.exchange("delay.5m.exchange", "fanout")
    made.bind("delay.5m.exchange", "delay.5m.queue")
    made.bind_exchange("orders.exchange", "delay.5m.exchange", "order.wait.5m")

    rabbit.publish("orders.exchange", "order.wait.5m", "while both ways are there")
    partly = rabbit.apply_text(FULL)
    rabbit.publish("orders.exchange", "order.wait.5m", "with the new way alone")

    assert partly.code == 3
    assert "! exchange delay.exchange: 1 message would be lost if they expire while it is away" in partly.out
    assert [message.body for message in rabbit.take("delay.5m.queue")] == [
        "while both ways are there",
        "with the new way alone",
    ]
    assert rabbit.apply_text(FULL).code == 0
    assert "No changes." in rabbit.plan_text(FULL).out
    _, text = imported(rabbit, tmp_path / "full.yaml")
    assert "\ndelay:\n  levels: [1m, 5m, 15m]\n" in text


def test_a_prefix_that_is_found_does_not_hide_other_waits(made: HandMade, tmp_path: Path) -> None:
    """Levels of one topology, and a wait that somebody else made beside it."""
    assert made.rabbit.apply_text("version: 1\nprefix: shop.\ndelay: {levels: [1m]}\n").code == 0
    made.default_exchange()

    ran, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "Found 2 waiting queues." in ran.err
    assert "\nprefix: shop.\n" in text
    assert "  work.retry:" in text


def test_two_topologies_are_imported_one_by_one(rabbit: Rabbit, tmp_path: Path) -> None:
    """A file has one prefix, and is one topology."""
    for prefix in ("eu.", "us."):
        assert rabbit.apply_text(f"version: 1\nprefix: {prefix}\ndelay: {{levels: [1m]}}\n").code == 0

    refused = rabbit.delayctl("import")
    _, text = imported(rabbit, tmp_path / "us.yaml", "--prefix", "us.")

    assert refused.code == 1
    assert "fix: import one after the other: --prefix eu., --prefix us." in refused.err
    assert "eu." not in text


def test_everything_on_a_single_direct_exchange(made: HandMade, tmp_path: Path) -> None:
    """Entrance and exit are one exchange, and a dead-letter key leads out."""
    made.single_exchange()

    _, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "# wait_5m: waits 5m, without limit; then to shop as work → work\n" in text
    assert "#   ! a dead-letter routing key is set: whatever key a message had, it comes out as work\n" in text


def test_out_by_the_default_exchange(made: HandMade, tmp_path: Path) -> None:
    """A retry queue with x-dead-letter-exchange '' and a dead-letter key."""
    made.default_exchange()

    _, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "# work.retry: waits 30s, without limit; then to queue work\n" in text
    assert "#   entered by its name\n" in text
    assert "  work: {" in text


def test_made_to_wait_by_a_policy(made: HandMade, tmp_path: Path) -> None:
    """Bare queues wait through a policy, which stays somebody else's."""
    made.by_policy()

    _, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "# delay.1m.queue: waits 1m, without limit; then to delay.exchange → orders.timeout.queue\n" in text
    assert "#   set by policy waits, which is not delayctl's and stays as it is\n" in text


def test_the_policy_that_makes_it_wait_is_not_to_be_cleared(made: HandMade, tmp_path: Path) -> None:
    """It is the delay: nobody calls it a stranger's; and what was not proved of it is said."""
    made.by_policy()
    made.rabbit.await_effective("delay.1m.queue", {"message-ttl": 60_000})
    file = tmp_path / "topology.yaml"
    imported(made.rabbit, file)

    doctor = made.rabbit.delayctl("doctor", str(file))
    linted = made.rabbit.delayctl("validate", str(file), "--live")
    proved = made.rabbit.delayctl("verify", str(file))

    assert (doctor.code, linted.code, proved.code) == (0, 0, 0), doctor.out + linted.out
    assert "clear_policy" not in doctor.out
    assert "delay.1m.queue (1m (policy waits), then to delay.exchange)" in proved.out


def test_a_queue_that_a_policy_bends_is_left_to_its_owner(made: HandMade, tmp_path: Path) -> None:
    """Arguments say one TTL, an operator's policy a shorter one: only existing: true says that without a change."""
    made.recipe()
    made.rabbit.put_policy("shorter", "^delay\\.5m", operator=True, message_ttl=1000)

    ran, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "# delay.5m.queue: waits 1s" in text
    assert "  delay.5m.queue: {" in text
    assert "Warning: queue delay.5m.queue (existing: true): operator policy shorter changes what it does" in ran.err


def test_delayctls_own_shape_is_written_as_levels(made: HandMade, tmp_path: Path) -> None:
    """Somebody made by hand what delayctl makes."""
    made.own_shape()

    _, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "delay:\n  levels: [5m]\n  queue: {max_length: 10}\n" in text
    assert "  - {from: orders.exchange, key: order.created, delay: 5m, to: orders.timeout.queue}\n" in text


@pytest.mark.parametrize("settings", ["arguments", "policy"])
@pytest.mark.parametrize("is_record_lost", [False, True])
def test_a_lost_file_comes_back(rabbit: Rabbit, tmp_path: Path, settings: str, is_record_lost: bool) -> None:
    """What was applied is read back as levels, prefix included, with or without the record."""
    applied = rabbit.apply_text(f"""
version: 1
prefix: shop.
delay: {{levels: {{1m: {{max_length: 7}}, slow: {{ttl: 5m, profile: safe}}}}, settings: {settings}, policy_priority: 7}}
exchanges:
  orders.exchange: {{}}
  fan.exchange: {{type: fanout}}
routes:
  - {{from: orders.exchange, key: [order.created, order.paid], delay: slow, to: [orders.queue, {{exchange: site.exchange}}]}}
  - {{from: fan.exchange, key: order.created, delay: 1m, to: orders.queue}}
  - {{key: store.updated, delay: 1m, to: orders.queue}}
retry:
  orders.queue: {{levels: [1m], max: 3, park: orders.parked}}
""")
    assert applied.code == 0, applied.err
    if is_record_lost:
        rabbit.api("DELETE", "global-parameters/delayctl%3A{vhost}%3Ashop.")

    _, text = imported(rabbit, tmp_path / "topology.yaml")

    assert "\nprefix: shop.\n" in text
    assert "levels:" in text
    assert "    key: [order.created, order.paid]\n    delay: slow\n" in text
    assert "# Keys of retries (shop.delay.park.orders.parked, shop.delay.retry.orders.queue): after" in text


def test_an_odd_corner_of_everything(made: HandMade, tmp_path: Path) -> None:
    """What a file can't say is marked existing or left out, and said; the plan is still empty."""
    made.recipe()
    made.exchange("inner.exchange", "headers", internal=True)
    made.exchange("odd.exchange", "topic", x_list=[1, 2])
    made.queue("stream.queue", x_queue_type="stream")
    made.queue("odd.queue", x_table={"a": 1})
    made.bind("odd.exchange", "delay.1m.queue", "odd")
    made.bind_exchange("odd.exchange", "inner.exchange", "#")
    made.bind("inner.exchange", "delay.1m.queue", tier="gold", **{"x-match": "any"})
    made.bind("inner.exchange", "delay.5m.queue", "a.key", tier="silver")
    made.bind("amq.topic", "delay.5m.queue", "order.#")
    made.bind("delay.exchange", "odd.queue", "order.odd", odd=True)
    made.bind("delay.exchange", "stream.queue", "{{ order }}")

    ran, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "Warning: exchange odd.exchange (existing: true): its argument x-list is a list or a table" in ran.err
    assert "Warning: queue stream.queue (existing: true): the file knows no queues of type stream" in ran.err
    assert "Warning: queue odd.queue (existing: true): its argument x-table is a list or a table" in ran.err
    assert "delay.exchange → [order.odd] odd.queue (left out): it has arguments" in ran.err
    assert "inner.exchange → [a.key] delay.5m.queue (left out): it has the key 'a.key'" in ran.err
    assert "  amq.topic: {type: topic, existing: true}\n" in text
    assert "  inner.exchange: {type: headers, internal: true}\n" in text
    assert "  - {from: inner.exchange, headers: {tier: gold, x-match: any}, to: delay.1m.queue}\n" in text


def test_bindings_to_exclusive_queues_are_left_out(made: HandMade, tmp_path: Path) -> None:
    """Only their owner can bind them, and they are gone with it."""
    made.recipe()
    with made.rabbit.channel() as channel:
        channel.queue_declare("private", exclusive=True)
        channel.queue_bind("private", "delay.exchange", "order.#")

        _, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "  private:" not in text


def test_nothing_to_find(rabbit: Rabbit) -> None:
    """An empty virtual host is said to be so."""
    ran = rabbit.delayctl("import")

    assert (ran.code, ran.out) == (1, "")
    assert f"Error: nothing delays messages in virtual host '{rabbit.vhost}'" in ran.err


def test_what_is_unrelated_is_left_out_unless_asked_for(made: HandMade, tmp_path: Path) -> None:
    """--all describes the whole virtual host."""
    made.recipe()
    made.exchange("other.exchange", "fanout")
    made.queue("other.queue")
    made.bind("other.exchange", "other.queue", "any")
    made.bind("orders.exchange", "other.queue", "order.other")

    _, some = imported(made.rabbit, tmp_path / "some.yaml")
    _, everything = imported(made.rabbit, tmp_path / "everything.yaml", "--all")

    assert "other." not in some
    assert "  other.exchange: {type: fanout}\n" in everything
    assert "  - {from: other.exchange, to: other.queue}\n" in everything
    assert "  - {from: orders.exchange, key: order.other, to: other.queue}\n" in everything


def test_all_of_a_virtual_host_without_delays(made: HandMade, tmp_path: Path) -> None:
    """Without a wait there is still something to describe."""
    made.queue("other.queue")

    assert made.rabbit.delayctl("import").code == 1
    _, text = imported(made.rabbit, tmp_path / "all.yaml", "--all")

    assert "  other.queue: {" in text


def test_a_prefix_narrows_the_search(made: HandMade, tmp_path: Path) -> None:
    """Only waits whose names begin so are looked at."""
    made.recipe()
    made.default_exchange()

    ran, text = imported(made.rabbit, tmp_path / "topology.yaml", "--prefix", "work.")

    assert "Found 1 waiting queue." in ran.err
    assert "delay.1m.queue" not in text


def test_a_prefix_that_no_name_can_begin_with(rabbit: Rabbit) -> None:
    """The file could not say it either."""
    ran = rabbit.delayctl("import", "--prefix", "amq.")

    assert (ran.code, ran.out) == (64, "")
    assert "Error: --prefix 'amq.' can't begin names" in ran.err


def test_nservicebus_is_described_and_left_alone(made: HandMade, tmp_path: Path) -> None:
    """28 quorum levels of NServiceBus, read-only."""
    made.nservicebus("Sales")

    ran, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "Found NServiceBus: 28 levels, delays of 1s to 3106d21h24m15s" in ran.err
    assert "  nsb.v2.delay-level-27: {type: quorum, existing: true}\n" in text
    assert "  nsb.v2.delay-delivery: {type: topic, existing: true}\n" in text
    assert "#   Delivers to Sales\n" in text
    assert text.count("existing: true}") == 28 + 29
    assert "routes:" not in text
    assert "missing" not in text


def test_kombu_is_described_and_left_alone(made: HandMade, tmp_path: Path) -> None:
    """28 classic levels of kombu beside a recipe made by hand; one level is broken."""
    made.kombu("celery")
    made.recipe()
    made.rabbit.api("DELETE", "queues/{vhost}/celery_delayed_3")

    ran, text = imported(made.rabbit, tmp_path / "topology.yaml")

    assert "Found Celery (kombu's native delayed delivery): 27 of 28 levels.\n" in ran.err
    assert (
        "delivery): missing or not as it should be, so that delays which need it get lost: celery_delayed_3\n"
        in ran.err
    )
    assert "Found 3 waiting queues." in ran.err
    assert "  celery_delayed_27: {type: classic, existing: true}\n" in text
    assert "#   ! missing or not as it should be, so that delays which need it get lost: celery_delayed_3\n" in text


def test_a_bare_answer_is_the_file(made: HandMade) -> None:
    """Stdout is the file itself, and JSON says all of it."""
    made.default_exchange()

    printed = made.rabbit.delayctl("import")
    answer = json.loads(made.rabbit.delayctl("import", "--output", "json").out)

    assert printed.out == answer["file"]
    assert [(wait["queue"], wait["ttl_ms"]) for wait in answer["waits"]] == [("work.retry", 30_000)]


def test_a_file_is_not_overwritten_unasked(made: HandMade, tmp_path: Path) -> None:
    """As init does, import keeps what is there."""
    made.default_exchange()
    file = tmp_path / "topology.yaml"
    file.write_text("mine", encoding="utf-8")

    refused = made.rabbit.delayctl("import", "--out", str(file))

    assert refused.code == 1
    assert "the file is there already" in refused.err
    assert file.read_text(encoding="utf-8") == "mine"
    imported(made.rabbit, file, "--force")


def test_a_user_who_is_no_administrator_imports_the_same(made: HandMade) -> None:
    """Definitions are closed to it; the single lists say as much, the broker's own exchanges included."""
    made.recipe()
    made.bind("amq.topic", "delay.5m.queue", "order.#")
    rabbit, name = made.rabbit, f"importer-{made.rabbit.vhost}"
    rabbit.api("PUT", f"users/{name}", {"password": (secret := secrets.token_hex(9)), "tags": "policymaker"})
    try:
        rabbit.api("PUT", f"permissions/{{vhost}}/{name}", {"configure": "^$", "write": "^$", "read": "^$"})
        address = urlsplit(rabbit.broker.url)
        url = f"amqp://{name}:{secret}@{address.hostname}:{address.port}/"
        options = ("--url", url, "--management-url", rabbit.broker.management_url, "--vhost", rabbit.vhost)

        ran = delayctl("import", *options)
    finally:
        rabbit.api("DELETE", f"users/{name}")

    assert ran.code == 0, ran.err
    assert ran.out == rabbit.delayctl("import").out
    assert "  amq.topic: {type: topic, existing: true}\n" in ran.out


def test_an_unfinished_apply_is_finished_first(made: HandMade) -> None:
    """A record that has something to put back can't be described away."""
    made.default_exchange()
    made.exchange("orders.exchange")
    record = {"version": 1, "exchanges": [], "queues": [], "policies": [], "bindings": []}
    name = f"delayctl:{made.rabbit.vhost}:"
    value = {**record, "restore": [["orders.exchange", "queue", "work", "order.created"]]}
    made.rabbit.api("PUT", f"global-parameters/{name.replace(':', '%3A')}", {"name": name, "value": value})

    ran = made.rabbit.delayctl("import")

    assert (ran.code, ran.out) == (1, "")
    assert "the file would change something, and is not handed out" in ran.err
    assert "+ binding orders.exchange → [order.created] work" in ran.err
