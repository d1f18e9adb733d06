-- Prices per company, and products that may be sold at a loss.

ALTER TABLE product ADD COLUMN allow_loss boolean NOT NULL DEFAULT false;

CREATE TABLE price_list (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 100),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- One list a company; one list may serve many.
CREATE TABLE price_list_company (
    company_id  integer PRIMARY KEY REFERENCES company,
    list_id     integer NOT NULL REFERENCES price_list,
    assigned_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX price_list_company_list ON price_list_company (list_id);
CREATE TRIGGER price_list_company_epoch_moves AFTER INSERT OR UPDATE OR DELETE ON price_list_company
    FOR EACH STATEMENT EXECUTE FUNCTION bump_price_epoch();

-- What a list says of a product, of a brand, or (neither) of everything: a discount, a fixed price, or a fee. Of
-- several that are in force for one target the one that began last applies, so a promotion lies over what it replaces.
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
    -- The face value that a price, or the currency that a fee, was agreed for: for another one it means nothing.
    face_currency   text CHECK (face_currency ~ '^[A-Z]{3}$'),
    face_minor      bigint CHECK (face_minor > 0),
    valid_from      date,  -- The first day, in UTC; NULL began before anyone asked.
    valid_until     date,  -- The last day; NULL does not end.
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
