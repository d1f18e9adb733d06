-- Sales: what was sold on each day, added up once, so that nobody counts orders to know it.

CREATE TABLE sales_day (
    state            smallint NOT NULL CHECK (state IN (0, 1)),
    day              date NOT NULL,
    product_id       integer NOT NULL,
    codes            bigint NOT NULL CHECK (codes > 0),
    price_eur_minor  bigint NOT NULL CHECK (price_eur_minor >= 0),
    margin_eur_minor bigint NOT NULL,
    PRIMARY KEY (state, day, product_id)
) WITH (fillfactor = 50);
COMMENT ON TABLE sales_day IS
    'One row is what was sold of a product on one day of UTC. A worker adds it up from the events of orders (OP-160); the '
    'sums are those of the reports.';
COMMENT ON COLUMN sales_day.price_eur_minor IS 'Before VAT, by the rates that the orders were made with.';

CREATE TABLE sales_cursor (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    upto     bigint NOT NULL CHECK (upto >= 0)
);
INSERT INTO sales_cursor (upto) VALUES (0);
CREATE TRIGGER sales_cursor_forwards BEFORE UPDATE ON sales_cursor
    FOR EACH ROW WHEN (new.upto < old.upto) EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE sales_cursor IS 'The only row says up to which event sales were added up.';

CREATE TABLE code_serial (
    lot_id bigint NOT NULL,
    seq    integer NOT NULL CHECK (seq >= 0),
    blind  bytea NOT NULL CHECK (length(blind) = 16),
    PRIMARY KEY (lot_id, seq)
);
CREATE INDEX code_serial_blind ON code_serial (blind);
CREATE TRIGGER code_serial_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON code_serial
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE code_serial IS
    'One row is the serial of a code, by which people find it (OP-161). Codes that came before this table have none.';
COMMENT ON COLUMN code_serial.blind IS 'A keyed hash of the serial: whoever reads the table learns none.';
