"""The future of a message: it is made with nothing, and yet everybody who waits is told."""

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent import futures

import pytest
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import Nacked

from testbed.wait import until


def nacked() -> Nacked:
    """An answer that nobody likes."""
    return Nacked("the queue is full", fix="wait", message_id="m")


def resolved_by(thread_of: Delivery, start: threading.Barrier) -> threading.Thread:
    """A thread that resolves a delivery as soon as another one meets it."""

    def resolve() -> None:
        start.wait()
        thread_of.resolve("m")

    thread = threading.Thread(target=resolve)
    thread.start()
    return thread


def test_an_answer_is_there_for_who_asks_later() -> None:
    """The answer is kept."""
    delivery = Delivery()

    delivery.resolve("m")

    assert (delivery.done(), delivery.result(0), delivery.exception(0)) == (True, "m", None)


def test_a_failure_is_raised() -> None:
    """What the broker refused is an exception."""
    delivery, error = Delivery(), nacked()

    delivery.resolve("m", error)

    assert delivery.exception(0) is error
    with pytest.raises(Nacked):
        delivery.result(0)


def test_without_an_answer_waiting_ends_in_time() -> None:
    """A timeout is kept to."""
    with pytest.raises(futures.TimeoutError):
        Delivery().result(0.01)


def test_it_can_not_be_cancelled() -> None:
    """The message is on its way, whoever has lost interest."""
    delivery = Delivery()

    was_cancelled = delivery.cancel()
    delivery.resolve("m")

    assert (was_cancelled, delivery.result(0)) == (False, "m")


def test_whoever_waits_is_told_at_whatever_moment_it_begins_to_wait() -> None:
    """Resolving and beginning to wait race each other."""
    for _ in range(300):
        delivery, start = Delivery(), threading.Barrier(2)
        thread = resolved_by(delivery, start)
        start.wait()
        assert delivery.result(10) == "m"
        thread.join()


def test_a_callback_is_called_once_at_whatever_moment_it_is_added() -> None:
    """Resolving and adding a callback race each other."""
    for _ in range(300):
        delivery, start = Delivery(), threading.Barrier(2)
        called: list[futures.Future[str]] = []
        thread = resolved_by(delivery, start)
        start.wait()
        delivery.add_done_callback(called.append)
        thread.join()
        assert called == [delivery]


def test_many_threads_wait_for_one() -> None:
    """One answer wakes all."""
    delivery = Delivery()
    with futures.ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(delivery.result, 10) for _ in range(8)]

        delivery.resolve("m")

        assert [one.result(10) for one in waiting] == ["m"] * 8


def test_they_can_be_waited_for_together() -> None:
    """The standard library waits for several."""
    answered, failed, open_ = Delivery(), Delivery(), Delivery()
    answered.resolve("a")
    timer = threading.Timer(0.05, lambda: failed.resolve("f", nacked()))
    timer.start()

    done, rest = futures.wait([answered, failed, open_], timeout=10, return_when=futures.FIRST_EXCEPTION)

    assert (done, rest) == ({answered, failed}, {open_})


def test_waiting_for_many_misses_none_that_is_resolved_meanwhile() -> None:
    """Waiting for all begins while another thread resolves them one by one."""
    for _ in range(100):
        deliveries, start = [Delivery() for _ in range(200)], threading.Barrier(2)

        def resolve(deliveries: list[Delivery] = deliveries, start: threading.Barrier = start) -> None:
            start.wait()
            for delivery in deliveries:
                delivery.resolve("m")

        thread = threading.Thread(target=resolve)
        thread.start()
        start.wait()
        _, late = futures.wait(deliveries, timeout=10)
        thread.join()
        assert not late


def test_they_can_be_taken_as_they_complete() -> None:
    """The standard library hands them out in the order of their answers."""
    first, second = Delivery(), Delivery()
    coming = futures.as_completed([first, second], timeout=10)

    second.resolve("2")
    found = [next(coming)]
    first.resolve("1")
    found += coming

    assert found == [second, first]


def test_asyncio_awaits_it() -> None:
    """A thread resolves what a coroutine awaits."""

    async def waiting() -> str:
        delivery = Delivery()
        threading.Timer(0.02, lambda: delivery.resolve("m")).start()
        return await delivery

    assert asyncio.run(waiting()) == "m"


def test_a_task_that_awaits_it_can_be_cancelled() -> None:
    """Who gave up in asyncio does not disturb the message."""

    async def waiting() -> tuple[bool, str]:
        delivery = Delivery()
        task = asyncio.ensure_future(asyncio.wait_for(delivery, 0.01))
        with pytest.raises(TimeoutError):
            await task
        delivery.resolve("m")
        return task.done(), delivery.result(0)

    assert asyncio.run(waiting()) == (True, "m")


def asked(delivery: Delivery) -> None:
    """Ask in vain."""
    with pytest.raises(futures.TimeoutError):
        delivery.result(0)


def looked_at(delivery: Delivery) -> None:
    """Look for the reason in vain."""
    with pytest.raises(futures.TimeoutError):
        delivery.exception(0)


def awaited(delivery: Delivery) -> None:
    """Await in vain."""

    async def waiting() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(delivery, 0.01)

    asyncio.run(waiting())


@pytest.mark.parametrize("ask", [asked, looked_at, awaited])
def test_who_waited_in_vain_has_seen_nothing(ask: Callable[[Delivery], None]) -> None:
    """Unless there is a callback, which is told in the end."""
    delivery, called_back = Delivery(), Delivery()
    called_back.add_done_callback(lambda _: None)

    ask(delivery)
    ask(called_back)

    assert (delivery.is_watched, called_back.is_watched) == (False, True)


def test_who_was_told_has_seen_it() -> None:
    """In whatever way it was asked for."""

    async def waiting(delivery: Delivery) -> None:
        with pytest.raises(Nacked):
            await delivery

    deliveries = [Delivery() for _ in range(4)]
    for delivery in deliveries:
        delivery.resolve("m", nacked())
    unseen, asked_for, looked_at, awaited = deliveries

    with pytest.raises(Nacked):
        asked_for.result(0)
    looked_at.exception(0)
    asyncio.run(waiting(awaited))

    assert [delivery.is_watched for delivery in (unseen, asked_for, looked_at, awaited)] == [False, True, True, True]


def test_who_waits_is_about_to_see_it() -> None:
    """A flush of another thread leaves it to the one that waits."""
    delivery = Delivery()
    with futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(delivery.exception, 10)
        until(lambda: delivery.is_watched, 10)

        delivery.resolve("m", nacked())

        assert isinstance(waiting.result(10), Nacked)
    assert delivery.is_watched


def test_one_who_loses_patience_does_not_speak_for_another() -> None:
    """Who still waits is about to see it, and has seen it then."""
    delivery = Delivery()
    with futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(delivery.exception, 10)
        until(lambda: delivery.is_watched, 10)
        with pytest.raises(TimeoutError):
            delivery.result(0.01)
        was_watched = delivery.is_watched

        delivery.resolve("m", nacked())

        assert isinstance(waiting.result(10), Nacked)
    assert (was_watched, delivery.is_watched) == (True, True)


def test_one_who_gives_up_awaiting_does_not_speak_for_another() -> None:
    """The same, within asyncio."""
    delivery, watched = Delivery(), list[bool]()

    async def told() -> None:
        with pytest.raises(Nacked):
            await delivery

    async def both() -> None:
        staying, leaving = asyncio.create_task(told()), asyncio.create_task(told())
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        watched.append(delivery.is_watched)
        delivery.resolve("m", nacked())
        await staying

    asyncio.run(both())

    assert [*watched, delivery.is_watched] == [True, True]


@pytest.mark.parametrize("error", [None, nacked()])
def test_a_callback_that_ends_the_thread_does_not(error: Nacked | None, caplog: pytest.LogCaptureFixture) -> None:
    """It is the publisher's thread, and others wait for it."""
    delivery = Delivery()
    delivery.add_done_callback(lambda _: sys.exit(3))

    delivery.resolve("m", error)

    assert delivery.exception(0) is error
    assert [type(record.exc_info[1]) for record in caplog.records if record.exc_info] == [SystemExit]
