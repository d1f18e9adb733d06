-- What clients see of the catalogue: the texts of a product, a row to find each product by that is for sale, and
-- every change of one, in order.

ALTER TABLE product_version
    ADD COLUMN redeem_instructions text CHECK (length(redeem_instructions) BETWEEN 1 AND 4000),
    ADD COLUMN terms               text CHECK (length(terms) BETWEEN 1 AND 20000),
    ADD COLUMN image_url           text CHECK (image_url ~ '^https://' AND length(image_url) <= 500);

-- Accents and case dropped: how names are compared and searched, the same on every server.
CREATE FUNCTION folded(words text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN lower(regexp_replace(normalize(words, NFKD), '[\u0300-\u036f]+', '', 'g'));

-- One row for each product that is for sale: what it is found and sorted by. A product that is withdrawn has none.
-- Prices are compared by their worth in EUR without a column for it, which every new exchange rate would rewrite:
-- the index has the prices of each currency in order, and a page merges the currencies (docs/decisions/0014).
CREATE TABLE product_listing (
    product_id     integer PRIMARY KEY REFERENCES product,
    version_id     integer NOT NULL,
    slug           text NOT NULL UNIQUE,
    brand_slug     text NOT NULL,
    product_type   text NOT NULL,
    category       text NOT NULL,
    redeem_type    text NOT NULL,
    region         text NOT NULL,
    variable       boolean NOT NULL,
    face_currency  text NOT NULL,
    face_low       bigint NOT NULL,
    face_high      bigint NOT NULL,
    price_currency text NOT NULL,
    price_minor    bigint NOT NULL,  -- Of the smallest face value.
    name_key       text COLLATE "C" NOT NULL,
    brand_key      text COLLATE "C" NOT NULL,
    words          tsvector NOT NULL,
    stocked        boolean NOT NULL DEFAULT false,  -- Live stock, as it was last announced.
    updated_at     timestamptz NOT NULL,
    FOREIGN KEY (product_id, version_id) REFERENCES product_version (product_id, id)
);
CREATE INDEX product_listing_name ON product_listing (name_key, product_id);
CREATE INDEX product_listing_brand_name ON product_listing (brand_key, name_key, product_id);
CREATE INDEX product_listing_price ON product_listing (price_currency, price_minor, product_id);
CREATE INDEX product_listing_face ON product_listing (face_currency, face_low, product_id);
CREATE INDEX product_listing_brand ON product_listing (brand_slug, name_key, product_id);
CREATE INDEX product_listing_category ON product_listing (category, name_key, product_id);
CREATE INDEX product_listing_stocked ON product_listing (stocked, name_key, product_id);
CREATE INDEX product_listing_words ON product_listing USING gin (words);

-- How many products are for sale: in all, of each brand and of each category.
CREATE TABLE product_count (
    kind  text NOT NULL CHECK (kind IN ('all', 'brand', 'category')),
    slug  text NOT NULL,
    count integer NOT NULL CHECK (count >= 0),
    PRIMARY KEY (kind, slug)
);

-- What changed about a product that is for sale, or ceased to be. Whoever writes here holds the table's lock to the
-- end of his transaction, so ids become visible in their order and a reader who goes on from one misses nothing.
CREATE TABLE product_change (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    product_id integer NOT NULL,
    version_id integer NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('activation', 'price', 'content', 'stock')),
    active     boolean NOT NULL,
    stocked    boolean NOT NULL,
    FOREIGN KEY (product_id, version_id) REFERENCES product_version (product_id, id),
    -- Of a product that is not for sale nothing is told but that.
    CHECK (active OR kind = 'activation')
);
-- Stock is live, and a sandbox reader passes over it.
CREATE INDEX product_change_but_stock ON product_change (id) WHERE kind <> 'stock';
CREATE TRIGGER product_change_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON product_change
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Counts the listings of these products in, or out.
CREATE FUNCTION count_products(ids integer[], step integer) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    INSERT INTO product_count AS c (kind, slug, count)
    SELECT one.kind, one.slug, count(*)
    FROM unnest(ids) AS wanted (id) JOIN product_listing l ON l.product_id = wanted.id
    CROSS JOIN LATERAL (VALUES ('all', ''), ('brand', l.brand_slug), ('category', l.category)) AS one (kind, slug)
    GROUP BY one.kind, one.slug
    ON CONFLICT (kind, slug) DO UPDATE SET count = c.count + step * excluded.count;
END;

-- Brings the listings of these products up to date and writes down what changed. Doing it again changes nothing.
CREATE FUNCTION list_products(ids integer[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
BEGIN
    LOCK TABLE product_change IN SHARE ROW EXCLUSIVE MODE;
    moment := clock_timestamp();
    INSERT INTO product_change (at, product_id, version_id, kind, active, stocked)
    SELECT moment, p.id, p.version_id, change.kind, p.active, coalesce(l.stocked, false)
    FROM unnest(ids) AS wanted (id)
    JOIN product p ON p.id = wanted.id
    JOIN product_version v ON v.id = p.version_id
    LEFT JOIN product_listing l ON l.product_id = p.id
    LEFT JOIN product_version w ON w.id = l.version_id AND w.id <> v.id
    CROSS JOIN LATERAL (VALUES
        (1, 'activation', p.active = (l.product_id IS NULL)),
        (2, 'price', p.active AND w.id IS NOT NULL
            AND ((v.price_minor, v.price_currency, v.fee_variable_e8, v.fee_fixed_minor, v.vat_category)
                 IS DISTINCT FROM (w.price_minor, w.price_currency, w.fee_variable_e8, w.fee_fixed_minor, w.vat_category)
              OR (v.price_minor IS NULL AND (v.face_currency, v.face_minor, v.face_min_minor, v.face_max_minor)
                  IS DISTINCT FROM (w.face_currency, w.face_minor, w.face_min_minor, w.face_max_minor)))),
        (3, 'content', p.active AND w.id IS NOT NULL
            AND (v.name, v.brand_id, v.product_type, v.category, v.redeem_type, v.region, v.async_delivery, v.incentive,
                 v.face_currency, v.face_minor, v.face_min_minor, v.face_max_minor,
                 v.redeem_instructions, v.terms, v.image_url)
             IS DISTINCT FROM
                (w.name, w.brand_id, w.product_type, w.category, w.redeem_type, w.region, w.async_delivery, w.incentive,
                 w.face_currency, w.face_minor, w.face_min_minor, w.face_max_minor,
                 w.redeem_instructions, w.terms, w.image_url))) AS change (place, kind, happened)
    WHERE change.happened
    ORDER BY p.id, change.place;

    PERFORM count_products(ids, -1);
    DELETE FROM product_listing l USING unnest(ids) AS wanted (id) JOIN product p ON p.id = wanted.id
    WHERE l.product_id = p.id AND NOT p.active;

    INSERT INTO product_listing AS l (product_id, version_id, slug, brand_slug, product_type, category, redeem_type,
        region, variable, face_currency, face_low, face_high, price_currency, price_minor, name_key, brand_key, words,
        updated_at)
    SELECT p.id, v.id, p.slug, b.slug, v.product_type, v.category, v.redeem_type, v.region, v.face_minor IS NULL,
           v.face_currency, coalesce(v.face_minor, v.face_min_minor), coalesce(v.face_minor, v.face_max_minor),
           coalesce(v.price_currency, v.face_currency),
           -- Rounded half up, as price_with_fee does.
           coalesce(v.price_minor, div(2 * coalesce(v.face_minor, v.face_min_minor)::numeric * v.fee_variable_e8 + 100000000,
                                       200000000)::bigint + v.fee_fixed_minor),
           folded(v.name), folded(b.name),
           array_to_tsvector(array_remove(regexp_split_to_array(
               folded(v.name || ' ' || b.name || ' ' || p.slug || ' ' || b.slug), '[\u0001-/:-@\[-`{-\u007f]+'), '')),
           moment
    FROM unnest(ids) AS wanted (id)
    JOIN product p ON p.id = wanted.id JOIN product_version v ON v.id = p.version_id JOIN brand b ON b.id = v.brand_id
    WHERE p.active
    ON CONFLICT (product_id) DO UPDATE SET
        version_id = excluded.version_id, brand_slug = excluded.brand_slug, product_type = excluded.product_type,
        category = excluded.category, redeem_type = excluded.redeem_type, region = excluded.region,
        variable = excluded.variable, face_currency = excluded.face_currency, face_low = excluded.face_low,
        face_high = excluded.face_high, price_currency = excluded.price_currency, price_minor = excluded.price_minor,
        name_key = excluded.name_key, brand_key = excluded.brand_key, words = excluded.words,
        updated_at = excluded.updated_at
    WHERE l.version_id <> excluded.version_id;
    PERFORM count_products(ids, 1);
END $$;

-- A product and its first version point at each other, so either may come last.
CREATE FUNCTION relist_products() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM list_products(array_agg(id)) FROM fresh HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE FUNCTION relist_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM list_products(array_agg(p.id)) FROM fresh f JOIN product p ON p.id = f.product_id AND p.version_id = f.id
    HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER product_added AFTER INSERT ON product REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION relist_products();
CREATE TRIGGER product_changed AFTER UPDATE ON product REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION relist_products();
CREATE TRIGGER product_version_added AFTER INSERT ON product_version REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION relist_versions();

SELECT list_products(array_agg(id)) FROM product HAVING count(*) > 0;
