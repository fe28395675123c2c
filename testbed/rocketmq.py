"""A RocketMQ of a test's own: name server and broker in a temporary folder, stopped, killed and started at will."""

import json
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from testbed import wait
from testbed.ports import CANDIDATES, LOOPBACK, free_ports, is_free
from testbed.processes import Command, Kept, kept
from testbed.rocketmq_jars import fetched_jars

BROKER_NAME = "broker"
BOOTED = "boot success"
READY_WITHIN = 60.0
STOPPED_WITHIN = 30.0
# What 4.9 reaches into when it lets go of its files; 5.x does without, and does not mind.
OPENED = (
    *("--add-opens", "java.base/java.nio=ALL-UNNAMED", "--add-opens", "java.base/jdk.internal.ref=ALL-UNNAMED"),
    *("--add-opens", "java.base/java.util=ALL-UNNAMED", "--add-opens", "java.base/java.lang=ALL-UNNAMED"),
    *("--add-exports", "java.base/sun.nio.ch=ALL-UNNAMED"),
)
# On a disk that is rather full a broker refuses messages and deletes old ones; a test is not about that.
DISK = (
    "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
    "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.98",
)
# A broker tells a client to come again when a request had to wait 200 ms; a busy machine is no reason for that here.
PATIENCE = dict.fromkeys(
    (
        *("waitTimeMillsInSendQueue", "waitTimeMillsInPullQueue", "waitTimeMillsInHeartbeatQueue"),
        "osPageCacheBusyTimeOutMills",
    ),
    "60000",
)
# The numbers in the file of offsets are keys without quotes, which JSON does not know.
BARE_KEY = re.compile(r"(?<=[{,\s])(\d+)(?=\s*:)")


class RocketMq:
    """One broker behind one name server. What it stores survives `kill` and `stop`, and is gone at the end."""

    def __init__(self, version: str, folder: Path, levels: str, settings: Mapping[str, str]) -> None:
        self.version, self.levels = version, levels
        self._folder, self._settings = folder, dict(settings)
        self._name_port, self._port = *free_ports(1), broker_port()
        self._jars = fetched_jars(version)
        self._broker = ExitStack()
        self._runs = 0
        self.started_ms = 0  # When it last began to serve, in milliseconds since 1970.

    @property
    def name_server(self) -> str:
        """Where clients ask for the broker."""
        return f"{LOOPBACK}:{self._name_port}"

    @property
    def classpath(self) -> str:
        """What a client of the same version needs."""
        return f"{self._jars}/*"

    @contextmanager
    def served(self) -> Iterator["RocketMq"]:
        """Run name server and broker until the block ends."""
        home = self._folder / "name-server"
        home.mkdir()
        _lay_out(home)
        (home / "namesrv.conf").write_text(f"listenPort={self._name_port}\nbindAddress={LOOPBACK}\n")
        command = self._command("namesrv.NamesrvStartup", home, "-c", str(home / "namesrv.conf"))
        # What they hold is thrown away in the end, so nothing is gained by the many seconds of an orderly stop.
        with kept([command], home, grace=0, remove=[self._folder]) as processes:
            _await_boot(processes, home / "output.log", "the name server")
            try:
                self.start()
                yield self
            finally:
                self.kill()

    def start(self, levels: str | None = None) -> None:
        """Start the broker with its data, and with another level string where one is given; returns when it serves."""
        self.levels = levels or self.levels
        self._runs += 1
        home = self._folder / f"run-{self._runs}"
        home.mkdir()
        _lay_out(home)
        (home / "broker.conf").write_text("".join(f"{name}={value}\n" for name, value in self._configuration()))
        command = self._command("broker.BrokerStartup", home, "-c", str(home / "broker.conf"))
        processes = self._broker.enter_context(kept([command], home, grace=STOPPED_WITHIN))
        _await_boot(processes, home / "output.log", "the broker")
        self.started_ms = time.time_ns() // 1_000_000

    def stop(self) -> None:
        """Stop the broker in order."""
        self._broker.close()

    def kill(self) -> None:
        """End the broker as the kernel does when memory is out: nothing is said, nothing is saved."""
        with suppress(ProcessLookupError):  # It may have been stopped already.
            os.kill(int((self._folder / f"run-{self._runs}" / "pid").read_text()), signal.SIGKILL)
        self._broker.close()

    def delay_offsets(self) -> dict[int, int]:
        """Return what the broker last wrote down of its way through each level; empty before it first did."""
        return read_offsets(self._offsets.read_text()) if self._offsets.is_file() else {}

    def offsets_written_at(self) -> int:
        """Return when that was, as the file system counts; 0 before the first time."""
        return self._offsets.stat().st_mtime_ns if self._offsets.is_file() else 0

    @property
    def _offsets(self) -> Path:
        return self._folder / "store" / "config" / "delayOffset.json"

    def _configuration(self) -> Iterator[tuple[str, str]]:
        yield from {
            "brokerClusterName": "delayctl",
            "brokerName": BROKER_NAME,
            "brokerId": "0",
            "namesrvAddr": self.name_server,
            "brokerIP1": LOOPBACK,
            "bindAddress": LOOPBACK,
            "listenPort": str(self._port),
            # Chosen anew at every start: nobody is told of it, and meanwhile somebody else may have taken the last one.
            "haListenPort": str(*free_ports(1)),
            "storePathRootDir": str(self._folder / "store"),
            "storePathCommitLog": str(self._folder / "store" / "commitlog"),
            "mappedFileSizeCommitLog": "16777216",
            "messageDelayLevel": self.levels,
            **PATIENCE,
            **self._settings,
        }.items()

    def _command(self, main: str, home: Path, *arguments: str) -> Command:
        java = ["java", "-Xms256m", "-Xmx512m", "-XX:MaxDirectMemorySize=512m", *OPENED, *DISK]
        own = [f"-Duser.home={home}", f"-Drocketmq.home.dir={home}", "-cp", self.classpath]
        # The shell leaves its process id behind and becomes the machine: who kills must know whom.
        argv = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(home / "pid"), *java, *own]
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        return Command([*argv, f"org.apache.rocketmq.{main}", *arguments], environment, home / "output.log")


@contextmanager
def rocketmq(version: str, levels: str, **settings: str) -> Iterator[RocketMq]:
    """Run a RocketMQ of this version with this level string until the block ends; settings are the broker's own."""
    folder = Path(tempfile.mkdtemp(prefix="delayctl-rocketmq-"))
    try:
        with RocketMq(version, folder, levels, settings).served() as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def broker_port() -> int:
    """Pick a port that has room two below, where a broker listens for its favoured clients."""
    for port in free_ports(64):
        if port - 2 in CANDIDATES and is_free(port - 2):
            return port
    raise OSError("no two ports that far apart are free")


def read_offsets(text: str) -> dict[int, int]:
    """Read the file of offsets, `delayOffset.json`: the next offset of each level."""
    table = json.loads(BARE_KEY.sub(r'"\1"', text))["offsetTable"] if text else {}
    return {int(level): int(offset) for level, offset in table.items()}


def _lay_out(home: Path) -> None:
    # 4.9 insists on its log settings, and is content with none in them.
    (home / "conf").mkdir()
    for name in ("namesrv", "broker"):
        (home / "conf" / f"logback_{name}.xml").write_text("<configuration/>\n")


def _await_boot(processes: Kept, output: Path, what: str) -> None:
    def is_up() -> bool:
        assert processes.end() is None, f"{what}: {processes.end()}: {processes.tail()}"
        return output.is_file() and BOOTED in output.read_text(errors="replace")

    wait.until(is_up, READY_WITHIN, what=f"{what}'s readiness")
