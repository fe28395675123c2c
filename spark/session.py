"""A Spark session for the commands: quiet, with its log in a file, and with delayctl sent along where it has to be."""

import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from delayctl.spark.package import write_package
from delayctl.spark.troubles import told
from delayctl.topology.errors import DelayctlError
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # Set by spark-submit, which has started Spark already.
_TIME_ZONE = {"spark.sql.session.timeZone": "UTC"}
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
# A backfill needs all its tasks at once: wait half a minute for executors, not Spark's ten.
_BARRIER = "spark.scheduler.barrier.maxConcurrentTasksCheck"
_PATIENCE = {f"{_BARRIER}.interval": "5s", f"{_BARRIER}.maxFailures": "6"}
_FIX = "install Java 17 or newer (apt-get install openjdk-17-jre-headless), and check --master and --conf"
_NO_JAVA = re.compile("JAVA_HOME is not set|/java: No such file|UnsupportedClassVersionError")
_SCRIPT = re.compile(r"^\S+: line \d+: ")
# They print as JSON what the error says anyway.
_CHATTY = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_HEARD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def spark_session(name: str, master: str | None, settings: dict[str, str]) -> Iterator[SparkSession]:
    """A session on `master`, or on whatever spark-submit was told, stopped at the end; one that runs already is taken."""
    is_ours = SparkContext._active_spark_context is None
    with tempfile.TemporaryDirectory(prefix="delayctl-spark-", ignore_cleanup_errors=True) as folder:
        session = _started(name, master, settings, Path(folder))
        try:
            with _interruptible():
                yield session
        finally:
            if is_ours:
                session.stop()


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C, and a polite kill, be a KeyboardInterrupt.

    Spark's own answer is to kill all tasks; ours is to let them write down what they have done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread hears signals.
        return
    before = {number: signal.signal(number, signal.default_int_handler) for number in _HEARD}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _started(name: str, master: str | None, settings: dict[str, str], folder: Path) -> SparkSession:
    log = folder / "spark.log"
    for logger in _CHATTY:
        PySparkLogger.getLogger(logger).disabled = True
    try:
        session = _start(_configuration(name, master, settings), log)
        session.sparkContext.setLogLevel("ERROR")
        if _is_elsewhere(str(session.sparkContext.master)) and _SUBMITTED not in os.environ:
            package = folder / "delayctl-spark.zip"
            write_package(str(package))
            session.sparkContext.addPyFile(str(package))
    except (PySparkException, Py4JError, OSError) as error:
        raise DelayctlError(_why(error, log), fix=_FIX) from error
    return session


def _configuration(name: str, master: str | None, settings: dict[str, str]) -> SparkConf:
    is_submitted = _SUBMITTED in os.environ
    configuration = SparkConf().setAppName(name)
    for setting, value in {**({} if is_submitted else _QUIET), **_TIME_ZONE, **_PATIENCE, **settings}.items():
        configuration.set(setting, value)
    if master is not None or not is_submitted:
        configuration.setMaster(master or "local[*]")
    return configuration


def _start(configuration: SparkConf, log: Path) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if _SUBMITTED not in os.environ and SparkContext._active_spark_context is None:
        with log.open("wb") as target:
            gateway = launch_gateway(configuration, {"stdout": target, "stderr": target})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    return SparkSession.builder.config(conf=configuration).getOrCreate()


def _is_elsewhere(master: str) -> bool:
    """Whether tasks run in processes that may not have delayctl."""
    return not (master == "local" or master.startswith("local["))


def _why(error: Exception, log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    telling_lines = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith(("at ", "..."))]
    no_java = next((line for line in telling_lines if _NO_JAVA.search(line)), None)
    if no_java is None and isinstance(error, Py4JError):
        return f"Spark did not start: {told(error).what.removeprefix('Spark: ')}"
    last = no_java or next(reversed(telling_lines), type(error).__name__)
    return f"Spark did not start: {_SCRIPT.sub('', last)}"
