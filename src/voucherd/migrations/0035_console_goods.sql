-- The operator's console looks at products that are not for sale, at what a product was before, at lots by their
-- expiry, and takes files that people upload.

-- The words of a text, folded: what product_listing keeps for products that are for sale.
CREATE FUNCTION words_of(text text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN array_to_tsvector(array_remove(regexp_split_to_array(folded(text), '[\u0001-/:-@\[-`{-\u007f]+'), ''));

CREATE INDEX product_version_product ON product_version (product_id, id);
CREATE INDEX product_version_brand ON product_version (brand_id);
CREATE INDEX product_version_words ON product_version USING gin (words_of(name));
CREATE INDEX product_words ON product USING gin (words_of(slug));

CREATE INDEX lot_expiring ON lot (state, coalesce(expires_at, 'infinity'::timestamptz), id) WHERE NOT exhausted;

-- A file that a person uploaded: tried out first, then taken in. What is in it may be codes, so it lies sealed, and
-- only until it is taken, refused or a quarter of an hour old.
CREATE TABLE upload (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id bigint NOT NULL REFERENCES app_user,
    kind text NOT NULL CHECK (kind IN ('stock', 'products')),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    bytes integer NOT NULL CHECK (bytes BETWEEN 1 AND 33554432),
    terms jsonb NOT NULL CHECK (jsonb_typeof(terms) = 'object'),
    sealed bytea,
    status smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 4),
    permille smallint NOT NULL DEFAULT 0 CHECK (permille BETWEEN 0 AND 1000),
    report jsonb CHECK (jsonb_typeof(report) = 'object'),
    created_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now(),
    -- Being tried, ready, being taken, taken, refused: whoever is over has a report and no file.
    CONSTRAINT upload_status_fits CHECK (
        CASE status WHEN 0 THEN report IS NULL WHEN 1 THEN report IS NOT NULL WHEN 2 THEN report IS NOT NULL
                    ELSE report IS NOT NULL AND sealed IS NULL END)
);
-- Sealed bytes can't be compressed: nobody need try.
ALTER TABLE upload ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE INDEX upload_age ON upload (created_at);
