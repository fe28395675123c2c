"""delayctl as a script for spark-submit, where it is not installed: all of it is in the archive that is sent along.

delayctl spark-package delayctl-spark.zip
spark-submit --master spark://host:7077 --py-files delayctl-spark.zip spark_backfill.py backfill --credentials-file broker.yaml …

Passwords stand in that file, or in the environment: spark-submit writes its command line into Spark's event log.
"""

from delayctl.cli.main import run

run()
