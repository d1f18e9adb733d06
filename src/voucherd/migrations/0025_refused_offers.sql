-- Purchasing: a supplier that has refused a purchase for good is not asked again for a while.

ALTER TABLE offer ADD COLUMN quoted_stock integer;
COMMENT ON COLUMN offer.quoted_stock IS
    'How many the supplier said that it has, when it was last asked; `stock` is less what we have bought since. NULL: a '
    'program before 0.2.0 has asked.';

COMMENT ON COLUMN orders.cancelling IS
    'Cancelled by a program before 0.2.0 while a purchase was under way: lines that it brings codes for are delivered, the '
    'others refunded. Since then an order is cancelled at once (OP-45).';

CREATE TABLE refused_offer (
    supplier_id   integer NOT NULL REFERENCES supplier (id),
    product_id    integer NOT NULL REFERENCES product (id),
    face_minor    bigint NOT NULL CHECK (face_minor > 0),
    stock         integer NOT NULL CHECK (stock >= 0),
    refused_until timestamptz NOT NULL,
    PRIMARY KEY (supplier_id, product_id, face_minor)
) WITH (fillfactor = 70);
COMMENT ON TABLE refused_offer IS
    'One row is a product and face value that a supplier has refused to sell, whatever its prices say (OP-140). It goes '
    'when the supplier names another price or stock, and does not count after its time.';
COMMENT ON COLUMN refused_offer.stock IS 'So many may still be had there: a quarter of what was refused.';
