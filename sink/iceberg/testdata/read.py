"""Print the rows of a table's main branch as JSON: read.py duckdb|pyiceberg|pyspark CATALOG-URI NAMESPACE.TABLE [COLUMNS]

Files in S3 are read from the server that GIANTSTREAM_REAL_S3 names, by DuckDB and PyIceberg.

read.py compact … makes Spark compact the table instead, and expire its snapshots.

Without arguments it reads them from standard input, a line for each table, and prints a line for each: Spark takes long to start.
"""

import datetime
import json
import os
import sys

COLUMNS = ["node_id", "generation", "seq", "embedding"]
S3 = os.environ.get("GIANTSTREAM_REAL_S3", "")


def duckdb(uri, table, columns):
    import duckdb
    import duckdb_extensions

    for extension in ("avro", "httpfs", "iceberg"):
        duckdb_extensions.import_extension(extension)
    con = duckdb.connect()
    con.execute("LOAD avro; LOAD httpfs; LOAD iceberg;")
    if S3:
        con.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{os.environ['AWS_ACCESS_KEY_ID']}', REGION '{os.environ['AWS_REGION']}', "
            f"SECRET '{os.environ['AWS_SECRET_ACCESS_KEY']}', ENDPOINT '{S3.split('//')[1]}', URL_STYLE 'path', USE_SSL false)"
        )
    con.execute(f"ATTACH '' AS catalog (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")
    found = con.execute(f"SELECT {', '.join(columns)} FROM catalog.{table}").fetchall()
    return [dict(zip(columns, row)) for row in found]


def pyiceberg(uri, table, columns):
    from pyiceberg.catalog import load_catalog

    files = {"s3.endpoint": S3} if S3 else {}
    found = load_catalog("test", type="rest", uri=uri, **files).load_table(table).scan(selected_fields=tuple(columns))
    return found.to_arrow().to_pylist()


def session(uri):
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", os.environ["GIANTSTREAM_ICEBERG_SPARK_JAR"])
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        # For a few rows the second compiler costs more than it saves.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "rest")
        .config("spark.sql.catalog.lake.uri", uri)
        .config("spark.sql.catalog.lake.cache-enabled", "false")  # others write the table
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .getOrCreate()
    )


def pyspark(uri, table, columns):
    spark = session(uri)
    return [row.asDict() for row in spark.table(f"lake.{table}").select(*columns).collect()]


def compact(uri, table, columns):
    spark = session(uri)
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('min-input-files', '2', "
        "'delete-file-threshold', '1', 'remove-dangling-deletes', 'true'))"
    )
    done = spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{table}', retain_last => 1, "
        f"older_than => TIMESTAMP '{datetime.datetime.now()}')"
    )
    return [row.asDict() for row in done.collect()]


def rfc3339(time):
    # Spark's are local times without a zone.
    return (time if time.tzinfo else time.astimezone()).isoformat()


readers = {"compact": compact, "duckdb": duckdb, "pyiceberg": pyiceberg, "pyspark": pyspark}
for task in [sys.argv[1:]] if len(sys.argv) > 1 else map(str.split, sys.stdin):
    reader, uri, table, *columns = task
    rows = readers[reader](uri, table, columns[0].split(",") if columns else COLUMNS)
    print(json.dumps(rows, default=rfc3339), flush=True)
