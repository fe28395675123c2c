"""What redrive refuses before it touches anything."""

from pathlib import Path

import pytest

from tests.support.commands import delayctl

FILE = """version: 1
delay:
  any: {unit: 1s, steps: 3}
  levels: {1m: {}, 2m: {shards: 2}}
queues: {delay.own.queue: {}}
retry:
  orders.queue: {levels: [1m], max: 2, park: orders.dlq}
"""
NO_BROKER = ("--url", "amqp://127.0.0.1:9", "--management-url", "http://127.0.0.1:9", "--timeout", "0.5")


def redrive(folder: Path, to: str, prefix: str | None = None) -> tuple[int, str]:
    """The code, and the first line that is said."""
    file = folder / "topology.yaml"
    file.write_text(FILE + (f"prefix: {prefix}\n" if prefix else ""))
    ran = delayctl("redrive", str(file), "--queue", "orders.dlq", "--to", to, *NO_BROKER)
    return ran.code, ran.err.splitlines()[0]


@pytest.mark.parametrize(
    "queue",
    ["delay.1m.queue", "delay.1m.next.queue", "delay.2m.1.queue", "delay.2m.3.next.queue", "delay.any.02.queue"],
)
def test_a_delay_queue_is_no_target(tmp_path: Path, queue: str) -> None:
    """What is put there comes out with the name of the queue as its key; so it is with what stands in for one."""
    code, said = redrive(tmp_path, queue)

    assert code == 64
    assert said.startswith(f"Error: --to {queue} is a delay queue")


def test_it_is_known_by_its_prefix(tmp_path: Path) -> None:
    """With a prefix of its own the file has no say over the name without one."""
    assert redrive(tmp_path, "shop.delay.1m.queue", "shop.")[0] == 64
    assert redrive(tmp_path, "delay.1m.queue", "shop.")[0] == 1


@pytest.mark.parametrize("queue", ["orders.queue", "delay.own.queue", "delay.unrouted.queue", "delay.queue"])
def test_any_other_queue_is_one(tmp_path: Path, queue: str) -> None:
    """As far as one can say without a broker: none answers."""
    code, said = redrive(tmp_path, queue)

    assert code == 1
    assert "delay queue" not in said


@pytest.mark.parametrize("option", ["--queue", "--to"])
def test_an_empty_name_is_no_queue(tmp_path: Path, option: str) -> None:
    """A variable of the shell that is not set leaves one; it is not the same as to leave the option out."""
    file = tmp_path / "topology.yaml"
    file.write_text(FILE)

    ran = delayctl("redrive", str(file), option, "", *NO_BROKER)

    assert (ran.code, ran.err.splitlines()[0]) == (64, f"Error: {option} is empty")
