"""delayctl as a script for spark-submit, where it is not installed: all of it is in the archive that is sent along.

delayctl spark-package delayctl-spark.zip
spark-submit --master spark://host:7077 --py-files delayctl-spark.zip spark_backfill.py backfill --source parquet:… …
"""

from delayctl.cli.main import run

run()
