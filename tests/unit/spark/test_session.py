"""The Spark session of the commands."""

import os
import signal

import pytest
from delayctl.spark.session import spark_session
from pyspark.sql import SparkSession


def signalled(number: signal.Signals) -> None:
    """A command that is sent a signal."""
    with spark_session("test", None, {}) as session:
        os.kill(os.getpid(), number)
        session.range(1).count()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_a_polite_kill_interrupt_the_command_alone(spark: SparkSession, number: signal.Signals) -> None:
    """The session goes on, and so does whoever heard signals before; one that ran already is not stopped."""
    before = signal.getsignal(number)

    with pytest.raises(KeyboardInterrupt):
        signalled(number)

    assert signal.getsignal(number) == before
    assert spark.range(3).count() == 3
