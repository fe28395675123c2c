"""Ordered consumption: a failed message stops its queue for a moment and is given to the listener again."""

from collections.abc import Sequence

from delayctl.simulator.rocketmq_broker import Broker
from delayctl.simulator.rocketmq_listener import ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageListenerOrderly
from delayctl.simulator.rocketmq_log import ListenerRaised
from delayctl.simulator.rocketmq_message import ORIGIN_MESSAGE_ID, MessageExt
from delayctl.simulator.rocketmq_profiles import OrderlyEnd
from delayctl.simulator.rocketmq_reader import Reader
from delayctl.simulator.rocketmq_resend import send_as_normal_message
from delayctl.simulator.rocketmq_settings import ConsumerSettings

MIN_SUSPEND = 10
MAX_SUSPEND = 30_000
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


def suspend_time(context: int, consumer: int = 1_000) -> int:
    """For how long a queue pauses: what the context says, or the consumer where it says -1, within bounds."""
    return min(max(consumer if context == -1 else context, MIN_SUSPEND), MAX_SUSPEND)


class ConsumeMessageOrderly:
    """Gives a queue's messages to a listener one batch after the other."""

    def __init__(self, broker: Broker, settings: ConsumerSettings, listener: MessageListenerOrderly) -> None:
        self._broker = broker
        self._settings = settings
        self._listener = listener

    def pump(self, reader: Reader) -> None:
        """Give the listener everything that there is to read, until it fails."""
        size = self._settings.consume_message_batch_max_size
        while self._broker.is_running and not reader.is_dropped and not reader.is_paused:
            messages = reader.again or reader.take(size)
            if not messages:
                break
            reader.again = []
            self._consume(reader, messages)
        reader.held = {message.queue_offset: message for message in reader.again}
        reader.commit(is_kept=self._broker.keeps_consumed)

    def _consume(self, reader: Reader, messages: Sequence[MessageExt]) -> None:
        context = ConsumeOrderlyContext(reader.message_queue)
        status = self._ask(messages, context)
        # COMMIT and ROLLBACK mean success, since autoCommit is on.
        if status is not None and status is not SUSPEND:
            return
        waiting = [message for message in messages if self._must_wait(message)]
        if waiting:
            reader.again = list(messages)
            self._pause(reader, context)

    def _ask(self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus | None:
        if self._broker.is_logging:
            self._broker.note_consumed(self._settings.consumer_group, messages)
        try:
            return self._listener(messages, context)
        except AssertionError:
            raise  # A test's own finding, not a failure of the listener.
        except Exception as error:
            self._broker.note(ListenerRaised(self._settings.consumer_group, repr(error)))
            return None

    def _must_wait(self, message: MessageExt) -> bool:
        """Whether a failed message is to be consumed again; one that has reached the maximum is sent away."""
        is_gone = message.reconsume_times >= self._settings.max_retries_in_order and self._send_away(message)
        if not is_gone:
            message.reconsume_times += 1
        return not is_gone

    def _send_away(self, message: MessageExt) -> bool:
        message.properties.setdefault(ORIGIN_MESSAGE_ID, message.msg_id)
        is_counted = self._broker.profile.orderly_end is OrderlyEnd.DLQ
        attempts = message.reconsume_times + is_counted
        settings = self._settings
        return send_as_normal_message(
            self._broker, message, settings.consumer_group, attempts, settings.max_retries_in_order
        )

    def _pause(self, reader: Reader, context: ConsumeOrderlyContext) -> None:
        reader.is_paused = True
        wait = suspend_time(context.suspend_current_queue_time_millis, self._settings.suspend_current_queue_time_millis)
        self._broker.clock.after(wait, lambda: self._resume(reader))

    def _resume(self, reader: Reader) -> None:
        reader.is_paused = False
        reader.wake()
