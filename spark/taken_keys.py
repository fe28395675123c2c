"""Which routing keys a route takes, as a condition of Spark: keys are as many as rows, and need not come to the driver."""

import re
from dataclasses import dataclass

from delayctl.spark.columns import KEY
from pyspark.sql import Column
from pyspark.sql import functions as f

# A key as `.word.word`, so that every word of a pattern looks alike wherever it stands.
_WORDS = {"*": r"\.[^.]*", "#": r"(?:\.[^.]*)*"}


@dataclass(frozen=True, slots=True)
class Routes:
    """What is bound to the exit, a topic exchange, and the queue of what nothing there takes."""

    patterns: tuple[str, ...]
    parking: str


def is_taken(routes: Routes) -> Column:
    """Say whether any of the routes takes a row's routing key."""
    words = f.when(f.col(KEY) == "", f.lit("")).otherwise(f.concat(f.lit("."), KEY))
    return words.rlike(rf"^(?:{'|'.join(map(_regex, routes.patterns))})\z") if routes.patterns else f.lit(False)


def _regex(pattern: str) -> str:
    words = pattern.split(".") if pattern else []
    return "".join(_WORDS.get(word, rf"\.{re.escape(word)}") for word in words)
