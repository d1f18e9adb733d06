-- The catalogue: brands and products, what clients find of them, and every change of a product in order.

CREATE TABLE brand (
    id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(slug) <= 100),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200)
);
COMMENT ON TABLE brand IS 'One row is the maker of some products.';

CREATE TABLE brand_logo (
    brand_id integer PRIMARY KEY REFERENCES brand,
    name     text NOT NULL CHECK (name ~ '^[0-9a-f]{32}\.(png|jpg|webp)$'),
    content  bytea NOT NULL CHECK (length(content) BETWEEN 1 AND 102400),
    set_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX brand_logo_name ON brand_logo (name);
COMMENT ON TABLE brand_logo IS
    'One row is the logo of a brand, small enough to be kept here: pages show no picture of another host.';
COMMENT ON COLUMN brand_logo.name IS 'A hash of the content, and its kind.';
COMMENT ON INDEX brand_logo_name IS 'Not unique: two brands may share a picture.';

CREATE TABLE product (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug       text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(slug) <= 100),
    active     boolean NOT NULL DEFAULT true,
    version_id integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    allow_loss boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE product IS 'One row is a product: a name for its newest version.';
COMMENT ON COLUMN product.active IS 'It is for sale.';
COMMENT ON COLUMN product.allow_loss IS 'It may be sold below its purchase price.';

CREATE TABLE product_version (
    id                  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id          integer NOT NULL REFERENCES product DEFERRABLE INITIALLY DEFERRED,
    brand_id            integer NOT NULL REFERENCES brand,
    name                text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    product_type        text NOT NULL CHECK (product_type IN ('giftcard', 'gamecard', 'topup', 'paymentcard', 'subscription')),
    category            text NOT NULL CHECK (category ~ '^[a-z0-9]+(-[a-z0-9]+)*$'),
    redeem_type         text NOT NULL CHECK (redeem_type IN ('currency', 'product', 'subscription')),
    region              text NOT NULL CHECK (length(region) BETWEEN 2 AND 20),
    vat_category        text NOT NULL CHECK (vat_category IN ('single_purpose', 'multi_purpose', 'exempt')),
    async_delivery      boolean NOT NULL,
    incentive           boolean NOT NULL DEFAULT false,
    face_currency       text NOT NULL CHECK (face_currency ~ '^[A-Z]{3}$'),
    face_minor          bigint CHECK (face_minor > 0),
    face_min_minor      bigint CHECK (face_min_minor > 0),
    face_max_minor      bigint CHECK (face_max_minor >= face_min_minor),
    price_minor         bigint CHECK (price_minor > 0),
    price_currency      text CHECK (price_currency ~ '^[A-Z]{3}$'),
    fee_variable_e8     bigint CHECK (fee_variable_e8 > 0),
    fee_fixed_minor     bigint CHECK (fee_fixed_minor >= 0),
    created_at          timestamptz NOT NULL DEFAULT now(),
    redeem_instructions text CHECK (length(redeem_instructions) BETWEEN 1 AND 4000),
    terms               text CHECK (length(terms) BETWEEN 1 AND 20000),
    image_url           text CHECK (image_url ~ '^https://' AND length(image_url) <= 500),
    CHECK (num_nonnulls(face_minor) + num_nonnulls(face_min_minor, face_max_minor) IN (1, 2)
           AND (face_minor IS NULL) = (face_min_minor IS NOT NULL)
           AND (face_min_minor IS NULL) = (face_max_minor IS NULL)),
    CHECK ((price_minor IS NULL) = (price_currency IS NULL)
           AND (fee_variable_e8 IS NULL) = (fee_fixed_minor IS NULL)
           AND (price_minor IS NULL) <> (fee_variable_e8 IS NULL)
           AND (face_minor IS NOT NULL OR fee_variable_e8 IS NOT NULL)),
    UNIQUE (product_id, id)
);
-- A product and its first version point at each other, so both keys are checked at the end of the transaction.
ALTER TABLE product ADD FOREIGN KEY (id, version_id) REFERENCES product_version (product_id, id)
    DEFERRABLE INITIALLY DEFERRED;
CREATE TRIGGER product_version_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON product_version
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE product_version IS
    'One row is a product as it was from some moment on. It never changes, so an order can point at the one that it '
    'was priced with, and a process can keep it in memory for ever.';
COMMENT ON COLUMN product_version.async_delivery IS 'An order may wait for it after Confirm has answered.';
COMMENT ON COLUMN product_version.face_minor IS 'A fixed face value; NULL: any from face_min_minor to face_max_minor.';
COMMENT ON COLUMN product_version.price_minor IS 'A fixed price; NULL: the face value times fee_variable_e8 plus fee_fixed_minor.';
COMMENT ON CONSTRAINT product_version_check1 ON product_version IS 'A fixed face value, or a range (OP-51).';
COMMENT ON CONSTRAINT product_version_check2 ON product_version IS
    'A fixed price, or a fee; a product with a range always has the fee (OP-51).';

CREATE FUNCTION folded(words text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN lower(regexp_replace(normalize(words, NFKD), '[\u0300-\u036f]+', '', 'g'));
COMMENT ON FUNCTION folded IS
    'The text without accents and in lower case: names are compared and searched in this form, the same on every server.';

CREATE FUNCTION words_of(text text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN array_to_tsvector(array_remove(regexp_split_to_array(folded(text), '[\u0001-/:-@\[-`{-\u007f]+'), ''));
COMMENT ON FUNCTION words_of IS 'The folded words of a text, as the search compares them.';

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
    price_minor    bigint NOT NULL,
    name_key       text COLLATE "C" NOT NULL,
    brand_key      text COLLATE "C" NOT NULL,
    words          tsvector NOT NULL,
    stocked        boolean NOT NULL DEFAULT false,
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
COMMENT ON TABLE product_listing IS
    'One row is a product that is for sale, with everything that it is found and sorted by. Prices are compared by '
    'their worth in EUR without a column for it, which every new exchange rate would rewrite: the index has the prices '
    'of each currency in order, and a page merges the currencies (docs/decisions/0014).';
COMMENT ON COLUMN product_listing.price_minor IS 'Of the smallest face value.';
COMMENT ON COLUMN product_listing.name_key IS 'The folded name, in the order of its bytes.';
COMMENT ON COLUMN product_listing.stocked IS 'Whether live stock was there when it was last announced.';

CREATE TABLE product_count (
    kind  text NOT NULL CHECK (kind IN ('all', 'brand', 'category')),
    slug  text NOT NULL,
    count integer NOT NULL CHECK (count >= 0),
    PRIMARY KEY (kind, slug)
);
COMMENT ON TABLE product_count IS 'One row is the number of products for sale: in all, of a brand, or of a category.';

CREATE TABLE product_change (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    product_id integer NOT NULL,
    version_id integer NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('activation', 'price', 'content', 'stock')),
    active     boolean NOT NULL,
    stocked    boolean NOT NULL,
    FOREIGN KEY (product_id, version_id) REFERENCES product_version (product_id, id),
    CHECK (active OR kind = 'activation')
);
CREATE INDEX product_change_but_stock ON product_change (id) WHERE kind <> 'stock';
CREATE TRIGGER product_change_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON product_change
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE product_change IS
    'One row is a change of a product that is for sale, or was until then. A writer holds the lock of the table to the '
    'end of its transaction, so ids become visible in their order and a reader who goes on from one misses nothing.';
COMMENT ON CONSTRAINT product_change_check ON product_change IS
    'Of a product that is not for sale clients learn only that it is not.';
COMMENT ON INDEX product_change_but_stock IS 'Stock is live; a reader with a sandbox key passes over it.';

CREATE FUNCTION count_products(ids integer[], step integer) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    INSERT INTO product_count AS c (kind, slug, count)
    SELECT one.kind, one.slug, count(*)
    FROM unnest(ids) AS wanted (id) JOIN product_listing l ON l.product_id = wanted.id
    CROSS JOIN LATERAL (VALUES ('all', ''), ('brand', l.brand_slug), ('category', l.category)) AS one (kind, slug)
    GROUP BY one.kind, one.slug
    ON CONFLICT (kind, slug) DO UPDATE SET count = c.count + step * excluded.count;
END;
COMMENT ON FUNCTION count_products IS 'Counts the listings of these products in (step 1), or out (step -1).';

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
           folded(v.name), folded(b.name), words_of(v.name || ' ' || b.name || ' ' || p.slug || ' ' || b.slug), moment
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
COMMENT ON FUNCTION list_products IS
    'Brings the listings of these products up to date and writes a row for each change. A second call changes nothing.';

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
COMMENT ON FUNCTION relist_products IS 'Lists the products that a statement wrote.';
COMMENT ON FUNCTION relist_versions IS
    'Lists the products whose newest version a statement wrote: of a new product either row may come last.';
