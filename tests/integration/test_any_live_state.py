"""From any state that a broker may be in, plan and apply reach what the file says."""

from collections.abc import Callable
from dataclasses import replace

from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.lint import RULES
from delayctl.topology.model import Exchange, Queue, Topology
from delayctl.topology.spec import (
    ExchangeSpec,
    LevelSpec,
    QueueSpec,
    RouteSpec,
    SettingsHome,
    Silence,
    Spec,
    Target,
    WaitSpec,
)
from delayctl.topology.write import write_spec
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from testbed import RunningBroker
from tests.conftest import fresh_vhost
from tests.support.rabbit import Rabbit

LEVELS = ("1m", "5m", "1h")
EXCHANGES = ("orders", "stores")
QUEUES = ("a.queue", "b.queue", "c.queue")

waits = st.builds(
    WaitSpec,
    type=st.sampled_from(["classic", "quorum"]),
    max_length=st.sampled_from([None, 10, 1_000_000]),
    max_bytes=st.sampled_from([None, 5_000]),
    overflow=st.sampled_from(["drop-head", "reject-publish"]),
)
routes = st.builds(
    RouteSpec,
    keys=st.lists(st.sampled_from(["k.1", "k.*", "k.#"]), min_size=1, max_size=2, unique=True).map(tuple),
    targets=st.lists(
        st.sampled_from([Target("queue", name) for name in QUEUES] + [Target("exchange", "stores")]),
        min_size=1,
        max_size=2,
        unique=True,
    ).map(tuple),
    source=st.sampled_from(["orders", None]),
    level=st.sampled_from(LEVELS),
)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Small topologies over a few names, so that two of them overlap."""
    home: SettingsHome = draw(st.sampled_from(["arguments", "policy"]))
    levels = (LevelSpec(name, Duration.parse(name), draw(waits)) for name in LEVELS)
    kinds = [draw(st.sampled_from(["topic", "fanout"])), "topic"]
    return Spec(
        levels=tuple(levels),
        settings=home,
        exchanges=tuple(ExchangeSpec(name, kind) for name, kind in zip(EXCHANGES, kinds, strict=True)),
        queues=tuple(QueueSpec(name, draw(st.sampled_from([None, "classic", "quorum"]))) for name in QUEUES),
        routes=tuple(draw(st.lists(routes, max_size=3, unique=True))),
    )


Disturbance = Callable[[Rabbit], None]


@st.composite
def disturbances(draw: st.DrawFn, topology: Topology) -> Disturbance:
    """Something that somebody does by hand."""
    queue = draw(st.sampled_from(topology.queues))
    exchange = draw(st.sampled_from(topology.exchanges))
    binding = draw(st.sampled_from(topology.bindings))
    deeds: list[Disturbance] = [
        lambda rabbit: _delete(rabbit, queue),
        lambda rabbit: _delete(rabbit, exchange),
        lambda rabbit: _redeclare(rabbit, queue, {"x-max-length": 7}),
        lambda rabbit: _redeclare(rabbit, queue, {"x-message-ttl": 77_000, "x-expires": 3_600_000}),
        lambda rabbit: _redeclare_exchange(rabbit, exchange),
        lambda rabbit: _unbind(rabbit, binding.source),
    ]
    return draw(st.sampled_from(deeds))


def without_lint(spec: Spec) -> Spec:
    """The same, whatever lint thinks of it: a made-up topology may well lose messages."""
    return replace(spec, silences=tuple(Silence(rule.code, "made up") for rule in RULES))


@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(before=specs(), after=specs(), data=st.data())
def test_apply_reaches_the_file_from_any_state(
    broker: RunningBroker, before: Spec, after: Spec, data: st.DataObject
) -> None:
    """Another topology was applied, and things were done by hand; one apply later nothing is left to do."""
    topology = expand(before)
    deeds = data.draw(st.lists(disturbances(topology), max_size=4))
    wanted = expand(after)
    exchanges = {exchange.name for part in (topology, wanted) for exchange in part.exchanges}
    names = exchanges | {queue.name for part in (topology, wanted) for queue in part.queues}
    insist = [word for name in sorted(names) for word in ("--accept-loss", name)]

    with fresh_vhost(broker) as rabbit:
        assert rabbit.apply_text(write_spec(without_lint(before))).code == 0
        for deed in deeds:
            deed(rabbit)
        applied = rabbit.apply_text(write_spec(without_lint(after)), *insist)
        planned = rabbit.plan_text(write_spec(without_lint(after)))

    assert (applied.code, applied.err) == (0, "")
    assert planned.out.startswith("No changes.")


def _delete(rabbit: Rabbit, resource: Queue | Exchange) -> None:
    with rabbit.channel() as channel:
        if isinstance(resource, Queue):
            channel.queue_delete(resource.name)
        else:
            channel.exchange_delete(resource.name)


def _redeclare(rabbit: Rabbit, queue: Queue, arguments: dict[str, object]) -> None:
    with rabbit.channel() as channel:
        channel.queue_delete(queue.name)
        channel.queue_declare(queue.name, durable=True, arguments=arguments)


def _redeclare_exchange(rabbit: Rabbit, exchange: Exchange) -> None:
    with rabbit.channel() as channel:
        channel.exchange_delete(exchange.name)
        channel.exchange_declare(exchange.name, "direct", durable=True, internal=True)


def _unbind(rabbit: Rabbit, source: str) -> None:
    for binding in rabbit.api("GET", "bindings/{vhost}"):
        if binding["source"] == source:
            kind = "q" if binding["destination_type"] == "queue" else "e"
            path = f"bindings/{{vhost}}/e/{source}/{kind}/{binding['destination']}/{binding['properties_key']}"
            rabbit.api("DELETE", path)
