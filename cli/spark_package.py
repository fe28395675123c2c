"""The command `spark-package`: what a Spark job sends to its executors."""

import click


@click.command(
    "spark-package",
    short_help="Write the archive that Spark sends to executors.",
    epilog="""\b
Examples:
  delayctl spark-package delayctl-spark.zip
  spark-submit --py-files delayctl-spark.zip job.py

\b
The executors then need Python 3.11 or newer, PySpark and pyarrow, and nothing else.
""",
)
@click.argument("file", default="delayctl-spark.zip", type=click.Path())
def spark_package(file: str) -> int:
    """Write FILE, a zip with delayctl and the libraries it needs, for spark-submit's --py-files."""
    from delayctl.spark.package import write_package  # noqa: PLC0415 (only the commands of Spark load what is Spark's)

    count, size = write_package(file)
    click.echo(f"Wrote {file}: {count} files, {size / 1_000_000:.1f} MB. Next: spark-submit --py-files {file} JOB.py")
    return 0
