"""Spark in a test's hands: a session in this process, and jobs on workers that have no delayctl but what is sent to them."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from delayctl.spark.package import write_package

from testbed.java import JavaUnavailable
from testbed.needs import give_up
from testbed.spark import LOCAL_CLUSTER, SparkHome, SparkUnavailable, bare_python, spark_home
from testbed.spark_cluster import MASTER
from tests.support.commands import Ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DONE_WITHIN = 600


@dataclass(frozen=True)
class SparkJobs:
    """A cluster whose workers are processes of their own, and the package that delayctl makes for it."""

    home: SparkHome
    master: str
    executor_python: str
    package: Path

    def run(self, script: Path, *arguments: str) -> Ran:
        """Run a script on the cluster by `spark-submit`, the package sent along."""
        ran = subprocess.run(
            self.home.submit(script, *arguments, master=self.master, py_files=[self.package]),
            env=self.home.environment(os.environ, executor_python=self.executor_python),
            # The scripts are not run from the repository, where they would find modules that were not sent.
            cwd=script.parent,
            capture_output=True,
            text=True,
            timeout=DONE_WITHIN,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> SparkHome:
    """A home for every Spark of this process: `spark_folder.environment(os.environ)` is for commands that start one."""
    try:
        return spark_home(tmp_path_factory.mktemp("spark"))
    except (JavaUnavailable, SparkUnavailable) as error:
        give_up(str(error))


@pytest.fixture(scope="session")
def spark(spark_folder: SparkHome) -> Iterator["SparkSession"]:
    """A session with two threads, the same for all tests of this process: starting one takes seconds."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (large, and most tests do without)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in spark_folder.environment(os.environ).items():
            patch.setenv(name, value)
        session = SparkSession.builder.master("local[2]").appName("delayctl tests").getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="session")
def spark_jobs(spark_folder: SparkHome, tmp_path_factory: pytest.TempPathFactory) -> SparkJobs:
    """Workers in processes of their own: those of the standalone cluster that the environment names, else a local one."""
    folder = tmp_path_factory.mktemp("jobs")
    package = folder / "delayctl-spark.zip"
    write_package(str(package))
    return SparkJobs(spark_folder, os.environ.get(MASTER) or LOCAL_CLUSTER, bare_python(folder / "python"), package)
