"""Runs the SQL of this folder over a giantstream store with DuckDB.

    python run.py STORE newest|nearest|clusters [--node ID] [--generation N] [--csv]

STORE is a directory or s3://bucket/prefix (credentials as DuckDB finds them:
environment, profile, role; AWS_ENDPOINT_URL names another server than AWS).
"""

import argparse
import csv
import os
import pathlib
import sys

import duckdb


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("query", choices=["newest", "nearest", "clusters"])
    parser.add_argument("--node", help="id, for nearest")
    parser.add_argument("--generation", type=int, help="default: the newest that is ready")
    parser.add_argument("--csv", action="store_true", help="CSV instead of a table")
    args = parser.parse_args()
    if args.query == "nearest" and not args.node:
        parser.error("nearest needs --node ID")

    store = args.store.removeprefix("file://").rstrip("/")
    db = duckdb.connect()
    if store.startswith("s3://"):
        scheme, _, server = os.environ.get("AWS_ENDPOINT_URL", "").rpartition("://")
        elsewhere = f", ENDPOINT '{server}', URL_STYLE 'path', USE_SSL {scheme != 'http'}" if server else ""
        db.execute(f"CREATE SECRET (TYPE s3, PROVIDER credential_chain{elsewhere})")  # fetches DuckDB's extensions for S3
    db.execute("SET VARIABLE store = ?", [store])
    if args.query != "newest":
        generation = args.generation or newest_ready(db, store)
        db.execute("SET VARIABLE generation = ?", [f"{store}/generations/{generation:06d}"])
        db.execute("SET VARIABLE node = ?", [args.node])

    result = db.sql((pathlib.Path(__file__).parent / f"{args.query}.sql").read_text())
    if args.csv:
        out = csv.writer(sys.stdout)
        out.writerow(result.columns)
        out.writerows(result.fetchall())
    else:
        result.show(max_rows=1000)


def newest_ready(db, store):
    found = db.execute(
        "SELECT max(generation) FROM read_json(?, columns = {generation: 'BIGINT', status: 'VARCHAR'}) WHERE status = 'ready'",
        [f"{store}/generations/*/generation.json"],
    ).fetchone()[0]
    return found or sys.exit(f"{store} has no generation that is ready")


if __name__ == "__main__":
    main()
