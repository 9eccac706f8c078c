#!/usr/bin/env python3
"""The embeddings of a generation as a feature view of Feast: features.py STORE GENERATION REPOSITORY ID...

STORE is a directory or s3://bucket/prefix. The script registers the feature view item_embeddings in REPOSITORY, loads it
into the online store there (SQLite), and prints, as JSON, the embeddings of the items ID... as both sides have them:
offline as of the present, and online.
"""

import datetime
import json
import pathlib
import sys

import pandas as pd
from feast import Entity, FeatureStore, FeatureView, Field, FileSource, RepoConfig, ValueType
from feast.types import Array, Float32, Int64


ITEM = Entity(name="item", join_keys=["node_id"], value_type=ValueType.STRING)


def feature_view(store: str, generation: int) -> FeatureView:
    """What Feast is told of a generation (docs/format/embeddings.md)."""
    source = FileSource(
        name="giantstream_embeddings",
        path=f"{store}/generations/{generation:06d}/embeddings",
        timestamp_field="event_time",
    )
    return FeatureView(
        name="item_embeddings",
        entities=[ITEM],
        ttl=datetime.timedelta(0),  # an embedding holds until a newer one comes
        source=source,
        schema=[Field(name="embedding", dtype=Array(Float32)), Field(name="generation", dtype=Int64)],
    )


def main() -> None:
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    store, generation, ids = sys.argv[1], int(sys.argv[2]), sys.argv[4:]
    repository = pathlib.Path(sys.argv[3])
    repository.mkdir(parents=True, exist_ok=True)
    feast = FeatureStore(config=RepoConfig(
        project="shop", provider="local", registry=str(repository / "registry.db"), entity_key_serialization_version=3,
        offline_store={"type": "dask"}, online_store={"type": "sqlite", "path": str(repository / "online.db")},
    ))
    feast.apply([ITEM, feature_view(store, generation)])

    features = ["item_embeddings:embedding", "item_embeddings:generation"]
    now = pd.Timestamp.now(tz="UTC")
    asked = pd.DataFrame({"node_id": ids, "event_timestamp": now})
    offline = feast.get_historical_features(entity_df=asked, features=features).to_df().set_index("node_id")

    feast.materialize(datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc), now.to_pydatetime())
    online = feast.get_online_features(features=features, entity_rows=[{"node_id": i} for i in ids]).to_dict()

    print(json.dumps([
        {"id": i, "offline": [float(x) for x in offline.loc[i, "embedding"]], "online": list(v), "generation": g}
        for i, v, g in zip(ids, online["embedding"], online["generation"])
    ]))


if __name__ == "__main__":
    main()
