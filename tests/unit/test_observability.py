"""Dashboard, alert rules and compose file: they ask for what is exposed, and lead where they say."""

import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from delayctl.topology.metrics import ACTIONS, STAGES

from tests.support.observed import COMPOSE, CONFIG, PLAYED, dashboard, drawn, exposed, names_in, rules

PANELS = dashboard()["panels"]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("delayctl_up == 0 or up{job='delayctl'} == 0", {"delayctl_up", "up"}),
        ('sum without (action) (a{b="c_d"}) > 0', {"a"}),
        ("histogram_quantile(0.99, sum by (job, le) (rate(x_bucket[10m]))) > 1", {"x_bucket"}),
        ('a_b{stage=~"x y"} == 1 and ignoring (stage) c offset 1h < 30', {"a_b", "c"}),
        ("time() - -r", {"r"}),
    ],
)
def test_names_are_found(expression: str, names: set[str]) -> None:
    """The reader of expressions, before it is relied on."""
    assert names_in(re.sub(r"'", '"', expression)) - {"h"} == names


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_alerts_ask_for_what_is_exposed(rule: dict[str, Any]) -> None:
    """An alert on a name that nobody tells never fires."""
    names = names_in(rule["expr"])

    assert names
    assert names <= exposed()
    assert set(rule["annotations"]) == {"summary", "description"}
    assert rule["labels"]["severity"] in {"warning", "critical"}


def test_every_alert_is_played() -> None:
    """Quiet once and fired once: a rule that was never seen to fire is a hope."""
    played = [test for file in PLAYED for test in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]]
    cases = [case for test in played for case in test["alert_rule_test"]]

    wanted = {rule["alert"] for rule in rules()}
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == wanted
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == wanted


def test_every_alert_is_documented() -> None:
    """By its name in docs/metrics.md."""
    page = (COMPOSE.parent / "docs/metrics.md").read_text(encoding="utf-8")

    assert [rule["alert"] for rule in rules() if f"| `{rule['alert']}` |" not in page] == []


def test_stages_and_actions_are_called_as_they_are() -> None:
    """A rule on a stage that is called otherwise never fires."""
    asked = [
        name for rule in rules() for found in re.findall(r'stage=~"([^"]*)"', rule["expr"]) for name in found.split("|")
    ]
    page = (COMPOSE.parent / "docs/metrics.md").read_text(encoding="utf-8")

    assert asked
    assert set(asked) <= set(STAGES)
    assert [name for name in (*STAGES, *ACTIONS) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("expression", drawn())
def test_the_dashboard_asks_for_what_is_exposed(expression: str) -> None:
    """A panel on a name that nobody tells stays empty."""
    names = names_in(expression)

    assert names
    assert names <= exposed()
    assert "$" not in expression


def test_the_variables_of_the_dashboard() -> None:
    """They are asked of Prometheus, too; every panel uses the data source that is chosen."""
    variables = {variable["name"]: variable for variable in dashboard()["templating"]["list"]}
    asked = [re.findall(r"delayctl_\w+", str(variable["query"])) for variable in variables.values()]

    assert list(variables) == ["datasource", "topology", "vhost"]
    assert {name for names in asked for name in names} == {"delayctl_up"}
    sources = [
        each["datasource"] for panel in PANELS for each in (panel, *panel.get("targets", ())) if "datasource" in each
    ]
    assert {source["uid"] for source in sources} == {"${datasource}"}


def test_the_panels_of_the_dashboard() -> None:
    """Each has its own number, a title and a word of explanation, and none lies on another."""
    drawn_panels = [panel for panel in PANELS if panel["type"] != "row"]

    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in drawn_panels)
    places = [{(x, y) for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])} for p in (panel["gridPos"] for panel in PANELS)]  # fmt: skip
    assert [pair for pair in combinations(places, 2) if pair[0] & pair[1]] == []
    assert max(x for place in places for x, _ in place) < 24
    tops = [panel["gridPos"]["y"] for panel in PANELS]
    assert all(one <= other for one, other in pairwise(tops))


def test_the_compose_file_mounts_what_is_there() -> None:
    """Everything on loopback, configuration not to be written to."""
    services = yaml.safe_load((COMPOSE / "observability.yaml").read_text(encoding="utf-8"))["services"]
    mounts = [mount.split(":") for service in services.values() for mount in service["volumes"]]

    assert list(services) == ["prometheus", "grafana"]
    assert all(service["network_mode"] == "host" for service in services.values())
    local = [(source, *rest) for source, *rest in mounts if source.startswith("./")]
    assert all((COMPOSE / source).is_dir() and rest[-1] == "ro" for source, *rest in local)
    assert len(local) == 3
    assert any(argument.startswith("--web.listen-address=127.0.0.1:") for argument in services["prometheus"]["command"])
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"


def test_grafana_finds_source_and_dashboard() -> None:
    """Where the compose file puts them."""
    provisioning = COMPOSE / "grafana/provisioning"
    [source] = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    [provider] = yaml.safe_load((provisioning / "dashboards/delayctl.yml").read_text())["providers"]

    assert (source["type"], source["url"]) == ("prometheus", "http://127.0.0.1:${PROMETHEUS_PORT}")
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"


def test_prometheus_scrapes_where_the_documentation_listens() -> None:
    """The address of the examples is the address of the configuration."""
    jobs = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["scrape_configs"]
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in jobs}
    example = (Path(__file__).parents[2] / "examples/metrics.py").read_text(encoding="utf-8")

    assert targets == {"delayctl": ["127.0.0.1:9725"], "consumers": ["127.0.0.1:9726"]}
    assert "9726" in example
