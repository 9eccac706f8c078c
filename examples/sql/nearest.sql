-- The nodes nearest to one, by the embeddings of a generation, of any type: the scale of
-- an int8 vector changes no cosine. Nodes without text have no vector.
WITH vectors AS (
    SELECT node_id, embedding::FLOAT[] AS embedding FROM read_parquet(getvariable('generation') || '/embeddings/*.parquet')
    WHERE len(embedding) > 0
)
SELECT other.node_id, round(list_cosine_similarity(this.embedding, other.embedding), 4) AS cosine, class, replace(left(text, 60), chr(10), ' ') AS text
FROM vectors this JOIN vectors other ON other.node_id <> this.node_id
LEFT JOIN read_parquet(getvariable('generation') || '/dataset/*.parquet') d ON d.node_id = other.node_id
WHERE this.node_id = getvariable('node')
ORDER BY cosine DESC, other.node_id LIMIT 10;
