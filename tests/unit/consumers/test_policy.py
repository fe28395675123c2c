"""How long each retry waits."""

import pytest
from delayctl.consumers.policy import ByList, Policy, exponential, fixed, policy_from, rocketmq
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.model import Level
from delayctl.topology.parse import read_spec

ROCKETMQ = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"


def levels(text: str) -> list[Level]:
    """Levels by their names."""
    return [Level(name, Duration.parse(name), f"in.{name}", f"queue.{name}") for name in text.split()]


def waits(policy: Policy, count: int = 18) -> list[str | None]:
    """The first waits of a policy."""
    return [policy.level(retry) for retry in range(1, count + 1)]


def test_rocketmq_begins_at_its_third_level() -> None:
    """The first retry waits 10 s, the sixteenth 2 h, and there is no seventeenth."""
    found = waits(rocketmq(levels(ROCKETMQ)))

    assert found == [*ROCKETMQ.split()[2:], None, None]


def test_rocketmq_waits_as_the_topology_says() -> None:
    """The file and the policy count alike, and clamp alike at the last level."""
    for text in (ROCKETMQ, "1s 5s", "1s 2s 3s 4s"):
        retry = f"retry: {{q: {{levels: {text}, park: q.dlq}}}}"
        spec = read_spec(f"version: 1\ndelay: {{levels: {text}}}\nqueues: {{q: {{}}}}\n{retry}\n", {}, file="t")

        assert waits(ByList(spec.retries[0].waits)) == waits(rocketmq(expand(spec).levels))


def test_other_policies() -> None:
    """The same again and again, a list whose last is repeated, and doubling."""
    known = levels("1s 5s 10s 1m")

    assert waits(fixed("5s", 2), 3) == ["5s", "5s", None]
    assert waits(ByList(["1s", "1m"], 4), 5) == ["1s", "1m", "1m", "1m", None]
    assert waits(ByList(["1s", "1m"]), 3) == ["1s", "1m", None]
    assert waits(exponential(known, "3s", most=6), 7) == ["5s", "10s", "1m", "1m", "1m", "1m", None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rocketmq", ["10s", "1m"]),
        ("fixed 5s", ["5s", "5s"]),
        ("exponential 1s", ["1s", "5s"]),
        ("list 1m 1s", ["1m", "1s"]),
    ],
)
def test_a_policy_has_a_name(text: str, expected: list[str]) -> None:
    """As it is written in a setting."""
    assert waits(policy_from(text, levels("1s 5s 10s 1m")), 2) == expected


@pytest.mark.parametrize("text", ["", "linear 5s", "fixed", "fixed 7s", "list", "exponential soon", "rocketmq 3"])
def test_a_name_that_says_nothing_is_refused(text: str) -> None:
    """At the start, not at the first failure."""
    with pytest.raises(BadOption):
        policy_from(text, levels("1s 5s"))


def test_a_policy_needs_a_level() -> None:
    """Without any there is nothing to wait in."""
    with pytest.raises(DelayctlError, match="no level"):
        rocketmq([])
