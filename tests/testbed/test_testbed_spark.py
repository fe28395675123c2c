"""Spark in a folder of its own, and a standalone cluster."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import __main__ as command
from testbed.java import Java, JavaUnavailable
from testbed.needs import give_up
from testbed.spark import LOCAL_CLUSTER, SparkHome, bare_python
from testbed.spark_classes import FRUGAL
from testbed.spark_cluster import MASTER, standalone_cluster

WHERE = """
import os

from pyspark.sql import SparkSession

with SparkSession.builder.getOrCreate() as spark:
    places = spark.sparkContext.range(0, 8, numSlices=8).map(lambda number: os.getcwd()).collect()
print(*sorted(set(places)), sep="\\n")
"""


def test_what_is_on_the_drivers_path_does_not_reach_executors(tmp_path: Path) -> None:
    """Spark hands PYTHONPATH on; with it, delayctl would be there without having been sent."""
    home = SparkHome(tmp_path, Java(Path("/java")))

    assert home.environment({"PATH": "/bin", "PYTHONPATH": "/src"}, executor_python="/bare/python") == {
        "PATH": f"{tmp_path}/bin:/java/bin:/bin",
        "JAVA_HOME": "/java",
        "SPARK_HOME": str(tmp_path),
        "SPARK_CONF_DIR": f"{tmp_path}/conf",
        "SPARK_LOCAL_DIRS": f"{tmp_path}/scratch",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LAUNCHER_OPTS": FRUGAL,
        "PYSPARK_PYTHON": "/bare/python",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def test_a_job_is_submitted_with_what_is_sent_along(tmp_path: Path) -> None:
    """To workers in processes of their own, unless told otherwise."""
    home = SparkHome(tmp_path, Java(Path("/java")))

    assert home.submit(Path("job.py"), "a", py_files=[Path("x.zip"), Path("y.zip")]) == [
        *(f"{tmp_path}/bin/spark-submit", "--master", LOCAL_CLUSTER),
        *("--py-files", "x.zip,y.zip", "job.py", "a"),
    ]


def test_a_bare_python_has_arrow_and_nothing_of_ours(tmp_path: Path) -> None:
    """Nor what delayctl is made of."""
    program = (
        "import importlib.util as u; print([n for n in ('pyarrow', 'delayctl', 'click', 'pip') if u.find_spec(n)])"
    )

    ran = subprocess.run(
        [bare_python(tmp_path / "bare"), "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, check=True
    )

    assert ran.stdout == b"['pyarrow']\n"


@pytest.mark.spark_cluster
@pytest.mark.skipif(MASTER not in os.environ, reason="six Java machines: run by make spark-standalone")
def test_a_cluster_works_with_all_its_workers_and_leaves_nothing(tmp_path: Path) -> None:
    """Each worker is a process with a folder of its own, and gone at the end."""
    job = tmp_path / "job.py"
    job.write_text(WHERE)
    try:
        with standalone_cluster(2) as cluster:
            folder = cluster.home.folder
            argv, env = cluster.home.submit(job, master=cluster.master), cluster.environment(os.environ)
            ran = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    except JavaUnavailable as error:
        give_up(str(error))

    workers = [Path(line).relative_to(folder).parts[0] for line in ran.stdout.splitlines()]
    assert (ran.returncode, workers) == (0, ["work-0", "work-1"]), ran.stderr
    assert not folder.parent.exists()


def test_no_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """No cluster is started for nothing."""
    assert command.main(["spark", "--"]) == 64
    assert capsys.readouterr().err == "Error: no command to run\n  fix: python -m testbed spark -- COMMAND ARGUMENTS\n"
