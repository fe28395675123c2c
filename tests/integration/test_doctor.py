"""Every finding of the doctor, provoked on a real broker; those that need a broker or a cluster of their own are in tests/faults."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import pika
import pytest

from testbed import RunningBroker
from testbed.wait import until
from tests.conftest import TopologyFile, fresh_vhost
from tests.integration.test_status import published
from tests.support.commands import delayctl
from tests.support.examined import FILE, Answer, Patient
from tests.support.rabbit import Rabbit

SAFE = """\
version: 1
delay: none
exchanges: {nowhere.exchange: {type: topic}, full.exchange: {type: topic}}
queues:
  full.queue: {arguments: {x-max-length: 1, x-overflow: reject-publish}}
  lost.queue: {type: quorum, arguments: {x-message-ttl: 100, x-dead-letter-exchange: nowhere.exchange, KEPT}}
  refused.queue: {type: quorum, arguments: {x-message-ttl: 100, x-dead-letter-exchange: full.exchange, KEPT}}
routes: [{from: full.exchange, key: refused.queue, to: full.queue}]
lint: {ignore: [{rule: D101, reason: what becomes of it is the point}]}
""".replace("KEPT", "x-dead-letter-strategy: at-least-once, x-overflow: reject-publish")


LONG_ILL = """\
version: 1
delay:
  levels:
    1h: {max_length: 10}
    2h: {max_length: 10, overflow: reject-publish}
    3h: {max_length: 30}
    4h: {}
routes: [{key: reminder, delay: 1h, to: out.queue}]
"""
Applied = Callable[[str], Patient]


@pytest.fixture
def applied(rabbit: Rabbit, topology: TopologyFile) -> Applied:
    """Applies a file, and brings it to the doctor."""

    def apply(text: str) -> Patient:
        path = topology.write(text)
        assert rabbit.delayctl("apply", path, "--yes").code == 0
        return Patient(rabbit, path)

    return apply


@contextmanager
def consuming(rabbit: Rabbit, *queues: str) -> Iterator[None]:
    """Somebody who consumes from these queues, and takes nothing."""
    with rabbit.channel() as channel:
        channel.basic_qos(prefetch_count=1)
        for queue in queues:
            channel.basic_consume(queue, lambda *_: None)
        yield


@contextmanager
def load(rabbit: Rabbit, entrance: str) -> Iterator[None]:
    """Somebody who publishes twenty messages a second, until the block ends."""
    over = Event()

    def publish() -> None:
        with rabbit.channel() as channel:
            while not over.wait(0.05):
                channel.basic_publish(entrance, "reminder", b"")

    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish)
        try:
            yield
        finally:
            over.set()
        publishing.result()


@pytest.fixture(scope="module", autouse=True)
def long_ill(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    """Illnesses that take half a minute to show; they begin with the first test, and are looked at by the last."""
    path = tmp_path_factory.mktemp("long-ill") / "topology.yaml"
    path.write_text(LONG_ILL)
    with fresh_vhost(broker) as rabbit:
        assert rabbit.delayctl("apply", str(path), "--yes").code == 0
        rabbit.publish("delay.4h.exchange", "reminder", "old")
        until(lambda: rabbit.queue("delay.4h.queue").get("messages") == 1, 15)
        rabbit.put_policy("shorter", "^delay\\.4h", message_ttl=1000)
        with published(rabbit, "delay.2h.exchange", "delay.3h.exchange", count=25), load(rabbit, "delay.1h.exchange"):
            yield Patient(rabbit, str(path))


def test_nothing_is_wrong(applied: Applied) -> None:
    """No finding but what is only told; by the file and by the broker's record alike."""
    patient = applied(FILE)

    answer = patient.until(lambda a: a.of("H503") and not a.of("H106"), "figures of all")
    by_record = Patient(patient.rabbit, None).examined()
    text = patient.rabbit.delayctl("doctor", str(patient.file), "--strict")

    assert (answer.code, answer.said["healthy"], answer.codes) == (0, True, set())
    assert [finding["message"] for finding in answer.of("H503")] == ["nobody consumes work.queue"]
    assert (by_record.code, by_record.codes, by_record.said["source"]) == (0, set(), None)
    assert by_record.of("H503") == answer.of("H503")
    assert (text.code, text.err) == (0, "")
    assert text.out.startswith(f"well: {patient.file} → virtual host {patient.rabbit.vhost}, RabbitMQ ")


def test_h105_a_version_with_a_bug(applied: Applied) -> None:
    """A quorum queue that overflows does so out of order before 4.2.1; later releases have nothing against it."""
    patient = applied("version: 1\ndelay: {levels: [1h], queue: {type: quorum}}\n")

    answer = patient.examined()

    is_old = answer.said["rabbitmq_version"].startswith("3.")
    assert [finding["severity"] for finding in answer.of("H105")] == ["warning"] * is_old
    assert all("lets them out in the wrong order" in finding["message"] for finding in answer.of("H105"))


def test_h107_a_user_that_may_not_see_the_nodes(applied: Applied) -> None:
    """Nothing but the alarms remains unknown; parked messages may not be looked at, and that is said."""
    patient = applied("version: 1\ndelay: {levels: [10ms]}\nroutes: [{key: a, delay: 10ms, to: work.queue}]\n")
    rabbit, name = patient.rabbit, f"watcher-{patient.rabbit.vhost}"
    rabbit.publish("delay.10ms.exchange", "b", "1")
    patient.until_found("H301")
    rabbit.api("PUT", f"users/{name}", {"password": "secret", "tags": "policymaker"})
    rabbit.api("PUT", f"permissions/{{vhost}}/{name}", {"configure": "^$", "write": "^$", "read": "^$"})
    try:
        url = rabbit.broker.url.replace("guest:guest", f"{name}:secret")
        management = ("--management-url", rabbit.broker.management_url, "--vhost", rabbit.vhost)
        ran = delayctl("doctor", str(patient.file), "--output", "json", "--url", url, *management)
    finally:
        rabbit.api("DELETE", f"users/{name}")

    answer = Answer(ran.code, json.loads(ran.out))
    assert [finding["severity"] for finding in answer.of("H107")] == ["info"]
    assert answer.of("H301")[0]["seen"][0].startswith(f"not looked into: user '{name}' is not permitted")


def test_h201_h401_a_level_that_somebody_deleted(applied: Applied) -> None:
    """Missing by the file; without it, the record knows what has gone (H404)."""
    patient = applied(FILE)
    with patient.rabbit.channel() as channel:
        channel.queue_delete("delay.1h.queue")

    answer, by_record = patient.examined(), Patient(patient.rabbit, None).examined()

    assert (answer.code, answer.codes, by_record.codes) == (1, {"H201", "H401"}, {"H404"})
    assert answer.of("H201")[0]["commands"] == [f"delayctl apply {patient.file}"]
    assert answer.of("H401")[0]["seen"] == [
        "missing: queue delay.1h.queue",
        "missing: binding delay.1h.exchange → delay.1h.queue",
    ]
    assert by_record.of("H404")[0]["message"] == (
        "of what was applied, queue delay.1h.queue, 1 binding are not there any more"
    )
    assert patient.rabbit.delayctl("apply", str(patient.file), "--yes").code == 0
    assert "H201" not in patient.examined().codes


def test_h202_expired_and_nobody_takes_it(applied: Applied) -> None:
    """A few are a warning, 32 block the queue; what stands in the way is named: no route, or a full queue behind it."""
    patient = applied(SAFE)
    patient.rabbit.publish("", "lost.queue", *map(str, range(40)))
    patient.rabbit.publish("", "refused.queue", "1", "2", "3")

    answer = patient.until(
        lambda a: a.code == 1 and any("is full" in line for each in a.of("H202") for line in each["seen"]),
        "a blocked queue, and one that is refused",
    )

    lost, refused = answer.of("H202")
    assert (lost["at"], lost["severity"]) == ("lost.queue", "error")
    assert lost["seen"] == ["exchange nowhere.exchange leads nowhere, and has no alternate exchange for the rest"]
    assert (refused["at"], refused["severity"]) == ("refused.queue", "warning")
    assert refused["seen"][0] == "full.queue, behind it, is full with 1 message and refuses more"
    assert refused["fix"] == "let consumers of full.queue catch up, or raise its limit"


def test_h203_the_exit_is_gone(applied: Applied) -> None:
    """What expires is lost; apply puts the exit back."""
    patient = applied(FILE)
    with patient.rabbit.channel() as channel:
        channel.exchange_delete("delay.exchange")

    answer = patient.examined()

    assert answer.codes == {"H203", "H401"}
    assert answer.of("H203")[0]["message"].endswith("which is not on the broker: what has waited is lost")


def test_h207_somebody_consumes_from_a_level(applied: Applied) -> None:
    """And is named, so that it can be found."""
    patient = applied(FILE)
    with consuming(patient.rabbit, "delay.1h.queue"):
        answer = patient.until(lambda a: a.of("H207") and a.of("H207")[0]["seen"], "the consumer")

    assert answer.code == 1
    assert answer.of("H207")[0]["seen"][0].startswith("consumed by ")
    assert answer.of("H207")[0]["seen"][0].endswith(" of user guest")


def test_h208_somebody_holds_a_message(applied: Applied) -> None:
    """What is held can't expire."""
    patient = applied(FILE)
    patient.rabbit.publish("delay.1h.exchange", "order.created", "a")
    with patient.rabbit.channel() as channel:
        until(lambda: channel.basic_get("delay.1h.queue")[0], 10)
        answer = patient.until_found("H208")

    assert answer.of("H208")[0]["message"] == "1 message of delay.1h.queue is held by a client, and can't expire"


def test_h210_transient_messages(applied: Applied) -> None:
    """They wait, and would not outlive a restart."""
    patient = applied(FILE)
    with published(patient.rabbit, "delay.1h.exchange", count=2):
        answer = patient.until_found("H210")

    assert answer.of("H210")[0]["message"].startswith("2 of 2 messages waiting in delay.1h.queue are transient")


def test_h215_queues_that_do_not_stay(applied: Applied) -> None:
    """A target that goes with its consumer, and a wait that a policy lets expire."""
    patient = applied(FILE.replace("work.queue: {}", "work.queue: {auto_delete: true}"))
    patient.rabbit.put_policy("tidy", "^delay\\.", expires=3_600_000)

    answer = patient.until(lambda a: len(a.of("H215")) == 3, "all that does not stay")

    assert [finding["message"] for finding in answer.of("H215")] == [
        "delay.1h.queue does not stay: it is deleted when unused for 1h (expires)",
        "delay.unrouted.queue does not stay: it is deleted when unused for 1h (expires)",
        "work.queue does not stay: it goes with its last consumer (auto-delete)",
    ]


def test_h301_parked_without_a_way_out(applied: Applied) -> None:
    """By key: what has no route, which key is close, and what has one by now. Looking leaves all in place."""
    patient = applied(
        "version: 1\ndelay: {levels: [10ms]}\nroutes: [{key: order.created, delay: 10ms, to: work.queue}]\n"
    )
    rabbit = patient.rabbit
    rabbit.publish("delay.10ms.exchange", "order.craeted", "1", "2")
    rabbit.publish("delay.10ms.exchange", "mail.sent", "3")
    rabbit.await_ready("delay.unrouted.queue", 3)
    with rabbit.channel() as channel:
        channel.queue_bind("work.queue", "delay.exchange", "mail.*")

    answer = patient.until(lambda a: a.of("H301") and "parked" in a.of("H301")[0]["message"][:60], "what is parked")
    unseen = patient.examined("--no-peek")

    assert answer.code == 1
    assert answer.of("H301")[0]["seen"] == [
        "2 × key 'order.craeted', waited in delay.10ms.queue: no route; 'order.created' has one",
        "1 × key 'mail.sent', waited in delay.10ms.queue: has a route by now",
    ]
    redrive = f"delayctl redrive {patient.file} --queue delay.unrouted.queue"
    assert answer.of("H301")[0]["commands"] == [f"delayctl apply {patient.file}", f"{redrive} --dry-run", redrive]
    assert unseen.of("H301")[0]["seen"] == ["not looked into: --no-peek was given"]
    assert [message.body for message in rabbit.take("delay.unrouted.queue")] == ["1", "2", "3"]


def test_h302_parked_after_the_last_retry(applied: Applied) -> None:
    """With the reason that the consumer gave. A quorum queue is not looked into: it would count that as a delivery."""
    patient = applied(
        "version: 1\ndelay: {levels: [1s]}\nqueues: {work.queue: {}, mail.queue: {}, mail.dlq: {type: quorum}}\n"
        "retry:\n  work.queue: {levels: [1s], max: 1, park: work.dlq}\n"
        "  mail.queue: {levels: [1s], max: 1, park: mail.dlq}\n"
    )
    said = "gave up after 1 retry: ValueError: no such order"
    headers: dict[str, Any] = {"delay-parked": said, "delay-origin": {"exchange": "", "key": "order.created"}}
    with patient.rabbit.channel() as channel:
        for queue in ("work.dlq", "work.dlq", "mail.dlq"):
            channel.basic_publish("", queue, b"", pika.BasicProperties(headers=headers, delivery_mode=2))

    answer = patient.until(lambda a: len(a.of("H302")) == 2, "what is parked")
    by_record = Patient(patient.rabbit, None).examined()

    mails, works = answer.of("H302")
    assert (answer.code, works["severity"]) == (0, "warning")
    assert works["seen"] == [f"2 × key 'order.created': {said}"]
    assert mails["seen"][0].startswith("not looked into: a quorum queue counts every look")
    assert by_record.of("H302")[1]["seen"] == works["seen"]
    assert patient.rabbit.delayctl("doctor", str(patient.file), "--strict").code == 1
    assert not patient.rabbit.take("mail.dlq")[0].headers.get("x-delivery-count")


@pytest.mark.parametrize("operator", [False, True])
def test_h402_a_foreign_policy(applied: Applied, operator: bool) -> None:
    """It is named with its effect, and with the command that removes it; by the record as by the file."""
    patient = applied(FILE)
    patient.rabbit.put_policy("shorter", "^delay\\.1h", operator=operator, message_ttl=1000)

    answer, by_record = patient.examined(), Patient(patient.rabbit, None).examined()

    assert answer.code == by_record.code == 1
    assert answer.codes == by_record.codes == {"H402"}
    assert "messages leave after 1s, not 1h" in answer.of("H402")[0]["message"]
    clear = "clear_operator_policy" if operator else "clear_policy"
    assert answer.of("H402")[0]["commands"] == [f"rabbitmqctl {clear} -p {patient.rabbit.vhost} shorter"]


def test_h403_a_user_without_its_rights(applied: Applied) -> None:
    """The file says what it is for; the broker does not let it."""
    patient = applied(FILE + "permissions:\n  nobody-yet: {role: publisher}\n")

    answer = patient.examined()

    assert answer.of("H403")[0]["message"].startswith("user nobody-yet can't write ")
    assert answer.of("H403")[0]["commands"] == [f"delayctl permissions {patient.file}"]


def test_h405_a_stranger_behind_an_entrance(applied: Applied) -> None:
    """It is told, and nothing more."""
    patient = applied(FILE)
    with patient.rabbit.channel() as channel:
        channel.queue_declare("stranger.queue", durable=True)
        channel.queue_bind("stranger.queue", "delay.1h.exchange", "#")

    answer = patient.until(lambda a: not a.codes, "nothing worse")

    assert answer.code == 0
    assert answer.of("H405")[0]["message"].startswith("plan says: binding delay.1h.exchange → [#] stranger.queue")


WAYS = """\
version: 1
delay: {levels: [3s, 10s, 1m]}
exchanges: {orders.exchange: {type: topic}}
queues: {orders.queue: {}}
routes: [{from: orders.exchange, key: order.created, delay: 3s, to: orders.queue}]
retry: {orders.queue: {levels: [3s, 10s], max: 2, park: orders.dlq}}
"""
STRANGERS = (
    (("orders.exchange", "orders.queue", "order.*"), 0, "reaches orders.queue 2 times: at once and after 3s (D104)"),
    (
        ("orders.exchange", "delay.10s.queue", "order.#"),
        0,
        "reaches orders.queue 2 times: after 3s and after 10s (D104)",
    ),
    (("delay.exchange", "delay.3s.queue", "order.created"), 1, "(D103)"),
)


@pytest.mark.parametrize(("binding", "code", "message"), STRANGERS)
def test_h406_a_way_that_no_file_knows(
    applied: Applied, binding: tuple[str, str, str], code: int, message: str
) -> None:
    """What validate --live says of it, and the binding that it comes from."""
    patient = applied(WAYS)
    assert patient.examined().of("H406") == []
    source, queue, key = binding
    with patient.rabbit.channel() as channel:
        channel.queue_bind(queue, source, key)

    answer = patient.examined()

    found = answer.of("H406")
    assert (answer.code, len(found)) == (code, 1)
    assert found[0]["message"].endswith(message)
    assert found[0]["seen"] == [f"binding {source} → [{key}] {queue} is not in the file"]


@pytest.mark.parametrize("queue", ["orders.queue", "orders.dlq"])
def test_h406_a_limit_at_the_end_of_the_way(applied: Applied, queue: str) -> None:
    """What comes when it is full is lost, by whoever's policy."""
    patient = applied(WAYS)
    patient.rabbit.put_policy("small", f"^{queue}$", operator=True, max_length=5)

    [found] = patient.examined().of("H406")

    assert (found["at"], found["severity"]) == (queue, "warning")
    assert found["message"].startswith(f"{queue} has room for 5 messages: ")
    assert found["seen"] == ["operator policy 'small' applies to it"]


def test_h502_a_publisher_that_does_not_listen(applied: Applied) -> None:
    """Who uses confirms is not spoken of."""
    patient = applied(FILE)
    quiet = pika.URLParameters(patient.rabbit.url)
    quiet.client_properties = {"connection_name": "old service"}
    connection = pika.BlockingConnection(quiet)
    try:
        with published(patient.rabbit, "delay.1h.exchange", count=3):
            connection.channel().basic_publish("delay.1h.exchange", "order.created", b"a")
            # The broker's figures know of a channel before they know its connection's name, or that it uses confirms.
            patient.until(
                lambda a: _names_alone(a.of("H502"), "(old service) of user guest"), "H502 that names it alone"
            )
    finally:
        connection.close()


def _names_alone(found: list[dict[str, Any]], name: str) -> bool:
    """Say whether one connection is spoken of, and it is this one."""
    seen = [
        line for each in found if each["message"] == "1 connection publishes without confirms" for line in each["seen"]
    ]
    return len(found) == 1 and [name in line for line in seen] == [True]


def test_without_a_file_and_without_a_record(rabbit: Rabbit) -> None:
    """Nothing to go by: an error that says what to name."""
    ran = rabbit.delayctl("doctor")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: nothing was applied to virtual host '{rabbit.vhost}'\n  fix: name the file")


def test_another_prefix_is_suggested(applied: Applied) -> None:
    """The record of a topology with a prefix is found by it."""
    patient = applied("version: 1\nprefix: shop.\ndelay: {levels: [1h]}\n")
    record = Patient(patient.rabbit, None)

    ran = patient.rabbit.delayctl("doctor")
    answer = record.until(lambda a: not a.codes, "a clean bill", "--prefix", "shop.")

    assert "fix: there are others: --prefix shop.;" in ran.err
    assert answer.code == 0


def test_what_takes_time_to_show(long_ill: Patient) -> None:
    """Full (H204), nearly full (H205), early, and more so while it is watched (H206), overdue (H209)."""
    once = long_ill.until_found("H204", "H205", "H206", "H209")
    twice = long_ill.until(
        lambda a: a.of("H206") and a.of("H206")[0]["severity"] == "error", "more of them", "--watch-for", "2s"
    )

    assert once.code == twice.code == 1
    assert {finding["at"] for finding in once.of("H204")} == {"delay.1h.queue", "delay.2h.queue"}
    assert [finding["message"] for finding in once.of("H205")] == ["delay.3h.queue is 83% full"]
    assert [finding["severity"] for finding in once.of("H206")] == ["warning"]
    assert twice.of("H206")[0]["seen"][0].endswith("of them within the last 2s: it goes on")
    assert once.of("H209")[0]["seen"] == [
        "its TTL in force is 1s by policy shorter; what came before that has the queue's own, 4h, and leaves by then"
    ]
