"""Concurrent consumption: what a listener's answer means, and what becomes of the messages that failed."""

from collections.abc import Sequence

from delayctl.simulator.clock import Timer
from delayctl.simulator.rocketmq_broker import Broker
from delayctl.simulator.rocketmq_listener import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    MessageListenerConcurrently,
    MessageModel,
    Takes,
)
from delayctl.simulator.rocketmq_log import Discarded, ListenerRaised
from delayctl.simulator.rocketmq_message import CONSUME_START_TIME, MessageExt
from delayctl.simulator.rocketmq_reader import Reader
from delayctl.simulator.rocketmq_resend import give_back
from delayctl.simulator.rocketmq_settings import ConsumerSettings

SUBMIT_AGAIN_AFTER = 5_000
EXPIRED_LEVEL = 3
EXPIRED_AT_ONCE = 16
PULL_BATCH_SIZE = 32
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class ConsumeMessageConcurrently:
    """Gives messages to a listener as they come, any number at a time."""

    def __init__(self, broker: Broker, settings: ConsumerSettings, listener: MessageListenerConcurrently) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._settings = settings
        self._listener = listener
        self._started = broker.clock.now
        self._busy: dict[Reader, None] = {}  # In order: a set of objects has one that differs from process to process.
        self._cleaning: Timer | None = None

    def pump(self, reader: Reader) -> None:
        """Give the listener everything that there is to read."""
        size = self._settings.consume_message_batch_max_size
        now = str(self._clock.wall)
        while self._broker.is_running and (pulled := reader.take(PULL_BATCH_SIZE)):
            for messages in [[one] for one in pulled] if size == 1 else _batches(pulled, size):
                reader.done = messages[0].queue_offset
                self._consume(reader, messages, now)
                if reader.is_dropped:
                    return
        reader.commit(is_kept=self._broker.keeps_consumed)

    def _consume(self, reader: Reader, messages: Sequence[MessageExt], now: str) -> None:
        for message in messages:
            message.properties[CONSUME_START_TIME] = now
        context = ConsumeConcurrentlyContext(reader.message_queue)
        if self._broker.is_logging:
            self._broker.note_consumed(self._settings.consumer_group, messages)
        try:
            answer = self._listener(messages, context)
        except AssertionError:
            raise  # A test's own finding, not a failure of the listener.
        except Exception as error:
            self._broker.note(ListenerRaised(self._settings.consumer_group, repr(error)))
            answer = None
        if answer is SUCCESS and context.ack_index >= len(messages) - 1:
            return
        if isinstance(answer, Takes):
            self._wait_for(reader, messages, context, answer)
        else:
            self._failed(reader, messages, context, answer)

    def _wait_for(
        self,
        reader: Reader,
        messages: Sequence[MessageExt],
        context: ConsumeConcurrentlyContext,
        answer: Takes[ConsumeConcurrentlyStatus],
    ) -> None:
        self._hold(reader, messages)
        self._clock.after(answer.milliseconds, lambda: self._finish(reader, messages, context, answer.status))

    def _finish(
        self,
        reader: Reader,
        messages: Sequence[MessageExt],
        context: ConsumeConcurrentlyContext,
        status: ConsumeConcurrentlyStatus | None,
    ) -> None:
        """A listener that took its time has answered; a queue that was taken away meanwhile no longer cares."""
        if reader.is_dropped:
            return
        expired = {message.queue_offset for message in messages if message.queue_offset not in reader.held}
        for message in messages:
            reader.held.pop(message.queue_offset, None)
        if self._broker.profile.checks_expired:
            # What timed out was sent back already.
            kept = [message for message in messages if message.queue_offset not in expired]
            context.ack_index -= sum(message.queue_offset in expired for message in messages[: context.ack_index + 1])
            messages = kept
        self._failed(reader, messages, context, status)
        reader.commit(is_kept=self._broker.keeps_consumed)

    def _failed(
        self,
        reader: Reader,
        messages: Sequence[MessageExt],
        context: ConsumeConcurrentlyContext,
        status: ConsumeConcurrentlyStatus | None,
    ) -> None:
        """Treat what the listener has not consumed: all of it unless it answered with success."""
        if reader.is_dropped:
            return
        failed = messages[max(context.ack_index, -1) + 1 :] if status is SUCCESS else messages
        if self._settings.message_model is MessageModel.BROADCASTING:
            for message in failed:
                self._broker.note(Discarded(message.topic, message.body, "broadcasting does not try again"))
            return
        level = context.delay_level_when_next_consume
        stuck = [message for message in failed if not self._give_back(message, level)]
        if stuck:
            self._submit_later(reader, stuck)

    def _give_back(self, message: MessageExt, level: int) -> bool:
        return give_back(
            self._broker,
            message,
            self._settings.consumer_group,
            delay_level=level,
            max_reconsume_times=self._settings.max_retries,
        )

    def _submit_later(self, reader: Reader, messages: Sequence[MessageExt]) -> None:
        """Nobody takes the messages back: the listener gets them again, and the offset stays before them."""
        for message in messages:
            message.reconsume_times += 1
        self._hold(reader, messages)
        self._clock.after(SUBMIT_AGAIN_AFTER, lambda: self._submit(reader, messages))

    def _submit(self, reader: Reader, messages: Sequence[MessageExt]) -> None:
        if reader.is_dropped:
            return
        for message in messages:
            reader.held.pop(message.queue_offset, None)
        self._consume(reader, messages, str(self._clock.wall))
        reader.commit(is_kept=self._broker.keeps_consumed)

    def _hold(self, reader: Reader, messages: Sequence[MessageExt]) -> None:
        reader.held.update((message.queue_offset, message) for message in messages)
        self._busy[reader] = None
        self._plan_cleaning()

    def _plan_cleaning(self) -> None:
        """Look for messages that take too long, every `consume_timeout` minutes, as long as there are any to look at."""
        if self._cleaning is None:
            period = self._settings.consume_timeout_ms
            passed = (self._clock.now - self._started) % period
            self._cleaning = self._clock.after(period - passed, self._clean)

    def _clean(self) -> None:
        self._cleaning = None
        for reader in [*self._busy]:
            if not reader.is_dropped:
                self._clean_expired(reader)
            if reader.is_dropped or not reader.held:
                del self._busy[reader]
        if self._busy:
            self._plan_cleaning()

    def _clean_expired(self, reader: Reader) -> None:
        for _ in range(EXPIRED_AT_ONCE):
            head = reader.held.get(min(reader.held, default=-1))
            if head is None or not self._is_expired(head):
                break
            if self._give_back(head, EXPIRED_LEVEL):
                del reader.held[head.queue_offset]
        reader.commit(is_kept=self._broker.keeps_consumed)

    def _is_expired(self, message: MessageExt) -> bool:
        running = self._clock.wall - int(message.properties[CONSUME_START_TIME])
        return running > self._settings.consume_timeout_ms


def _batches(messages: Sequence[MessageExt], size: int) -> list[Sequence[MessageExt]]:
    return [messages[index : index + size] for index in range(0, len(messages), size)]
