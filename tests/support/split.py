"""How a run in several processes (`pytest -n`) is cut: along brokers, so that none is shared."""

import re
from collections.abc import Iterable

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# Minutes each, mostly waiting: what is long is begun first, or the last process would be alone with it.
LONGEST = (
    *("native", "container", "native with Spark", "container with Spark"),
    *("native with Spark to be killed", "native to be killed", "container to be killed", "testbed", "Spark"),
)
_ON_A_BROKER = re.compile(r"\[(native|container|given)\b")
_ON_SPARK = re.compile(r"/spark/|/test_(spark|backfill|audit)")


def is_repeated(nodeid: str) -> bool:
    """Whether a test of Spark or of the page is run on the older broker already, and would tell the same of the newer one.

    What lies between Spark and a broker is DelayPublisher, whose own tests run on both; one test of Spark's goes all
    the way on both, too. `make spark` runs all of them on both. What lies between a browser and a broker is `delayctl
    serve`, whose answers are looked at on both.
    """
    broker, path = _ON_A_BROKER.search(nodeid), nodeid.partition("::")[0]
    is_spark = bool(_ON_SPARK.search(path)) and not path.endswith("test_spark_account.py")
    return (is_spark or "/browser/" in path) and broker is not None and broker[1] == "container"


def needs_a_broker(nodeid: str) -> bool:
    """Whether a test runs on a real broker, one of its own included."""
    return "/faults/" in nodeid or _ON_A_BROKER.search(nodeid) is not None


class ByBroker(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out whole groups of tests, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(nodeid: str) -> str:
    """Name the tests that one process runs one after the other: those of a broker, else of Spark, else of a file."""
    path = nodeid.partition("::")[0]
    if "/testbed/" in path:
        return "testbed"
    broker, is_spark = _ON_A_BROKER.search(nodeid), _ON_SPARK.search(path)
    if broker is None:
        return "Spark" if is_spark else path
    if path.endswith("test_broker_dies.py"):
        return f"{broker[1]} to be killed"
    # They take as long as the others together, and a second broker costs less than waiting for them at the end.
    if not is_spark or broker[1] == "given":
        return broker[1]
    return f"{broker[1]} with Spark" + (" to be killed" if "/faults/" in path else "")


def longest_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Order tests by their group, those that take long at the front."""
    return sorted(items, key=lambda item: _rank(group(item.nodeid)))


def _rank(name: str) -> int:
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)
