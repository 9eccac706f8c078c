-- The newest row of every node that is not deleted, from the commit log.
--
-- Manifests name the objects of a window, blocks those of many windows merged
-- (docs/format/manifest.md), those of nodes without a table. Objects that neither
-- names are leftovers. A row of a window counts from its number on, a row of a
-- block from the block's last: rows of one node that count from the same number
-- are equal.
CREATE OR REPLACE TEMP TABLE log AS
SELECT getvariable('store') || '/' || object.key AS filename, counts_from
FROM (SELECT unnest(objects) AS object, coalesce(seq, "to") AS counts_from
      FROM read_json(getvariable('store') || '/shards/*/*/*.json',   -- manifests and compacted
           columns = {'seq': 'BIGINT', 'to': 'BIGINT', 'objects': 'STRUCT("key" VARCHAR, "table" VARCHAR)[]'}))
WHERE object."table" IS NULL;

-- Objects that were merged may be gone.
SET VARIABLE objects = (SELECT list(DISTINCT log.filename) FROM log
    JOIN glob(getvariable('store') || '/shards/**/*.parquet') present ON present.file = log.filename);

CREATE OR REPLACE TEMP TABLE newest AS
SELECT r.* EXCLUDE (filename)
FROM read_parquet(getvariable('objects'), filename = true) r JOIN log USING (filename)
QUALIFY row_number() OVER (PARTITION BY node_id ORDER BY counts_from DESC) = 1;

SELECT node_id, class, len(labels) AS neighbours, event_time AT TIME ZONE 'UTC' AS event_time, generation, replace(left(text, 60), chr(10), ' ') AS text
FROM newest WHERE NOT deleted ORDER BY newest.event_time DESC, node_id LIMIT 20;
