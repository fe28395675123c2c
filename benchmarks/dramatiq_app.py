"""The actor that notes how late it is; for `dramatiq` and for the publisher beside it."""

import os
import time

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

dramatiq.set_broker(RabbitmqBroker(url=os.environ["BENCH_URL"], confirm_delivery=True))


@dramatiq.actor  # type: ignore[untyped-decorator]
def note(_: str, due: float) -> None:
    """Add a line with the lateness in milliseconds; a short one is written in one piece."""
    late_ms = (time.time() - due) * 1000
    with open(os.environ["BENCH_ANSWER"], "a", encoding="utf-8") as answer:
        answer.write(f"{late_ms}\n")
