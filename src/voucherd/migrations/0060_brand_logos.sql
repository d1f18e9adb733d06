-- A brand's logo, small enough to lie beside its name. Pages show no picture of another host.
CREATE TABLE brand_logo (
    brand_id integer PRIMARY KEY REFERENCES brand,
    name     text NOT NULL CHECK (name ~ '^[0-9a-f]{32}\.(png|jpg|webp)$'),  -- A hash of the content, and its kind.
    content  bytea NOT NULL CHECK (length(content) BETWEEN 1 AND 102400),
    set_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX brand_logo_name ON brand_logo (name);  -- Two brands may share a picture.
