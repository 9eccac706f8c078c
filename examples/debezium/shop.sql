-- A shop of 400 products in 8 families, and 3,000 orders, each of products of one family.
CREATE EXTENSION vector;

CREATE TABLE products (
  sku bigint PRIMARY KEY,
  name text NOT NULL,
  description text,
  brand text,
  price numeric(10,2) NOT NULL,
  stock int NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);
-- Change events have all columns then, also large ones that an update leaves alone.
ALTER TABLE products REPLICA IDENTITY FULL;

CREATE TABLE order_lines (
  order_id bigint,
  sku bigint,
  quantity int NOT NULL,
  placed_at timestamptz NOT NULL,
  PRIMARY KEY (order_id, sku)
);

CREATE TABLE families (family int PRIMARY KEY, words text[]);
INSERT INTO families VALUES
  (0, '{tent,camping,poles,fabric}'), (1, '{stove,gas,cooking,flame}'), (2, '{boot,leather,hiking,sole}'),
  (3, '{lamp,light,battery,night}'), (4, '{rope,climbing,knot,strong}'), (5, '{bottle,water,steel,drink}'),
  (6, '{map,paper,trail,compass}'), (7, '{jacket,rain,hood,zip}');

INSERT INTO products
SELECT i, words[1 + i / 8 % 4] || ' ' || words[1 + i / 32 % 4] || ' ' || i,
  'With ' || words[1 + i / 128 % 4] || ', in size ' || i % 5, 'brand ' || i % 6, 5 + i * 37 % 20000 / 100.0, i / 8 % 4 * 10
FROM generate_series(1, 400) i JOIN families ON family = i % 8;

INSERT INTO order_lines
SELECT o, o % 8 + 8 * ((o * 7 + l * l * 3) % 49 + 1), 1 + l % 2, now() - (3000 - o) * interval '10 minutes'
FROM generate_series(1, 3000) o, generate_series(0, 2) l
ON CONFLICT DO NOTHING;
