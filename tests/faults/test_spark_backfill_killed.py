"""A backfill is killed again and again, driver, executor and broker: nothing is lost, and little comes twice."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delayctl.spark.folder import Folder

from testbed.spark import LOCAL_CLUSTER, SparkHome
from testbed.wait import until
from tests.conftest import TopologyFile
from tests.faults.account import Account
from tests.faults.killable import Killable
from tests.faults.traffic import drain
from tests.support.rabbit import Rabbit

KILLS = int(os.environ.get("DELAYCTL_FAULTS_KILLS", "3"))
ROWS = 10_000 * KILLS
RATE, WINDOW, TASKS = 4_000, 500, 2
LATEST_S = 600  # Spark is started anew after each death, which takes minutes where others keep the machine busy.
EXECUTOR = "CoarseGrainedExecutorBackend"
LEVELS = ("1h", "2h", "3h")
TOPOLOGY = """
version: 1
delay:
  levels: [1h, 2h, 3h]
routes:
  - {key: order.created, delay: 1h, to: target}
"""


@dataclass
class Backfill:
    """The command, started as often as it takes."""

    rabbit: Rabbit
    topology: Path
    rows: Path
    checkpoint: Path
    environment: dict[str, str]

    def command(self) -> list[str]:
        """The same words every time."""
        what = ("--source", f"parquet:{self.rows}", "--key", "order_id", "--level-column", "level")
        how = ("--rate", f"{RATE}/s", "--window", str(WINDOW), "--checkpoint", str(self.checkpoint), "--yes")
        where = ("--topology", str(self.topology), "--master", LOCAL_CLUSTER, *self.rabbit.options)
        return [sys.executable, "-m", "delayctl", "backfill", "--routing-key", "order.created", *what, *how, *where]

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[str]"]:
        """A run; whatever is left of it at the end is killed."""
        process = subprocess.Popen(
            self.command(),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            for pid in members(process.pid):
                kill(pid)
            process.communicate(timeout=30)

    @property
    def recorded(self) -> int:
        """How many messages are in the ledger."""
        return sum(part.rows for part in Folder(str(self.checkpoint)).parts("ledger"))

    def has_recorded(self, rows: int, process: "subprocess.Popen[str]") -> bool:
        """Whether so many are in the ledger, or nothing more is to be expected."""
        return self.recorded > rows or process.poll() is not None


@pytest.fixture
def backfill(mortal: Rabbit, topology: TopologyFile, tmp_path: Path, spark_folder: SparkHome) -> Backfill:
    """A topology that holds everything until the end, and a table of orders."""
    assert mortal.delayctl("apply", topology.write(TOPOLOGY), "--yes").code == 0
    numbers = range(ROWS)
    table = {"order_id": numbers, "level": [LEVELS[number % len(LEVELS)] for number in numbers]}
    pq.write_table(pa.table(table), tmp_path / "orders.parquet")
    environment = spark_folder.environment(os.environ)
    return Backfill(mortal, topology.path, tmp_path / "orders.parquet", tmp_path / "checkpoint", environment)


def test_killed_again_and_again(
    backfill: Backfill, killable: Killable, account: Callable[[str], Account], mortal: Rabbit
) -> None:
    """Every message is there, and what came twice was on its way when a task was killed."""
    chance = random.Random(KILLS)
    plan, is_complete = deaths(chance), False
    while plan:
        with backfill.running() as process:
            is_complete = suffer(backfill, process, plan, killable, chance)
    if not is_complete:
        with backfill.running() as process:
            said, _ = process.communicate(timeout=LATEST_S)
        assert process.returncode == 0, said

    book = account(killable.broker.version)
    book.sent = book.confirmed = set(map(str, range(ROWS)))
    for level in LEVELS:
        drain(mortal, book, f"delay.{level}.queue")
    book.check()
    assert book.duplicated <= KILLS * TASKS * 2 * WINDOW, book
    assert set(ledger(backfill.checkpoint)) == book.sent


def deaths(chance: random.Random) -> list[tuple[int, str]]:
    """Who is killed, and after how many rows: drivers, executors, and the broker once."""
    victims = ["broker", *(["driver", "executor"] * KILLS)][:KILLS]
    chance.shuffle(victims)
    step = ROWS // (KILLS + 1)
    return [(chance.randrange(step * number, step * (number + 1)), victim) for number, victim in enumerate(victims)]


def suffer(
    backfill: Backfill,
    process: "subprocess.Popen[str]",
    plan: list[tuple[int, str]],
    killable: Killable,
    chance: random.Random,
) -> bool:
    """Kill what is to be killed when its moment has come, until the driver dies or all is sent; says whether it is."""
    while plan:
        moment, victim = plan.pop(0)
        until(partial(backfill.has_recorded, moment, process), LATEST_S, what=f"{moment} rows")
        assert process.poll() is None, process.communicate()[0]
        if victim == "driver":
            kill(process.pid)
            return False
        if victim == "broker":
            killable.kill()
            killable.start()
        else:
            kill(chance.choice([pid for pid in members(process.pid) if EXECUTOR in command_of(pid)]))
    return process.wait(LATEST_S) == 0


def ledger(checkpoint: Path) -> list[str]:
    """The ids that the ledger has."""
    return [str(id_) for id_ in pq.read_table(checkpoint / "ledger").column("message_id").to_pylist()]


def kill(pid: int) -> None:
    """End a process as the kernel does; one that has ended is left in peace."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def members(session: int) -> list[int]:
    """The processes of a session."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if session_of(int(path.name)) == session]


def session_of(pid: int) -> int | None:
    """The session that a process belongs to; None where it has ended."""
    with suppress(ProcessLookupError):
        return os.getsid(pid)
    return None


def command_of(pid: int) -> str:
    """The command of a process; nothing where it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""
