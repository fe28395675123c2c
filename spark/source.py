"""The data source `delayctl`: `df.write.format("delayctl")` and `df.writeStream.format("delayctl")`."""

from typing import cast

from delayctl.spark.options import read_options
from delayctl.spark.writer import BatchWriter, StreamWriter, Writing
from delayctl.topology.errors import BadOption
from delayctl.topology.wording import quoted
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType


class DelaySource(DataSource):
    """Writes rows as delayed messages. Where delayctl is installed Spark finds it by its name."""

    @classmethod
    def name(cls) -> str:
        """The name behind `format`."""
        return "delayctl"

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The writer of a batch."""
        if overwrite:
            raise BadOption("messages can't be overwritten", fix='use mode("append")')
        return BatchWriter(self._writing(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 (Spark's name)
        """The writer of a stream."""
        if overwrite:
            raise BadOption("messages can't be overwritten", fix='use outputMode("append")')
        return StreamWriter(self._writing(schema))

    def _writing(self, schema: StructType) -> Writing:
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        if len(types) < len(schema.fields):
            twice = next(name for name in types if schema.fieldNames().count(name) > 1)
            raise BadOption(f"there are two columns {quoted(twice)}", fix="drop or rename one of them")
        return Writing.of(read_options(cast("dict[str, str]", self.options)), types)
