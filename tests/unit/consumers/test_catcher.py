"""The queue that catches canaries: when it stays, when it goes, and how long it waits for them."""

from collections.abc import Callable, Iterator

import pika
import pytest
from delayctl.consumers.catcher import Catcher, stays_for
from delayctl.publishers.known import brokers_at
from delayctl.testing import SimulatedBroker
from delayctl.topology.duration import Duration
from delayctl.topology.errors import Refused
from delayctl.topology.parse import read_spec

TOPOLOGY = read_spec("version: 1\ndelay: {levels: [15m]}\n", {}, file="topology.yaml")
CATCHER, UNROUTED = "delay.verify.queue", "delay.unrouted.queue"
SHORT, LONG = Duration.parse("15m"), Duration.parse("3d")

Begin = Callable[[Duration], Catcher]


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    """A level of fifteen minutes."""
    with SimulatedBroker(TOPOLOGY, in_turn=False) as running:
        yield running


@pytest.fixture
def begin(broker: SimulatedBroker) -> Begin:
    """Begins a run whose canaries wait so long at most."""
    [access] = brokers_at(broker.url)
    return lambda longest: Catcher(access.at("/"), "", file="topology.yaml", longest=longest)


def declare(broker: SimulatedBroker, arguments: dict[str, object]) -> None:
    """Have a queue of this name that was declared otherwise."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    connection.channel().queue_declare(CATCHER, durable=True, arguments=arguments)
    connection.close()


def is_there(broker: SimulatedBroker) -> bool:
    """Whether a catcher is left."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    try:
        connection.channel().queue_declare(CATCHER, passive=True)
    except pika.exceptions.ChannelClosedByBroker:
        return False
    finally:
        connection.close()
    return True


def test_nothing_is_left_of_a_run_whose_canaries_all_came(broker: SimulatedBroker, begin: Begin) -> None:
    """What it has declared it removes."""
    begin(SHORT).close(keep=False)

    assert not is_there(broker)


def test_a_second_run_leaves_the_queue_of_the_first(broker: SimulatedBroker, begin: Begin) -> None:
    """The canaries that the first has given up come to it, and not among the messages of others."""
    begin(SHORT).close(keep=True)
    broker.publish("canary", key="delay.verify.first.3", delay="15m")

    begin(SHORT).close(keep=False)
    broker.advance("16m")

    assert (len(broker.messages(CATCHER)), broker.messages(UNROUTED)) == (1, [])


@pytest.mark.parametrize(("first", "second"), [(SHORT, LONG), (LONG, SHORT)], ids=["longer", "shorter"])
def test_a_queue_with_another_expiry_is_taken_as_it_is(
    broker: SimulatedBroker, begin: Begin, first: Duration, second: Duration
) -> None:
    """Levels may have changed since an earlier run, and no broker changes the arguments of a queue."""
    begin(first).close(keep=True)

    begin(second).close(keep=False)

    assert is_there(broker)


def test_another_queue_of_this_name_is_refused(broker: SimulatedBroker, begin: Begin) -> None:
    """One that differs in more than its expiry is none that delayctl has declared."""
    declare(broker, {"x-queue-type": "quorum", "x-expires": stays_for(SHORT).ms})

    with pytest.raises(Refused, match="is there, and is another queue"):
        begin(SHORT)


@pytest.mark.parametrize(
    ("longest", "expected"),
    [("0s", "1d"), ("23h", "1d"), ("3d", "3d1h"), ("3650d", "3650d")],
    ids=["nothing waits", "within a day", "longer than a day", "as long as a broker takes"],
)
def test_it_outlives_the_longest_wait(longest: str, expected: str) -> None:
    """A canary that was given up still finds it there."""
    assert stays_for(Duration.parse(longest)) == Duration.parse(expected)
