"""The index of bindings against routing itself, and keys that two patterns have in common."""

from delayctl.topology.key_index import BindingIndex, IndexedNetwork, OrderedNetwork, common_key, is_pattern, sample_of
from delayctl.topology.model import Binding, Exchange, Queue, freeze_arguments
from delayctl.topology.routing import Message, Network, matches, route, topic_matches
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.sampled_from(["a", "b", "", "any"])
KEYS = st.lists(WORDS, max_size=4).map(".".join)
PATTERNS = st.lists(st.one_of(WORDS, st.sampled_from(["*", "#"])), max_size=4).map(".".join)
VALUES = st.sampled_from(["1", 1, True, None])
HEADERS = st.dictionaries(st.sampled_from(["h", "i", "x-h"]), VALUES, max_size=3)
HOW = st.sampled_from([{}, *({"x-match": how} for how in ("all", "any", "all-with-x", "any-with-x"))])
ARGUMENTS = st.builds(lambda headers, how: freeze_arguments({**headers, **how}), HEADERS, HOW)
BINDINGS = st.lists(
    st.builds(
        lambda key, arguments, n: Binding("e", "queue", f"q{n}", key, arguments), PATTERNS, ARGUMENTS, st.integers(0, 9)
    ),
    max_size=8,
)


@given(st.sampled_from(["direct", "topic", "fanout", "headers"]), BINDINGS, KEYS, HEADERS)
def test_no_binding_that_matches_is_left_out(kind: str, bindings: list[Binding], key: str, headers: object) -> None:
    """What the index gives is all that routing would take."""
    message = Message(key, headers)  # type: ignore[arg-type]

    candidates = BindingIndex(kind, bindings).candidates(message)

    assert {b for b in bindings if matches(b, kind, message)} <= set(candidates) <= set(bindings)


@given(st.sampled_from(["direct", "topic", "fanout", "headers"]), BINDINGS, KEYS, HEADERS)
def test_an_indexed_network_routes_the_same(kind: str, bindings: list[Binding], key: str, headers: object) -> None:
    """To the same queues, in one function."""
    network = Network({"e": Exchange("e", kind)}, {f"q{n}": Queue(f"q{n}") for n in range(10)}, bindings)
    message = Message(key, headers)  # type: ignore[arg-type]

    assert set(route(IndexedNetwork.of(network), "e", message).queues) == set(route(network, "e", message).queues)


@given(*[PATTERNS.filter(lambda text: not text.startswith("."))] * 2, KEYS)
def test_a_common_key_fits_both(one: str, other: str, key: str) -> None:
    """And where there is none, no key does."""
    found = common_key(one, other)

    if found is None:
        assert not (topic_matches(one, key) and topic_matches(other, key))
    else:
        assert topic_matches(one, found)
        assert topic_matches(other, found)


@given(PATTERNS, PATTERNS)
def test_a_common_key_with_empty_words_fits_both_too(one: str, other: str) -> None:
    """Though one may be overlooked: nobody begins a key with a dot."""
    found = common_key(one, other)

    assert found is None or (topic_matches(one, found) and topic_matches(other, found))


@given(PATTERNS)
def test_a_sample_fits_its_pattern(pattern: str) -> None:
    """Whatever the pattern leaves open."""
    assert topic_matches(pattern, sample_of(pattern) if is_pattern(pattern) else pattern)


def test_an_ordered_network_routes_in_the_order_of_one_without_an_index() -> None:
    """Patterns and literal keys take turns, as their bindings are shown."""
    keys = {"a": "#", "b": "order.created", "c": "order.*", "d": "order.created"}
    bindings = frozenset(Binding("e", "queue", name, key) for name, key in keys.items())
    network = Network({"e": Exchange("e", "topic")}, {name: Queue(name) for name in keys}, bindings)
    ordered = OrderedNetwork(network.exchanges, network.queues, network.bindings)

    assert route(ordered, "e", Message("order.created")) == route(network, "e", Message("order.created"))
