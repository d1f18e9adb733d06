-- What a person of a company is about to buy: a cart for live and one for the sandbox.

CREATE TABLE cart (
    user_id          bigint NOT NULL REFERENCES app_user ON DELETE CASCADE,
    state            smallint NOT NULL CHECK (state IN (0, 1)),
    payment_currency text NOT NULL CHECK (payment_currency ~ '^[A-Z]{3}$'),
    PRIMARY KEY (user_id, state)
);

CREATE TABLE cart_item (
    user_id    bigint NOT NULL,
    state      smallint NOT NULL,
    product_id integer NOT NULL REFERENCES product,
    face_minor bigint NOT NULL CHECK (face_minor >= 0),  -- 0: the product's own, where it has one.
    amount     integer NOT NULL CHECK (amount BETWEEN 1 AND 10000),
    added_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, state, product_id, face_minor),
    FOREIGN KEY (user_id, state) REFERENCES cart ON DELETE CASCADE
);
CREATE INDEX cart_item_product ON cart_item (product_id);
