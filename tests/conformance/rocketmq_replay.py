"""Plays on the simulated RocketMQ what was played on a real one: the same inputs, stored at the same times."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rocketmq import Broker, DefaultMQProducer, DefaultMQPushConsumer, Message
from delayctl.simulator.rocketmq_codes import MQBrokerError
from delayctl.simulator.rocketmq_listener import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageModel,
)
from delayctl.simulator.rocketmq_message import MessageExt
from delayctl.simulator.rocketmq_profiles import P4, P6

from tests.conformance.rocketmq_scenarios import SCENARIOS, THROW, Answer, Send, Start, Stop, Subscribe
from tests.conformance.rocketmq_trace import OWN_ID, BrokerChange, Seen, Sent, Stored, Trace, kept

DELIVER = "TIMER_DELIVER_MS"
Status = TypeVar("Status", ConsumeConcurrentlyStatus, ConsumeOrderlyStatus)


def replayed(trace: Trace) -> Trace:
    """Play the scenario of a trace, and say what is seen as it was said of the real one."""
    replay = Replay(trace)
    for step in SCENARIOS[trace.scenario].steps:
        match step:
            case Send():
                replay.send(step)
            case Subscribe():
                replay.subscribe(step)
            case Stop(kill):
                replay.stop(kill=kill)
            case Start(levels):
                replay.start(levels)
            case _:
                pass  # To wait for something is to let time pass until the next step, and its time is known.
    return replay.finish()


@dataclass
class Replay:
    """One scenario while it is played."""

    trace: Trace
    clock: VirtualClock = field(default_factory=VirtualClock)
    sent: list[Sent] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[tuple[int, str, list[MessageExt]]]] = field(default_factory=dict)
    changes: list[BrokerChange] = field(default_factory=list)

    def __post_init__(self) -> None:
        scenario = SCENARIOS[self.trace.scenario]
        profile = P4 if self.trace.version.startswith("4.") else P6
        self.clock.set_wall(self.trace.began)
        self.broker = Broker(
            self.clock,
            profile=profile,
            message_delay_level=scenario.levels,
            flush_delay_offset_interval=scenario.flush_ms,
            keep_consumed=True,
        )
        self.producer = DefaultMQProducer(self.broker)
        for topic in scenario.topics:
            self.broker.create_topic(topic, 1)

    def send(self, step: Send) -> None:
        """Send when the real broker stored."""
        real = self.trace.sent[len(self.sent)]
        self.clock.run_until(real.time)
        message = Message(step.topic, step.body.encode())
        message.properties |= {name: str(value) for name, value in step.properties.items()}
        if step.in_ms is not None:
            message.set_deliver_time_ms(self._asked_for(step.body))
        error = None
        try:
            self.ids[self.producer.send(message, queue_id=0).msg_id] = step.body
        except MQBrokerError:
            error = "MQBrokerException"
        self.sent.append(Sent(step.body, self.clock.now, error))

    def _asked_for(self, body: str) -> int:
        """The time that was asked for in the recording, which was a moment before the message was stored."""
        return next(int(each.properties[DELIVER]) for each in self.trace.stored if each.body == body)

    def subscribe(self, step: Subscribe) -> None:
        """Start a consumer."""
        calls = self.calls.setdefault(step.group, [])
        answers, last = iter(step.answers), step.answers[-1]

        def answer(messages: Sequence[MessageExt], queue: tuple[str, int]) -> Answer:
            # What a listener sees may change afterwards: in RocketMQ, too, client and listener share it.
            calls.append((self.clock.now, queue[0], [message.seen(message.topic) for message in messages]))
            return next(answers, last)

        def listen(
            messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
        ) -> ConsumeConcurrentlyStatus | None:
            given = answer(messages, context.message_queue)
            context.delay_level_when_next_consume = given.level or 0
            if given.ack_index is not None:
                context.ack_index = given.ack_index
            return _status(given, ConsumeConcurrentlyStatus)

        def listen_in_order(
            messages: Sequence[MessageExt], context: ConsumeOrderlyContext
        ) -> ConsumeOrderlyStatus | None:
            return _status(answer(messages, context.message_queue), ConsumeOrderlyStatus)

        consumer = DefaultMQPushConsumer(self.broker, step.group).subscribe(step.topic)
        consumer.set_message_model(MessageModel(step.model)).set_consume_message_batch_max_size(step.batch)
        consumer.set_max_reconsume_times(step.max_reconsume_times)
        if step.is_orderly:
            consumer.register_message_listener_orderly(listen_in_order)
        else:
            consumer.register_message_listener(listen)
        consumer.start()

    def stop(self, *, kill: bool) -> None:
        """Stop when the real broker was told to."""
        self._change()
        if kill:
            self.broker.crash()
        else:
            self.broker.shutdown()
        self._change()

    def start(self, levels: str | None) -> None:
        """Start when the real broker was seen to serve again."""
        self._change()
        started = self.trace.broker[len(self.changes)]
        self.clock.run_until(started.time)
        self.broker.start(message_delay_level=levels)
        self._change()

    def _change(self) -> None:
        real = self.trace.broker[len(self.changes)]
        self.clock.run_until(real.time)
        offsets = {str(level): offset for level, offset in self.broker.delay_offset_file.items()}
        self.changes.append(BrokerChange(self.clock.now, real.what, offsets))

    def finish(self) -> Trace:
        """Let time pass until nothing happens any more."""
        self.clock.run()
        found = [message for topic in self.broker.store.topics for message in self.broker.messages(topic)]
        origins = {message.offset_msg_id: message.topic for message in found} | dict.fromkeys(self.ids, OWN_ID)
        seen = [
            Seen(group, number, time, pulled_from, self._stored(message, origins))
            for group, calls in self.calls.items()
            for number, (time, pulled_from, messages) in enumerate(calls)
            for message in messages
        ]
        return Trace(
            self.trace.scenario,
            self.trace.version,
            self.trace.began,
            tuple(self.sent),
            tuple(seen),
            tuple(self._stored(message, origins) for message in found),
            tuple(self.changes),
        )

    def _stored(self, message: MessageExt, origins: dict[str, str]) -> Stored:
        return Stored(
            message.topic,
            message.queue_id,
            message.store_timestamp - self.trace.began,
            message.body.decode(),
            self.ids[message.msg_id],
            message.reconsume_times,
            kept(message.properties, origins),
        )


def _status(answer: Answer, kind: type[Status]) -> Status | None:
    if answer.status == THROW:
        raise RuntimeError("as told")
    return None if answer.status is None else kind(answer.status)
