"""The pytest plugin as the author of a service meets it."""

import subprocess
import sys

import pytest

from tests.unit.testing.conftest import TOPOLOGY

pytest_plugins = ["pytester"]

ADVANCING = """
def test_it(delay_broker):
    delay_broker.publish("order", key="order.created", exchange="orders")
    delay_broker.advance("15m")
    assert [message.text for message in delay_broker.messages("timeouts")] == ["order"]
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with a topology, in which no plugin but ours is loaded."""
    # By name and not by entry point: what is installed here may be older than what is tested.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p delayctl.testing.plugin --strict-markers -W error")
    pytester.path.joinpath("topology.yaml").write_text(TOPOLOGY)
    return pytester


def test_the_configuration_names_the_topology(project: pytest.Pytester) -> None:
    """Once for all tests, relative to the root, wherever pytest is started."""
    project.makeini("[pytest]\ndelay_topology = topology.yaml\n")
    project.mkdir("tests").joinpath("test_it.py").write_text(ADVANCING)

    project.runpytest_subprocess("--rootdir", project.path, "tests").assert_outcomes(passed=1)


def test_a_marker_names_the_topology_and_its_values(project: pytest.Pytester) -> None:
    """For one test."""
    project.path.joinpath("other.yaml").write_text("version: 1\ndelay: {levels: [1m]}\nqueues: {eu.{{ name }}: {}}\n")
    project.makepyfile(
        """
        import pytest

        @pytest.mark.delay_topology("other.yaml", values={"name": "orders"})
        def test_it(delay_broker):
            assert delay_broker.messages("eu.orders") == []
        """
    )

    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_fixture_of_one_s_own_names_the_topology(project: pytest.Pytester) -> None:
    """A file, or any value that is one."""
    project.makeconftest("import pytest\n\n@pytest.fixture\ndef delay_topology():\n    return 'topology.yaml'\n")
    project.makepyfile(ADVANCING)

    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_every_test_has_a_broker_of_its_own(project: pytest.Pytester) -> None:
    """What one leaves behind the next does not see, and its time begins anew."""
    project.makeini("[pytest]\ndelay_topology = topology.yaml\n")
    project.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("turn", [1, 2])
        def test_it(delay_broker, turn):
            assert (str(delay_broker.elapsed), delay_broker.messages("plain")) == ("0s", [])
            delay_broker.publish("left behind", key="plain", exchange="")
            delay_broker.advance("1h")
        """
    )

    project.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_test_that_fails_shows_what_happened_on_the_broker(project: pytest.Pytester) -> None:
    """And one that passes does not."""
    project.makeini("[pytest]\ndelay_topology = topology.yaml\n")
    project.makepyfile(ADVANCING + "    assert False\n")

    result = project.runpytest_subprocess()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- Captured broker log call -*",
            "            0s  Published(message=1, exchange='orders', key='order.created', *",
            "           15m  DeadLettered(message=1, queue='delay.15m.queue', reason='expired', *",
        ]
    )


def test_what_a_handler_asserts_fails_the_test(project: pytest.Pytester) -> None:
    """Where time passes, or else when the test ends; what is no assertion is the service's own business."""
    project.makeini("[pytest]\ndelay_topology = topology.yaml\n")
    project.makepyfile(
        """
        import threading

        def test_while_time_passes(delay_broker):
            def check(message):
                assert message.text == "another"

            delay_broker.consumer({"timeouts": check})
            delay_broker.publish("order", key="order.created", exchange="orders")
            delay_broker.advance("1d")

        def test_at_the_end(delay_broker):
            is_called = threading.Event()

            def check(message):
                is_called.set()
                assert message.text == "another"

            delay_broker.consumer({"plain": check})
            delay_broker.publish("order", key="plain", exchange="")
            assert is_called.wait(10)

        def test_that_passes(delay_broker):
            def fail(message):
                raise ConnectionError

            delay_broker.consumer({"timeouts": fail})
            delay_broker.publish("order", key="order.created", exchange="orders")
            delay_broker.advance("1d")
        """
    )

    result = project.runpytest_subprocess()

    result.assert_outcomes(failed=1, passed=2, errors=1)
    result.stdout.fnmatch_lines(["*AssertionError: assert 'order' == 'another'*"])


@pytest.mark.parametrize(
    ("ini", "marker", "expected"),
    [
        ("delay_topology = nowhere.yaml", "", "*Error: the file can't be read: No such file or directory*"),
        ("", '@pytest.mark.delay_topology("nowhere.yaml")', "*fix: check the path, or start with: delayctl init*"),
        ("", "@pytest.mark.delay_topology()", "*write @pytest.mark.delay_topology(file), or *"),
    ],
)
def test_what_is_wrong_with_the_topology_is_said(
    project: pytest.Pytester, ini: str, marker: str, expected: str
) -> None:
    """With the path and what to do about it."""
    project.makeini(f"[pytest]\n{ini}\n")
    project.makepyfile(f"import pytest\n\n{marker}\ndef test_it(delay_broker):\n    pass\n")

    result = project.runpytest_subprocess()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([expected])


def test_nobody_else_is_disturbed(project: pytest.Pytester) -> None:
    """A project that never asks for the broker loads nothing of ours but the plugin itself."""
    project.makepyfile(
        """
        import sys

        def test_it():
            loaded = {name for name in sys.modules if name.partition(".")[0] in ("delayctl", "pika", "yaml", "jinja2")}
            assert loaded == {"delayctl", "delayctl.testing", "delayctl.testing.plugin"}
        """
    )

    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_package_itself_needs_no_pytest() -> None:
    """Which is no dependency of ours: unittest and notebooks use the broker too."""
    program = "import sys; from delayctl.testing import SimulatedBroker; sys.exit('pytest' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
