"""Quix Streams from a topic to Parquet on S3: quix.py BROKERS TOPIC GROUP ENDPOINT BUCKET FOLDER"""

import sys

from quixstreams import Application
from quixstreams.sinks.community.file.s3 import S3FileSink

brokers, topic, group, endpoint, bucket, folder = sys.argv[1:]
app = Application(broker_address=brokers, consumer_group=group, auto_offset_reset="earliest",
                  commit_interval=5.0, loglevel="WARNING")
rows = app.dataframe(app.topic(topic, value_deserializer="json"))
rows.sink(S3FileSink(bucket=bucket, directory=folder, format="parquet", endpoint_url=endpoint))
app.run()
