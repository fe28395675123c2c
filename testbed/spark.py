"""Spark as pip installs it, in a folder of a test's own: settings, logs and scratch files stay there, nothing listens outside."""

import importlib.util
import os
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.java import Java, find_java
from testbed.ports import LOOPBACK
from testbed.spark_classes import FRUGAL, empty_folder, java_options

# Two workers in processes of their own, each with one core and as many MiB: what is shipped to them has to arrive.
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
# What Spark itself needs on an executor; all else comes with the job.
EXECUTOR_NEEDS = ("pyarrow",)
SETTINGS = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    # A job waits for both workers: the first to be there would otherwise do all of a small one.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
}
LOGGING = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.console.type = Console
appender.console.name = stderr
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""
# Spark looks for settings in a folder that is on its class path, too, and has to be empty there.
SUBMIT = """#!/bin/sh
exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.SparkSubmit --properties-file "$SPARK_HOME/settings" "$@"
"""


class SparkUnavailable(Exception):
    """Spark can't be had here; the text says why and how to get it."""


@dataclass(frozen=True)
class SparkHome:
    """A folder that Spark takes for its own, and the Java that it runs on."""

    folder: Path
    java: Java

    def environment(self, base: Mapping[str, str], *, executor_python: str = sys.executable) -> dict[str, str]:
        """Return `base` with what makes every Spark that is started in it live in this folder."""
        # Spark hands its PYTHONPATH on to executors, which would then find what was never sent to them.
        with_java = self.java.environment({name: value for name, value in base.items() if name != "PYTHONPATH"})
        own = {
            "PATH": os.pathsep.join([str(self.folder / "bin"), with_java["PATH"]]),
            "SPARK_HOME": str(self.folder),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LAUNCHER_OPTS": FRUGAL,
            "PYSPARK_PYTHON": executor_python,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        return {**with_java, **own}

    def submit(
        self, script: Path, *arguments: str, master: str = LOCAL_CLUSTER, py_files: Sequence[Path] = ()
    ) -> list[str]:
        """Return the command that runs a script on a cluster, with these archives sent to where it runs."""
        shipped = ["--py-files", ",".join(map(str, py_files))] if py_files else []
        return [str(self.folder / "bin/spark-submit"), "--master", master, *shipped, str(script), *arguments]


def spark_home(folder: Path) -> SparkHome:
    """Lay out a home for Spark in a folder that is there, on the Java that this machine can give."""
    package, java = installed("pyspark"), find_java()
    for part in ("sbin", "jars", "python"):
        (folder / part).symlink_to(package / part)
    for part in ("bin", "scratch", "warehouse"):
        (folder / part).mkdir()
    for script in (package / "bin").iterdir():
        if script.name != "spark-submit":
            (folder / "bin" / script.name).symlink_to(script)
    (folder / "bin/spark-submit").write_text(SUBMIT)
    (folder / "bin/spark-submit").chmod(0o755)
    (folder / "conf").symlink_to(empty_folder())
    (folder / "log4j2.properties").write_text(LOGGING)
    options = f"{java_options(java, package)} -Dlog4j2.configurationFile={folder}/log4j2.properties"
    own = {"spark.driver.extraJavaOptions": options, "spark.executor.extraJavaOptions": options}
    settings = {**SETTINGS, **own, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    (folder / "settings").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    return SparkHome(folder, java)


def bare_python(folder: Path) -> str:
    """Make a Python that has what Spark needs on an executor and nothing else, least of all delayctl; returns its path."""
    venv.create(folder, with_pip=False)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name in EXECUTOR_NEEDS:
        (packages / name).symlink_to(installed(name))
    return str(folder / "bin/python")


def installed(name: str) -> Path:
    """The folder of a package that pip installed."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise SparkUnavailable(f"{name} is not installed\n  fix: pip install 'delayctl[spark]'")
    return Path(found.origin).parent
