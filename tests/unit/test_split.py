"""A run in several processes is cut along brokers."""

import pytest

from tests.support.split import group, is_repeated


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/integration/test_apply.py::test_first[native]", "native for integration, a to o"),
        ("tests/integration/test_verify.py::test_first[container]", "container for integration, p to z"),
        ("tests/faults/test_network.py::test_under_the_consumer[container-stall]", "container for faults"),
        ("tests/faults/test_broker_dies.py::test_memory_alarm[native]", "native to be killed"),
        ("tests/integration/test_spark_sink.py::test_published[native]", "Spark"),
        ("tests/integration/test_spark_shipping.py::test_published[native]", "native with Spark of their own"),
        ("tests/integration/test_spark_account.py::test_all[container]", "Spark"),
        ("tests/integration/test_spark_shipping.py::test_published[given]", "given"),
        ("tests/faults/test_spark_stream_killed.py::test_killed[native]", "native with Spark of their own"),
        ("tests/unit/spark/test_rows.py::test_x", "Spark"),
        ("tests/testbed/test_testbed_native.py::test_three_private_nodes_are_one_cluster", "testbed"),
        ("tests/unit/topology/test_diff.py::TestFanout::test_x[native]", "tests/unit/topology/test_diff.py"),
    ],
)
def test_tests_of_a_broker_stay_together(nodeid: str, expected: str) -> None:
    """Those that need none stay with their file, whose fixtures they share, or with their Spark."""
    assert group(nodeid) == expected


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/integration/test_spark_sink.py::test_x[container]", True),
        ("tests/faults/test_spark_stream_killed.py::test_x[container]", True),
        ("tests/integration/test_spark_sink.py::test_x[native]", False),
        ("tests/integration/test_spark_account.py::test_x[container]", False),
        ("tests/integration/test_apply.py::test_x[container]", False),
        ("tests/browser/test_serve_page.py::test_x[container]", True),
        ("tests/browser/test_serve_page.py::test_x[native]", False),
        ("tests/integration/test_publish_command.py::TestLines::test_x[container]", True),
        ("tests/integration/test_publisher.py::test_x[container]", False),
        ("tests/integration/test_publisher.py::test_x[native]", False),
        ("tests/integration/test_status.py::test_x[native]", True),
        ("tests/integration/test_status.py::test_x[container]", False),
        ("tests/integration/test_status.py::test_x", False),
        ("tests/unit/spark/test_rows.py::test_x", False),
    ],
)
def test_what_one_broker_tells_is_tried_on_one(nodeid: str, expected: bool) -> None:
    """The other has nothing to add, but in the test of Spark that goes all the way."""
    both = {nodeid.replace("[native", "[container"), nodeid.replace("[container", "[native")}

    assert is_repeated(nodeid, both) is expected


def test_what_is_tried_on_no_other_broker_is_not_left_out() -> None:
    """Or nothing would run it, and nobody would see that."""
    nodeid = "tests/integration/test_spark_sink.py::test_x[container]"

    assert not is_repeated(nodeid, {nodeid})
