-- Per cluster of the label tree: its labels, the class that most of them have, and
-- for how many instances it is a target of training.
WITH members AS (
    SELECT node_id, level - 1 AS level, clusters[level] AS cluster
    FROM read_parquet(getvariable('generation') || '/labels.parquet'), range(1, len(clusters) + 1) AS r(level)
), instances AS (
    SELECT level, cluster, count(*) AS instances
    FROM (SELECT level - 1 AS level, unnest(targets[level]) AS cluster
          FROM read_parquet(getvariable('generation') || '/dataset/*.parquet'), range(1, len(targets) + 1) AS r(level))
    GROUP BY ALL
)
SELECT level, cluster, count(*) AS labels, mode(class) AS commonest_class, any_value(instances) AS instances
FROM members LEFT JOIN instances USING (level, cluster)
LEFT JOIN read_parquet(getvariable('generation') || '/dataset/*.parquet') USING (node_id)
GROUP BY level, cluster ORDER BY level, cluster;
