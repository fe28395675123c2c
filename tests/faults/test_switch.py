"""Delay queues are changed while four publishers use them, also by a delayctl that is killed on the way."""

import os
import random
import subprocess
from collections.abc import Callable

from tests.conftest import TopologyFile
from tests.faults.account import Account
from tests.faults.switching import LEVELS, Load, Orchard, under_load
from tests.support.commands import delayctl_process
from tests.support.rabbit import Rabbit

SWITCHES = int(os.environ.get("DELAYCTL_SWITCHES", "4"))
KILLS = int(os.environ.get("DELAYCTL_SWITCH_KILLS", "2"))
SEED = int(os.environ.get("DELAYCTL_SWITCH_SEED", "7"))
LONGEST_S = 12  # A change takes about as long.


def bring(rabbit: Rabbit, topology: TopologyFile, orchard: Orchard) -> None:
    """Apply a file and wait until all is done."""
    ran = rabbit.delayctl("apply", topology.write(orchard.text()), "--yes", "--wait")
    assert ran.code == 0, ran.out + ran.err


def begun(rabbit: Rabbit, topology: TopologyFile, orchard: Orchard, book: Account) -> Load:
    """Apply the first file, and open the account."""
    bring(rabbit, topology, orchard)
    load = Load(book)
    load.holds(orchard)
    return load


def check(rabbit: Rabbit, topology: TopologyFile, load: Load) -> None:
    """Nothing lost, nothing twice, nothing early, nobody disturbed, nothing left behind."""
    load.book.check()
    assert (load.copies(), dict(load.book.failed)) == ([], {}), load.book
    assert rabbit.delayctl("plan", str(topology.path), "--detailed-exitcode").code == 0
    assert not [name for name in map(str, rabbit.definitions()["queues"]) if ".next." in name]


def test_switches_under_load(rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> None:
    """Type, delay and room of four levels change, again and again."""
    chance, orchard = random.Random(SEED), Orchard()
    load = begun(rabbit, topology, orchard, account(f"{rabbit.broker.version} {SWITCHES} changes:"))

    with under_load(rabbit, topology, load):
        for _ in range(0, SWITCHES, len(LEVELS)):
            before, orchard = orchard, orchard.changed(chance)
            load.holds(before, orchard)
            bring(rabbit, topology, orchard)
            load.holds(orchard)

    check(rabbit, topology, load)


def test_shards_under_load(rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> None:
    """One level is spread, one comes together again, one gets more queues and one fewer; no publisher hears of it."""
    orchard = Orchard().spread(1, 3, 2, 3)
    load = begun(rabbit, topology, orchard, account(f"{rabbit.broker.version} other shards:"))

    with under_load(rabbit, topology, load):
        bring(rabbit, topology, orchard.spread(3, 1, 3, 2))

    check(rabbit, topology, load)
    assert load.book.confirmed, "it was under load"
    found = {queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")} - {"target", "delay.unrouted.queue"}
    spread = {"apples": 3, "cherries": 3, "dates": 2}
    shards = {f"delay.{level}.{number + 1}.queue" for level, count in spread.items() for number in range(count)}
    assert found == shards | {"delay.berries.queue"}


def test_killed_and_resumed(rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> None:
    """At whatever moment it is killed, the next run goes on, or back to what was before."""
    chance, orchard = random.Random(SEED), Orchard()
    load = begun(rabbit, topology, orchard, account(f"{rabbit.broker.version} {KILLS} kills:"))

    with under_load(rabbit, topology, load):
        for number in range(KILLS):
            before, goal = orchard, orchard.changed(chance)
            load.holds(before, goal)
            kill_at_a_random_moment(rabbit, topology.write(goal.text()), chance)
            orchard = goal if number % 2 == 0 else before
            bring(rabbit, topology, orchard)
            load.holds(orchard)

    check(rabbit, topology, load)


def kill_at_a_random_moment(rabbit: Rabbit, file: str, chance: random.Random) -> None:
    """Start an apply, and end it as no program can foresee."""
    process = delayctl_process("apply", file, "--yes", "--wait", *rabbit.options, stdout=subprocess.DEVNULL)
    try:
        process.wait(chance.uniform(0.5, LONGEST_S))
    except subprocess.TimeoutExpired:
        process.kill()
    process.wait(10)
