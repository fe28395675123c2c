"""The future of a message: it is made with nothing, and yet everybody who waits is told."""

import asyncio
import threading
from concurrent import futures

import pytest
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import Nacked


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
