"""Figures as Prometheus reads them: families of samples, and their text (version 0.0.4 of its format). Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A name that figures are kept under, and what it means."""

    name: str
    kind: Kind
    help: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure; histograms have several, told apart by the end of their names."""

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lay within each bound, cumulated; the last count is that of all, whatever they were."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float

    def samples(self, labels: Mapping[str, str]) -> Iterator[Sample]:
        """The figures by which a histogram is told."""
        for bound, count in zip((*self.bounds, math.inf), self.counts, strict=True):
            yield Sample({**labels, "le": number(bound)}, count, "_bucket")
        yield Sample(labels, self.total, "_sum")
        yield Sample(labels, self.counts[-1], "_count")


@dataclass(frozen=True)
class Family:
    """A metric with its figures."""

    metric: Metric
    samples: tuple[Sample, ...] = field(default=())


def exposition(families: Iterable[Family]) -> str:
    """All families that have figures, as text; what is not known has no line at all."""
    return "".join(line for family in families if family.samples for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    metric = family.metric
    yield f"# HELP {metric.name} {_escaped(metric.help)}\n"
    yield f"# TYPE {metric.name} {metric.kind}\n"
    for sample in family.samples:
        labels = ",".join(f'{name}="{_quoted(value)}"' for name, value in sample.labels.items())
        yield f"{metric.name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {number(sample.value)}\n"


def number(value: float) -> str:
    """A figure as Prometheus writes it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    # Names are whatever people made them; half a surrogate can't be written as UTF-8.
    return _escaped(text.encode("utf-8", "replace").decode()).replace('"', '\\"')
