-- The search index finds so many that are near; the conditions leave out some of them.
SET hnsw.ef_search = 200;

SELECT p.sku, p.name, i.price, i.stock
FROM items i JOIN products p ON p.sku::text = i.node_id
WHERE i.stock > 0 AND i.price < 100 AND i.node_id <> '8'
ORDER BY i.embedding <=> (SELECT embedding FROM items WHERE node_id = '8')
LIMIT 5;
