"""Plays scenarios on a real RocketMQ and records what is seen. `python -m tests.conformance.rocketmq_record` keeps the traces."""

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from testbed.rocketmq import RocketMq, rocketmq
from testbed.rocketmq_driver import Delivery, Driver, RefusedByRocketMq, Verdict, driver
from testbed.rocketmq_jars import VERSIONS
from testbed.wait import until
from tests.conformance.rocketmq_scenarios import (
    LEVELS,
    SCENARIOS,
    Answer,
    Await,
    AwaitAge,
    AwaitSeen,
    AwaitWriting,
    Scenario,
    Send,
    Start,
    Step,
    Stop,
    Subscribe,
)
from tests.conformance.rocketmq_trace import OWN_ID, BrokerChange, Seen, Sent, Stored, Trace, kept, save

SCHEDULE_TOPIC, SCHEDULE_QUEUES = "SCHEDULE_TOPIC_XXXX", 18
WHEEL_TOPIC = "rmq_sys_wheel_timer"
SECONDS = (
    240  # A consumer whose broker was killed may take half a minute to find it again, and a busy machine its time.
)
REFUSED = "MQBrokerException"


def known(version: str) -> list[Scenario]:
    """The scenarios that a version can play."""
    return [scenario for scenario in SCENARIOS.values() if scenario.is_for_4 or not version.startswith("4.")]


def recorded(version: str) -> Iterator[Trace]:
    """Play every scenario that a version can play."""
    yield from recorded_together(version)
    for scenario in known(version):
        if scenario.has_own_broker:
            yield recorded_alone(version, scenario)


def recorded_together(version: str) -> Iterator[Trace]:
    """Play the scenarios that need no broker of their own, one after the other on one."""
    with rocketmq(version, LEVELS) as running, driver(running) as client:
        for scenario in known(version):
            if not scenario.has_own_broker:
                yield Recording(scenario, running, client, _now()).play()


def recorded_alone(version: str, scenario: Scenario) -> Trace:
    """Play a scenario on a broker of its own."""
    flush = {"flushDelayOffsetInterval": str(scenario.flush_ms)}
    with rocketmq(version, scenario.levels, **flush) as running, driver(running) as client:
        return Recording(scenario, running, client, running.started_ms).play()


@dataclass
class Recording:
    """One scenario while it is played."""

    scenario: Scenario
    running: RocketMq
    client: Driver
    began: int
    sent: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    calls: list[Delivery] = field(default_factory=list)
    broker: list[BrokerChange] = field(default_factory=list)
    written: int = 0

    def play(self) -> Trace:
        """Play it, and look at what lies in the topics in the end."""
        for topic in self.scenario.topics:
            self.client.create(topic)
        for step in self.scenario.steps:
            self._do(step)
        for group in self.scenario.groups:
            self.client.unsubscribe(group)
        return self._trace()

    def _do(self, step: Step) -> None:
        match step:
            case Send():
                self._send(step)
            case Subscribe():
                self._subscribe(step)
            case Await(topic, count):
                until(lambda: len(self._read(topic)) >= count, SECONDS, what=f"{count} messages in {topic}", every=0.2)
            case AwaitSeen(group, count):
                until(lambda: self._count(group) >= count, SECONDS, what=f"{count} messages seen by {group}")
            case AwaitAge(body, age):
                until(lambda: _now() - self.sent[body]["time"] > age, SECONDS, what=f"the age of {body}")
            case AwaitWriting():
                until(lambda: self.running.offsets_written_at() != self.written, SECONDS, what="the offsets' writing")
            case Stop(kill):
                self._note("killed" if kill else "stopping")
                self.running.kill() if kill else self.running.stop()
                self._note("stopped")
            case Start(levels):
                self._note("starting")
                self.written = self.running.offsets_written_at()
                self.running.start(levels)
                self._note("started")
            case _:
                assert_never(step)

    def _count(self, group: str) -> int:
        return sum(len(call.messages) for call in self.calls if call.group == group)

    def _send(self, step: Send) -> None:
        properties = dict(step.properties)
        asked = _now()
        if step.in_ms is not None:
            properties["TIMER_DELIVER_MS"] = asked + step.in_ms
        try:
            answer = self.client.send(step.topic, step.body, properties)
            self.sent[step.body] = {**answer, "time": asked}
        except RefusedByRocketMq as error:
            if not str(error).startswith(REFUSED):
                raise  # The broker did not answer: that is no answer.
            self.sent[step.body] = {"time": asked, "error": REFUSED}

    def _subscribe(self, step: Subscribe) -> None:
        answers = iter(step.answers)
        last = step.answers[-1]

        def listen(delivery: Delivery) -> Verdict:
            self.calls.append(delivery)
            return _verdict(next(answers, last))

        self.client.subscribe(
            step.group,
            step.topic,
            listen,
            max_reconsume_times=step.max_reconsume_times,
            batch=step.batch,
            threads=1,  # So that the order of calls says something.
            model=step.model,
            orderly=step.is_orderly,
        )

    def _note(self, what: str) -> None:
        offsets = {str(level): offset for level, offset in self.running.delay_offsets().items()}
        self.broker.append(BrokerChange(_now() - self.began, what, offsets))

    def _read(self, topic: str, queues: int = 1) -> list[Mapping[str, Any]]:
        found = self.client.read(topic, queues=queues)
        return [message for message in found if message["body"] in self.sent]

    def _await_messages(self, topic: str) -> list[Mapping[str, Any]]:
        """Read a topic that is not empty; a broker takes a moment after its start to tell the name server what it has."""
        return until(lambda: self._read(topic), SECONDS, what=f"the messages in {topic}")

    def _trace(self) -> Trace:
        found = [message for topic in self.scenario.topics for message in self._await_messages(topic)]
        found += self._read(SCHEDULE_TOPIC, SCHEDULE_QUEUES)
        for group in self.scenario.groups:
            found += self._read(f"%RETRY%{group}") + self._read(f"%DLQ%{group}")
        if not self.scenario.is_for_4:
            found += self._read(WHEEL_TOPIC)
        origins = {message["offset_message_id"]: message["topic"] for message in found}
        origins |= {str(answer.get("message_id")): OWN_ID for answer in self.sent.values()}
        times = {message["offset_message_id"]: message["stored"] for message in found}
        return Trace(
            self.scenario.name,
            self.running.version,
            self.began,
            tuple(self._sent(body, times) for body in self.sent),
            tuple(self._seen(origins)),
            tuple(self._stored(message, origins) for message in found),
            tuple(self.broker),
        )

    def _sent(self, body: str, times: Mapping[str, int]) -> Sent:
        answer = self.sent[body]
        stored = times.get(answer.get("offset_message_id", ""), answer["time"])
        return Sent(body, stored - self.began, answer.get("error"))

    def _seen(self, origins: Mapping[str, str]) -> Iterator[Seen]:
        for group in self.scenario.groups:
            for number, call in enumerate(each for each in self.calls if each.group == group):
                for message in call.messages:
                    stored = self._stored(message, origins)
                    yield Seen(group, number, call.time - self.began, call.pulled_from, stored)

    def _stored(self, message: Mapping[str, Any], origins: Mapping[str, str]) -> Stored:
        ids = {answer.get("message_id"): body for body, answer in self.sent.items()}
        return Stored(
            message["topic"],
            message["queue"],
            message["stored"] - self.began,
            message["body"],
            ids[message["message_id"]],
            message["reconsume_times"],
            kept(message["properties"], origins),
        )


def _verdict(answer: Answer) -> Verdict:
    context = {"level": answer.level, "ack_index": answer.ack_index}
    return Verdict(answer.status, {name: value for name, value in context.items() if value is not None})


def _now() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    for each in sys.argv[1:] or VERSIONS:
        save(each, recorded(each))
