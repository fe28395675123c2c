"""Real brokers answer clients as the table of wire scripts says; the simulated one is held to the same table."""

import pika
import pytest

from tests.support.rabbit import Rabbit
from tests.support.wire_scripts import CASES, Case, observe, prepare, version_of


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_real_broker_answers_as_the_table_says(rabbit: Rabbit, case: Case) -> None:
    """Code, text, counts and flags."""
    with rabbit.channel() as channel:
        prepare(channel)

    assert observe(rabbit.url, case.script) == case.answer_of(version_of(rabbit.url))


def test_a_virtual_host_that_is_not_there(rabbit: Rabbit) -> None:
    """The connection is not opened."""
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match=r"530.*vhost nowhere not found"):
        pika.BlockingConnection(pika.URLParameters(f"{rabbit.broker.url.rstrip('/')}/nowhere"))
