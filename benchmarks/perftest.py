"""Optional: the publisher beside RabbitMQ's own PerfTest, which Maven fetches from Maven Central."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from delayctl.topology.access import access_from

from benchmarks.contest import middle, run
from benchmarks.publish_ways import ENTRANCE, KEY, QUEUE, TOPOLOGY, WINDOW
from benchmarks.vhost import Vhost, apply_text
from testbed import RunningBroker

_VERSION = "2.22.1"
_JARS = Path(__file__).parents[1] / "build" / f"perftest-{_VERSION}"
_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>delayctl</groupId><artifactId>perftest</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>com.rabbitmq</groupId><artifactId>perf-test</artifactId><version>{_VERSION}</version></dependency>
  </dependencies>
</project>
"""
_RATE = re.compile(r"sending rate avg: (\d+) msg/s")
_SECONDS = 8
_OURS, _BARE = "DelayPublisher", "bare socket"


def measure_perftest(broker: RunningBroker, *, rounds: int, scale: float) -> str:
    """Measure PerfTest, the bare socket and ours in turn; writes the table."""
    _fetch()
    access = access_from(broker.url, management_url=broker.management_url)
    with Vhost(access, "bench-perftest") as vhost:
        apply_text(vhost, TOPOLOGY)
        turns = [_round(vhost, int(40_000 * scale)) for _ in range(rounds)]
    lines = [
        f"### Publish, beside RabbitMQ's PerfTest {_VERSION} (one producer, window of {WINDOW:,}, persistent, mandatory)\n",
        f"PerfTest runs for {_SECONDS} s, in which Java is still warming up for one or two.\n",
        "| client | messages/s | DelayPublisher's rate, this = 1 |",
        "|---|---:|---:|",
        *(_line(name, turns) for name in turns[0]),
        "",
    ]
    return "\n".join(lines)


def _round(vhost: Vhost, count: int) -> dict[str, float]:
    rates = {"PerfTest": _perftest(vhost)}
    vhost.purge(QUEUE)
    for name in (_BARE, _OURS):
        rates[name] = run("benchmarks.publish_ways", name, vhost.url, count).rate
        vhost.purge(QUEUE)
    return rates


def _perftest(vhost: Vhost) -> float:
    options = [
        *("--uri", vhost.url, "--producers", "1", "--consumers", "0", "--predeclared", "--exchange", ENTRANCE),
        *("--routing-key", KEY, "--size", "200", "--flag", "persistent", "--flag", "mandatory"),
        *("--confirm", str(WINDOW), "--time", str(_SECONDS)),
    ]
    command = ["java", "-cp", f"{_JARS}/*", "com.rabbitmq.perf.PerfTest", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = _RATE.search(done.stdout)
    assert found, done.stdout[-2000:]
    print(f"bench: PerfTest: {found[1]}/s", file=sys.stderr, flush=True)
    return float(found[1])


def _line(name: str, turns: list[dict[str, float]]) -> str:
    rate = middle([turn[name] for turn in turns])
    ratio = middle([turn[_OURS] / turn[name] for turn in turns])
    return f"| {name} | {rate:,.0f} | {ratio:.2f} × |"


def _fetch() -> None:
    """Have Maven put PerfTest and all it needs into a folder, once."""
    if any(_JARS.glob("perf-test-*.jar")):
        return
    if not (shutil.which("java") and shutil.which("mvn")):
        sys.exit("Error: PerfTest needs Java and Maven\n  fix: apt-get install default-jre-headless maven")
    _JARS.mkdir(parents=True, exist_ok=True)
    (_JARS / "pom.xml").write_text(_POM, encoding="utf-8")
    copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={_JARS}"]
    subprocess.run(copy, cwd=_JARS, check=True, timeout=600)
