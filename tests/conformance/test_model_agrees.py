"""The simulated RabbitMQ does what RabbitMQ does: generated networks and scripts, played on both side by side.

`make conformance` plays 500 of them on each broker; DELAYCTL_EXAMPLES says how many.
"""

import itertools
import os
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any, cast

import pika
from delayctl.simulator.rabbitmq import Broker
from delayctl.topology.access import access_from
from delayctl.topology.management import Management
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError, UnroutableError

from testbed import RunningBroker
from tests.conformance.test_explain_agrees import Stage
from tests.conftest import fresh_vhost
from tests.support.performance import (
    Account,
    Performance,
    Seen,
    body_of,
    first_open,
    foretold,
    performed,
    standing,
    without_times,
)
from tests.support.scripts import GETS, PHASE, Action, Answer, Consume, Get, Publish, Purge, Script, scripts

# A gate has to say the same of the same code: without a number the same scripts are run every time, with one new ones.
EXAMPLES = int(os.environ.get("DELAYCTL_EXAMPLES", "0"))
USUAL = 10
TRIES = 3  # On a busy machine a script may take so long that other things come of it.
TIME = "time"
SETTLING = 0.002  # Seconds between two looks.
LOOKS = 25  # After so many, a broker that has not come to where the model is never will.


def test_the_model_agrees_with_the_broker(broker: RunningBroker) -> None:
    """Every answer to a publish or a get, all that consumers see, all that is left: the same, in the same order."""
    with fresh_vhost(broker) as rabbit, rabbit.channel() as channel:
        numbers = itertools.count()
        management = Management(access_from(broker.url, management_url=broker.management_url), rabbit.vhost)

        @settings(
            max_examples=EXAMPLES or USUAL,
            derandomize=not EXAMPLES,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(script=scripts())
        def agree(script: Script) -> None:
            expected = foretold(script, broker.version)
            assume(expected is not None)
            assert expected is not None
            _tell(expected)
            for _ in range(TRIES):
                with (
                    channel.connection.channel() as own,
                    Stage(own, management, next(numbers)).set(script.live),
                ):
                    own.confirm_delivery()
                    model = Performance(script, Broker(script.live, version=broker.version))
                    live = LivePerformance(own, script, model)
                    difference = live.play_beside(expected)
                if live.is_in_time(broker.version):
                    assert difference is None, difference
                    return
            assume(False)  # The machine is too busy for this one; another has to be found in its place.

        agree()


def _tell(account: Account) -> None:
    """Let `--hypothesis-show-statistics` say what the scripts are made of."""
    for answer in account.answers:
        event(str(answer) if isinstance(answer, str) else type(answer).__name__)
    for seen in itertools.chain(*account.left.values(), *account.deliveries.values()):
        event(f"{len(seen[4].get('x-death', ()))} deaths")


class Disagreement(Exception):
    """The broker did not get to where the model is."""


@dataclass
class LivePerformance:
    """One run of a script on a live broker; the model runs beside it, to know what there is to wait for."""

    channel: BlockingChannel
    script: Script
    model: Performance
    pauses: list[list[int]] = field(default_factory=list)
    cut_by: object = None  # What the broker and the model disagreed after.
    account: Account = field(default_factory=Account)
    _open: dict[int, deque[int]] = field(default_factory=lambda: defaultdict(deque))
    _published: int = 0
    _consumers: int = 0
    _ahead: float = 0  # What the clock of this machine is ahead of the model's.

    def play_beside(self, expected: Account) -> str | None:
        """Play all phases, take what is left, and say what is not as it was foretold."""
        try:
            for actions, rests in zip(self.script.phases, self.script.rests, strict=True):
                self._phase(actions, rests=rests)
            self._phase((), rests=True)
            for queue in self.script.live.queues:
                self._drain(queue)
        except Disagreement as disagreement:
            return str(disagreement)
        return None if self.account == expected else f"the broker: {self.account}\nthe model: {expected}"

    def is_in_time(self, version: str) -> bool:
        """Say whether the same would have come of the script if all had taken no time, as long as it did, or twice that."""
        others = [[[factor * pause for pause in phase] for phase in self.pauses] for factor in (0, 1, 2)]
        brokers = [Broker(self.script.live, version=version) for _ in others]
        if self.cut_by is None:
            first, *rest = (
                performed(self.script, broker, taken) for broker, taken in zip(brokers, others, strict=True)
            )
            return all(account == first for account in rest)
        stands = [
            standing(self.script, broker, taken, is_last_ended=self.cut_by == TIME)
            for broker, taken in zip(brokers, others, strict=True)
        ]
        return all(stand == stands[0] for stand in stands)

    def _phase(self, actions: tuple[Action, ...], *, rests: bool) -> None:
        began, virtually = time.monotonic(), self.model.broker.clock.now
        self._ahead = began * 1000 - virtually
        self.pauses += [[]] if actions else []
        for action in actions:
            self._timed(action)
        self.model.end_phase(virtually, rests=rests)
        passed = (self.model.broker.clock.now - virtually) / 1000 if rests else PHASE / 1000
        # Time has to pass here: that is what the script says.
        self.channel.connection.sleep(max(0.0, began + passed - time.monotonic()))
        self._ahead = time.monotonic() * 1000 - self.model.broker.clock.now
        self._follow(TIME)
        if actions:
            self.pauses[-1].append(round((time.monotonic() - began - passed) * 1000))

    def _timed(self, action: Action) -> None:
        began = time.monotonic()
        self._act(action)
        self.pauses[-1].append(round((time.monotonic() - began) * 1000))
        self.model.act(action)
        self._follow(action)
        self.pauses[-1][-1] = round((time.monotonic() - began) * 1000)

    def _follow(self, what: object) -> None:
        """Look until the broker has got to where the model is, and stays there.

        So many looks, and not so long: on a busy machine looking takes as long as getting there does.
        """
        for _ in range(LOOKS if what != TIME else 4 * LOOKS):
            if self._stays_there():
                return
            self.channel.connection.sleep(SETTLING)
        self.cut_by = what
        seen, expected = (self._counts(), self.account), (self.model.counts, self.model.account)
        raise Disagreement(f"after {what}\nthe broker: {seen}\nthe model: {expected}")

    def _stays_there(self) -> bool:
        if not self._is_there():
            return False
        self.channel.connection.sleep(SETTLING)
        return self._is_there()

    def _is_there(self) -> bool:
        self.channel.connection.process_data_events(0)
        self.model.broker.clock.run_until(int(time.monotonic() * 1000 - self._ahead))
        return self._counts() == self.model.counts and self._are_delivered()

    def _are_delivered(self) -> bool:
        expected = self.model.account.deliveries
        return all(len(self.account.deliveries[number]) == len(expected[number]) for number in range(self._consumers))

    def _counts(self) -> dict[str, int]:
        return {
            queue: self.channel.queue_declare(queue, passive=True).method.message_count
            for queue in self.script.live.queues
        }

    def _act(self, action: Action) -> None:
        match action:
            case Publish():
                self.account.answers.append(self._publish(action))
            case Get(queue):
                self._get(queue)
            case Consume():
                self._consume(action)
            case Answer(consumer, how):
                if (waiting := first_open(self._open, consumer)) is not None:
                    self._answer(waiting.popleft(), how)
            case Purge(queue):
                self.account.answers.append(self.channel.queue_purge(queue).method.message_count)

    def _publish(self, action: Publish) -> str:
        self._published += 1
        headers = cast(dict[str, Any], dict(action.message.headers)) or None
        properties = pika.BasicProperties(headers=headers, expiration=action.expiration)
        try:
            self.channel.basic_publish(
                action.exchange, action.message.key, body_of(self._published, action), properties, mandatory=True
            )
        except UnroutableError:
            return "returned"
        except NackError:
            return "nacked"
        return "confirmed"

    def _get(self, queue: str) -> None:
        method, properties, body = self.channel.basic_get(queue)
        if method is None:
            self.account.answers.append(None)
            return
        self.account.answers.append(_seen(method, properties, body))
        self._open[GETS].append(cast(int, method.delivery_tag))

    def _consume(self, action: Consume) -> None:
        number = self._consumers
        self._consumers += 1
        self.account.deliveries[number] = []

        def take(_channel: Any, method: Any, properties: Any, body: Any) -> None:
            self.account.deliveries[number].append(_seen(method, properties, body))
            if not action.no_ack:
                self._open[number].append(method.delivery_tag)

        self.channel.basic_qos(prefetch_count=action.prefetch)
        self.channel.basic_consume(action.queue, take, auto_ack=action.no_ack)

    def _answer(self, tag: int, how: str) -> None:
        match how:
            case "ack":
                self.channel.basic_ack(tag)
            case "reject" | "requeue":
                self.channel.basic_reject(tag, requeue=how == "requeue")
            case _:
                self.channel.basic_nack(tag, requeue=how == "nack-requeue")

    def _drain(self, queue: str) -> None:
        found = iter(lambda: self.channel.basic_get(queue, auto_ack=True), (None, None, None))
        self.account.left[queue] = [_seen(method, properties, body) for method, properties, body in found]
        # What stood behind may have expired now that it was the head, and is on its way to other queues and to consumers.
        self.model.drain(queue)
        self._follow(TIME)


def _seen(method: Any, properties: Any, body: Any) -> Seen:
    return (
        body.decode(),
        method.exchange,
        method.routing_key,
        method.redelivered,
        without_times(properties.headers),
    )
