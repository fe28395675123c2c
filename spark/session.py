"""A Spark session for the commands: quiet, with its log in a file, and with delayctl sent along where it has to be."""

import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

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
# Spark reads the times of databases in the zone of the JVM. Told by the environment: options of the JVM would take the
# place of those in spark-defaults.conf.
_JVM_ZONE = {"TZ": "UTC"}
_EXECUTORS_ZONE = {f"spark.executorEnv.{name}": value for name, value in _JVM_ZONE.items()}
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


class Interrupts:
    """Counts Ctrl-C and polite kills, instead of breaking off whatever is being done."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """One more, as a handler of signals hears it."""
        self.count += 1


@contextmanager
def spark_session(name: str, master: str | None, settings: dict[str, str]) -> Iterator[SparkSession]:
    """A session on `master`, or on whatever spark-submit was told, stopped at the end; one that runs already is taken.

    Ctrl-C, and a polite kill, is a KeyboardInterrupt meanwhile: Spark's own answer would be to kill all tasks. While Spark
    stops nobody hears them: whatever was done is still to be told.
    """
    is_ours = SparkContext._active_spark_context is None
    with (
        tempfile.TemporaryDirectory(prefix="delayctl-spark-", ignore_cleanup_errors=True) as folder,
        _heard_as_before(),
    ):
        session = _started(name, master, settings, Path(folder))
        try:
            hear(signal.default_int_handler)
            yield session
        finally:
            hear(signal.SIG_IGN)
            if is_ours:
                session.stop()


@contextmanager
def _heard_as_before() -> Iterator[None]:
    """At the end, whoever heard Ctrl-C and polite kills hears them again."""
    before = {number: signal.getsignal(number) for number in _HEARD}
    try:
        yield
    finally:
        for number, handler in before.items():
            _hear(number, handler)


def hear(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """From now on this hears Ctrl-C and polite kills."""
    for number in _HEARD:
        _hear(number, handler)


def _hear(number: int, handler: Callable[[int, FrameType | None], object] | int | None) -> None:
    if threading.current_thread() is threading.main_thread():  # No other hears signals.
        signal.signal(number, handler or signal.SIG_DFL)


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
    ours = {} if is_submitted else {**_QUIET, **_EXECUTORS_ZONE}
    configuration = SparkConf().setAppName(name)
    for setting, value in {**ours, **_TIME_ZONE, **_PATIENCE, **settings}.items():
        configuration.set(setting, value)
    if master is not None or not is_submitted:
        configuration.setMaster(master or "local[*]")
    return configuration


def _start(configuration: SparkConf, log: Path) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if _SUBMITTED not in os.environ and SparkContext._active_spark_context is None:
        with log.open("wb") as target, _environment(_JVM_ZONE):
            gateway = launch_gateway(configuration, {"stdout": target, "stderr": target})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    return SparkSession.builder.config(conf=configuration).getOrCreate()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """For what is started meanwhile: the gateway takes its environment from this process, and no other."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


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
