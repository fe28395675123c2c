"""An exposition as Prometheus' own client reads it, and questions to it."""

from prometheus_client.parser import text_string_to_metric_families


class Exposed:
    """What a text says; one that is no exposition fails here."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self._samples = [sample for family in self.families for sample in family.samples]
        written = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in self._samples]
        assert len(written) == len(set(written)), "Prometheus takes no figure twice"

    @property
    def names(self) -> set[str]:
        """Every name that has a figure."""
        return {sample.name for sample in self._samples}

    def all(self, name: str, **labels: str) -> list[float]:
        """The figures of this name with at least these labels, in their order."""
        wanted = labels.items()
        return [s.value for s in self._samples if s.name == name and wanted <= s.labels.items()]

    def one(self, name: str, **labels: str) -> float:
        """The only such figure."""
        [value] = self.all(name, **labels)
        return value

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """Such figures by one of their labels."""
        wanted = labels.items()
        return {s.labels[label]: s.value for s in self._samples if s.name == name and wanted <= s.labels.items()}
