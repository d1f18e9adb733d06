-- What recipients do with single lines, beside the ranges that lines are: when a link was first opened and its code first
-- shown (OP-57), and the PIN that a buyer may put before the codes of an order.
CREATE TABLE line_view (
    order_id          bigint NOT NULL REFERENCES orders,
    line              integer NOT NULL CHECK (line >= 0),
    link_viewed_at    timestamptz NOT NULL,
    voucher_viewed_at timestamptz,
    PRIMARY KEY (order_id, line),
    CONSTRAINT line_view_in_order CHECK (voucher_viewed_at >= link_viewed_at)
);

-- Only a line that has a code has a link.
CREATE FUNCTION guard_views() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM fresh f WHERE NOT EXISTS (
        SELECT FROM outcome o
        WHERE o.order_id = f.order_id AND o.line_from <= f.line AND o.line_to > f.line AND o.lot_id IS NOT NULL)) THEN
        RAISE EXCEPTION 'a line without a code can''t be viewed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER line_view_has_code AFTER INSERT ON line_view
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION guard_views();

-- The first time is the first time: a date that is written stays.
CREATE TRIGGER line_view_once BEFORE UPDATE ON line_view
    FOR EACH ROW WHEN (NEW.order_id <> OLD.order_id OR NEW.line <> OLD.line OR NEW.link_viewed_at <> OLD.link_viewed_at
                       OR (OLD.voucher_viewed_at IS NOT NULL
                           AND NEW.voucher_viewed_at IS DISTINCT FROM OLD.voucher_viewed_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER line_view_stays BEFORE DELETE OR TRUNCATE ON line_view
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The hash is keyed with the master key: a PIN is short, and whoever has only the database can't try them all.
CREATE TABLE order_pin (
    order_id bigint PRIMARY KEY REFERENCES orders ON DELETE CASCADE,
    hash     bytea NOT NULL CHECK (length(hash) = 32),
    set_at   timestamptz NOT NULL DEFAULT now()
);

-- Wrong PINs at one link since the last right one; after every few of them the link waits, longer each time.
CREATE TABLE pin_try (
    order_id      bigint NOT NULL REFERENCES order_pin ON DELETE CASCADE,
    line          integer NOT NULL CHECK (line >= 0),
    wrong         integer NOT NULL CHECK (wrong > 0),
    tried_at      timestamptz NOT NULL DEFAULT now(),
    blocked_until timestamptz,
    PRIMARY KEY (order_id, line)
);
