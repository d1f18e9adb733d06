-- Orders: PINs that are counted for the whole order.

ALTER TABLE order_pin ADD COLUMN digits smallint NOT NULL DEFAULT 4;
ALTER TABLE order_pin ADD CONSTRAINT order_pin_digits_check CHECK (digits BETWEEN 4 AND 12) NOT VALID;
COMMENT ON COLUMN order_pin.digits IS
    'How long the PIN is: the pauses after wrong ones are longer for a short one. The program before does not say it, so '
    'its PINs count as the shortest.';
COMMENT ON TABLE pin_try IS
    'One row counts the wrong PINs at one link since the last right one there. Those of all links of an order count '
    'together, and while one of them is blocked no link of the order opens.';
