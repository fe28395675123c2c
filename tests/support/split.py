"""How a run in several processes (`pytest -n`) is cut: along brokers, so that none is shared."""

import re
from collections.abc import Container, Iterable

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# Minutes each, mostly waiting: what is long is begun first, or the last process would be alone with it.
LONGEST = (
    *("Spark", "native with Spark of their own", "native for integration, p to z", "container for integration, p to z"),
    *("native for integration, a to o", "container for integration, a to o"),
    *("container for faults", "native for faults", "testbed", "native for browser"),
    *("container to be killed", "native to be killed", "native for conformance", "container for conformance"),
)
_ON_A_BROKER = re.compile(r"\[(native|container|given)\b")
_ON_SPARK = re.compile(r"/spark/|/test_(spark|backfill|audit)")
_STARTS_SPARK = re.compile(r"/faults/|/test_(backfill_cluster|spark_secrets|spark_shipping)\.py")
# What is typed and shown here, and what is made of an answer in which brokers do not differ, is told by one of them. What it
# asks of a broker has tests of its own, on both: applying, publishing, consuming, changing, retrying, and how messages wait.
_TOLD_BY_THE_OLDER = re.compile(
    r"/browser/|/integration/test_(capacity|doctor|explain|export|graph|no_delay|odd_bytes|publish_command|simulate|watch)\.py"
)
_TOLD_BY_THE_NEWER = re.compile(r"/integration/test_(cancel|import|metrics|serve|status|verify_troubles)\.py")


def is_repeated(nodeid: str, among: Container[str]) -> bool:
    """Whether a test is run on the other broker, too, and would tell the same of this one.

    What lies between Spark and a broker is DelayPublisher, whose own tests run on both; one test of Spark's goes all
    the way on both, too. `make everywhere` runs all of them on both.
    """
    path, broker = nodeid.partition("::")[0], broker_of(nodeid)
    is_spark = bool(_ON_SPARK.search(path)) and not path.endswith("test_spark_account.py")
    if broker == "container":
        is_told, other = is_spark or bool(_TOLD_BY_THE_OLDER.search(path)), "native"
    else:
        is_told, other = bool(_TOLD_BY_THE_NEWER.search(path)), "container"
    return is_told and broker is not None and nodeid.replace(f"[{broker}", f"[{other}", 1) in among


def needs_a_broker(nodeid: str) -> bool:
    """Whether a test runs on a real broker, one of its own included."""
    return "/faults/" in nodeid or "/testbed/" in nodeid or broker_of(nodeid) is not None


def broker_of(nodeid: str) -> str | None:
    """The kind of broker that a test runs on; unit tests need none, whatever their parameters are called."""
    found = None if "/unit/" in nodeid else _ON_A_BROKER.search(nodeid)
    return found[1] if found else None


class ByBroker(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out whole groups of tests, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(nodeid: str) -> str:
    """Name the tests that one process runs one after the other: those of Spark, of a folder on a broker, else of a file."""
    path = nodeid.partition("::")[0]
    if "/testbed/" in path:
        return "testbed"
    broker, is_spark = broker_of(nodeid), _ON_SPARK.search(path)
    if broker == "given":
        return broker
    # They share a session, which takes longer to start than a broker, or start one for each of their jobs.
    if is_spark:
        return f"{broker} with Spark of their own" if _STARTS_SPARK.search(path) else "Spark"
    if broker is None:
        return path
    if path.endswith("test_broker_dies.py"):
        return f"{broker} to be killed"
    # Several brokers of a kind cost less than the last process alone with all that is done on one of them.
    folder, name = path.split("/")[1], path.rpartition("/test_")[2]
    return f"{broker} for {folder}" + ("" if folder != "integration" else ", a to o" if name < "p" else ", p to z")


def longest_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Order tests by their group, those that take long at the front."""
    return sorted(items, key=lambda item: _rank(group(item.nodeid)))


def _rank(name: str) -> int:
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)
