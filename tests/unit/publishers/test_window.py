"""The window and the outbox: whatever the broker answers, each message is resolved exactly once."""

import sys
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import Nacked, NotConfirmed, NotPublished, PublisherClosed, Unroutable
from delayctl.publishers.outbox import Outbox
from delayctl.publishers.window import Entry, Window, failure_of
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
    assert [error.message_id for error in outbox.unseen_failures()[0]] == ["id-2"]
    assert outbox.unseen_failures() == ((), 0)


def refuse(outbox: Outbox, *entries: Entry) -> None:
    """Have the broker refuse messages, on a channel of their own."""
    outbox.send_again()
    for each in entries:
        outbox.put(each)
    outbox.next_batch(1_000_000)
    outbox.answered(len(entries), is_ack=False, multiple=True)


def test_every_failure_is_told() -> None:
    """The first of them by name, and the others are counted: memory has a bound, however long nobody asks."""
    outbox, kept = Outbox(100_000), list[weakref.ref[Delivery]]()
    for number in range(12_000):
        failed = entry(number)
        kept.append(weakref.ref(failed.delivery))
        refuse(outbox, failed)
    del failed

    alive = sum(each() is not None for each in kept)
    named, more = outbox.unseen_failures()

    assert [error.message_id for error in named] == [f"id-{number}" for number in range(10_000)]
    assert (alive, more) == (10_000, 2_000)
    assert outbox.unseen_failures() == ((), 0)


@pytest.mark.parametrize(
    "look",
    [lambda delivery: delivery.exception(), lambda delivery: delivery.add_done_callback(lambda _: None)],
    ids=["asked", "called back"],
)
def test_what_is_looked_at_later_is_counted_no_more(look: Callable[[Delivery], object]) -> None:
    """However many there are, who looks at each future is not told again; nor is anybody else then."""
    outbox, entries = Outbox(100_000), [entry(number) for number in range(12_000)]
    refuse(outbox, *entries)

    for each in entries:
        look(each.delivery)

    assert outbox.unseen_failures() == ((), 0)


def test_what_was_told_is_not_taken_from_what_comes_later() -> None:
    """Looked at after a flush has counted it, it changes nothing."""
    outbox, entries = Outbox(100_000), [entry(number) for number in range(20_002)]
    refuse(outbox, *entries[:10_001])
    outbox.unseen_failures()
    refuse(outbox, *entries[10_001:])

    entries[10_000].delivery.exception()

    assert outbox.unseen_failures()[1] == 1


def test_it_is_said_how_many_are_not_named() -> None:
    """And how to have them named."""
    failure = failure_of(entry(1))

    error = NotConfirmed((), [failure], more=2_000)

    assert error.what == f"1 message and 2,000 more not confirmed, 2,001 failures; the first: {failure.what}"
    assert (error.message_ids, error.more) == (("id-1",), 2_000)
    assert (error.fix or "").endswith("flush more often to have all of them named")


def test_a_failure_keeps_no_message() -> None:
    """What is remembered of it is small, however large the message was."""
    outbox, frames = Outbox(10), bytes(100)
    before = sys.getrefcount(frames)

    refuse(outbox, Entry("id-1", "x", "key", frames, 10, Delivery()))

    assert sys.getrefcount(frames) == before
    assert len(outbox.unseen_failures()[0]) == 1


def test_failures_that_were_looked_at_are_forgotten() -> None:
    """A service that deals with each by itself does not grow until it flushes; nor one that is called back."""
    outbox, kept = Outbox(10), list[weakref.ref[Delivery]]()
    for number in range(5_000):
        failed = entry(number)
        kept.append(weakref.ref(failed.delivery))
        if number % 2:
            failed.delivery.add_done_callback(lambda _: None)
        refuse(outbox, failed)
        failed.delivery.exception(0)
    del failed

    assert sum(each() is not None for each in kept) <= 1_000
    assert outbox.unseen_failures() == ((), 0)


def test_a_failure_after_somebody_waited_in_vain_is_told() -> None:
    """Whoever lost patience has not seen it."""
    outbox, late = Outbox(10), entry(1)
    outbox.put(late)
    outbox.next_batch(1000)
    with pytest.raises(TimeoutError):
        late.delivery.result(0.001)

    outbox.answered(1, is_ack=False, multiple=False)

    assert [error.message_id for error in outbox.unseen_failures()[0]] == ["id-1"]


@pytest.mark.parametrize(
    "resolve",
    [
        lambda outbox: outbox.answered(2, is_ack=True, multiple=True),
        lambda outbox: outbox.answered(2, is_ack=False, multiple=True),
        lambda outbox: outbox.blame(_unroutable, _unroutable),
        lambda outbox: outbox.fail_all(_unroutable),
    ],
    ids=["confirmed", "refused", "blamed", "given up"],
)
def test_what_is_being_resolved_is_waited_for(resolve: Callable[[Outbox], None]) -> None:
    """One who flushes between two that are resolved together does not take the second for answered."""
    outbox, first, second = Outbox(10), entry(1), entry(2)
    outbox.put(first)
    outbox.put(second)
    outbox.next_batch(1000)
    unanswered: list[tuple[str, ...]] = []
    first.delivery.add_done_callback(lambda _: unanswered.append(outbox.wait_until_answered(0)))

    resolve(outbox)

    assert unanswered == [("id-2",)]
    assert outbox.wait_until_answered(0) == ()


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that interrupt each other all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_several_threads_may_flush() -> None:
    """Each failure is told to one of them, and to one only."""
    for _ in range(5):
        outbox, told, is_over = Outbox(10_000), list[str](), threading.Event()

        def flush(outbox: Outbox = outbox, told: list[str] = told, is_over: threading.Event = is_over) -> None:
            while not is_over.is_set():
                told.extend(error.message_id for error in outbox.unseen_failures()[0])

        for number in range(1_000):
            outbox.put(entry(number))
        outbox.next_batch(1_000_000)
        threads = [threading.Thread(target=flush) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(1_000):
            outbox.answered(number + 1, is_ack=False, multiple=False)
        is_over.set()
        for thread in threads:
            thread.join(10)
        told.extend(error.message_id for error in outbox.unseen_failures()[0])
        assert sorted(told) == sorted(f"id-{number}" for number in range(1_000))


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
