"""The window and the outbox: whatever the broker answers, each message is resolved exactly once."""

import pytest
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import Nacked, NotPublished, PublisherClosed, Unroutable
from delayctl.publishers.outbox import Outbox
from delayctl.publishers.window import Entry, Window
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule


def entry(number: int, exchange: str = "x") -> Entry:
    """A message."""
    return Entry(f"id-{number}", exchange, "key", b"frames-%d" % number, 10, Delivery())


class OutboxMachine(RuleBasedStateMachine):
    """A broker that answers in any order, hangs up at any time, and a list of what it was told beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox(10_000)
        self.made: list[Entry] = []
        self.unsent: list[Entry] = []
        self.open: dict[int, Entry] = {}  # By the broker's own count.
        self.next_tag = 1
        self.returned: set[str] = set()
        self.expected: dict[str, type[NotPublished] | None] = {}

    @rule(exchange=st.sampled_from(["x", "gone"]))
    def put(self, exchange: str) -> None:
        """A service publishes."""
        made = entry(len(self.made), exchange)
        self.made.append(made)
        self.unsent.append(made)
        self.outbox.put(made)

    @rule(most=st.integers(1, 60))
    def send(self, most: int) -> None:
        """A batch goes out, in the order of publishing."""
        batch = self.outbox.next_batch(most)
        assert batch == [each.frames for each in self.unsent[: len(batch)]]
        for each in self.unsent[: len(batch)]:
            self.open[self.next_tag] = each
            self.next_tag += 1
        del self.unsent[: len(batch)]

    @precondition(lambda self: self.open)
    @rule(data=st.data(), multiple=st.booleans(), is_ack=st.booleans())
    def answer(self, data: st.DataObject, multiple: bool, is_ack: bool) -> None:
        """The broker answers one, or all up to one."""
        tag = data.draw(st.sampled_from(sorted(self.open)))
        for each in [number for number in sorted(self.open) if number == tag or (multiple and number < tag)]:
            answered = self.open.pop(each)
            refused = Unroutable if answered.message_id in self.returned else None if is_ack else Nacked
            self.expected[answered.message_id] = refused
        self.outbox.answered(tag, is_ack=is_ack, multiple=multiple)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        """The broker can't route one."""
        each = self.open[data.draw(st.sampled_from(sorted(self.open)))]
        self.returned.add(each.message_id)
        self.outbox.returned(each.message_id, each.exchange, each.key, "NO_ROUTE")

    @rule()
    def lose(self) -> None:
        """The connection breaks: all that is open is to be sent again, first of all."""
        self.outbox.send_again()
        self._start_again([])

    @rule()
    def close_channel(self) -> None:
        """The broker hangs up over the messages to one exchange."""
        failed = [each for each in self.open.values() if each.exchange == "gone"]
        if not failed and len(self.open) == 1:
            failed = list(self.open.values())
        self.outbox.blame(lambda each: _unroutable(each) if each.exchange == "gone" else None, _unroutable)
        self._start_again(failed)

    @rule()
    def give_up(self) -> None:
        """It took too long."""
        self.outbox.fail_all(_unroutable)
        for each in (*self.open.values(), *self.unsent):
            self.expected[each.message_id] = Unroutable
        self.open.clear()
        self.unsent.clear()
        self._new_channel()

    def _start_again(self, failed: list[Entry]) -> None:
        for each in failed:
            self.expected[each.message_id] = Unroutable
        self.unsent[:0] = [each for each in self.open.values() if each not in failed]
        self.open.clear()
        self._new_channel()

    def _new_channel(self) -> None:
        self.next_tag = 1
        self.returned.clear()

    @invariant()
    def each_is_resolved_as_it_was_answered(self) -> None:
        """Answered once and rightly, or not at all."""
        for each in self.made:
            assert each.delivery.done() == (each.message_id in self.expected)
        for message_id, error in self.expected.items():
            outcome = self.made[int(message_id.removeprefix("id-"))].delivery.exception()
            assert type(outcome) is (error or type(None))

    def teardown(self) -> None:
        """In the end everything is sent and confirmed: nothing is stuck."""
        for _ in range(2 * len(self.made) + 2):
            self.send(10_000)
            for tag in list(self.open):
                each = self.open.pop(tag)
                self.expected[each.message_id] = Unroutable if each.message_id in self.returned else None
                self.outbox.answered(tag, is_ack=True, multiple=False)
        assert not self.unsent
        self.each_is_resolved_as_it_was_answered()


def _unroutable(each: Entry) -> NotPublished:
    return Unroutable("nothing there", fix="none", message_id=each.message_id)


def test_a_message_that_makes_the_broker_hang_up_is_found() -> None:
    """Where the broker does not name it, they are sent one at a time until it is alone; all others are confirmed."""
    outbox = Outbox(100)
    entries = [entry(number) for number in range(5)]
    for each in entries:
        outbox.put(each)
    sent = outbox.next_batch(10_000)
    assert len(sent) == 5

    outbox.blame(lambda _: None, _unroutable)
    for number in range(5):
        assert outbox.next_batch(10_000) == [entries[number].frames]
        assert outbox.next_batch(10_000) == []
        if number == 3:
            outbox.blame(lambda _: None, _unroutable)
        else:
            outbox.answered(1 if number in (0, 4) else number + 1, is_ack=True, multiple=False)

    assert [each.delivery.exception() is None for each in entries] == [True, True, True, False, True]


def test_the_window_numbers_anew_on_a_new_channel() -> None:
    """As the broker does."""
    window, first, second = Window(), entry(1), entry(2)
    window.sent(first)
    window.sent(second)

    assert window.start_again() == [first, second]
    window.sent(second)

    assert window.answered(1, multiple=False) == [second]
    assert window.answered(2, multiple=True) == []


def test_only_failures_that_nobody_looked_at_are_told() -> None:
    """A future that was asked has told it already."""
    outbox, seen, unseen = Outbox(10), entry(1), entry(2)
    outbox.put(seen)
    outbox.put(unseen)
    outbox.next_batch(1000)
    outbox.answered(2, is_ack=False, multiple=True)

    assert isinstance(seen.delivery.exception(), Nacked)
    assert [error.message_id for error in outbox.unseen_failures()] == ["id-2"]
    assert outbox.unseen_failures() == ()


def test_nothing_is_taken_after_the_end() -> None:
    """A closed outbox says so."""
    outbox = Outbox(1)
    outbox.close()

    with pytest.raises(PublisherClosed):
        outbox.put(entry(1))


def test_the_sender_never_waits_for_itself() -> None:
    """A callback that publishes while the window is full goes beyond the window instead of standing still."""
    outbox = Outbox(1)
    outbox.claim()

    outbox.put(entry(1))
    outbox.put(entry(2))

    assert len(outbox.next_batch(1000)) == 2


TestOutbox = OutboxMachine.TestCase
