-- What the sandbox's own supplier "sold", so that it can be looked up from every process and after a restart.
-- Its codes are computed from the row.

CREATE TABLE sandbox_purchase (
    supplier text NOT NULL CHECK (length(supplier) BETWEEN 1 AND 100),
    reference text NOT NULL CHECK (length(reference) BETWEEN 1 AND 200),
    outcome text NOT NULL CHECK (length(outcome) BETWEEN 1 AND 40),
    sku text NOT NULL CHECK (length(sku) BETWEEN 1 AND 200),
    count integer NOT NULL CHECK (count BETWEEN 1 AND 10000),
    price_minor bigint NOT NULL CHECK (price_minor > 0),
    price_currency text NOT NULL CHECK (price_currency ~ '^[A-Z]{3}$'),
    bought_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL,
    cancelled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (supplier, reference),
    CONSTRAINT sandbox_purchase_due_check CHECK (due_at >= bought_at)
);

CREATE SEQUENCE sandbox_purchase_number;
