"""Services on the simulated broker: what they publish comes out when it is due, and not before."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from delayctl.consumers import DelayConsumer, Message, Outcome, Park
from delayctl.publishers import DelayPublisher, NoSuchDelay
from delayctl.simulator.rabbitmq_events import Acked, DeadLettered, Delivered, Published
from delayctl.testing import SimulatedBroker
from delayctl.testing.errors import NotAtRest
from delayctl.topology.duration import Duration
from delayctl.topology.errors import AuthenticationFailed, BadOption, InvalidTopology, VhostMissing
from delayctl.topology.expand import expand
from delayctl.topology.model import Topology
from delayctl.topology.parse import read_spec
from delayctl.topology.spec import Spec

from tests.unit.testing.conftest import TOPOLOGY, Seen

ROCKETMQ = """
version: 1
delay: {levels: rocketmq}
queues: {orders: {}}
retry: {orders: {levels: rocketmq, max: 16, park: orders.dlq}}
"""
ROCKETMQ_ATTEMPTS_S = (
    0, 10, 40, 100, 220, 400, 640, 940, 1_300, 1_720, 2_200, 2_740, 3_340, 4_540, 6_340, 9_940, 17_140,
)  # fmt: skip


def fail(_: Message) -> Outcome:
    """Fail."""
    raise RuntimeError("no luck")


class TestTime:
    """Nothing passes but what is told to."""

    def test_a_message_comes_out_when_it_is_due_and_not_before(self, broker: SimulatedBroker) -> None:
        """By a publisher, through the delay, to a consumer."""
        seen = Seen(broker)
        broker.consumer({"timeouts": seen})
        broker.publish("order 4711", key="order.created", exchange="orders")

        broker.advance("14m59s999ms")
        assert seen.at == []

        broker.advance("1ms")
        assert seen.at == [("15m", "order 4711")]

    def test_the_log_tells_all_of_it(self, broker: SimulatedBroker) -> None:
        """As values with their times."""
        broker.consumer({"timeouts": Seen(broker)})
        broker.advance("5s")
        broker.publish("order", key="order.created", exchange="orders")
        broker.advance("1h")

        assert broker.log == [
            (5_000, Published(1, "orders", "order.created", ("delay.15m.queue",))),
            (905_000, DeadLettered(1, "delay.15m.queue", "expired", "delay.exchange", "order.created", ("timeouts",))),
            (905_000, Delivered(1, "timeouts", "timeouts")),
            (905_000, Acked(1, "timeouts")),
        ]

    def test_messages_are_stamped_by_the_virtual_clock(self, topology_file: Path) -> None:
        """The due time of the contract is the time at which it comes out."""
        start = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
        with SimulatedBroker(topology_file, start=start) as broker:
            broker.advance("1m")
            broker.publish("order", key="reminder", delay="10s")
            (waiting,) = broker.waiting("10s")

            assert broker.now == start + timedelta(minutes=1)
            assert waiting.due == start + timedelta(minutes=1, seconds=10)
            assert waiting.headers["delay-level"] == "10s"

    def test_a_due_time_is_counted_from_virtual_now(self, broker: SimulatedBroker) -> None:
        """And not from the computer's."""
        broker.publish("x", key="reminder", due=broker.now + timedelta(seconds=10))

        broker.advance("10s")

        assert [message.text for message in broker.messages("reminders")] == ["x"]

    @pytest.mark.parametrize("span", ["10s", 10_000, Duration(10_000), timedelta(seconds=10)])
    def test_a_span_can_be_said_in_four_ways(self, broker: SimulatedBroker, span: str | int) -> None:
        """Text, milliseconds, a Duration, a timedelta."""
        broker.advance(span)

        assert broker.elapsed == Duration(10_000)

    @pytest.mark.parametrize("span", ["soon", -1])
    def test_a_span_that_is_none_is_refused(self, broker: SimulatedBroker, span: str | int) -> None:
        """Before any time passes."""
        with pytest.raises(BadOption):
            broker.advance(span)

        assert broker.elapsed == Duration(0)


class TestConsumers:
    """Handlers, retries, parking."""

    def test_all_sixteen_retries_of_rocketmq_to_the_millisecond(self) -> None:
        """Attempts at 0 s, 10 s, 40 s … 17,140 s, then parked: near five hours in a moment."""
        with SimulatedBroker(read_spec(ROCKETMQ, {}, file="t.yaml")) as broker:
            seen = Seen(broker, fail)
            broker.consumer({"orders": seen})
            broker.publish("order", key="orders", exchange="", message_id="m-1", headers={"shop": "eu"})

            broker.advance("1d")

            assert seen.at == [(str(Duration(s * 1000)), "order") for s in ROCKETMQ_ATTEMPTS_S]
            assert [message.attempt for message in seen.messages] == list(range(17))
            (parked,) = broker.messages("orders.dlq")
            start_ms = 946_684_800_000
            assert parked.message_id == "m-1"
            assert parked.headers["shop"] == "eu"
            assert parked.headers["delay-parked"] == "gave up after 16 retries: RuntimeError: no luck"
            assert [each["at"] - start_ms for each in parked.headers["delay-history"]] == [
                s * 1000 for s in ROCKETMQ_ATTEMPTS_S
            ]

    def test_a_handler_that_recovers_sees_its_attempts(self, broker: SimulatedBroker) -> None:
        """The first fails, the second is done."""
        seen = Seen(broker, lambda message: None if message.attempt else fail(message))
        broker.consumer({"timeouts": seen})
        broker.publish("order", key="order.created", exchange="orders")

        broker.advance("1d")

        assert seen.at == [("15m", "order"), ("15m1s", "order")]
        assert broker.messages("timeouts.dlq") == []

    def test_what_is_parked_carries_its_reason(self, broker: SimulatedBroker) -> None:
        """At once, where the handler says so."""
        broker.consumer({"timeouts": lambda _: Park("a negative total")})
        broker.publish("order", key="order.created", exchange="orders")

        broker.advance("15m")

        assert [message.headers["delay-parked"] for message in broker.messages("timeouts.dlq")] == ["a negative total"]

    def test_what_a_handler_publishes_is_published_at_its_time(self, broker: SimulatedBroker) -> None:
        """Also where it does not wait for the confirmation: a chain of reminders, each 10 s after the last."""
        publisher = broker.publisher()

        def remind(message: Message) -> None:
            publisher.publish(f"{message.text}+", key="reminder", delay="10s")

        seen = Seen(broker, remind)
        broker.consumer({"reminders": seen})
        broker.publish("a", key="reminder", delay="10s")

        broker.advance("40s")

        assert seen.at == [("10s", "a"), ("20s", "a+"), ("30s", "a++"), ("40s", "a+++")]

    def test_every_run_is_the_same(self, topology_file: Path) -> None:
        """Several queues, four workers, failures, handlers that publish without waiting: one log."""

        def log() -> object:
            with SimulatedBroker(topology_file) as broker:
                publisher = broker.publisher()

                def remind(message: Message) -> None:
                    if len(message.text) < 4:
                        publisher.publish(f"{message.text}+", key="reminder", delay="10s")

                broker.consumer({"timeouts": fail, "reminders": remind}, workers=4)
                for number in range(5):
                    broker.publish(str(number), key="order.created", exchange="orders")
                    broker.publish(str(number), key="reminder", delay="10s")
                broker.advance("1h")
                return broker.log

        first = log()

        assert [log(), log()] == [first, first]

    def test_a_service_runs_its_own_consumer(self, broker: SimulatedBroker, topology_file: Path) -> None:
        """Made by the service's code, with the broker's url and clock."""
        seen = Seen(broker)
        consumer = DelayConsumer(broker.url, topology=topology_file, clock=broker.clock)
        consumer.handle("reminders", seen)

        broker.run(consumer)
        broker.publish("x", key="reminder", delay="10s")
        broker.advance("10s")

        assert seen.at == [("10s", "x")]

    def test_a_consumer_that_can_not_begin_says_why(self, broker: SimulatedBroker) -> None:
        """Instead of a time-out."""
        with pytest.raises(BadOption, match="there is no queue 'nowhere'"):
            broker.consumer({"nowhere": lambda _: None})

    def test_without_turns_consumers_work_side_by_side(self, topology_file: Path) -> None:
        """Two handlers wait for each other."""
        both = threading.Barrier(2)

        def meet(_: Message) -> None:
            both.wait(10)

        with SimulatedBroker(topology_file, in_turn=False) as broker:
            broker.consumer({"reminders": meet}, workers=2)
            broker.publish("a", key="reminder", delay="10s")
            broker.publish("b", key="reminder", delay="10s")

            broker.advance("10s")

            assert broker.messages("reminders") == []

    def test_a_handler_that_does_not_return_keeps_time_from_passing(self, topology_file: Path) -> None:
        """With the name of the queue and the message in the error."""
        go_on = threading.Event()

        def dawdle(_: Message) -> None:
            go_on.wait(30)

        with SimulatedBroker(topology_file, patience_s=0.2) as broker:
            broker.consumer({"reminders": dawdle})
            broker.publish("slow", key="reminder", delay="10s")

            with pytest.raises(NotAtRest, match=r"within 0\.2 s.*1 delivery not acknowledged: reminders b'slow'"):
                broker.advance("1h")

            assert broker.elapsed == Duration(10_000)
            broker.advance("1m", wait=False)
            assert broker.elapsed == Duration(70_000)
            go_on.set()
            broker.settle()


class TestPublishers:
    """Publishing without and with help."""

    def test_a_service_s_own_publisher_needs_the_url_alone(self, broker: SimulatedBroker, topology_file: Path) -> None:
        """And the topology, as ever."""
        with DelayPublisher(broker.url, topology=topology_file) as publisher:
            publisher.publish("x", key="reminder", delay="10s").result(5)

        broker.advance("10s")

        assert [message.text for message in broker.messages("reminders")] == ["x"]

    def test_what_is_not_waited_for_is_there_before_time_passes(self, broker: SimulatedBroker) -> None:
        """Time waits for the publishers that the broker made."""
        publisher = broker.publisher()
        for number in range(1_000):
            publisher.publish(str(number), key="reminder", delay="10s")

        broker.advance("10s")

        assert [message.text for message in broker.messages("reminders")] == [str(number) for number in range(1_000)]

    def test_a_delay_that_is_no_level_is_refused_as_ever(self, broker: SimulatedBroker) -> None:
        """The publisher is the real one."""
        with pytest.raises(NoSuchDelay):
            broker.publish("x", key="reminder", delay="7m")


class TestInside:
    """Looking at what is there."""

    def test_messages_are_looked_at_and_stay(self, broker: SimulatedBroker) -> None:
        """As a handler would see them."""
        broker.publish('{"order": 4711}', key="order.created", exchange="orders", message_id="m-1")
        broker.advance("15m")

        for _ in range(2):
            (message,) = broker.messages("timeouts")
            assert (message.json(), message.key, message.exchange) == (
                {"order": 4711},
                "order.created",
                "delay.exchange",
            )
            assert (message.queue, message.message_id, message.attempt) == ("timeouts", "m-1", 0)

    def test_a_queue_or_level_that_is_not_there_is_an_error(self, broker: SimulatedBroker) -> None:
        """With the one that was meant."""
        with pytest.raises(BadOption, match=r"there is no queue 'timeout' \(did you mean 'timeouts'\?\)"):
            broker.messages("timeout")
        with pytest.raises(BadOption, match="there is no level '16m'"):
            broker.waiting("16m")

    def test_the_log_can_be_read(self, broker: SimulatedBroker) -> None:
        """One line per event."""
        assert broker.log_text() == "nothing happened"

        broker.advance("5s")
        broker.publish("x", key="reminder", delay="10s")

        assert broker.log_text(last=1) == (
            "            5s  Published(message=1, exchange='delay.10s.exchange', key='reminder', queues=('delay.10s.queue',))"
        )


class TestBeginning:
    """What a broker is made of."""

    @pytest.mark.parametrize("way", ["file", "text", "spec", "topology"])
    def test_a_topology_is_a_file_or_a_value(self, topology_file: Path, way: str) -> None:
        """Whatever is at hand."""
        spec = read_spec(TOPOLOGY, {}, file="t.yaml")
        ways: dict[str, str | Path | Spec | Topology] = {
            "file": topology_file,
            "text": str(topology_file),
            "spec": spec,
            "topology": expand(spec),
        }
        with SimulatedBroker(ways[way]) as broker:
            broker.publish("x", key="reminder", delay="10s")

            assert len(broker.waiting("10s")) == 1

    def test_a_template_gets_its_values(self, tmp_path: Path) -> None:
        """As on the command line."""
        file = tmp_path / "topology.yaml"
        file.write_text("version: 1\ndelay: {levels: [1m]}\nqueues: {{ '{' }}{{ shop }}.orders: {}}\n")
        with SimulatedBroker(file, values={"shop": "eu"}) as broker:
            assert broker.messages("eu.orders") == []

    def test_what_exists_already_is_there(self) -> None:
        """Objects that the file takes for granted are somebody else's, who is not here."""
        text = "version: 1\ndelay: {levels: [1m]}\nexchanges: {theirs: {existing: true}}\nroutes:\n"
        text += "  - {from: theirs, key: k, delay: 1m, to: ours}\n"
        with SimulatedBroker(read_spec(text, {}, file="t.yaml")) as broker:
            broker.publish("x", key="k", exchange="theirs")
            broker.advance("1m")

            assert len(broker.messages("ours")) == 1

    def test_a_missing_file_is_an_error_that_names_it(self, tmp_path: Path) -> None:
        """What, where, and what to do."""
        with pytest.raises(InvalidTopology) as caught:
            SimulatedBroker(tmp_path / "nowhere.yaml")

        assert str(caught.value) == (
            "Error: the file can't be read: No such file or directory\n"
            f"  at {tmp_path / 'nowhere.yaml'}\n"
            "  fix: check the path, or start with: delayctl init"
        )

    def test_the_password_is_asked_for(self, topology_file: Path) -> None:
        """A service that has another one does not get in."""
        with SimulatedBroker(topology_file, username="shop", password="p/w@1") as broker:
            broker.publish("x", key="reminder", delay="10s")

            with pytest.raises(AuthenticationFailed):
                DelayPublisher(broker.url.replace("p%2Fw", "wrong"), topology=topology_file)

    def test_the_virtual_host_is_that_of_the_topology(self) -> None:
        """Others are not there."""
        spec = read_spec("version: 1\nvhost: shop\ndelay: {levels: [1m]}\n", {}, file="t.yaml")
        with SimulatedBroker(spec) as broker:
            assert broker.url.endswith("/shop")

            with pytest.raises(VhostMissing):
                DelayPublisher(broker.url.replace("/shop", "/other"), topology=spec)

    def test_the_broker_is_gone_after_the_end(self, topology_file: Path) -> None:
        """With its clients and its threads."""
        before = set(threading.enumerate())
        with SimulatedBroker(topology_file) as broker:
            broker.consumer({"reminders": lambda _: None})
            broker.publish("x", key="reminder", delay="10s")

        left = [thread for thread in set(threading.enumerate()) - before if thread.is_alive()]
        assert left == []


BY_BROKER = """
version: 1
delay: {levels: [1m]}
queues: {work: {type: quorum}}
retry: {work: {by: broker, step: 10s, longest: 25s, max: 3, park: work.dlq}}
"""


class TestRetriesByBroker:
    """Retries that wait in their queue."""

    def test_they_wait_longer_each_time_and_end_in_the_parking_queue(self) -> None:
        """By steps, up to the longest."""
        with SimulatedBroker(read_spec(BY_BROKER, {}, file="t.yaml")) as broker:
            seen = Seen(broker, fail)
            broker.consumer({"work": seen})
            broker.publish("order", key="work", exchange="")

            broker.advance("1d")

            assert seen.at == [("0s", "order"), ("10s", "order"), ("30s", "order"), ("55s", "order")]
            assert [message.attempt for message in seen.messages] == [0, 1, 2, 3]
            (parked,) = broker.messages("work.dlq")
            assert parked.headers["delay-parked"] == "gave up after 3 retries: RuntimeError: no luck"
