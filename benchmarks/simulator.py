"""The simulators' own speed and memory, beside the same model on SimPy; no broker takes part."""

import gc
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from delayctl.simulator import clock, rocketmq
from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rabbitmq import Broker, Delivery
from delayctl.topology.model import Topology

from benchmarks import simulator_simpy
from benchmarks.vhost import understand

PLACE = "No broker (virtual time)"
_TOPOLOGY = """\
version: 1
delay: {levels: rocketmq, queue: {max_length: 5000000}}
routes:
  - {key: order.created, delay: 1s, to: orders.queue}
"""
_KEY, _BODY = "order.created", b"x" * 200
_LARGEST_ON_SIMPY = 100_000

_MODEL, _COMPILED = "RabbitMQ model", "RabbitMQ model, compiled"
_ROOT = Path(__file__).parents[1]
_BUILT = _ROOT / "build" / "compiled"  # By `make compiled`.

Run = Callable[[int], int]  # From how many are to be delayed to how many were consumed.


def measure_simulator(*, rounds: int, sizes: list[int]) -> str:
    """Measure speed and growth; writes the tables."""
    rates = _rates(min(_LARGEST_ON_SIMPY, max(sizes)), rounds)
    lines = [
        "### Simulator: messages delayed, dead-lettered, consumed and acknowledged, per second of CPU\n",
        "Bars for the RabbitMQ model: ≥ 200,000 a second, ≥ 10 × the same on SimPy. One message every millisecond, in turn into",
        "RocketMQ's 18 levels, from 1 s to 2 h; no log. *SimPy, full* does for these messages what the model does, with stores and a",
        "process per level; *SimPy, bare* is the least that can be called a delay. For information: *each* is *full* with a process per",
        "message, *lean* is *full* with bare events in place of stores. *Compiled* is the model as `make compiled` builds it, to C;",
        "SimPy can't be compiled so. Of all rounds the fastest counts, for others on the machine only ever make them slower.\n",
        "| what | messages/s of CPU | compiled, this = 1 | not compiled, this = 1 | bar |",
        "|---|---:|---:|---:|---:|",
        *(_line(name, rates) for name in rates),
        "",
        "### Simulator: growth\n",
        "All messages wait at once when memory is measured.\n",
        "| messages over 18 levels | seconds of CPU | messages/s of CPU | bytes per waiting message |",
        "|---:|---:|---:|---:|",
        *map(_growth_line, sizes),
        "",
    ]
    return "\n".join(lines)


def _rates(count: int, rounds: int) -> dict[str, list[float]]:
    """Rates of every round; in a round all run one after the other."""
    runs: dict[str, Run] = {
        _MODEL: _on_rabbitmq,
        **{f"SimPy, {way}": partial(_on_simpy, way) for way in simulator_simpy.WAYS},
        "RocketMQ model": _on_rocketmq,
    }
    times: dict[str, Callable[[int], float]] = {_COMPILED: _seconds_compiled} if _BUILT.is_dir() else {}
    if not times:
        print("bench: the compiled model is left out; make compiled builds it", file=sys.stderr, flush=True)
    times |= {name: partial(_seconds, run) for name, run in runs.items()}
    turns = [{name: count / seconds(count) for name, seconds in times.items()} for _ in range(rounds)]
    return {name: [turn[name] for turn in turns] for name in turns[0]}


def _seconds_compiled(count: int) -> float:
    """The same on the compiled model, in a process of its own: one process can't have both."""
    program = f"from benchmarks.simulator import alone; print(alone({count}))"
    path = os.pathsep.join(map(str, (_BUILT, _ROOT)))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def alone(count: int) -> float:
    """Seconds of CPU on the compiled model, which this process has to have."""
    if not (clock.__file__ or "").startswith(str(_BUILT)):
        raise SystemExit(f"bench: this is not the compiled model: {clock.__file__}")
    _on_rabbitmq(count)  # The others run in a process that has its memory already.
    return _seconds(_on_rabbitmq, count)


def _seconds(run: Run, count: int) -> float:
    _topology()
    gc.collect()
    began = time.process_time()
    consumed = run(count)
    seconds = time.process_time() - began
    assert consumed == count
    print(
        f"bench: {getattr(run, '__name__', run)} {count:,}: {count / seconds:,.0f}/s of CPU",
        file=sys.stderr,
        flush=True,
    )
    return seconds


@cache
def _topology() -> Topology:
    return understand(_TOPOLOGY)


def _arrivals(count: int) -> Iterator[tuple[int, int]]:
    return ((number, number % 18) for number in range(count))


def _on_rabbitmq(count: int) -> int:
    topology = _topology()
    broker = Broker(topology, log=False)
    consumed = 0

    def consume(delivery: Delivery) -> None:
        nonlocal consumed
        consumed += 1
        broker.ack(delivery)

    broker.consume("orders.queue", consume, prefetch=simulator_simpy.PREFETCH)
    entrances = [level.entrance for level in topology.levels]
    publish, run_until = broker.publish, broker.clock.run_until
    for at, level in _arrivals(count):
        run_until(at)
        publish(entrances[level], _KEY, _BODY)
    broker.clock.run()
    return consumed


def _on_simpy(way: str, count: int) -> int:
    levels = [level.ttl.ms for level in _topology().levels]
    return simulator_simpy.WAYS[way](_arrivals(count), levels, _KEY, _BODY)


def _on_rocketmq(count: int) -> int:
    time_passes = VirtualClock()
    broker = rocketmq.Broker(time_passes, log=False)
    consumed = 0

    def consume(messages: Sequence[rocketmq.MessageExt], _: object) -> rocketmq.ConsumeConcurrentlyStatus:
        nonlocal consumed
        consumed += len(messages)
        return rocketmq.CONSUME_SUCCESS

    rocketmq.DefaultMQPushConsumer(broker, "orders").subscribe("orders").register_message_listener(consume).start()
    producer = rocketmq.DefaultMQProducer(broker)
    for at, level in _arrivals(count):
        time_passes.run_until(at)
        producer.send(rocketmq.Message("orders", _BODY).set_delay_time_level(level + 1))
    time_passes.run_until(time_passes.now + 3 * 3_600_000)
    return consumed


def _line(name: str, rates: dict[str, list[float]]) -> str:
    rate = max(rates[name])
    compiled, plain = (f"{max(rates[ours]) / rate:.2f} ×" if ours in rates else "–" for ours in (_COMPILED, _MODEL))
    bar = {_COMPILED: "≥ 200,000/s", _MODEL: "≥ 200,000/s", "SimPy, full": "≥ 10 ×"}.get(name, "")
    return f"| {name} | {rate:,.0f} | {compiled} | {plain} | {bar} |"


def _growth_line(count: int) -> str:
    seconds = min(_seconds(_on_rabbitmq, count) for _ in range(2))
    return f"| {count:,} | {seconds:.2f} | {count / seconds:,.0f} | {_bytes_waiting(count) / count:,.0f} |"


def _bytes_waiting(count: int) -> int:
    """What so many waiting messages take, their bodies apart, which are one and the same."""
    topology = _topology()
    broker = Broker(topology, log=False)
    entrances = [level.entrance for level in topology.levels]
    gc.collect()
    tracemalloc.start()
    for number in range(count):
        broker.publish(entrances[number % 18], _KEY, _BODY)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken
