"""Writes files of typed columns as pyarrow, DuckDB and pandas write them, and what each row means.

Usage: typed_files.py DIR. It writes DIR/NAME.parquet (or .csv, .jsonl) and, beside each, DIR/NAME.want: a line
a row, a JSON object with id, at (microseconds since 1970) and text, or null for a dead letter. What a
column means is said here in Python, from the values that went in.
"""
import datetime as dt
import decimal
import json
import math
import os
import sys

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

out = sys.argv[1]
EPOCH = dt.datetime(1970, 1, 1)
US = dt.timedelta(microseconds=1)
D = decimal.Decimal


def want(name, rows):
    with open(os.path.join(out, name + ".want"), "w") as f:
        for row in rows:
            f.write(json.dumps(row) + "\n")


def path(name):
    return os.path.join(out, name)


ids = [1, 1012351, 9999999, 123456789]
days = [dt.date(2020, 1, 2), dt.date(1969, 12, 31), dt.date(1972, 6, 1), dt.date(9999, 12, 31)]
times = [dt.datetime(2020, 1, 2, 3, 4, 5, 678000), dt.datetime(1972, 6, 1), dt.datetime(1969, 12, 31, 23, 59, 59),
         dt.datetime(1900, 1, 1)]
day_us = [(dt.datetime(d.year, d.month, d.day) - EPOCH) // US for d in days]
time_us = [(t - EPOCH) // US for t in times]
texts = ["pen", "", "é \"漢\" 😀", "a\nb"]
iso = [t.isoformat(timespec="milliseconds").rstrip("0").rstrip(".") + "Z" for t in times]


def arrow(name, id_column, at_column, text_column, rows, **options):
    """Writes a table by pyarrow; rows are (id, at, text) or None."""
    table = pa.table({"id": id_column, "at": at_column, "text": text_column})
    pq.write_table(table, path(name + ".parquet"), **options)
    want(name, [None if r is None else {"id": r[0], "at": r[1], "text": r[2]} for r in rows])


# Ids.
at = pa.array(times, pa.timestamp("ms"))
text = pa.array(texts, pa.string())
meant = list(zip(map(str, ids), time_us, texts))
for kind in [pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float64(), pa.decimal128(9, 0), pa.decimal128(18, 0),
             pa.decimal128(38, 0), pa.decimal128(20, 3), pa.decimal256(76, 0)]:
    name = str(kind).replace("(", "_").replace(")", "").replace(", ", "_")
    column = pa.array([D(i) if "decimal" in name else i for i in ids], kind)
    for dictionary in [True, False]:
        arrow(f"pyarrow_id_{name}_{dictionary}", column, at, text, meant, use_dictionary=dictionary)
arrow("pyarrow_id_decimal_as_integer", pa.array(map(D, ids), pa.decimal128(9, 0)), at, text, meant,
      store_decimal_as_integer=True)
arrow("pyarrow_id_uint64_large", pa.array([2**64 - 1, 2**63, 2**63 - 1, 0], pa.uint64()), at, text,
      list(zip(map(str, [2**64 - 1, 2**63, 2**63 - 1, 0]), time_us, texts)))
arrow("pyarrow_id_int8", pa.array([-128, 127, 0, -1], pa.int8()), at, text, list(zip(["-128", "127", "0", "-1"], time_us, texts)))
arrow("pyarrow_id_uint16", pa.array([0, 65535, 1, 2], pa.uint16()), at, text, list(zip(["0", "65535", "1", "2"], time_us, texts)))
arrow("pyarrow_id_double", pa.array([1000001.0, 2.0**53, 1.5, math.inf]), at, text,
      [("1000001", time_us[0], texts[0]), None, None, None])
arrow("pyarrow_id_float", pa.array([16777215, 16777216, 0.5, 7], pa.float32()), at, text,
      [("16777215", time_us[0], texts[0]), None, None, ("7", time_us[3], texts[3])])
arrow("pyarrow_id_half", pa.array(np.array([2047, 2048, 0.5, -7], np.float16)), at, text,
      [("2047", time_us[0], texts[0]), None, None, ("-7", time_us[3], texts[3])])
arrow("pyarrow_id_decimal_fraction", pa.array([D("1.50"), D("2.00"), D("-3.00"), None], pa.decimal128(9, 2)), at, text,
      [None, ("2", time_us[1], texts[1]), ("-3", time_us[2], texts[2]), None])
arrow("pyarrow_id_dictionary", pa.array(["a", "b", "a", None]).dictionary_encode(), at, text,
      [("a", time_us[0], texts[0]), ("b", time_us[1], texts[1]), ("a", time_us[2], texts[2]), None])
arrow("pyarrow_id_binary", pa.array([b"a", b"\xff\x00", b"\xc3\xa9", None]), at, text,
      [("a", time_us[0], texts[0]), None, ("é", time_us[2], texts[2]), None])
arrow("pyarrow_id_large_string", pa.array(["a", "b", "c", ""], pa.large_string()), at, text,
      [("a", time_us[0], texts[0]), ("b", time_us[1], texts[1]), ("c", time_us[2], texts[2]), None])
arrow("pyarrow_id_bool", pa.array([True, False, None, True]), at, text, [None] * 4)
arrow("pyarrow_id_date", pa.array(days), at, text, list(zip(map(str, days), time_us, texts)))

# Event times.
id = pa.array(ids)
for unit in ["s", "ms", "us", "ns"]:
    for zone in [None, "UTC", "Europe/Berlin"]:
        for int96 in [False, True]:
            column = pa.array(times, pa.timestamp(unit, zone))
            if unit == "s":
                column = pa.array([t.replace(microsecond=0) for t in times], pa.timestamp(unit, zone))
            us = [(t.replace(microsecond=0) - EPOCH) // US if unit == "s" else (t - EPOCH) // US for t in times]
            arrow(f"pyarrow_at_{unit}_{str(zone).replace('/', '_')}_{int96}", id, column, text, list(zip(map(str, ids), us, texts)),
                  use_deprecated_int96_timestamps=int96)
arrow("pyarrow_at_version_1", id, pa.array(times, pa.timestamp("ms")), text, meant, version="1.0")
arrow("pyarrow_at_date32", id, pa.array(days, pa.date32()), text, list(zip(map(str, ids), day_us, texts)))
arrow("pyarrow_at_date64", id, pa.array(days, pa.date64()), text, list(zip(map(str, ids), day_us, texts)))
arrow("pyarrow_at_seconds_as_double", id, pa.array([1580699106.0, None, 1.5, math.inf]), text,
      [("1", 1580699106000000, texts[0]), ("1012351", None, texts[1]), None, None])
arrow("pyarrow_at_decimal", id, pa.array([D(1580699106500), None, D(-1), D(0)], pa.decimal128(18, 0)), text,
      [("1", 1580699106500000, texts[0]), ("1012351", None, texts[1]), ("9999999", -1000000, texts[2]), ("123456789", 0, texts[3])])
arrow("pyarrow_at_time", id, pa.array([dt.time(12), None, dt.time(1), dt.time(2)], pa.time64("us")), text,
      [None, ("1012351", None, texts[1]), None, None])
arrow("pyarrow_at_uint64", id, pa.array([2**64 - 1, 1580699106, 0, 1580699106500], pa.uint64()), text,
      [None, ("1012351", 1580699106000000, texts[1]), ("9999999", 0, texts[2]), ("123456789", 1580699106500000, texts[3])])

# Texts.
for name, column, as_text in [
    ("decimal", pa.array([D("19.90"), D("-0.05"), D("0.00"), None], pa.decimal128(9, 2)), ["19.90", "-0.05", "0.00", ""]),
    ("decimal256", pa.array([D("1e-30"), D(10) ** 40, D(-1), None], pa.decimal256(76, 30)),
     ["0." + "0" * 29 + "1", "1" + "0" * 40 + "." + "0" * 30, "-1." + "0" * 30, ""]),
    ("double", pa.array([0.1, 3.0, 1e-7, math.nan]), ["0.1", "3", "1e-07", ""]),
    ("float", pa.array([0.1, 3.0, 1e-7, None], pa.float32()), ["0.1", "3", "1e-07", ""]),
    ("date", pa.array(days), list(map(str, days))),
    ("timestamp", pa.array(times, pa.timestamp("us")), iso),
    ("time32", pa.array([dt.time(12), dt.time(1, 2, 3, 4000), dt.time(0), None], pa.time32("ms")), ["12:00:00", "01:02:03.004", "00:00:00", ""]),
    ("time64", pa.array([dt.time(12), dt.time(1, 2, 3, 4), dt.time(0), None], pa.time64("us")), ["12:00:00", "01:02:03.000004", "00:00:00", ""]),
    ("list", pa.array([["a", None, "b"], [], None, ["", "c"]]), ["a\nb", "", "", "c"]),
    ("list_of_decimals", pa.array([[D("1.5"), D("2.0")], [], None, [D("-1.0")]], pa.list_(pa.decimal128(5, 1))),
     ["1.5\n2.0", "", "", "-1.0"]),
    ("uuid", pa.array([bytes(range(16)), None, bytes(16), b"\xff" * 16], pa.uuid()),
     ["00010203-0405-0607-0809-0a0b0c0d0e0f", "", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"]),
    ("infinity", pa.array([math.inf, -math.inf, 1.0, None]), [None, None, "1", ""]),
]:
    arrow("pyarrow_text_" + name, id, at, column, [None if x is None else (str(i), t, x) for i, t, x in zip(ids, time_us, as_text)])
nested = pa.array([{"a": D("1.50"), "m": [("k", "x"), ("l", "y")]}, {"a": None, "m": []}, None, {"a": D("2.00"), "m": [("k", None)]}],
                  pa.struct([("a", pa.decimal128(9, 2)), ("m", pa.map_(pa.string(), pa.string()))]))
pq.write_table(pa.table({"id": id, "at": at, "nested": nested}), path("pyarrow_nested.parquet"))
want("pyarrow_nested", [{"id": str(i), "at": t, "text": x} for i, t, x in zip(ids, time_us, ["1.50\nx", "", "", "2.00"])])

# DuckDB.
connection = duckdb.connect()
connection.execute("set timezone = 'UTC'")


def duck(name, id_sql, at_sql, text_sql, rows):
    connection.execute(f"copy (select {id_sql} as id, {at_sql} as at, {text_sql} as text) to '{path(name)}.parquet' (format parquet)")
    want(name, rows)


stamp = "timestamp '1972-06-01 00:00:00.5'"
stamp_us = (dt.datetime(1972, 6, 1, 0, 0, 0, 500000) - EPOCH) // US
row = {"id": "1012351", "at": stamp_us, "text": "pen"}
for kind in ["tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "decimal(4,0)",
             "decimal(9,0)", "decimal(18,0)", "decimal(38,0)", "decimal(20,3)", "double", "varchar"]:
    n = 101 if "tiny" in kind or "small" in kind or "(4" in kind else 1012351
    duck("duckdb_id_" + kind.replace("(", "_").replace(")", "").replace(",", "_"), f"{n}::{kind}", stamp, "'pen'", [row | {"id": str(n)}])
# A hugeint is written as a double, which is exact up to 2^53.
duck("duckdb_id_hugeint", "1012351::hugeint", stamp, "'pen'", [row])
duck("duckdb_id_ubigint_large", "18446744073709551615::ubigint", stamp, "'pen'", [row | {"id": str(2**64 - 1)}])
duck("duckdb_id_uuid", "'00010203-0405-0607-0809-0a0b0c0d0e0f'::uuid", stamp, "'pen'", [row | {"id": "00010203-0405-0607-0809-0a0b0c0d0e0f"}])
duck("duckdb_id_enum", "'PEN'::enum('PEN', 'BOOK')", stamp, "'pen'", [row | {"id": "PEN"}])
duck("duckdb_id_blob", r"'\xFF\x00'::blob", stamp, "'pen'", [None])
for kind, us in [("timestamp_s", (dt.datetime(1972, 6, 1) - EPOCH) // US), ("timestamp_ms", stamp_us), ("timestamp", stamp_us),
                 ("timestamp_ns", stamp_us), ("timestamptz", stamp_us), ("date", (dt.datetime(1972, 6, 1) - EPOCH) // US)]:
    at_sql = "timestamp '1972-06-01'" if kind == "timestamp_s" else stamp
    duck("duckdb_at_" + kind, "1012351", f"({at_sql})::{kind}", "'pen'", [row | {"at": us}])
duck("duckdb_at_time", "1012351", "time '12:00:00'", "'pen'", [None])
duck("duckdb_text_decimal", "1012351", stamp, "19.90::decimal(9,2)", [row | {"text": "19.90"}])
duck("duckdb_text_json", "1012351", stamp, """'"pen"'::json""", [row])
duck("duckdb_text_json_list", "1012351", stamp, """'["red", 1.50]'::json""", [row | {"text": "red\n1.50"}])
duck("duckdb_text_list", "1012351", stamp, "['red', 'pen']", [row | {"text": "red\npen"}])
duck("duckdb_text_interval", "1012351", stamp, "interval '14 months 3 days 4 seconds'", [row | {"text": "P14M3DT4.000S"}])
duck("duckdb_text_time", "1012351", stamp, "time '12:00:00.5'", [row | {"text": "12:00:00.5"}])

# pandas.
frame = pd.DataFrame({"id": [1000001, None, 1000003], "text": ["a", "b", "c"], "at": pd.to_datetime(["2020-01-02", None, "1972-06-01"])})
frame.to_parquet(path("pandas_gaps.parquet"))
gaps = [{"id": "1000001", "at": 1577923200000000, "text": "a"}, None, {"id": "1000003", "at": 76204800000000, "text": "c"}]
want("pandas_gaps", gaps)
# Without a zone, a string is in UTC. A bare integer of milliseconds is a time from 1973 on.
frame.to_json(path("pandas_gaps_iso.jsonl"), orient="records", lines=True, date_format="iso")
want("pandas_gaps_iso", gaps)
frame.head(2).to_json(path("pandas_gaps_epoch.jsonl"), orient="records", lines=True, date_format="epoch", date_unit="ms")
want("pandas_gaps_epoch", gaps[:2])
frame.astype({"id": "Int64"}).to_parquet(path("pandas_nullable.parquet"))
want("pandas_nullable", gaps)
seconds = pd.DataFrame({"id": ["a", "b"], "at": [1580699106, None], "text": ["x", "y"]})
meant = [{"id": "a", "at": 1580699106000000, "text": "x"}, {"id": "b", "at": None, "text": "y"}]
for name, write in [("parquet", seconds.to_parquet), ("csv", lambda p: seconds.to_csv(p, index=False)),
                    ("jsonl", lambda p: seconds.to_json(p, orient="records", lines=True))]:
    write(path(f"pandas_seconds_{name}.{name}"))
    want(f"pandas_seconds_{name}", meant)
pd.DataFrame({"id": pd.Categorical(["a", "b", "a"]), "at": pd.to_datetime(["2020-01-02"] * 3).as_unit("ns"),
              "text": pd.Categorical(["x", None, "y"])}).to_parquet(path("pandas_categorical.parquet"))
want("pandas_categorical", [{"id": i, "at": 1577923200000000, "text": x} for i, x in [("a", "x"), ("b", ""), ("a", "y")]])
