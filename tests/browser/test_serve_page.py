"""The page of `delayctl serve` in a real browser, on a real broker, with names and messages that mean no good."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from testbed import RunningBroker
from testbed.wait import until
from tests.conftest import fresh_vhost
from tests.support.away import away_at_will, go, return_
from tests.support.browser import browser, grave_faults, opened
from tests.support.foreign_page import foreign_page
from tests.support.rabbit import Rabbit
from tests.support.served import Served, serving
from tests.support.tcp_proxy import TcpProxy

__all__ = ["browser"]  # A fixture that is written elsewhere.

HOSTILE = """<img src=x onerror="document.title='hacked'">'&amp;</title><script>document.title='hacked'</script>"""
FILE = f"""version: 1
delay: {{levels: [2s, 1h], queue: {{max_length: 100}}}}
exchanges:
  orders.exchange: {{}}
queues:
  orders.queue: {{}}
  {json.dumps(HOSTILE)}: {{}}
routes:
  - {{from: orders.exchange, key: order.created, delay: 2s, to: orders.queue}}
  - {{from: orders.exchange, key: order.late, delay: 1h, to: [orders.queue, {json.dumps(HOSTILE)}]}}
retry:
  orders.queue: {{levels: [2s], max: 2, park: orders.dlq}}
"""


@dataclass(frozen=True)
class Shop:
    """A virtual host, the server that shows it, and the network between them."""

    rabbit: Rabbit
    served: Served
    network: tuple[TcpProxy, TcpProxy]


@pytest.fixture(scope="module")
def shop(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The shop, applied and served for all tests of this file: each leaves it as it was."""
    file: Path = tmp_path_factory.mktemp("shop") / "shop.yaml"
    file.write_text(FILE, encoding="utf-8")
    with fresh_vhost(broker) as rabbit, away_at_will(rabbit) as (options, network):
        assert rabbit.delayctl("apply", str(file), "--yes").code == 0
        with serving(str(file), "--allow-redrive", *options) as served:
            yield Shop(rabbit, served, network)


@pytest.fixture
def page(browser: Browser, shop: Shop) -> Iterator[Page]:
    """The page, opened by the address that was printed."""
    with opened(browser, shop.served.address) as page:
        expect(page.locator("#map svg")).to_be_visible()
        yield page


def of_queue(page: Page, place: str, queue: str, part: str) -> Locator:
    """What a card or a row says of a queue."""
    return page.locator(f'{place}[data-queue="{queue}"] {part}')


def park(rabbit: Rabbit, count: int, key: str, body: bytes, reason: str) -> None:
    """Have messages in the parking queue as a service leaves them there."""
    with rabbit.channel() as channel:
        for number in range(count):
            headers: dict[str, Any] = {
                "delay-attempt": 2,
                "delay-parked": reason,
                "delay-queue": "orders.queue",
                "delay-origin": {"exchange": "orders.exchange", "key": key},
            }
            properties = pika.BasicProperties(message_id=f"{key}-{number}", headers=headers, delivery_mode=2)
            channel.basic_publish("", "orders.dlq", body, properties)


def test_counters_move_while_messages_flow(shop: Shop, page: Page) -> None:
    """On the card of the level and on the map, then at the queue where they arrive; nothing has to be loaded anew."""
    waiting, arrived = shop.rabbit.ready("delay.1h.queue"), shop.rabbit.ready("orders.queue")
    expect(of_queue(page, ".level", "delay.1h.queue", ".big")).to_have_text(str(waiting))

    shop.rabbit.publish("orders.exchange", "order.late", *"abc")
    shop.rabbit.publish("orders.exchange", "order.created", *"de")

    expect(of_queue(page, ".level", "delay.1h.queue", ".big")).to_have_text(str(waiting + 3))
    expect(page.locator('[data-card="level 1h"] .count')).to_have_text(f"{waiting + 3} waiting")
    expect(of_queue(page, ".level", "delay.1h.queue", ".spark")).to_have_attribute(
        "aria-label", re.compile(f"^waiting over 10m: {waiting + 3} in the end, .*, limit 100$")
    )
    expect(of_queue(page, "#targets ", "orders.queue", "td").nth(1)).to_have_text(str(arrived + 2))


def test_a_change_by_hand_appears_and_goes(shop: Shop, page: Page) -> None:
    """Among the findings, in words, and in the light at the top."""
    page.get_by_role("tab", name="Findings").click()
    expect(page.locator("#list-drift")).to_have_text("The broker matches shop.yaml.")

    place = "bindings/{vhost}/e/delay.exchange/q/orders.queue"
    shop.rabbit.api("DELETE", f"{place}/order.created")
    expect(page.locator("#list-drift")).to_contain_text("+binding delay.exchange → [order.created] orders.queue")
    expect(page.locator("#health")).to_contain_text("not healthy")

    shop.rabbit.api("POST", place, {"routing_key": "order.created"})
    expect(page.locator("#list-drift")).to_have_text("The broker matches shop.yaml.")


def test_parked_messages_are_moved(shop: Shop, page: Page) -> None:
    """Those that were chosen after a question, and no others; by keyboard as well as by mouse."""
    park(shop.rabbit, 3, "order.paid", b'{"total": 12.5}', "the bank is away")
    before = shop.rabbit.ready("orders.queue")
    page.get_by_role("tab", name="Parked").click()
    page.get_by_role("button", name="Look into orders.dlq").click()
    expect(page.locator("#messages tbody tr")).to_have_count(3)
    expect(page.locator("#kinds tbody")).to_contain_text("the bank is away")

    page.get_by_label("choose order.paid-1").check()
    page.get_by_role("button", name="Redrive 1 chosen").click()
    page.get_by_role("button", name="Leave them").click()
    assert shop.rabbit.ready("orders.dlq") == 3
    page.get_by_role("button", name="Redrive 1 chosen").click()
    page.get_by_role("button", name="Redrive", exact=True).last.press("Enter")
    expect(page.locator("#parked-said")).to_contain_text("Redriven: 1 of 3 messages of orders.dlq")
    expect(page.locator("#messages tbody tr")).to_have_count(2)

    page.get_by_role("button", name="Redrive all").click()
    page.locator("#ask-yes").click()
    expect(page.locator("#parked-said")).to_contain_text("Redriven: 2 of 2 messages of orders.dlq")
    expect(of_queue(page, ".parking", "orders.dlq", ".big")).to_have_text("0")
    assert (shop.rabbit.ready("orders.dlq"), shop.rabbit.ready("orders.queue")) == (0, before + 3)


def test_hostile_names_and_messages_are_text(shop: Shop, page: Page) -> None:
    """As a queue's name, key, reason and body they are read as they are, do nothing, and make no element."""
    park(shop.rabbit, 1, HOSTILE, HOSTILE.encode(), HOSTILE)
    foreign = f"{HOSTILE} of others"
    shop.rabbit.api("PUT", f"queues/{{vhost}}/{quote(foreign, safe='')}", {"durable": True})
    bound = f"bindings/{{vhost}}/e/delay.exchange/q/{quote(foreign, safe='')}"
    shop.rabbit.api("POST", bound, {"routing_key": HOSTILE})

    page.get_by_role("tab", name="Parked").click()
    page.get_by_role("button", name="Look into orders.dlq").click()
    page.locator("#messages summary").click()
    expect(page.locator("#messages .body")).to_have_text(HOSTILE)
    expect(page.locator("#messages tbody .name").nth(1)).to_have_text(HOSTILE)
    expect(page.locator("#kinds tbody td").nth(2)).to_have_text(HOSTILE)
    page.get_by_role("tab", name="Flow").click()
    expect(page.locator("#targets .name", has_text=HOSTILE).first).to_be_visible()
    expect(page.locator("#map title", has_text="of others").first).to_have_count(1)

    assert page.locator("main img, main script, main iframe, #map image, #map a, #map foreignObject").count() == 0
    assert "hacked" not in page.title()
    shop.rabbit.take("orders.dlq")
    shop.rabbit.api("DELETE", f"queues/{{vhost}}/{quote(foreign, safe='')}")


def test_what_if(page: Page) -> None:
    """An answer, and what is wrong with a question."""
    page.get_by_role("tab", name="What if").click()
    page.get_by_label("Messages come at").fill("order.late=1/s")
    page.get_by_label("For", exact=True).fill("2h")
    page.get_by_role("button", name="Foretell").click()
    expect(page.locator("#answer")).to_contain_text("it does not fit")
    expect(page.locator("#answer")).to_contain_text("delay.1h.queue is full from")

    page.get_by_label("Messages come at").fill("lots")
    page.get_by_role("button", name="Foretell").press("Enter")
    expect(page.locator("#answer .note")).to_contain_text("fix: write it as 1000/s")


def test_the_keyboard_reaches_every_view(page: Page) -> None:
    """Arrows between the tabs, Tab into the view, and the focus can be seen."""
    page.get_by_role("tab", name="Flow").focus()
    for key, name in (("ArrowRight", "Parked"), ("End", "What if"), ("ArrowRight", "Flow"), ("ArrowLeft", "What if")):
        page.keyboard.press(key)
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"

    page.keyboard.press("Tab")
    page.keyboard.press("Tab")

    expect(page.get_by_label("Messages come at")).to_be_focused()


@pytest.mark.parametrize(
    ("scheme", "width", "height"), [("light", 1360, 900), ("dark", 360, 780)], ids=["light desk", "dark phone"]
)
def test_everybody_can_read_it(browser: Browser, shop: Shop, scheme: str, width: int, height: int) -> None:
    """Axe finds nothing serious in any view, and the page is never wider than the screen."""
    park(shop.rabbit, 2, "order.paid", b"x" * 300, "a-long-word-" * 20)
    size = {"width": width, "height": height}
    with opened(browser, shop.served.address, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page:
        expect(page.locator("#map svg")).to_be_visible()
        faults, widths = {}, {}
        for name in ("Flow", "Parked", "Findings", "What if"):
            page.get_by_role("tab", name=name).click()
            if name == "Parked":
                page.get_by_role("button", name="Look into orders.dlq").click()
                expect(page.locator("#messages tbody tr")).to_have_count(2)
            if name == "What if":
                page.get_by_label("Messages come at").fill("1/s")
                page.get_by_role("button", name="Foretell").click()
                expect(page.locator("#answer .level").first).to_be_visible()
            faults[name] = grave_faults(page)
            widths[name] = page.evaluate("document.documentElement.scrollWidth")
    shop.rabbit.take("orders.dlq")

    assert not [fault for found in faults.values() for fault in found]
    assert widths == dict.fromkeys(widths, width)


def test_strangers_see_nothing(browser: Browser, shop: Shop) -> None:
    """Without the token the page asks for it, and keeps it neither in its address nor where scripts can read it."""
    with opened(browser, shop.served.base) as page:
        expect(page.get_by_role("heading", name="A token is needed")).to_be_visible()
        expect(page.locator("#app")).to_be_hidden()
        page.get_by_label("Token").fill(str(shop.served.token))
        page.get_by_role("button", name="Come in").click()
        expect(page.locator("#map svg")).to_be_visible()

        assert "token" not in page.url
        assert page.evaluate("document.cookie") == ""


def test_a_page_of_others_can_t_act(shop: Shop, page: Page) -> None:
    """Not even one of the same machine, with which browsers share the cookie of somebody who is in."""
    park(shop.rabbit, 1, "order.paid", b"x", "no luck")
    theirs = page.context.new_page()
    with foreign_page(f"{shop.served.base}/api/redrive", '{"queue": "orders.dlq", "all": true}') as address:
        theirs.goto(address)
        with theirs.expect_navigation() as answer:
            theirs.get_by_role("button").click()

    request = answer.value.request
    assert json.loads(request.post_data or "")["all"] is True
    assert "delayctl-" in request.all_headers()["cookie"]
    assert answer.value.status == 403
    expect(theirs.locator("body")).to_contain_text("the request comes from a foreign page")
    assert [message.body for message in shop.rabbit.take("orders.dlq")] == ["x"]


def test_the_broker_goes_and_comes_back(shop: Shop, page: Page) -> None:
    """The page says so and since when, keeps what it knows, and goes on by itself."""
    expect(page.locator("#banner")).to_be_hidden()

    go(shop.network)
    expect(page.locator("#banner")).to_contain_text("The broker can't be looked at since")
    expect(page.locator("#health")).to_have_text("broker away")
    expect(of_queue(page, ".level", "delay.1h.queue", ".big")).to_have_text(re.compile(r"^\d+$"))

    waiting = shop.rabbit.ready("delay.1h.queue")
    shop.rabbit.publish("orders.exchange", "order.late", "f")
    return_(shop.network)
    expect(page.locator("#banner")).to_be_hidden()
    expect(of_queue(page, ".level", "delay.1h.queue", ".big")).to_have_text(str(waiting + 1))


SPREAD = """version: 1
delay:
  levels: {1h: {shards: 3, max_length: 99}}
queues: {orders.queue: {}}
routes:
  - {key: order.late, delay: 1h, to: orders.queue}
"""


def test_a_level_of_several_queues_is_shown_as_one(broker: RunningBroker, browser: Browser, tmp_path: Path) -> None:
    """What waits in all of them together, now and before."""
    file = tmp_path / "spread.yaml"
    file.write_text(SPREAD, encoding="utf-8")
    with fresh_vhost(broker) as rabbit:
        assert rabbit.delayctl("apply", str(file), "--yes").code == 0
        with serving(str(file), *rabbit.options) as served, opened(browser, served.address) as page:
            expect(of_queue(page, ".level", "delay.1h.*.queue", ".big")).to_have_text("0")
            with rabbit.channel() as channel:
                for number in range(30):
                    properties = pika.BasicProperties(message_id=f"m-{number}")
                    channel.basic_publish("delay.1h.exchange", "order.late", b"x", properties)
            expect(of_queue(page, ".level", "delay.1h.*.queue", ".big")).to_have_text("30")
            expect(of_queue(page, ".level", "delay.1h.*.queue", ".figure")).to_contain_text("of 99")
            expect(of_queue(page, ".level", "delay.1h.*.queue", ".spark")).to_have_attribute(
                "aria-label", re.compile("^waiting over 10m: 30 in the end, .*, limit 99$")
            )
            page.reload()
            expect(of_queue(page, ".level", "delay.1h.*.queue", ".spark")).to_have_attribute(
                "aria-label", re.compile("^waiting over 10m: 30 in the end, .*, limit 99$")
            )
        each = [rabbit.ready(f"delay.1h.{number}.queue") for number in (1, 2, 3)]

    assert sum(each) == 30
    assert sum(count > 0 for count in each) > 1


CROWD = """version: 1
delay: {levels: [1h]}
routes:
  {% for number in range(500) %}
  - {key: "order.{{ number }}", delay: 1h, to: "orders.{{ number }}.queue"}
  {% endfor %}
retry:
  orders.0.queue: {levels: [1h], max: 2, park: orders.dlq}
"""
MANY = 10_000


def test_many_queues_and_many_parked_messages(broker: RunningBroker, browser: Browser, tmp_path: Path) -> None:
    """All are counted and found, beats go on while they are looked at, and the page shows no more than can be read."""
    file = tmp_path / "crowd.yaml"
    file.write_text(CROWD, encoding="utf-8")
    with fresh_vhost(broker) as rabbit:
        assert rabbit.delayctl("apply", str(file), "--yes").code == 0
        connection = pika.BlockingConnection(pika.URLParameters(rabbit.url))
        channel = connection.channel()
        for number in range(MANY):
            properties = pika.BasicProperties(message_id=f"m-{number}", headers={"delay-parked": f"why {number % 7}"})
            channel.basic_publish("", "orders.dlq", b"x" * 200, properties)
        connection.close()
        rabbit.await_ready("orders.dlq", MANY, deadline=120)
        with serving(str(file), *rabbit.options) as served, opened(browser, served.address) as page:
            expect(page.locator("#parked-count")).to_have_text("10,000")
            expect(page.locator("#targets tr")).to_have_count(500)
            page.evaluate(
                """() => { window.beats = 0; new MutationObserver(() => { window.beats += 1; })
                    .observe(document.getElementById("seen"), {childList: true, characterData: true, subtree: true}); }"""
            )
            page.get_by_role("tab", name="Parked").click()
            page.get_by_role("button", name="Look into orders.dlq").click()
            expect(page.locator("#parked-page")).to_have_text("1 to 100 of 10,000")
            expect(page.locator("#messages tbody tr")).to_have_count(100)
            page.get_by_role("button", name="Later").click()
            expect(page.locator("#parked-page")).to_have_text("101 to 200 of 10,000")
            page.get_by_role("searchbox").fill("m-9999")
            expect(page.locator("#messages tbody tr")).to_have_count(1)
            # A function to wait for would be evaluated by the page itself, whose policy forbids that.
            until(lambda: page.evaluate("window.beats") >= 2, 30, what="two more beats")
            page.get_by_role("tab", name="Flow").click()
            expect(page.locator("#map svg")).to_be_visible()
        assert rabbit.ready("orders.dlq") == MANY
