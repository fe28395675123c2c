"""RocketMQ's own name server, broker and client, which Maven fetches from Maven Central once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from testbed.cache import cache_folder, cached, say

# The newest 4.9 whose broker is on Maven Central, and the first 5.x that does not skip what it fails to deliver.
VERSIONS = ("4.9.7", "5.3.3")
PARTS = ("namesrv", "broker", "client")
TOOLS = ("java", "javac", "mvn")
FETCHED_WITHIN = 900


class RocketMqUnavailable(Exception):
    """RocketMQ can't be had here; the text says why and how to get it."""


def fetched_jars(version: str) -> Path:
    """Return the folder with the jars of this version, fetched where it is not there yet."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise RocketMqUnavailable(
            f"a real RocketMQ needs {', '.join(missing)}, not found on PATH\n"
            "  fix: apt-get install default-jdk-headless maven (Java 11 or newer)"
        )
    return cached(cache_folder() / f"rocketmq-{version}", lambda folder: _fetch(version, folder))


def _fetch(version: str, folder: Path) -> None:
    say(f"fetching RocketMQ {version} from Maven Central")
    folder.mkdir()
    (folder / "pom.xml").write_text(_pom(version), encoding="utf-8")
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=FETCHED_WITHIN,
            env=dict(os.environ),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RocketMqUnavailable(f"Maven did not fetch RocketMQ {version} within {FETCHED_WITHIN} s") from error
    if done.returncode:
        raise RocketMqUnavailable(f"Maven could not fetch RocketMQ {version}:\n{done.stdout[-1500:]}")


def _pom(version: str) -> str:
    dependencies = "".join(
        f"<dependency><groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-{part}</artifactId>"
        f"<version>{version}</version></dependency>"
        for part in PARTS
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>delayctl</groupId><artifactId>rocketmq</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>\n"
    )


if __name__ == "__main__":
    try:
        for each in VERSIONS:
            fetched_jars(each)
    except RocketMqUnavailable as trouble:
        sys.exit(f"Error: {trouble}")
