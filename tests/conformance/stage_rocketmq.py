"""The simulated RocketMQ as a stage."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rocketmq import (
    CONSUME_SUCCESS,
    RECONSUME_LATER,
    Broker,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    Message,
)
from delayctl.simulator.rocketmq_listener import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from delayctl.simulator.rocketmq_message import DELAY, MessageExt, dlq_topic
from delayctl.simulator.rocketmq_profiles import Profile

from tests.conformance.books import Books
from tests.conformance.stage import Ability, Answer, Attempt, DeadLetter, Group, RetryAt, Sent

MINUTE = 60_000
LEVELS_MS = (
    *(1_000, 5_000, 10_000, 30_000),
    *(minutes * MINUTE for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120)),
)


class SimulatedRocketMq:
    """RocketMQ's own levels, in virtual time."""

    can = frozenset({Ability.NUMBERED_LEVELS, Ability.RESTART})
    levels_ms = LEVELS_MS
    late_ms = 99  # It looks every 100 ms.

    def __init__(self, profile: Profile) -> None:
        self.name = f"simulated RocketMQ {profile.name}"
        self._profile = profile

    @contextmanager
    def open(self, *groups: Group, max_length: int | None = None) -> Iterator["SimulatedRocketMqStage"]:
        """A broker of its own."""
        assert max_length is None
        yield SimulatedRocketMqStage(self._profile, groups)


class SimulatedRocketMqStage:
    """One broker and its groups; the first second, in which it delivers nothing, is over."""

    def __init__(self, profile: Profile, groups: Sequence[Group]) -> None:
        self._clock = VirtualClock()
        self._broker = Broker(self._clock, profile=profile, default_topic_queues=1)
        self._clock.advance(1_000)
        self._producer = DefaultMQProducer(self._broker)
        self._books = Books(groups)
        for group in groups:
            self._subscribe(group)

    @property
    def attempts(self) -> Sequence[Attempt]:
        """What handlers saw."""
        return self._books.attempts

    def send(self, topic: str, body: str, *, level: int = 0) -> Sent:
        """Send."""
        self._books.sent(topic)
        message = Message(topic, body.encode()).set_delay_time_level(level)
        return Sent(self._producer.send(message).msg_id, self._clock.now)

    def rest(self) -> None:
        """Let time pass until nothing is planned."""
        self._clock.run()
        if not self._books.is_settled(lambda group: len(self.dead_letters(group))):
            raise TimeoutError("nothing is planned any more, and not all is settled")

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """What lies in %DLQ%."""
        found = self._broker.messages(dlq_topic(group))
        return [DeadLetter(message.body.decode(), message.msg_id) for message in found]

    def restart(self) -> None:
        """Crash, be away for a minute, and come back."""
        self._broker.crash()
        self._clock.advance(MINUTE)
        self._broker.start()

    def send_seen_twice(self, topic: str, body: str) -> Sent:
        """Crash after the delivery and before its offset is written."""
        sent = self.send(topic, body, level=1)
        self._clock.advance(2_000)
        assert len(self.attempts) == 1
        self.restart()
        return sent

    def _subscribe(self, group: Group) -> None:
        def listen(
            messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
        ) -> ConsumeConcurrentlyStatus | None:
            (message,) = messages
            answer = self._books.handle(self._attempt(group.name, message))
            match answer:
                case Answer.DONE:
                    return CONSUME_SUCCESS
                case Answer.RAISE:
                    raise RuntimeError("no luck")
                case RetryAt(level):
                    context.delay_level_when_next_consume = level
                case Answer.PARK:
                    context.delay_level_when_next_consume = -1
            return RECONSUME_LATER

        consumer = DefaultMQPushConsumer(self._broker, group.name).subscribe(group.topic)
        consumer.set_max_reconsume_times(group.max_retries).register_message_listener(listen).start()

    def _attempt(self, group: str, message: MessageExt) -> Attempt:
        level = max(int(message.properties.get(DELAY, "0")), 0)
        return Attempt(
            self._clock.now,
            group,
            message.topic,
            message.body.decode(),
            message.msg_id,
            message.reconsume_times,
            level,
        )
