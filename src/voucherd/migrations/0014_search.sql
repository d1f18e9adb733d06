-- Catalogue: search. Each order in which products are listed is cut into stretches, and an index knows the words of each.

CREATE TABLE product_place (
    sort       text COLLATE "C" NOT NULL CHECK (sort IN ('name', 'brand', 'price', 'face', 'slug')),
    key        text COLLATE "C" NOT NULL,
    product_id integer NOT NULL,
    stretch    integer NOT NULL,
    words      tsvector NOT NULL,
    PRIMARY KEY (sort, key, product_id)
);
CREATE INDEX product_place_start ON product_place (sort, key, product_id) WHERE product_id % 1024 = 0;
COMMENT ON TABLE product_place IS
    'One row is the place of a product for sale in one of the orders. An order is cut into stretches: every product '
    'whose id 1024 divides begins one. A search walks along the stretches and stops when its page is full, so it costs '
    'the same for a word of ten products and for a word of all of them (docs/decisions/0030).';
COMMENT ON COLUMN product_place.key IS 'Everything that the order compares before the id, as one text.';
COMMENT ON COLUMN product_place.stretch IS 'The product that begins the stretch; 0 before the first of them.';
COMMENT ON COLUMN product_place.words IS
    'Each with its order and stretch before it: n1024/gift is a word of the name, brand or slug, n1024=acme the brand, '
    'n1024#food the category.';
COMMENT ON INDEX product_place_start IS 'The stretches of an order.';

CREATE FUNCTION stretch_of(sort text, key text, product_id integer) RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce((SELECT p.product_id FROM product_place p
                     WHERE p.product_id % 1024 = 0 AND p.sort = stretch_of.sort
                       AND (p.key, p.product_id) <= (stretch_of.key, stretch_of.product_id)
                     ORDER BY p.key DESC, p.product_id DESC LIMIT 1), 0);
END;
COMMENT ON FUNCTION stretch_of IS 'The stretch to which a place belongs.';

CREATE FUNCTION stretch_words(sort text, stretch integer, terms text[]) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    -- No term has an end of line. Without a query in it the server puts this in the place of the call.
    RETURN array_to_tsvector(string_to_array(
        left(sort, 1) || stretch || array_to_string(terms, E'\n' || left(sort, 1) || stretch), E'\n'));
COMMENT ON FUNCTION stretch_words IS 'What a place in this stretch is found by.';

CREATE FUNCTION places_of(ids integer[])
    RETURNS TABLE (sort text, key text, product_id integer, terms text[]) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT one.sort, one.key, l.product_id,
           ARRAY['=' || l.brand_slug, '#' || l.category]
               || string_to_array('/' || array_to_string(tsvector_to_array(l.words), E'\n/'), E'\n')
    FROM unnest(ids) AS wanted (id) JOIN product_listing l ON l.product_id = wanted.id
    CROSS JOIN LATERAL (VALUES
        ('name', l.name_key),
        -- No name has a character before this one, so the texts are in the order of brands, then names.
        ('brand', l.brand_key || E'\x01' || l.name_key),
        ('price', l.price_currency || lpad(l.price_minor::text, 19, '0')),
        ('face', l.face_currency || lpad(l.face_low::text, 19, '0')),
        ('slug', l.slug)) AS one (sort, key);
END;
COMMENT ON FUNCTION places_of IS 'The places of the listings of these products, in each order.';

CREATE FUNCTION place_products(ids integer[]) RETURNS void LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    gone product_place[];
    come product_place[];
BEGIN
    WITH stale AS (
        DELETE FROM product_place p
        WHERE p.product_id = ANY(ids) AND NOT EXISTS (
            SELECT FROM places_of(ARRAY[p.product_id]) f
            WHERE f.sort = p.sort AND f.key = p.key AND stretch_words(p.sort, p.stretch, f.terms) = p.words)
        RETURNING p AS place)
    SELECT array_agg(place) INTO gone FROM stale WHERE (place).product_id % 1024 = 0;

    -- Those that begin a stretch come first, so that the others find it.
    WITH fresh AS (
        INSERT INTO product_place (sort, key, product_id, stretch, words)
        SELECT f.sort, f.key, f.product_id, f.product_id, stretch_words(f.sort, f.product_id, f.terms)
        FROM places_of(ids) f WHERE f.product_id % 1024 = 0
        ON CONFLICT DO NOTHING RETURNING product_place AS place)
    SELECT array_agg(place) INTO come FROM fresh;
    INSERT INTO product_place (sort, key, product_id, stretch, words)
    SELECT f.sort, f.key, f.product_id, s.stretch, stretch_words(f.sort, s.stretch, f.terms)
    FROM places_of(ids) f
    CROSS JOIN LATERAL (SELECT stretch_of(f.sort, f.key, f.product_id) AS stretch OFFSET 0) s
    WHERE f.product_id % 1024 <> 0
    -- Places that are read together come to lie together.
    ORDER BY f.sort COLLATE "C", f.key COLLATE "C", f.product_id
    ON CONFLICT DO NOTHING;

    -- Where a stretch begins or no longer does, the places behind it change theirs.
    IF gone IS NOT NULL OR come IS NOT NULL THEN
        UPDATE product_place p
        SET stretch = moved.stretch,
            words = stretch_words(p.sort, moved.stretch, ARRAY(
                SELECT substr(word, length(left(p.sort, 1) || p.stretch) + 1)
                FROM unnest(tsvector_to_array(p.words)) AS word))
        FROM (SELECT start.*, stretch_of(start.sort, start.key, start.product_id) AS stretch, ending.*
              FROM (SELECT DISTINCT t.sort, t.key, t.product_id FROM unnest(gone || come) t) start
              CROSS JOIN LATERAL (
                  SELECT n.key, n.product_id FROM product_place n
                  WHERE n.product_id % 1024 = 0 AND n.sort = start.sort
                    AND (n.key, n.product_id) > (start.key, start.product_id)
                  UNION ALL SELECT chr(1114111), 0
                  ORDER BY 1, 2 LIMIT 1) ending (end_key, end_id)
              OFFSET 0) moved
        WHERE p.sort = moved.sort AND (p.key, p.product_id) > (moved.key, moved.product_id)
          AND (p.key, p.product_id) < (moved.end_key, moved.end_id) AND p.stretch <> moved.stretch;
    END IF;
END $$;
COMMENT ON FUNCTION place_products IS
    'Brings the places of these products up to date. The caller has listed them, and holds the turn of changes.';

CREATE OR REPLACE FUNCTION relist_products() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids integer[] := (SELECT array_agg(id) FROM fresh);
BEGIN
    PERFORM list_products(ids) WHERE ids IS NOT NULL;
    PERFORM place_products(ids) WHERE ids IS NOT NULL;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION relist_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids integer[] := (SELECT array_agg(p.id) FROM fresh f JOIN product p ON p.id = f.product_id AND p.version_id = f.id);
BEGIN
    PERFORM list_products(ids) WHERE ids IS NOT NULL;
    PERFORM place_products(ids) WHERE ids IS NOT NULL;
    RETURN NULL;
END $$;

-- Nobody changes a product until this ends: to list none of them takes the turn. Sales go on.
SELECT list_products('{}');
-- Allowed (index): it keeps only those who change products waiting, and they wait already.
CREATE INDEX product_not_for_sale ON product (slug) WHERE NOT active;
COMMENT ON INDEX product_not_for_sale IS 'They are few, and the operator sees them among the others.';
SELECT place_products(array_agg(product_id)) FROM product_listing HAVING count(*) > 0;
CREATE INDEX product_place_product ON product_place (product_id);
-- Without a list of pending entries, which every stretch of a search would read from end to end.
CREATE INDEX product_place_words ON product_place USING gin (words) WITH (fastupdate = off);
