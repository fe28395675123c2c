"""A Spark that shows and logs all it can, finds delayctl by itself, and has tasks that fail at first: ids stay, secrets too."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from testbed.spark import SparkHome
from tests.conftest import TopologyFile
from tests.support.arrived import take_all
from tests.support.commands import Ran
from tests.support.rabbit import Rabbit

TOPOLOGY = "version: 1\ndelay: {levels: [1s]}\nqueues: {target: {}}\nroutes: [{key: k, delay: 1s, to: target}]\n"
PASSWORD = "geheim-4711"
ROWS = 2000
JOB = """
import sys
import time
from urllib.request import urlopen

import pika
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType

url, file, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


def arrived():
    connection = pika.BlockingConnection(pika.URLParameters(url))
    found = connection.channel().queue_declare("target", passive=True).method.message_count
    connection.close()
    return found


@udf(StringType())
def failing_at_first(number):
    if number == count - 1 and TaskContext.get().attemptNumber() == 0:
        deadline = time.monotonic() + 60
        while not arrived():
            assert time.monotonic() < deadline
        raise OSError("the first attempt fails")
    return "x" * 1000


def write(frame, to):
    frame.write.format("delayctl").option("url", to).option("topology", file).mode("append").save()


with SparkSession.builder.getOrCreate() as spark:
    spark.sparkContext.setLogLevel("INFO")
    rows = spark.range(0, count, 1, 2).select("id", failing_at_first("id").alias("body"))
    messages = rows.selectExpr("cast(id as string) as message_id", "body", "'k' as routing_key", "'0s' as delay")
    write(messages, url)
    try:
        write(messages, url.rpartition("@")[0] + "@127.0.0.1:1/")
    except Exception as error:
        print("ERROR", error)
    messages.explain(True)
    home = spark.sparkContext.uiWebUrl
    application = f"{home}/api/v1/applications/{spark.sparkContext.applicationId}"
    for page in (
        f"{application}/sql?details=true&planDescription=true",
        f"{application}/environment",
        f"{application}/jobs",
        f"{application}/stages?details=true",
        f"{home}/SQL/",
        f"{home}/SQL/execution/?id=0",
        f"{home}/environment/",
    ):
        text = urlopen(page).read().decode()
        assert text
        print("PAGE", page, text)
"""
SETTINGS = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
}


@pytest.fixture
def url(rabbit: Rabbit, topology: TopologyFile) -> Iterator[str]:
    """The topology on a broker, and a user of the test's own with a password that stands nowhere else."""
    ran = rabbit.delayctl("apply", topology.write(TOPOLOGY), "--yes")
    assert ran.code == 0, ran.err
    user = f"etl-{uuid.uuid4().hex[:8]}"
    rabbit.api("PUT", f"users/{user}", {"password": PASSWORD, "tags": ""})
    rabbit.api("PUT", f"permissions/{{vhost}}/{user}", {"configure": ".*", "write": ".*", "read": ".*"})
    parts = urlsplit(rabbit.url)
    yield f"amqp://{user}:{PASSWORD}@{parts.hostname}:{parts.port}/{quote(rabbit.vhost, safe='')}"
    rabbit.api("DELETE", f"users/{user}")


def run(folder: Path, spark_folder: SparkHome, *arguments: str) -> Ran:
    """Run the job as users do where delayctl is installed: Spark finds it by its name."""
    installed = folder / "installed"
    installed.mkdir()
    (installed / "pyspark_delayctl").symlink_to(Path(__file__).parents[2] / "pyspark_delayctl")
    (folder / "events").mkdir()
    settings = {**SETTINGS, "spark.eventLog.dir": (folder / "events").as_uri()}
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = {
        **spark_folder.environment(os.environ),
        "PYTHONPATH": str(installed),
        "PYSPARK_SUBMIT_ARGS": " ".join([*confs, "--master", "local[2,3]", "pyspark-shell"]),
    }
    script = folder / "job.py"
    script.write_text(JOB)
    ran = subprocess.run(
        [sys.executable, str(script), *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def test_a_retried_task_yields_the_same_ids_and_nothing_shows_the_password(
    rabbit: Rabbit, topology: TopologyFile, url: str, tmp_path: Path, spark_folder: SparkHome
) -> None:
    """Every row arrives, some twice with the same id; plans, pages, logs, events and errors keep the secret."""
    ran = run(tmp_path, spark_folder, url, str(topology.path), str(ROWS))

    assert ran.code == 0, ran.err[-5000:]
    ids = [each.message_id for each in take_all(rabbit, "target")]
    assert set(ids) == {str(number) for number in range(ROWS)}
    assert ROWS < len(ids) <= 2 * ROWS  # The first attempt had sent something: it waited for that.
    assert "nothing listens at amqp://127.0.0.1:1" in ran.out
    assert ran.out.count("PAGE") == 7
    events = "".join(path.read_text() for path in (tmp_path / "events").rglob("*") if path.is_file())
    assert "SparkListenerSQLExecutionStart" in events
    shown = {"output": ran.out, "log": ran.err, "events": events}
    assert [where for where, text in shown.items() if PASSWORD in text] == []
