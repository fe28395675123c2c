"""Where Spark finds the data source: it looks for `DefaultSource` in modules whose names begin with `pyspark_`."""

from delayctl.spark.source import DelaySource as DefaultSource

__all__ = ["DefaultSource"]
