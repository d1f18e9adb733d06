-- Orders: what was ordered, what became of every line, who waits for a code, and what recipients did with theirs.

CREATE SEQUENCE order_block AS bigint;
COMMENT ON SEQUENCE order_block IS 'A process takes a block of order ids at a time.';

CREATE TABLE orders (
    id               bigint PRIMARY KEY,
    company_id       integer NOT NULL REFERENCES company,
    type             smallint NOT NULL CHECK (type IN (0, 1)),
    status           smallint NOT NULL CHECK (status BETWEEN 0 AND 4),
    payment_status   smallint NOT NULL DEFAULT 0 CHECK (payment_status BETWEEN 0 AND 3),
    payment_currency text NOT NULL CHECK (payment_currency ~ '^[A-Z]{3}$'),
    payment_fx_e8    bigint NOT NULL CHECK (payment_fx_e8 > 0),
    price_minor      bigint NOT NULL CHECK (price_minor >= 0),
    vat_minor        bigint NOT NULL CHECK (vat_minor >= 0),
    charged_minor    bigint NOT NULL DEFAULT 0,
    refunded_minor   bigint NOT NULL DEFAULT 0,
    held_minor       bigint NOT NULL DEFAULT 0 CHECK (held_minor >= 0),
    lines            integer NOT NULL CHECK (lines BETWEEN 1 AND 10000),
    lines_finished   integer NOT NULL DEFAULT 0,
    lines_cancelled  integer NOT NULL DEFAULT 0,
    resolving        boolean NOT NULL DEFAULT false,
    downloaded       boolean NOT NULL DEFAULT false,
    version          integer NOT NULL DEFAULT 1,
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    deadline_at      timestamptz,
    reference        text CHECK (length(reference) <= 1000),
    cancelling       boolean NOT NULL DEFAULT false,
    CONSTRAINT orders_lines_add_up CHECK (lines_finished >= 0 AND lines_cancelled >= 0 AND lines_finished + lines_cancelled <= lines),
    CONSTRAINT orders_never_refund_more CHECK (refunded_minor BETWEEN 0 AND charged_minor
                                               AND charged_minor IN (0, price_minor + vat_minor)),
    CONSTRAINT orders_status_fits CHECK (CASE status
        WHEN 0 THEN charged_minor = 0 AND held_minor = 0 AND lines_finished = 0 AND lines_cancelled = 0
        WHEN 1 THEN lines_finished + lines_cancelled < lines
        WHEN 2 THEN lines_finished = lines AND held_minor = 0 AND refunded_minor = 0
        WHEN 3 THEN lines_finished + lines_cancelled = lines AND lines_cancelled > 0 AND held_minor = 0
        ELSE charged_minor = 0 AND held_minor = 0 AND lines_finished = 0 END),
    CONSTRAINT orders_cancelling_fits CHECK (NOT cancelling OR status IN (1, 2, 3)),
    CONSTRAINT orders_downloaded_has_codes CHECK (NOT downloaded OR lines_finished > 0)
) WITH (fillfactor = 60);
CREATE INDEX orders_company ON orders (company_id, (id & 1), created_at, id);
CREATE INDEX orders_reference ON orders (company_id, hashtextextended(reference, 0)) WHERE reference IS NOT NULL;
CREATE INDEX orders_created ON orders USING brin (created_at) WITH (autosummarize = on, pages_per_range = 32);
CREATE TRIGGER orders_kept BEFORE DELETE ON orders
    FOR EACH ROW WHEN (OLD.status <> 0) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER orders_downloaded_stays BEFORE UPDATE OF downloaded ON orders
    FOR EACH ROW WHEN (OLD.downloaded AND NOT NEW.downloaded) EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE orders IS
    'One row is an order of a company. No index holds a column that changes, so every change of an order is a heap-only '
    'update.';
COMMENT ON COLUMN orders.id IS 'From a block of order_block, with the state as its lowest bit; clients see it encrypted, as the trx.';
COMMENT ON COLUMN orders.type IS '0 api, 1 portal.';
COMMENT ON COLUMN orders.status IS '0 created, 1 pending, 2 finished, 3 cancelled, 4 deleted.';
COMMENT ON COLUMN orders.payment_status IS '0 unpaid, 1 paid, 2 partially refunded, 3 refunded.';
COMMENT ON COLUMN orders.payment_fx_e8 IS 'The worth of one unit of the payment currency in EUR, as Create fixed it.';
COMMENT ON COLUMN orders.held_minor IS 'What Resolve holds of the wallet for it.';
COMMENT ON COLUMN orders.resolving IS 'Finalised by Resolve: all of it by the deadline, or nothing.';
COMMENT ON COLUMN orders.downloaded IS 'Its codes were handed out as a file (OP-56).';
COMMENT ON COLUMN orders.version IS 'Grows with every change; events of the order are numbered by it.';
COMMENT ON COLUMN orders.deadline_at IS 'The end of the delivery window, or of the limit of Resolve.';
COMMENT ON COLUMN orders.cancelling IS
    'Cancelled while a purchase was under way: lines that it brings codes for are delivered, the others refunded (OP-45).';
COMMENT ON TRIGGER orders_kept ON orders IS 'Only an order that was never confirmed may be removed (OP-40).';

CREATE TABLE order_item (
    order_id           bigint NOT NULL REFERENCES orders ON DELETE CASCADE,
    item_no            smallint NOT NULL CHECK (item_no BETWEEN 0 AND 99),
    version_id         integer NOT NULL REFERENCES product_version,
    amount             integer NOT NULL CHECK (amount BETWEEN 1 AND 10000),
    first_line         integer NOT NULL CHECK (first_line >= 0 AND first_line + amount <= 10000),
    face_minor         bigint NOT NULL,
    face_fx_e8         bigint NOT NULL,
    price_currency     text NOT NULL,
    price_fx_e8        bigint NOT NULL,
    price_minor        bigint NOT NULL CHECK (price_minor >= 0),
    vat_minor          bigint NOT NULL CHECK (vat_minor >= 0),
    turnover_minor     bigint NOT NULL CHECK (turnover_minor >= 0),
    pay_price_minor    bigint NOT NULL CHECK (pay_price_minor >= 0),
    pay_vat_minor      bigint NOT NULL CHECK (pay_vat_minor >= 0),
    pay_turnover_minor bigint NOT NULL CHECK (pay_turnover_minor >= 0),
    offers             bigint[] NOT NULL,
    PRIMARY KEY (order_id, item_no)
);
COMMENT ON TABLE order_item IS
    'One row is an item of an order: so many lines of one product at one price. Lines have no rows of their own; they '
    'are the numbers from first_line on.';
COMMENT ON COLUMN order_item.price_minor IS 'Of one unit, in the currency of the price; so are vat_minor and turnover_minor.';
COMMENT ON COLUMN order_item.pay_price_minor IS 'Of one unit, in the currency of the payment; so are the other pay_ columns.';
COMMENT ON COLUMN order_item.offers IS 'Lot, stock, lot, stock …: the offers that Create saw, best first.';

CREATE TABLE outcome (
    order_id  bigint NOT NULL,
    line_from integer NOT NULL CHECK (line_from >= 0),
    line_to   integer NOT NULL CHECK (line_to <= 10000),
    lot_id    bigint,
    seq_from  integer CHECK (seq_from >= 0),
    at        timestamptz NOT NULL,
    PRIMARY KEY (order_id, line_from),
    CHECK (line_from < line_to),
    CHECK ((lot_id IS NULL) = (seq_from IS NULL)),
    CONSTRAINT outcome_same_state CHECK (lot_id IS NULL OR (lot_id & 1) = (order_id & 1))
);
CREATE UNIQUE INDEX outcome_lot ON outcome (lot_id, seq_from) WHERE lot_id IS NOT NULL;
CREATE TRIGGER outcome_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON outcome
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE outcome IS
    'One row is what became of a range of lines: delivered from a range of a lot, or (without a lot) cancelled.';
COMMENT ON COLUMN outcome.line_to IS 'The first line that is no longer of the range.';
COMMENT ON COLUMN outcome.seq_from IS 'The code of line_from; those of the other lines follow it.';

CREATE FUNCTION guard_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Under a snapshot of the transaction's start the look below would not see what the lock waited for.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outcomes are written under read committed' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    -- FOR NO KEY UPDATE, which a foreign key does not wait for: claims point at orders that somebody changes.
    PERFORM FROM orders WHERE id IN (SELECT order_id FROM fresh) ORDER BY id FOR NO KEY UPDATE;
    PERFORM FROM lot WHERE id IN (SELECT lot_id FROM fresh) ORDER BY id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM fresh f LEFT JOIN orders o ON o.id = f.order_id
        WHERE o.id IS NULL OR f.line_to > o.lines
           OR EXISTS (SELECT FROM (SELECT p.line_to FROM outcome p WHERE p.order_id = f.order_id AND p.line_from < f.line_from
                                   ORDER BY p.line_from DESC LIMIT 1) before WHERE before.line_to > f.line_from)
           OR EXISTS (SELECT FROM outcome n WHERE n.order_id = f.order_id AND n.line_from > f.line_from AND n.line_from < f.line_to)) THEN
        RAISE EXCEPTION 'a line would have two outcomes' USING ERRCODE = 'exclusion_violation';
    END IF;
    IF EXISTS (
        SELECT FROM fresh f LEFT JOIN lot l ON l.id = f.lot_id
        WHERE f.lot_id IS NOT NULL
          AND (l.id IS NULL OR f.seq_from + (f.line_to - f.line_from) > l.cursor
           OR EXISTS (SELECT FROM (SELECT p.seq_from + (p.line_to - p.line_from) AS seq_to FROM outcome p
                                   WHERE p.lot_id = f.lot_id AND p.seq_from < f.seq_from
                                   ORDER BY p.seq_from DESC LIMIT 1) before WHERE before.seq_to > f.seq_from)
           OR EXISTS (SELECT FROM outcome n WHERE n.lot_id = f.lot_id AND n.seq_from > f.seq_from
                      AND n.seq_from < f.seq_from + (f.line_to - f.line_from)))) THEN
        RAISE EXCEPTION 'a code would be on two lines' USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER outcome_guard AFTER INSERT ON outcome REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_outcomes();
COMMENT ON FUNCTION guard_outcomes IS
    'Refuses a line with two outcomes and a code on two lines. An exclusion constraint does the same and costs 70 µs a '
    'row (measured); this costs three. It locks the orders and lots itself (every path of the program has locked them '
    'already), so two transactions that can not see each other can not both pass.';

CREATE TABLE waiting (
    state       smallint NOT NULL CHECK (state IN (0, 1)),
    product_id  integer NOT NULL,
    face_minor  bigint NOT NULL,
    company_id  integer NOT NULL,
    order_id    bigint NOT NULL REFERENCES orders,
    line_from   integer NOT NULL,
    line_to     integer NOT NULL,
    not_before  timestamptz NOT NULL,
    deadline_at timestamptz NOT NULL,
    urgent      boolean NOT NULL DEFAULT false,
    supplier_id integer REFERENCES supplier,
    attempt_id  uuid REFERENCES attempt,
    ask_at      timestamptz,
    tried       integer[] NOT NULL DEFAULT '{}',
    rounds      integer NOT NULL DEFAULT 0 CHECK (rounds >= 0),
    PRIMARY KEY (state, product_id, face_minor, company_id, order_id, line_from),
    CHECK (line_from < line_to),
    CONSTRAINT waiting_same_state CHECK ((order_id & 1) = state),
    CONSTRAINT waiting_in_one_place CHECK (num_nonnulls(supplier_id, attempt_id, ask_at) <= 1)
);
CREATE UNIQUE INDEX waiting_order ON waiting (order_id, line_from);
CREATE INDEX waiting_deadline ON waiting (deadline_at);
CREATE INDEX waiting_to_ask ON waiting (supplier_id, urgent, company_id, order_id, line_from) WHERE supplier_id IS NOT NULL;
CREATE INDEX waiting_attempt ON waiting (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX waiting_pausing ON waiting (ask_at) WHERE ask_at IS NOT NULL;
CREATE INDEX waiting_pausing_for ON waiting (state, product_id, face_minor, ask_at) WHERE ask_at IS NOT NULL;
CREATE INDEX waiting_for_shelf ON waiting (state, product_id, face_minor)
    WHERE supplier_id IS NULL AND attempt_id IS NULL AND ask_at IS NULL;
CREATE INDEX waiting_company ON waiting (state, company_id, not_before);
COMMENT ON TABLE waiting IS
    'One row is a range of lines that were paid (or held) and wait for codes. The order of the key is the order of '
    'service: within a product companies take turns by a loose index scan, and within a company the oldest order comes '
    'first. The lines are at one of four places: a supplier is to be asked for them, they are being bought, they pause '
    'before a supplier is looked for, or they wait for stock alone. Each place has an index of its own, so that a '
    'million rows elsewhere cost nothing. At most one purchase is under way for a line, because a line is in one row '
    'and a row names one purchase.';
COMMENT ON COLUMN waiting.not_before IS 'Orders of the sandbox may ask to be slow (OP-49).';
COMMENT ON COLUMN waiting.deadline_at IS 'When the wait ends: at the end of the delivery window, or of the limit of Resolve.';
COMMENT ON COLUMN waiting.urgent IS 'Of a Resolve: never behind others.';
COMMENT ON COLUMN waiting.supplier_id IS 'The supplier that is to be asked.';
COMMENT ON COLUMN waiting.attempt_id IS 'The purchase that is under way.';
COMMENT ON COLUMN waiting.ask_at IS 'The end of the pause before a supplier is looked for.';
COMMENT ON COLUMN waiting.tried IS 'The suppliers that failed in this round.';
COMMENT ON COLUMN waiting.rounds IS 'How often every supplier has failed.';
COMMENT ON INDEX waiting_company IS 'For the console: who waits, and since when.';

CREATE FUNCTION guard_waits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM fresh f
        WHERE EXISTS (SELECT FROM (SELECT p.line_to FROM waiting p WHERE p.order_id = f.order_id AND p.line_from < f.line_from
                                   ORDER BY p.line_from DESC LIMIT 1) before WHERE before.line_to > f.line_from)
           OR EXISTS (SELECT FROM waiting n WHERE n.order_id = f.order_id AND n.line_from > f.line_from
                      AND n.line_from < f.line_to)) THEN
        RAISE EXCEPTION 'a line would wait twice' USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER waiting_once AFTER INSERT ON waiting REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_waits();
COMMENT ON FUNCTION guard_waits IS 'Refuses a line that would wait twice.';

CREATE FUNCTION guard_attempt_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.attempt_id IS NOT NULL OR EXISTS (SELECT FROM attempt WHERE id = OLD.attempt_id AND status < 2) THEN
        RAISE EXCEPTION 'a purchase is under way for these lines' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER waiting_one_attempt BEFORE UPDATE OF attempt_id ON waiting
    FOR EACH ROW WHEN (OLD.attempt_id IS NOT NULL AND NEW.attempt_id IS DISTINCT FROM OLD.attempt_id)
    EXECUTE FUNCTION guard_attempt_ends();
COMMENT ON FUNCTION guard_attempt_ends IS
    'A purchase lets go of its lines only once it can bring nothing for them any more without the help of a person.';

CREATE TABLE attempt_line (
    attempt_id uuid NOT NULL REFERENCES attempt,
    order_id   bigint NOT NULL REFERENCES orders,
    line_from  integer NOT NULL CHECK (line_from >= 0),
    line_to    integer NOT NULL CHECK (line_to <= 10000),
    PRIMARY KEY (attempt_id, order_id, line_from),
    CHECK (line_from < line_to)
);
CREATE INDEX attempt_line_order ON attempt_line (order_id);
CREATE TRIGGER attempt_line_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON attempt_line
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE attempt_line IS 'One row is a range of lines that a purchase was made for.';

CREATE TABLE cart (
    user_id          bigint NOT NULL REFERENCES app_user ON DELETE CASCADE,
    state            smallint NOT NULL CHECK (state IN (0, 1)),
    payment_currency text NOT NULL CHECK (payment_currency ~ '^[A-Z]{3}$'),
    PRIMARY KEY (user_id, state)
);
COMMENT ON TABLE cart IS 'One row is the cart of a person in the portal: one for live and one for the sandbox.';

CREATE TABLE cart_item (
    user_id    bigint NOT NULL,
    state      smallint NOT NULL,
    product_id integer NOT NULL REFERENCES product,
    face_minor bigint NOT NULL CHECK (face_minor >= 0),
    amount     integer NOT NULL CHECK (amount BETWEEN 1 AND 10000),
    added_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, state, product_id, face_minor),
    FOREIGN KEY (user_id, state) REFERENCES cart ON DELETE CASCADE
);
CREATE INDEX cart_item_product ON cart_item (product_id);
COMMENT ON TABLE cart_item IS 'One row is a product in a cart.';
COMMENT ON COLUMN cart_item.face_minor IS '0: the face value of the product, where that is fixed.';

CREATE TABLE approval (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         smallint NOT NULL CHECK (kind BETWEEN 1 AND 3),
    company_id   integer NOT NULL REFERENCES company,
    state        smallint NOT NULL CHECK (state IN (0, 1)),
    order_id     bigint REFERENCES orders ON DELETE CASCADE,
    amount_minor bigint NOT NULL,
    currency     text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    reference    text CHECK (length(reference) BETWEEN 1 AND 200),
    note         text NOT NULL DEFAULT '' CHECK (length(note) <= 500),
    requested_by bigint NOT NULL REFERENCES app_user,
    requested_at timestamptz NOT NULL DEFAULT now(),
    ends_at      timestamptz NOT NULL,
    status       smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 3),
    decided_by   bigint REFERENCES app_user,
    decided_at   timestamptz,
    CONSTRAINT approval_two_people CHECK (decided_by <> requested_by),
    CONSTRAINT approval_decided CHECK ((status IN (1, 2)) = (decided_by IS NOT NULL)),
    CONSTRAINT approval_ended CHECK ((status = 0) = (decided_at IS NULL)),
    CONSTRAINT approval_subject CHECK ((kind = 1) = (order_id IS NOT NULL) AND (kind = 1) = (reference IS NULL)),
    CONSTRAINT approval_same_state CHECK ((order_id & 1) = state),
    CONSTRAINT approval_amount CHECK (amount_minor <> 0 AND (kind = 3 OR amount_minor > 0))
);
CREATE UNIQUE INDEX approval_open_order ON approval (order_id) WHERE status = 0;
CREATE UNIQUE INDEX approval_open_money ON approval (company_id, state, currency, reference)
    WHERE status = 0 AND kind <> 1;
CREATE INDEX approval_order ON approval (order_id);
CREATE INDEX approval_newest ON approval (company_id, state, id DESC);
CREATE TRIGGER approval_decided_once BEFORE UPDATE ON approval
    FOR EACH ROW WHEN (OLD.status <> 0 OR NEW.kind <> OLD.kind OR NEW.company_id <> OLD.company_id
                       OR NEW.state <> OLD.state OR NEW.amount_minor <> OLD.amount_minor
                       OR NEW.currency <> OLD.currency OR NEW.requested_by <> OLD.requested_by)
    EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE approval IS 'One row is a request of one person that another one allows or rejects.';
COMMENT ON COLUMN approval.kind IS '1 order, 2 top-up, 3 correction.';
COMMENT ON COLUMN approval.status IS '0 open, 1 approved, 2 rejected, 3 ended.';
COMMENT ON TRIGGER approval_decided_once ON approval IS
    'A decision stays, and nobody turns a request into another one.';

CREATE TABLE line_view (
    order_id          bigint NOT NULL REFERENCES orders,
    line              integer NOT NULL CHECK (line >= 0),
    link_viewed_at    timestamptz,
    voucher_viewed_at timestamptz,
    returned_at       timestamptz,
    PRIMARY KEY (order_id, line),
    CONSTRAINT line_view_in_order CHECK (voucher_viewed_at >= link_viewed_at),
    CONSTRAINT line_view_says_something CHECK (num_nonnulls(link_viewed_at, returned_at) > 0),
    CONSTRAINT line_view_opened_first CHECK (voucher_viewed_at IS NULL OR link_viewed_at IS NOT NULL)
);
CREATE TRIGGER line_view_once BEFORE UPDATE ON line_view
    FOR EACH ROW WHEN (NEW.order_id <> OLD.order_id OR NEW.line <> OLD.line OR NEW.link_viewed_at <> OLD.link_viewed_at
                       OR (OLD.voucher_viewed_at IS NOT NULL
                           AND NEW.voucher_viewed_at IS DISTINCT FROM OLD.voucher_viewed_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER line_view_returned_once BEFORE UPDATE ON line_view
    FOR EACH ROW WHEN ((OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at)
                       OR (OLD.link_viewed_at IS NOT NULL AND NEW.link_viewed_at IS NULL))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER line_view_stays BEFORE DELETE OR TRUNCATE ON line_view
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE line_view IS
    'One row is a line whose redemption link was opened, or whose code the operator took back (OP-57). A date that is '
    'written stays: the first time is the first time.';
COMMENT ON COLUMN line_view.link_viewed_at IS 'When a recipient first opened the link.';
COMMENT ON COLUMN line_view.voucher_viewed_at IS 'When a recipient first saw the code.';
COMMENT ON COLUMN line_view.returned_at IS
    'When the operator took the code back; its link shows it no more. A refund for it is a movement of its own.';

CREATE FUNCTION guard_views() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM fresh f WHERE NOT EXISTS (
        SELECT FROM outcome o
        WHERE o.order_id = f.order_id AND o.line_from <= f.line AND o.line_to > f.line AND o.lot_id IS NOT NULL)) THEN
        RAISE EXCEPTION 'a line without a code can''t be viewed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER line_view_has_code AFTER INSERT ON line_view REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_views();
COMMENT ON FUNCTION guard_views IS 'Refuses the view of a line that has no code: only a line with a code has a link.';

CREATE TABLE order_pin (
    order_id bigint PRIMARY KEY REFERENCES orders ON DELETE CASCADE,
    hash     bytea NOT NULL CHECK (length(hash) = 32),
    set_at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE order_pin IS 'One row is the PIN that recipients must give before they see a code of the order.';
COMMENT ON COLUMN order_pin.hash IS
    'Keyed with the master key: a PIN is short, and a thief of the database alone can not try them all.';

CREATE TABLE pin_try (
    order_id      bigint NOT NULL REFERENCES order_pin ON DELETE CASCADE,
    line          integer NOT NULL CHECK (line >= 0),
    wrong         integer NOT NULL CHECK (wrong > 0),
    tried_at      timestamptz NOT NULL DEFAULT now(),
    blocked_until timestamptz,
    PRIMARY KEY (order_id, line)
);
COMMENT ON TABLE pin_try IS
    'One row counts the wrong PINs at one link since the last right one; after every few of them the link is blocked, '
    'longer each time.';
