"""Clients as the management API lists them."""

from typing import Any

import pytest
from delayctl.topology.clients import Client, Clients, clients_from_api

SHOP = {"name": "10.0.0.1:1 -> 10.0.0.9:5672", "user": "shop", "state": "running", "user_provided_name": "mailer"}
OTHER = {"name": "10.0.0.2:1 -> 10.0.0.9:5672", "user": "other", "state": "blocked"}


def channel(**fields: Any) -> dict[str, Any]:
    """A channel of the shop that publishes without confirms, but for what is said."""
    deaf = {"confirm": False, "transactional": False, "message_stats": {"publish": 3}}
    return {"name": "x", "connection_details": {"name": SHOP["name"]}, **deaf, **fields}


def test_who_is_blocked() -> None:
    """Those that the broker reads nothing from, or will not once they publish."""
    found = clients_from_api([SHOP, OTHER, {**SHOP, "name": "z", "state": "blocking"}], [], {})

    assert [str(client) for client in found.blocked] == [
        "10.0.0.2:1 -> 10.0.0.9:5672 of user other",
        "z (mailer) of user shop",
    ]


@pytest.mark.parametrize(
    ("fields", "is_deaf"),
    [
        ({}, True),
        ({"confirm": True}, False),
        ({"transactional": True}, False),
        ({"message_stats": {"publish": 0}}, False),
        ({"message_stats": {}}, False),
        ({"confirm": None}, False),
    ],
    ids=["deaf", "confirms", "transaction", "published nothing", "no figures", "unknown"],
)
def test_who_does_not_listen(fields: dict[str, Any], is_deaf: bool) -> None:
    """Who publishes, and asks for no answer."""
    found = clients_from_api([SHOP], [channel(**fields)], {})

    assert found.unconfirmed == (Client(SHOP["name"], "shop", "mailer"),) * is_deaf


def test_two_channels_are_one_client() -> None:
    """A connection that has gone meanwhile is known by its name alone."""
    channels = [channel(), channel(), channel(connection_details={"name": "gone"})]

    assert [client.name for client in clients_from_api([SHOP], channels, {}).unconfirmed] == [SHOP["name"], "gone"]


def test_who_consumes() -> None:
    """By queue."""
    details = [{"channel_details": {"connection_name": SHOP["name"]}}, {"channel_details": []}, {}]

    found = clients_from_api([SHOP], [], {"q": {"consumer_details": details}, "r": {}})

    assert found == Clients(takers={"q": (Client(SHOP["name"], "shop", "mailer"),), "r": ()})
