"""The Spark session of the commands."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from delayctl.spark.session import spark_session
from pyspark.sql import SparkSession

from testbed.spark import SparkHome, installed
from testbed.spark_classes import FRUGAL

# Derby comes with Spark.
READS_A_DATABASE = """
from delayctl.spark.origin import origin_from, read_rows_from
from delayctl.spark.session import spark_session

settings = {"spark.driver.extraJavaOptions": "-Dusers=2"}
query = "SELECT * FROM (VALUES TIMESTAMP('2026-11-16 12:00:00')) AS orders (pay_by)"
with spark_session("test", "local[1]", settings) as session:
    rows = read_rows_from(session, origin_from("jdbc:derby:memory:shop;create=true", [f"query={query}"]))
    print(rows.selectExpr("date_format(pay_by, 'HH:mm')").first()[0])
    print(*[session._jvm.System.getProperty(name) for name in ("administrators", "users")])
"""

STOPS = """
import os, signal
from delayctl.spark import session


class Stopping:
    def stop(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)


session._started = lambda *_: Stopping()
with session.spark_session("test", None, {}):
    pass
print("told", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


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


def test_while_spark_stops_nobody_hears_ctrl_c() -> None:
    """What the command has done is still to be told; afterwards all is as it was."""
    ran = subprocess.run([sys.executable, "-c", STOPS], capture_output=True, text=True, timeout=60, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "told True\n", "")


def test_times_of_a_database_are_read_in_utc_wherever_the_machine_is(spark_folder: SparkHome, tmp_path: Path) -> None:
    """Spark's JVM is told so as it starts, beside what users and the administrator's file want of it."""
    (tmp_path / "spark-defaults.conf").write_text(f"spark.driver.defaultJavaOptions -Dadministrators=1 {FRUGAL}\n")
    elsewhere = {"TZ": "America/New_York", "SPARK_HOME": str(installed("pyspark")), "SPARK_CONF_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", READS_A_DATABASE],
        env={**spark_folder.environment(os.environ), **elsewhere},
        cwd=tmp_path,  # Derby writes a log where it is.
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (0, "12:00\n1 2\n"), ran.stderr
