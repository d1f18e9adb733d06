-- Margins on exchange rates, and how the refresh of rates from an address stands.

-- What is added to a price in one currency that is paid in another.
CREATE TABLE fx_margin (
    from_currency text NOT NULL CHECK (from_currency ~ '^[A-Z]{3}$'),
    to_currency   text NOT NULL CHECK (to_currency ~ '^[A-Z]{3}$'),
    margin_bp     integer NOT NULL CHECK (margin_bp BETWEEN 1 AND 5000),
    set_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (from_currency, to_currency),
    CONSTRAINT fx_margin_of_a_pair CHECK (from_currency <> to_currency)
);

-- Every process remembers what only some prices depend on, and polls this one row.
CREATE TABLE price_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch    bigint NOT NULL
);
INSERT INTO price_epoch (epoch) VALUES (1);
CREATE FUNCTION bump_price_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE price_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER fx_margin_epoch_moves AFTER INSERT OR UPDATE OR DELETE ON fx_margin
    FOR EACH STATEMENT EXECUTE FUNCTION bump_price_epoch();

-- Whoever moves attempted_at forward is the one worker that asks.
CREATE TABLE fx_feed (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    attempted_at timestamptz,
    taken_at     timestamptz,
    problem      text CHECK (length(problem) <= 500)  -- Of the last attempt; NULL if it went well.
);
INSERT INTO fx_feed DEFAULT VALUES;
