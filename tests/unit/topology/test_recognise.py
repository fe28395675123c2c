"""What delays is found, with all that belongs to it and nothing else."""

from dataclasses import replace

from delayctl.topology.duration import Duration
from delayctl.topology.imported import ladder_text, ladder_warning
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings, freeze_arguments
from delayctl.topology.recognise import Found, Wait, names_mentioned, recognise
from delayctl.topology.record import Record
from delayctl.topology.remarks import remarks

MINUTE = Duration(60_000)


def host(*objects: Exchange | Queue | Binding | Policy, record: Record | None = None) -> Live:
    """A virtual host with these objects."""
    return Live(
        exchanges={o.name: o for o in objects if isinstance(o, Exchange)},
        queues={o.name: o for o in objects if isinstance(o, Queue)},
        bindings=frozenset(o for o in objects if isinstance(o, Binding)),
        policies=tuple(o for o in objects if isinstance(o, Policy)),
        record=record,
    )


def wait(name: str = "wait", leaves: str = "exit", key: str | None = None, **settings: object) -> Queue:
    """A queue that holds messages for a minute."""
    return Queue(name, Settings(ttl=MINUTE, dead_letter_exchange=leaves, dead_letter_key=key, **settings))  # type: ignore[arg-type]


IN = Binding("orders", "queue", "wait", "a")
OUT = Binding("exit", "queue", "work", "a")


def test_a_wait_has_a_ttl_and_an_exit() -> None:
    """Neither a TTL nor a dead-letter exchange alone makes a delay."""
    live = host(
        Queue("short", Settings(ttl=MINUTE)), Queue("work", Settings(dead_letter_exchange="dlx")), Queue("bare")
    )

    assert recognise(live) == Found()


def test_a_wait_with_its_ways_in_and_out() -> None:
    """The exchange that leads in, the exit and the queue behind it belong to a wait; others do not."""
    elsewhere = Binding("orders", "queue", "other", "b")
    live = host(Exchange("orders"), Exchange("exit"), wait(), Queue("work"), Queue("other"), IN, OUT, elsewhere)

    found = recognise(live)

    assert found.waits == (Wait("wait", live.queues["wait"].settings, (IN,), (OUT,)),)
    assert (sorted(found.exchanges), sorted(found.queues)) == (["exit", "orders"], ["wait", "work"])
    assert found.bindings == {IN, OUT}


def test_a_policy_makes_a_wait() -> None:
    """What counts is what is in force."""
    policy = Policy(
        "waits", "^wait$", "queues", 0, freeze_arguments({"message-ttl": 60_000, "dead-letter-exchange": "exit"})
    )
    live = host(Queue("wait"), Queue("work"), Exchange("exit"), OUT, policy)

    [found] = recognise(live).waits

    assert (found.queue, found.settings.ttl, found.policies) == ("wait", MINUTE, ("waits",))
    assert found.ways_out == (OUT,)


def test_a_policy_of_something_else_is_not_named() -> None:
    """Only policies that give a delay are spoken of."""
    policy = Policy("lazy", ".*", "queues", 0, freeze_arguments({"queue-mode": "lazy"}))

    [found] = recognise(host(wait(), policy)).waits

    assert found.policies == ()


def test_the_way_in_is_followed_through_exchanges_and_alternates() -> None:
    """From the wait against the stream, to the first publisher."""
    inner = Binding("orders", "exchange", "entrance", "a")
    last = Binding("entrance", "queue", "wait")
    unmatched = Exchange("front", alternate="orders")
    live = host(unmatched, Exchange("orders"), Exchange("entrance", "fanout"), wait(), inner, last)

    found = recognise(live)

    assert found.exchanges == {"front", "orders", "entrance"}
    assert found.bindings == {inner, last}


def test_the_way_out_is_followed_through_exchanges_alternates_and_dead_lettering() -> None:
    """With the stream, to the last queue."""
    onward = Binding("exit", "exchange", "site", "a")
    parked = Binding("net", "queue", "parked")
    arrived = Binding("site", "queue", "work", "#")
    live = host(
        *(Exchange("exit", alternate="net"), Exchange("net", "fanout"), Exchange("site"), onward, parked, arrived),
        *(
            wait(),
            Queue("parked"),
            Queue("work", Settings(dead_letter_exchange="", dead_letter_key="dead")),
            Queue("dead"),
        ),
    )

    found = recognise(live)

    assert found.exchanges == {"exit", "net", "site"}
    assert found.queues == {"wait", "parked", "work", "dead"}
    assert found.bindings == {onward, parked, arrived}


def test_a_dead_letter_key_narrows_the_way_out() -> None:
    """Of a shared exchange only what the key reaches belongs to the wait."""
    other = Binding("exit", "queue", "other", "b")
    live = host(Exchange("exit", "direct"), wait(key="a"), Queue("work"), Queue("other"), OUT, other)

    found = recognise(live)

    assert found.queues == {"wait", "work"}
    assert found.waits[0].ways_out == (OUT,)


def test_out_by_the_default_exchange() -> None:
    """The dead-letter key names the queue."""
    found = recognise(host(wait(leaves="", key="work"), Queue("work")))

    assert found.waits[0].ways_out == (Binding("", "queue", "work", "work"),)
    assert (sorted(found.queues), sorted(found.exchanges), len(found.bindings)) == (["wait", "work"], [], 0)


def test_waits_that_lead_into_each_other_are_walked_once() -> None:
    """A circle of dead-lettering comes to an end."""
    found = recognise(host(wait("one", "", "two"), wait("two", "", "one")))

    assert [w.queue for w in found.waits] == ["one", "two"]


def test_what_was_applied_belongs_to_it() -> None:
    """A file that leaves out what the record holds would remove it."""
    record = Record(exchanges=frozenset({"mine", "gone"}), queues=frozenset({"work"}), bindings=frozenset({OUT}))
    live = host(Exchange("mine"), Exchange("exit"), Queue("work"), OUT, record=record)

    found = recognise(live)

    assert (sorted(found.exchanges), sorted(found.queues)) == (["exit", "mine"], ["work"])
    assert found.bindings == {OUT}


def test_everything_is_everything() -> None:
    """Asked for all, nothing is left out."""
    found = recognise(host(Exchange("other"), Queue("work")), everything=True)

    assert (sorted(found.exchanges), sorted(found.queues)) == (["other"], ["work"])


def test_a_prefix_narrows_the_waits() -> None:
    """Waits of other names are not looked at."""
    found = recognise(host(wait("shop.wait"), wait("wait")), prefix="shop.")

    assert [w.queue for w in found.waits] == ["shop.wait"]


def test_exchanges_that_are_spoken_of() -> None:
    """Definitions may leave them out, so that they have to be asked for."""
    live = host(Exchange("front", alternate="net"), wait(), IN, Binding("orders", "exchange", "inner"))

    assert names_mentioned(live) == {"net", "exit", "orders", "inner"}


def ladder(family: str = "celery_delayed_", delivery: str = "celery_delayed_delivery", **odd: int) -> Live:
    """A ladder of 28 levels; some with another TTL."""
    names = [f"{family}{number}" for number in range(28)]
    queues = [
        Queue(name, Settings(ttl=Duration(odd.get(name, 2**number * 1000)), dead_letter_exchange=below))
        for number, (name, below) in enumerate(zip(names, [delivery, *names], strict=False))
    ]
    return host(*map(Exchange, (*names, delivery)), *queues, Binding(delivery, "exchange", "celery", "#.celery"))


def test_a_ladder_of_another_product_is_no_heap_of_waits() -> None:
    """It is one thing, and its name is known."""
    found = recognise(ladder())

    [known] = found.ladders
    assert found.waits == ()
    assert (known.product, known.lacks, known.targets) == ("Celery (kombu's native delayed delivery)", (), ("celery",))
    assert (len(found.exchanges), len(found.queues)) == (29, 28)
    assert str(known.longest) == "3106d21h24m15s"


def test_a_ladder_with_a_prefix_of_its_own() -> None:
    """Kombu can put a prefix before its names."""
    [known] = recognise(ladder("shop_celery_delayed_", "shop_celery_delayed_delivery")).ladders

    assert known.delivery == "shop_celery_delayed_delivery"


def test_a_level_that_waits_another_time_is_noticed() -> None:
    """A ladder with one wrong rung."""
    [known] = recognise(ladder(celery_delayed_4=1)).ladders

    assert (known.lacks, known.levels) == (("celery_delayed_4",), 27)
    assert ladder_text(known) == "Celery (kombu's native delayed delivery): 27 of 28 levels"
    assert (ladder_warning(known) or "").endswith("get lost: celery_delayed_4")


def test_a_ladder_that_only_just_is_one_is_not_called_whole() -> None:
    """Three rungs of 28, and no way out of the last."""
    whole = ladder()
    few = {name: queue for name, queue in whole.queues.items() if name[-2:] in ("_0", "_1", "_2")}
    exchanges = {name: exchange for name, exchange in whole.exchanges.items() if name != "celery_delayed_delivery"}

    [known] = recognise(replace(whole, queues=few, exchanges=exchanges)).ladders

    assert known.levels == 3
    assert ladder_text(known).endswith(": 3 of 28 levels")
    assert (ladder_warning(known) or "").endswith("celery_delayed_10 and 18 more")
    assert ladder_warning(recognise(whole).ladders[0]) is None


def test_a_name_alone_makes_no_ladder() -> None:
    """A queue that just looks like one is a wait like others."""
    found = recognise(host(wait("celery_delayed_1")))

    assert found.ladders == ()
    assert [w.queue for w in found.waits] == ["celery_delayed_1"]


def said(live: Live) -> tuple[str, ...]:
    """What is remarked on the wait."""
    return remarks(recognise(live).waits[0], live)


def test_remarks_on_the_way_out() -> None:
    """Lost, redirected or dropped: each way of leaving that surprises is said."""
    no_limit = "no max-length: nothing bounds what waits"
    exit_ = Exchange("exit")
    net = Exchange("exit", alternate="net")
    circle = Binding("exit", "queue", "wait", "a")

    assert said(host(wait())) == ("its dead-letter exchange exit does not exist: what expires is lost", no_limit)
    assert said(host(wait(), exit_))[0] == "nothing that it leads to is bound to exit: what expires is lost"
    assert said(host(wait(), exit_, Queue("work"), OUT))[0].startswith("no safety net: exit has no alternate exchange")
    assert said(host(wait(), net, Queue("work"), OUT)) == (no_limit,)
    assert said(host(wait(key="a"), net, OUT))[0].endswith("whatever key a message had, it comes out as a")
    assert said(host(wait(), net, circle))[0].endswith("with the key that led in is dropped as a cycle")
    assert said(host(wait(leaves="")))[0].startswith("it leaves by the default exchange")
    assert said(host(wait(leaves="", key="wait")))[0].startswith("it leads back into itself")
    assert said(host(wait(leaves="", key="work")))[0].endswith("which does not exist: what expires is lost")


def test_remarks_on_keeping() -> None:
    """Early, deleted or forgotten."""
    net = Exchange("exit", alternate="net")
    odd = wait(max_length=1, dead_letter_strategy="at-least-once", expires=MINUTE)
    transient = Queue("wait", Settings(ttl=MINUTE, dead_letter_exchange="exit", max_length=1), durable=False)

    assert said(host(odd, net)) == (
        "at its limit the oldest message leaves early (drop-head)",
        "at-least-once needs overflow reject-publish; without it the broker falls back to at-most-once",
        "unused for 1m it is deleted, with all that waits in it",
    )
    assert said(host(transient, net))[-1] == "not durable: it is gone after a restart of the broker"
    assert said(host(wait(max_length=1, overflow="reject-publish"), net)) == ()
