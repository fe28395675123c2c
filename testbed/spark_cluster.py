"""A Spark cluster of one's own: a master and workers on the loopback address, gone at the end."""

import json
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed import wait
from testbed.ports import LOOPBACK, free_ports
from testbed.processes import Command, Kept, kept
from testbed.spark import SparkHome, SparkUnavailable, bare_python, spark_home

# The variable that names the master of a running cluster.
MASTER = "DELAYCTL_SPARK_MASTER"
READY_WITHIN = 180.0
DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True)
class SparkCluster:
    """A master that all its workers have reported to, and a Python without delayctl for them to run."""

    home: SparkHome
    master: str
    executor_python: str

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return `base` with what makes `spark-submit` and PySpark reach the cluster by the master's name."""
        own = self.home.environment(base, executor_python=self.executor_python)
        return {**own, MASTER: self.master}


@contextmanager
def standalone_cluster(workers: int = 2) -> Iterator[SparkCluster]:
    """Run a master and workers of one core each until the block ends; delayctl is not installed where they run."""
    folder = Path(tempfile.mkdtemp(prefix="delayctl-spark-"))
    try:
        yield from _served(folder, workers)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _served(folder: Path, workers: int) -> Iterator[SparkCluster]:
    (folder / "home").mkdir()
    home, python = spark_home(folder / "home"), bare_python(folder / "python")
    port, page = free_ports(2)
    master = f"spark://{LOOPBACK}:{port}"
    commands = [_master(home, port, page), *(_worker(home, master, number) for number in range(workers))]
    with kept(commands, folder, grace=5, remove=[folder]) as processes:
        _await_workers(processes, page, workers)
        yield SparkCluster(home, master, python)


def _await_workers(processes: Kept, page: int, workers: int) -> None:
    try:
        wait.until(
            lambda: _reported(processes, page) == workers, READY_WITHIN, what="the workers' report to the master"
        )
    except TimeoutError as error:
        raise SparkUnavailable(f"the Spark cluster did not start: {error}\n{processes.tail()}") from error


def _master(home: SparkHome, port: int, page: int) -> Command:
    return _command(home, "master", f"{DEPLOY}.master.Master", "--port", str(port), "--webui-port", str(page))


def _worker(home: SparkHome, master: str, number: int) -> Command:
    work = home.folder / f"work-{number}"
    options = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work), master]
    return _command(home, f"worker-{number}", f"{DEPLOY}.worker.Worker", *options)


def _command(home: SparkHome, name: str, program: str, *options: str) -> Command:
    argv = [str(home.folder / "bin/spark-class"), program, "--host", LOOPBACK, *options]
    return Command(argv, home.environment({**os.environ, "SPARK_DAEMON_MEMORY": "256m"}), home.folder / f"{name}.log")


def _reported(processes: Kept, page: int) -> int:
    """Ask the master how many workers it has; 0 while it does not answer."""
    if ended := processes.end():
        raise SparkUnavailable(f"the Spark cluster did not start: {ended}\n{processes.tail()}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{LOOPBACK}:{page}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (OSError, ValueError):
        # Its server is there before its pages are, and what it answers until then is no JSON.
        return 0
