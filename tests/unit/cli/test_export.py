"""`delayctl export`: every object in every format, whatever it is called."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from delayctl.cli.export_quoting import compose_text, dns_name, hcl_label, hcl_value, yaml_value
from delayctl.topology.expand import expand
from delayctl.topology.model import Topology
from delayctl.topology.parse import read_spec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.commands import Ran, delayctl
from tests.support.exported import (
    from_definitions,
    from_kubernetes,
    from_terraform,
    objects_of,
    plain,
    references,
    resources,
)
from tests.support.golden import check_golden

SHOP = """version: 1
delay: {levels: [1m, 5m]}
exchanges:
  legacy.exchange: {existing: true}
routes:
  - {from: orders.exchange, key: order.created, delay: 5m, to: orders.queue}
  - {from: legacy.exchange, key: old, delay: 1m, to: orders.queue}
"""
HOSTILE = r"""version: 1
vhost: 'we"ird ${v}'
prefix: 'x-'
delay: {levels: [1m], settings: policy}
exchanges:
  'or"ders${evil}.exchange': {type: headers}
  "dol$lar %{if}": {type: fanout}
  'ünï→日本': {alternate: 'on'}
  UPPER: {}
  upper: {}
  'on': {}
  '{{ "{{" }}': {}
  legacy.exchange: {existing: true}
queues:
  'q\back#slash': {type: quorum, arguments: {x-delivery-limit: 5, x-text: '"${'}}
  "- dash: [a]": {durable: false}
  legacy.queue: {existing: true}
routes:
  - {from: 'or"ders${evil}.exchange', headers: {x-match: any, a: 1, b: true, c: 't"${x}'}, key: k, delay: 1m, to: ['q\back#slash', legacy.queue]}
  - {from: 'or"ders${evil}.exchange', headers: {x-match: all, only: texts}, key: k, delay: 1m, to: "- dash: [a]"}
  - {from: "dol$lar %{if}", key: 'k"${z}', delay: 1m, to: "- dash: [a]"}
  - {from: 'ünï→日本', key: '*.#', to: "- dash: [a]"}
  - {from: legacy.exchange, key: k2, delay: 1m, to: "- dash: [a]"}
"""
FILES = {"shop": SHOP, "hostile": HOSTILE, "policy": SHOP.replace("5m]", "5m], settings: policy")}


@pytest.fixture(params=sorted(FILES))
def text(request: pytest.FixtureRequest) -> str:
    """One file after the other."""
    return FILES[request.param]


def export(folder: Path, text: str, *options: str) -> Ran:
    """Export a file with this text."""
    (folder / "topology.yaml").write_text(text, encoding="utf-8")
    return delayctl("export", str(folder / "topology.yaml"), *options)


def expanded(text: str) -> Topology:
    """What the file means."""
    return expand(read_spec(text, {}, file="topology.yaml"))


@pytest.mark.parametrize(
    ("form", "golden"),
    [
        ("definitions", "export_definitions.json"),
        ("terraform", "export_terraform.tf"),
        ("kubernetes", "export_kubernetes.yaml"),
        ("compose", "export_compose.yaml"),
    ],
)
def test_each_format_as_a_whole(tmp_path: Path, form: str, golden: str) -> None:
    """Compared with a file that was read by a person."""
    ran = export(tmp_path, SHOP, "--format", form)

    assert ran.code == 0
    check_golden(golden, ran.out)


class TestEveryObject:
    """Nothing is left out, nothing is added, and no name breaks out of its quotes."""

    def test_definitions(self, tmp_path: Path, text: str) -> None:
        """As RabbitMQ imports them."""
        ran = export(tmp_path, text, "--format", "definitions")

        assert from_definitions(json.loads(ran.out)) == objects_of(expanded(text))
        assert "Not exported, since the file marks them as existing: legacy.exchange" in ran.err

    def test_terraform(self, tmp_path: Path, text: str) -> None:
        """As an HCL parser reads them."""
        ran = export(tmp_path, text, "--format", "terraform")

        assert from_terraform(ran.out) == objects_of(expanded(text))
        assert '#   exchange "legacy.exchange"' in ran.out

    def test_kubernetes(self, tmp_path: Path, text: str) -> None:
        """As a YAML parser reads them."""
        ran = export(tmp_path, text, "--format", "kubernetes", "--cluster", "mq")
        documents = list(yaml.safe_load_all(ran.out))

        assert from_kubernetes(ran.out) == objects_of(expanded(text))
        assert {document["spec"]["rabbitmqClusterReference"]["name"] for document in documents} == {"mq"}
        assert {document["apiVersion"] for document in documents} == {"rabbitmq.com/v1beta1"}
        assert '#   exchange "legacy.exchange"' in ran.out

    def test_kubernetes_names(self, tmp_path: Path, text: str) -> None:
        """Valid, and no two objects of a kind share one."""
        documents = list(yaml.safe_load_all(export(tmp_path, text, "--format", "kubernetes").out))
        names = [(document["kind"], document["metadata"]["name"]) for document in documents]

        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", name) for _, name in names)

    def test_compose(self, tmp_path: Path, text: str) -> None:
        """All but the bindings to what a new broker does not have; those are named in a comment."""
        ran = export(tmp_path, text, "--format", "compose")
        topology = expanded(text)
        content = yaml.safe_load(ran.out)["configs"]["delayctl-definitions"]["content"]
        definitions = json.loads(content.replace("$$", "$"))

        legacy = {binding for binding in topology.bindings if "legacy" in binding.source + binding.destination}
        kept = tuple(binding for binding in topology.bindings if binding not in legacy)
        assert from_definitions(definitions) == objects_of(replace(topology, bindings=kept))
        assert ran.out.count("→") >= len(legacy) > 0


def test_the_only_variables_of_compose_are_ours(tmp_path: Path) -> None:
    """A `$` in a name is doubled, so that compose leaves it alone."""
    text = export(tmp_path, HOSTILE, "--format", "compose").out
    content = yaml.safe_load(text)["configs"]["delayctl-definitions"]["content"]

    assert re.findall(r"(?<!\$)(?:\$\$)*\$\{[^}]*\}", content.replace("$$", "")) == ["${RABBITMQ_PASSWORD:?is not set}"]


class TestTerraformOrder:
    """What Terraform makes side by side must not open an entrance without an exit."""

    def test_exits_before_entrances(self, tmp_path: Path) -> None:
        """From the way in, every way out is waited for; so is the policy that carries the TTL."""
        found = resources(export(tmp_path, FILES["policy"], "--format", "terraform").out)
        way_in = next(
            address for address in found if address.startswith("rabbitmq_binding.orders_exchange_to_delay_5m_exchange")
        )

        waited_for = reached(way_in, found)

        exits = {address for address in found if address.startswith("rabbitmq_binding.delay_exchange_to")}
        nets = {address for address in found if address.startswith("rabbitmq_binding.delay_unrouted_exchange_to")}
        assert exits | nets | {"rabbitmq_policy.delay_5m_policy", "rabbitmq_queue.delay_5m_queue"} <= waited_for

    def test_nothing_waits_for_itself(self, tmp_path: Path, text: str) -> None:
        """Terraform refuses cycles; and every address that is named is there."""
        found = resources(export(tmp_path, text, "--format", "terraform").out)

        for address, body in found.items():
            assert references(body) <= found.keys()
            assert address not in {later for first in references(body) for later in reached(first, found)}


def reached(address: str, found: dict[str, dict[str, object]]) -> set[str]:
    """All that has to be there before this resource."""
    seen: set[str] = set()
    ahead = [address]
    while ahead:
        for further in references(found[ahead.pop()]) - seen:
            seen.add(further)
            ahead.append(further)
    return seen


class TestRefusals:
    """What a format can't say is not left unsaid."""

    @pytest.mark.parametrize(
        ("form", "section", "reason"),
        [
            ("terraform", "exchanges: {a: {internal: true}}", "exchange 'a' is internal"),
            ("kubernetes", "exchanges: {a: {internal: true}}", "exchange 'a' is internal"),
            ("terraform", "exchanges: {a: {arguments: {n: 1}}}", "exchange 'a' has arguments that are no texts"),
            ("terraform", "routes: [{key: a/b, delay: 1m, to: q}]", "the binding from 'delay.exchange' to 'q' has a /"),
            ("terraform", "prefix: a@\ndelay: {settings: policy}", "policies have an @ in their name"),
        ],
    )
    def test_beyond_a_format(self, tmp_path: Path, form: str, section: str, reason: str) -> None:
        """It is refused, with the reason."""
        ran = export(tmp_path, f"version: 1\n{section}\n", "--format", form)

        assert (ran.code, ran.out) == (1, "")
        assert f"Error: {form} can't say that {reason}" in ran.err

    def test_definitions_say_it_all(self, tmp_path: Path) -> None:
        """Internal exchanges too."""
        ran = export(tmp_path, "version: 1\nexchanges: {a: {internal: true}}\n", "--format", "definitions")

        assert [e["internal"] for e in json.loads(ran.out)["exchanges"] if e["name"] == "a"] == [True]

    def test_empty_names(self, tmp_path: Path) -> None:
        """Are usage errors."""
        assert export(tmp_path, SHOP, "--format", "kubernetes", "--cluster", "").code == 64
        assert export(tmp_path, SHOP, "--format", "kubernetes", "--vhost", "").code == 64


def test_into_a_file(tmp_path: Path) -> None:
    """The answer goes where it is asked to; what can't be written is said."""
    ran = export(tmp_path, SHOP, "--format", "definitions", "--out", str(tmp_path / "d.json"), "--vhost", "shop")
    refused = export(tmp_path, SHOP, "--format", "definitions", "--out", str(tmp_path / "no" / "d.json"))

    assert (ran.code, ran.out) == (0, "")
    assert json.loads((tmp_path / "d.json").read_text())["vhosts"] == [{"name": "shop"}]
    assert refused.code == 1
    assert "Error: the export can't be written" in refused.err


def test_it_is_a_template(tmp_path: Path) -> None:
    """As everywhere else."""
    ran = export(tmp_path, SHOP.replace("5m, to", "{{ wait }}, to"), "--format", "terraform", "--set", "wait=1m")

    assert "delay_exchange_to_orders_queue" in ran.out


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('${}%"\\\n\x85\u2028\x00'), max_size=20)


@given(ANY_TEXT)
def test_yaml_takes_any_text(text: str) -> None:
    """And gives it back, alone and inside of a mapping."""
    assert yaml.safe_load(f"a: {yaml_value(text)}") == {"a": text}
    assert yaml.safe_load(yaml_value({text: [text, 1, True]})) == {text: [text, 1, True]}


@given(ANY_TEXT)
def test_hcl_takes_any_text(text: str) -> None:
    """No template begins in it, and what is in the quotes is the text."""
    quoted = hcl_value(text)
    rare = any(ord(char) > 0xFFFF for char in text)  # Written as \\U…, which JSON does not know.

    assert "${" not in quoted
    assert "%{" not in quoted
    assert rare or plain(quoted) == text


@given(ANY_TEXT)
def test_compose_takes_any_text(text: str) -> None:
    """Doubled dollars are single ones again."""
    assert compose_text(text).replace("$$", "$") == text


@given(st.lists(ANY_TEXT | st.from_regex(r"\A[a-z._-]{1,4}[0-9a-f]{0,10}\Z"), unique=True, min_size=2, max_size=8))
def test_made_names_are_valid_and_told_apart(texts: list[str]) -> None:
    """For Kubernetes and for Terraform."""
    dns, labels = [dns_name(text) for text in texts], [hcl_label(text) for text in texts]

    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", name) for name in dns)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", label) for label in labels)
    assert len(set(dns)) == len(set(labels)) == len(texts)


def test_a_name_is_kept_where_it_can_be() -> None:
    """So that people recognise it."""
    assert dns_name("delay.15m.exchange") == "delay.15m.exchange"
    assert hcl_label("delay.15m.exchange") == "delay_15m_exchange"
    assert re.fullmatch(r"orders-exchange-[0-9a-f]{10}", dns_name("Orders.Exchange"))
    assert len(dns_name("x" * 255)) <= 253
