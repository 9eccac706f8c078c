-- The nodes nearest to one, by the embeddings of a generation. Vectors have length
-- 1, so the inner product is the cosine.
WITH vectors AS (
    SELECT node_id, embedding FROM read_parquet(getvariable('generation') || '/embeddings/*.parquet')
)
SELECT other.node_id, round(list_inner_product(this.embedding, other.embedding), 4) AS cosine, class, replace(left(text, 60), chr(10), ' ') AS text
FROM vectors this JOIN vectors other ON other.node_id <> this.node_id
LEFT JOIN read_parquet(getvariable('generation') || '/dataset/*.parquet') d ON d.node_id = other.node_id
WHERE this.node_id = getvariable('node')
ORDER BY cosine DESC, other.node_id LIMIT 10;
