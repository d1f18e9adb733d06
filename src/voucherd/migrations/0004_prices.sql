-- Prices: exchange rates and margins, VAT rates, and the prices of single companies.

CREATE TABLE fx_rate (
    currency text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    day      date NOT NULL,
    eur_e8   bigint NOT NULL CHECK (eur_e8 > 0),
    source   text NOT NULL,
    set_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (currency, day)
);
COMMENT ON TABLE fx_rate IS 'One row is the exchange rate of a currency on a day.';
COMMENT ON COLUMN fx_rate.eur_e8 IS 'The worth of one unit of the currency in EUR (OP-50).';

CREATE TABLE fx_margin (
    from_currency text NOT NULL CHECK (from_currency ~ '^[A-Z]{3}$'),
    to_currency   text NOT NULL CHECK (to_currency ~ '^[A-Z]{3}$'),
    margin_bp     integer NOT NULL CHECK (margin_bp BETWEEN 1 AND 5000),
    set_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (from_currency, to_currency),
    CONSTRAINT fx_margin_of_a_pair CHECK (from_currency <> to_currency)
);
COMMENT ON TABLE fx_margin IS 'One row is the share that is added to a price in one currency that is paid in another.';

CREATE TABLE fx_feed (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    attempted_at timestamptz,
    taken_at     timestamptz,
    problem      text CHECK (length(problem) <= 500)
);
INSERT INTO fx_feed DEFAULT VALUES;
COMMENT ON TABLE fx_feed IS 'The only row says how the refresh of rates from an address stands.';
COMMENT ON COLUMN fx_feed.attempted_at IS 'The worker that moves it forward is the one that asks.';
COMMENT ON COLUMN fx_feed.problem IS 'Of the last attempt; NULL if it went well.';

CREATE TABLE price_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch    bigint NOT NULL
);
INSERT INTO price_epoch (epoch) VALUES (1);
COMMENT ON TABLE price_epoch IS
    'The only row is a counter that grows when a margin or the price list of a company changes. '
    'Every process remembers those and reads this row to learn that they changed.';

CREATE FUNCTION bump_price_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE price_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER fx_margin_epoch_moves AFTER INSERT OR UPDATE OR DELETE ON fx_margin
    FOR EACH STATEMENT EXECUTE FUNCTION bump_price_epoch();
COMMENT ON FUNCTION bump_price_epoch IS 'Tells every process that the margins and price lists it remembers are old.';

CREATE TABLE vat_rate (
    country    text NOT NULL CHECK (country ~ '^[A-Z]{2}$'),
    valid_from date NOT NULL,
    rate_bp    integer NOT NULL CHECK (rate_bp BETWEEN 0 AND 10000),
    PRIMARY KEY (country, valid_from)
);
COMMENT ON TABLE vat_rate IS
    'One row is the standard VAT rate of a country from a day on. A new rate is a new row, entered before its day; a '
    'past row never changes, so an order can always be explained (OP-52). Regions with a rate of their own (the Azores, '
    'Jungholz …) are left out: of a company only the country is known.';
COMMENT ON COLUMN vat_rate.rate_bp IS '2100 is 21%.';
-- The 27 countries of the EU since 2020.
INSERT INTO vat_rate (country, valid_from, rate_bp) VALUES
    ('AT', '2020-01-01', 2000),
    ('BE', '2020-01-01', 2100),
    ('BG', '2020-01-01', 2000),
    ('CY', '2020-01-01', 1900),
    ('CZ', '2020-01-01', 2100),
    ('DE', '2020-01-01', 1900), ('DE', '2020-07-01', 1600), ('DE', '2021-01-01', 1900),
    ('DK', '2020-01-01', 2500),
    ('EE', '2020-01-01', 2000), ('EE', '2024-01-01', 2200), ('EE', '2025-07-01', 2400),
    ('ES', '2020-01-01', 2100),
    ('FI', '2020-01-01', 2400), ('FI', '2024-09-01', 2550),
    ('FR', '2020-01-01', 2000),
    ('GR', '2020-01-01', 2400),
    ('HR', '2020-01-01', 2500),
    ('HU', '2020-01-01', 2700),
    ('IE', '2020-01-01', 2300), ('IE', '2020-09-01', 2100), ('IE', '2021-03-01', 2300),
    ('IT', '2020-01-01', 2200),
    ('LT', '2020-01-01', 2100),
    ('LU', '2020-01-01', 1700), ('LU', '2023-01-01', 1600), ('LU', '2024-01-01', 1700),
    ('LV', '2020-01-01', 2100),
    ('MT', '2020-01-01', 1800),
    ('NL', '2020-01-01', 2100),
    ('PL', '2020-01-01', 2300),
    ('PT', '2020-01-01', 2300),
    ('RO', '2020-01-01', 1900), ('RO', '2025-08-01', 2100),
    ('SE', '2020-01-01', 2500),
    ('SI', '2020-01-01', 2200),
    ('SK', '2020-01-01', 2000), ('SK', '2025-01-01', 2300);

CREATE TABLE price_list (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 100),
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE price_list IS 'One row is a list of prices that were agreed with one or more companies.';

CREATE TABLE price_list_company (
    company_id  integer PRIMARY KEY REFERENCES company,
    list_id     integer NOT NULL REFERENCES price_list,
    assigned_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX price_list_company_list ON price_list_company (list_id);
CREATE TRIGGER price_list_company_epoch_moves AFTER INSERT OR UPDATE OR DELETE ON price_list_company
    FOR EACH STATEMENT EXECUTE FUNCTION bump_price_epoch();
COMMENT ON TABLE price_list_company IS 'One row says which list a company has. It has one at most; a list may serve many.';

CREATE TABLE price_entry (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    list_id         integer NOT NULL REFERENCES price_list ON DELETE CASCADE,
    product_id      integer REFERENCES product,
    brand_id        integer REFERENCES brand,
    discount_bp     integer CHECK (discount_bp BETWEEN 1 AND 9999),
    price_minor     bigint CHECK (price_minor > 0),
    price_currency  text CHECK (price_currency ~ '^[A-Z]{3}$'),
    fee_variable_e8 bigint CHECK (fee_variable_e8 > 0),
    fee_fixed_minor bigint CHECK (fee_fixed_minor >= 0),
    face_currency   text CHECK (face_currency ~ '^[A-Z]{3}$'),
    face_minor      bigint CHECK (face_minor > 0),
    valid_from      date,
    valid_until     date,
    set_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT price_entry_one_target CHECK (num_nonnulls(product_id, brand_id) <= 1),
    CONSTRAINT price_entry_one_kind CHECK (num_nonnulls(discount_bp, price_minor, fee_variable_e8) = 1
        AND (price_minor IS NULL) = (price_currency IS NULL)
        AND (fee_variable_e8 IS NULL) = (fee_fixed_minor IS NULL)),
    CONSTRAINT price_entry_agreed_for CHECK ((face_currency IS NULL) = (discount_bp IS NOT NULL)
        AND (face_minor IS NULL) = (price_minor IS NULL)),
    CONSTRAINT price_entry_of_a_product CHECK (discount_bp IS NOT NULL OR product_id IS NOT NULL),
    CONSTRAINT price_entry_period CHECK (valid_until >= valid_from),
    CONSTRAINT price_entry_once UNIQUE NULLS NOT DISTINCT (list_id, product_id, brand_id, valid_from)
);
COMMENT ON TABLE price_entry IS
    'One row is what a list says of a product, of a brand, or (neither) of everything: a discount, a fixed price, or a '
    'fee. Of several that are in force for one target the one that began last applies, so a promotion lies over the '
    'price that it replaces for a while.';
COMMENT ON COLUMN price_entry.face_currency IS
    'With face_minor: the face value that a price, or the currency that a fee, was agreed for. For another one it means '
    'nothing.';
COMMENT ON COLUMN price_entry.valid_from IS 'The first day, in UTC; NULL: it has always been in force.';
COMMENT ON COLUMN price_entry.valid_until IS 'The last day; NULL: it does not end.';
