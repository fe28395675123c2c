"""Which routing keys a route takes: what Spark says, and what RabbitMQ does."""

import pytest
from delayctl.spark.taken_keys import Routes, is_taken
from delayctl.topology.routing import topic_matches
from pyspark.sql import SparkSession

KEYS = ["", "a", "a.b", "a.b.c", "a..b", ".", ".a", "a.", "b", "ab", "a.b.c.d", "*", "#", "a\nb", "A", "a+b", "\\E.b"]
PATTERNS = [
    "",
    "a",
    "#",
    "*",
    "a.*",
    "*.b",
    "a.#",
    "#.b",
    "a.#.b",
    "*.#",
    "#.#",
    "*.*",
    "a..b",
    "a+b",
    "\\E.#",
    "a.#.c.*",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_takes_the_same_keys_in_spark(spark: SparkSession, pattern: str) -> None:
    """As the routing of delayctl, which is held to brokers."""
    keys = spark.createDataFrame([(key,) for key in KEYS], "routing_key string")

    found = keys.select("routing_key", is_taken(Routes((pattern,), "parked")).alias("is_taken")).collect()

    assert [row["routing_key"] for row in found if row["is_taken"]] == [
        key for key in KEYS if topic_matches(pattern, key)
    ]


@pytest.mark.parametrize(("patterns", "taken"), [((), []), (("a.*", "b"), ["a.b", "a.", "b"])])
def test_any_route_will_do(spark: SparkSession, patterns: tuple[str, ...], taken: list[str]) -> None:
    """And without any, no key is taken."""
    keys = spark.createDataFrame([(key,) for key in KEYS], "routing_key string")

    assert [row[0] for row in keys.filter(is_taken(Routes(patterns, "parked"))).collect()] == taken
