"""Fetching and building beforehand, so that the first broker starts as quickly as the next."""

from testbed.broker import BrokerUnavailable
from testbed.cache import say
from testbed.chromium import ChromiumUnavailable, driver_environment, find_chromium
from testbed.container import prepare_container
from testbed.java import JavaUnavailable, find_java
from testbed.promtool import find_promtool
from testbed.server import fetched_server, installed_server
from testbed.spark import SparkUnavailable, installed
from testbed.spark_classes import ClassesUnavailable, keep_classes


def prepare(kind: str) -> None:
    """Put into the cache what brokers of this kind need; `any` takes what this machine can have."""
    if kind == "native":
        prepare_native()
    elif kind == "container":
        prepare_container()
    else:
        prepare_any()


def prepare_any() -> None:
    """Prepare every kind that this machine can have, and what tests need besides; raise only if there is no broker."""
    reasons: list[str] = []
    for each in (prepare_native, prepare_container):
        try:
            each()
        except BrokerUnavailable as error:
            say(f"left out: {error.reasons[0]}")
            reasons += error.reasons[:1]
    prepare_spark()
    prepare_promtool()
    prepare_chromium()
    if len(reasons) == 2:
        raise BrokerUnavailable(*reasons)


def prepare_native() -> None:
    """Fetch what a private node needs, where no RabbitMQ is installed."""
    server = installed_server() or fetched_server()
    say(f"a private node is there: {server.script}")


def prepare_spark() -> None:
    """Fetch a Java for Spark where none is installed; whether it matters that there is none is up to who needs it."""
    try:
        java = find_java()
        say(f"Java is there: {java.home}")
        say(f"Spark's classes are there: {keep_classes(java, installed('pyspark'))}")
    except (JavaUnavailable, SparkUnavailable, ClassesUnavailable) as error:
        say(f"left out: {error}")


def prepare_promtool() -> None:
    """Fetch what checks the alert rules where it is not installed; the tests say what they miss."""
    try:
        say(f"promtool is there: {find_promtool()}")
    except BrokerUnavailable as error:
        say(f"left out: {error.reasons[0]}")


def prepare_chromium() -> None:
    """Fetch a browser where none is installed; whether it matters that there is none is up to who needs it."""
    try:
        driver_environment()
        say(f"a browser is there: {find_chromium().program}")
    except ChromiumUnavailable as error:
        say(f"left out: {error.reasons[0]}")
