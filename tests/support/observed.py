"""The dashboard and the alert rules of compose/, and what their expressions ask for."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from delayctl.cli import verify_metrics
from delayctl.consumers import lateness
from delayctl.topology import metrics

COMPOSE = Path(__file__).parents[2] / "compose"
RULES = COMPOSE / "prometheus/alerts.yml"
PLAYED = (COMPOSE / "prometheus/alerts_test.yml", COMPOSE / "prometheus/alerts_long_test.yml")
CONFIG = COMPOSE / "prometheus/prometheus.yml"
ALL = (*metrics.METRICS, *lateness.METRICS, *verify_metrics.METRICS)
_PARTS = {"histogram": ("_bucket", "_sum", "_count")}
# What Grafana puts in place of its variables.
_VARIABLES = {"$__rate_interval": "1m", "$topology": ".*", "$vhost": ".*"}
_NAME = re.compile(r"[a-zA-Z_:][\w:]*(?!\w|\s*\()")
_WORDS = {"and", "or", "unless", "offset", "bool"}
_GROUPS = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def dashboard() -> dict[str, Any]:
    """The dashboard."""
    found: dict[str, Any] = json.loads((COMPOSE / "grafana/dashboards/delayctl.json").read_text(encoding="utf-8"))
    return found


def drawn() -> list[str]:
    """The expressions of the dashboard, variables filled in."""
    panels = dashboard()["panels"]
    return [filled(target["expr"]) for panel in panels for target in panel.get("targets", ())]


def filled(expression: str) -> str:
    """An expression as Prometheus gets it from Grafana."""
    for name, value in _VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def names_in(expression: str) -> set[str]:
    """Every series that an expression asks for, by name."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]", "", _GROUPS.sub("", bare))
    return set(_NAME.findall(bare)) - _WORDS


def exposed() -> set[str]:
    """The names of every figure that there can be, and what Prometheus itself adds."""
    return {f"{metric.name}{part}" for metric in ALL for part in _PARTS.get(metric.kind, ("",))} | {"up"}
