"""Java for Spark, wherever there is one."""

import os
import subprocess
from pathlib import Path

import pytest

from testbed.java import JavaUnavailable, fetched_java, find_java, release_of, settle, unpacked_java
from testbed.needs import give_up
from testbed.spark import SparkHome, spark_home

COUNT = """
from pyspark.sql import SparkSession

with SparkSession.builder.master("local[1]").getOrCreate() as spark:
    print(spark.range(7).mapInArrow(lambda batches: batches, "id long").count())
"""


def java(folder: Path, version: str) -> Path:
    """Make a Java in this folder that can do no more than tell its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java and without apt."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setenv("DELAYCTL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


@pytest.mark.parametrize(("version", "release"), [("17.0.15", 17), ("21", 21), ("1.8.0_392", 8), ("25-ea", 25)])
def test_a_java_tells_its_release(tmp_path: Path, version: str, release: int) -> None:
    """In the ways that they have told it over the years."""
    assert release_of(java(tmp_path, version) / "bin/java") == release


def test_the_named_java_is_taken_before_the_one_on_the_path(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark does itself."""
    monkeypatch.setenv("JAVA_HOME", str(java(alone / "named", "21.0.1")))
    monkeypatch.setenv("PATH", str(java(alone / "found", "17.0.15") / "bin") + ":/bin")

    assert find_java().home == alone / "named"


def test_a_java_that_is_too_old_is_passed_over(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the next that is not."""
    monkeypatch.setenv("JAVA_HOME", str(java(alone / "named", "11.0.2")))
    monkeypatch.setenv("PATH", str(java(alone / "found", "17.0.15") / "bin") + ":/bin")

    assert find_java().home == alone / "found"


def test_without_any_all_that_was_tried_is_told(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the ways to get one."""
    monkeypatch.setenv("JAVA_HOME", str(java(alone / "named", "11.0.2")))

    with pytest.raises(JavaUnavailable) as caught:
        find_java()

    assert str(caught.value) == (
        "no Java for Spark to be had\n"
        f"  tried: {alone / 'named'}: Java 11 is too old\n"
        "  tried: Debian's packages (openjdk-17-jre-headless): this system has no apt-get and dpkg\n"
        "  tried: Debian's packages (openjdk-21-jre-headless): this system has no apt-get and dpkg\n"
        "  fix: install one: sudo apt-get install openjdk-17-jre-headless\n"
        "  fix: name one: export JAVA_HOME=/path/to/a/Java (17 or newer)"
    )


def test_the_links_of_an_unpacked_java_stay_in_its_tree(tmp_path: Path) -> None:
    """Its settings are read where they were unpacked; what was not unpacked is left alone."""
    home, etc = tmp_path / "usr/lib/jvm/java-17-openjdk-amd64", tmp_path / "etc/java-17-openjdk"
    (home / "lib").mkdir(parents=True)
    etc.mkdir(parents=True)
    (etc / "jvm-amd64.cfg").write_text("-server KNOWN\n")
    (home / "lib/jvm.cfg").symlink_to("/etc/java-17-openjdk/jvm-amd64.cfg")
    (home / "lib/cacerts").symlink_to("/etc/ssl/certs/java/not-there")

    settle(tmp_path)

    assert (home / "lib/jvm.cfg").readlink() == Path("../../../../../etc/java-17-openjdk/jvm-amd64.cfg")
    assert (home / "lib/jvm.cfg").read_text() == "-server KNOWN\n"
    assert (home / "lib/cacerts").readlink() == Path("/etc/ssl/certs/java/not-there")


def test_an_unpacked_java_finds_the_libraries_that_were_unpacked_with_it(tmp_path: Path) -> None:
    """And is the first one on the path."""
    home = tmp_path / "usr/lib/jvm/java-17-openjdk-amd64"
    home.mkdir(parents=True)
    (tmp_path / "usr/lib/x86_64-linux-gnu").mkdir()

    assert unpacked_java(tmp_path).environment({"PATH": "/bin", "LANG": "C"}) == {
        "PATH": f"{home}/bin:/bin",
        "LANG": "C",
        "JAVA_HOME": str(home),
        "LD_LIBRARY_PATH": f"{tmp_path}/usr/lib/x86_64-linux-gnu",
    }


def test_the_fetched_java_runs_spark(tmp_path: Path) -> None:
    """Unpacked without root, its settings and all."""
    try:
        fetched = fetched_java()
    except JavaUnavailable as error:
        give_up(str(error))
    job = tmp_path / "job.py"
    job.write_text(COUNT)
    (tmp_path / "home").mkdir()
    home = SparkHome(spark_home(tmp_path / "home").folder, fetched)
    env = home.environment({"PATH": os.defpath, "HOME": str(tmp_path)})

    ran = subprocess.run(home.submit(job, master="local[1]"), env=env, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (0, "7\n"), ran.stderr
