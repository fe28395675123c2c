"""apply killed at any moment, and two at once."""

import os
import random
import signal
import subprocess
import time

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl_process
from tests.support.rabbit import Rabbit

KILLS = int(os.environ.get("DELAYCTL_FAULTS_KILLS", "6"))
BEFORE = """\
version: 1
delay: {levels: [1m, 5m, 15m], queue: {max_length: 5}}
routes:
{% for i in range(15) %}
  - {key: old.{{ i }}, delay: 5m, to: old.{{ i }}.queue}
{% endfor %}
"""
AFTER = """\
version: 1
delay: {levels: rocketmq}
exchanges: {orders.exchange: {type: topic}}
routes:
{% for i in range(15) %}
  - {from: orders.exchange, key: new.{{ i }}, delay: 5m, to: new.{{ i }}.queue}
{% endfor %}
"""


def await_unlocked(rabbit: Rabbit) -> None:
    """Wait until the broker has noticed that the lock's owner died."""
    until(lambda: "delay.lock.queue" not in [queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")], 20)


def test_killed_at_any_moment_the_next_apply_completes(rabbit: Rabbit, topology: TopologyFile) -> None:
    """At random moments of creations, replacements and removals: nothing half-done remains."""
    files = [topology.write(BEFORE), str(topology.path.with_name("after.yaml"))]
    topology.path.with_name("after.yaml").write_text(AFTER)
    expected = []
    for file in files:
        started = time.monotonic()
        process = delayctl_process("apply", file, "--yes", *rabbit.options, stdout=subprocess.DEVNULL)
        assert process.wait(60) == 0
        expected.append((rabbit.definitions(), time.monotonic() - started))
    moments = random.Random(20)

    killed = 0
    for attempt in range(KILLS):
        file, (wanted, duration) = files[attempt % 2], expected[attempt % 2]
        # A third of the time goes to starting Python; what follows it is worth interrupting.
        moment = moments.uniform(0.3, 1.0) * duration
        process = delayctl_process("apply", file, "--yes", *rabbit.options, stdout=subprocess.DEVNULL)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
        await_unlocked(rabbit)

        completed = rabbit.delayctl("apply", file, "--yes")

        assert completed.code == 0, completed
        assert rabbit.definitions() == wanted
        assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0
    assert killed >= KILLS // 2


def test_bindings_of_others_survive_a_killed_replacement(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A replacement that died between delete and bind has left a note on the broker of what to put back."""
    rabbit.delayctl("apply", topology.write("version: 1\ndelay: {levels: [1h], queue: {max_length: 5}}\n"), "--yes")
    with rabbit.channel() as channel:
        channel.exchange_declare("theirs", "direct", durable=True)
        channel.queue_bind("delay.1h.queue", "theirs", "their.key")
    file = topology.write("version: 1\ndelay: {levels: [1h]}\n")
    moments = random.Random(7)

    for _ in range(6):
        process = delayctl_process("apply", file, "--yes", *rabbit.options, stdout=subprocess.PIPE)
        assert process.stdout is not None
        for line in process.stdout:  # Kill as close to the replacement as can be.
            if line.startswith("Plan:"):
                break
        try:
            process.wait(moments.uniform(0, 0.02))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        await_unlocked(rabbit)
        rabbit.delayctl("apply", file, "--yes")
        assert any('"their.key"' in binding for binding in rabbit.definitions()["bindings"])
        file = topology.write(
            f"version: 1\ndelay: {{levels: [1h], queue: {{max_length: {moments.randint(6, 999)}}}}}\n"
        )


def test_two_applies_at_once_take_turns(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Both end well, one after the other: the second finds nothing left to do."""
    file = topology.write(AFTER)
    running = [
        delayctl_process("apply", file, "--yes", *rabbit.options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]

    answers = sorted(process.communicate(timeout=60)[0].splitlines()[-1] for process in running)

    assert [process.returncode for process in running] == [0, 0]
    assert answers == [
        "Applied: 104 added, 0 changed, 0 replaced, 0 deleted.",
        f"No changes. The broker matches {file}.",
    ]


def test_an_apply_that_may_not_wait_refuses(rabbit: Rabbit, topology: TopologyFile) -> None:
    """While somebody holds the lock, --lock-timeout 0s gives up at once and says why."""
    file = topology.write(AFTER)
    with rabbit.channel() as channel:
        channel.queue_declare("delay.lock.queue", exclusive=True)
        ran = rabbit.delayctl("apply", file, "--yes", "--lock-timeout", "0s")

    assert ran.code == 1
    assert "another delayctl is changing this topology right now" in ran.err
    assert rabbit.definitions()["queues"] == []


def test_an_interrupted_apply_says_so_and_is_completed_by_the_next(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Ctrl-C ends with the code for partly applied, and nothing is half-done after the next run."""
    file = topology.write(AFTER.replace("range(15)", "range(400)"))
    process = delayctl_process(
        "apply", file, "--yes", *rabbit.options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=1
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("created"):
            process.send_signal(signal.SIGINT)
            break
    _, err = process.communicate(timeout=60)

    completed = rabbit.delayctl("apply", file, "--yes")

    assert process.returncode == 3
    assert err.strip() == "Stopped half-way. Run it again to complete it; a saved plan has to be made anew."
    assert completed.code == 0
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0
