"""The task that notes how late it is; for `celery worker` and for the publisher beside it."""

import os
import time

from celery import Celery

app = Celery("bench", broker=os.environ["BENCH_URL"])
app.conf.broker_transport_options = {"confirm_publish": True}
app.conf.task_ignore_result = True
app.conf.worker_enable_remote_control = False  # Its queues are of a kind that new brokers refuse.


@app.task(name="bench.note")  # type: ignore[untyped-decorator]
def note(_: str, due: float) -> None:
    """Add a line with the lateness in milliseconds; a short one is written in one piece."""
    late_ms = (time.time() - due) * 1000
    with open(os.environ["BENCH_ANSWER"], "a", encoding="utf-8") as answer:
        answer.write(f"{late_ms}\n")
