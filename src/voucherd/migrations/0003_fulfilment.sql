-- Fulfilment: who else sells what we sell (supplier, offer, quote), what we bought there for whom (attempt), and
-- who is asked next (waiting).
--
-- Locks are taken in the order orders, wallet, lot, waiting, attempt; a claim takes supplier_health, waiting, attempt.

-- ── suppliers and what they ask ─────────────────────────────────────────────────────────────────────────

CREATE TABLE supplier (
    id              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(name) <= 60),
    kind            text NOT NULL CHECK (kind IN ('voucherd', 'http', 'sandbox')),
    state           smallint NOT NULL CHECK (state IN (0, 1)),
    active          boolean NOT NULL DEFAULT true,
    config          jsonb NOT NULL,
    secret          bytea,  -- Sealed with the master key.
    timeout_s       integer NOT NULL DEFAULT 20 CHECK (timeout_s BETWEEN 1 AND 300),
    settle_s        integer NOT NULL DEFAULT 120 CHECK (settle_s BETWEEN 0 AND 86400),  -- A purchase may turn up this long after its call.
    quote_age_s     integer NOT NULL DEFAULT 300 CHECK (quote_age_s BETWEEN 1 AND 86400),
    concurrency_max integer NOT NULL DEFAULT 8 CHECK (concurrency_max BETWEEN 1 AND 1000),
    price_slack_bp  integer NOT NULL DEFAULT 100 CHECK (price_slack_bp BETWEEN 0 AND 10000),  -- Dearer than quoted by no more than this.
    on_unknown      text NOT NULL DEFAULT 'wait' CHECK (on_unknown IN ('wait', 'rebuy')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (id, state),
    CHECK (kind <> 'sandbox' OR state = 1)
);

-- What changes with every call stands apart from what the operator wrote.
CREATE TABLE supplier_health (
    supplier_id   integer PRIMARY KEY REFERENCES supplier,
    failures      integer NOT NULL DEFAULT 0 CHECK (failures >= 0),  -- In a row; the breaker opens at a number of them.
    open_until    timestamptz,                                       -- Nobody calls before; then one call tries.
    quoting_until timestamptz NOT NULL DEFAULT '-infinity',          -- Somebody asks for prices until then.
    quote_error   text CHECK (length(quote_error) <= 300)
) WITH (fillfactor = 50);

-- What a supplier asked for a code, for ever as it was: an order shows the quotes that its Create saw. A quote over
-- a range of face values gives the price at both ends; between them it is a straight line.
CREATE SEQUENCE quote_number AS bigint;
CREATE TABLE quote (
    id             bigint PRIMARY KEY,
    supplier_id    integer NOT NULL,
    state          smallint NOT NULL,
    product_id     integer NOT NULL REFERENCES product,
    face_minor     bigint NOT NULL CHECK (face_minor > 0),
    price_minor    bigint NOT NULL CHECK (price_minor >= 0),
    face_to_minor  bigint CHECK (face_to_minor > face_minor),
    price_to_minor bigint CHECK (price_to_minor >= price_minor),
    currency       text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    fx_e8          bigint NOT NULL CHECK (fx_e8 > 0),
    at             timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (supplier_id, state) REFERENCES supplier (id, state),
    CHECK ((face_to_minor IS NULL) = (price_to_minor IS NULL)),
    CONSTRAINT quote_same_state CHECK ((id & 1) = state)
);
CREATE TRIGGER quote_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON quote
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- That a supplier sells one of our products, and under which name. The stock is a hint and may be stale.
CREATE TABLE offer (
    supplier_id   integer NOT NULL,
    state         smallint NOT NULL,
    product_id    integer NOT NULL REFERENCES product,
    face_minor    bigint NOT NULL CHECK (face_minor > 0),
    face_to_minor bigint CHECK (face_to_minor > face_minor),
    sku           text NOT NULL CHECK (length(sku) BETWEEN 1 AND 200),
    active        boolean NOT NULL DEFAULT true,
    quote_id      bigint REFERENCES quote,
    stock         integer NOT NULL DEFAULT 0 CHECK (stock >= 0),
    quoted_at     timestamptz,
    PRIMARY KEY (supplier_id, product_id, face_minor),
    FOREIGN KEY (supplier_id, state) REFERENCES supplier (id, state),
    CHECK (quote_id IS NULL OR quoted_at IS NOT NULL),
    CONSTRAINT offer_same_state CHECK ((quote_id & 1) = state)
);
CREATE INDEX offer_product ON offer (product_id, state);

-- Every process remembers which products have offers at all, and polls this one row.
CREATE TABLE offer_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch    bigint NOT NULL
);
INSERT INTO offer_epoch (epoch) VALUES (1);
CREATE FUNCTION bump_offer_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE offer_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER offer_epoch_moves AFTER INSERT OR DELETE OR UPDATE OF active ON offer
    FOR EACH STATEMENT EXECUTE FUNCTION bump_offer_epoch();
CREATE TRIGGER supplier_epoch_moves AFTER UPDATE OF active ON supplier
    FOR EACH STATEMENT EXECUTE FUNCTION bump_offer_epoch();

-- ── purchases ───────────────────────────────────────────────────────────────────────────────────────────

-- One purchase at a supplier, written down before the supplier is called; its id is our reference there. A random
-- one: a database that was restored from a backup must not use a reference twice.
CREATE TABLE attempt (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    supplier_id     integer NOT NULL,
    state           smallint NOT NULL,
    product_id      integer NOT NULL REFERENCES product,
    face_minor      bigint NOT NULL CHECK (face_minor > 0),
    sku             text NOT NULL,
    quote_id        bigint NOT NULL REFERENCES quote,
    price_minor     bigint NOT NULL CHECK (price_minor >= 0),          -- One code, as it was quoted.
    price_max_minor bigint NOT NULL CHECK (price_max_minor >= price_minor),
    count           integer NOT NULL CHECK (count BETWEEN 1 AND 10000),
    urgent          boolean NOT NULL,
    status          smallint NOT NULL CHECK (status BETWEEN 0 AND 4),  -- calling, asking, unknown, bought, failed
    fence           integer NOT NULL DEFAULT 1 CHECK (fence > 0),      -- Grows with each owner; an old one's no counts no more.
    worker          text NOT NULL CHECK (length(worker) BETWEEN 1 AND 100),
    lease_until     timestamptz NOT NULL,
    placed_at       timestamptz NOT NULL DEFAULT now(),
    settles_at      timestamptz NOT NULL,                              -- From then on "not found" means "never bought".
    ask_at          timestamptz,
    look_ups        integer NOT NULL DEFAULT 0,
    ended_at        timestamptz,
    call_ms         integer CHECK (call_ms >= 0),
    external_id     text CHECK (length(external_id) <= 200),
    codes           integer NOT NULL DEFAULT 0 CHECK (codes >= 0),
    spare           integer NOT NULL DEFAULT 0 CHECK (spare BETWEEN 0 AND codes),  -- Codes that no line took: late, or too many.
    quarantined     integer NOT NULL DEFAULT 0 CHECK (quarantined >= 0),
    reason          text CHECK (length(reason) <= 300),
    settled_by      text CHECK (length(settled_by) BETWEEN 1 AND 200),
    FOREIGN KEY (supplier_id, state) REFERENCES supplier (id, state),
    CONSTRAINT attempt_same_state CHECK ((quote_id & 1) = state),
    CONSTRAINT attempt_status_fits CHECK (CASE status
        WHEN 0 THEN ask_at IS NULL AND ended_at IS NULL
        WHEN 1 THEN ask_at IS NOT NULL AND ended_at IS NULL
        WHEN 2 THEN ask_at IS NULL AND ended_at IS NULL
        WHEN 3 THEN ask_at IS NULL AND ended_at IS NOT NULL
        ELSE ask_at IS NULL AND ended_at IS NOT NULL AND codes = 0 END)
) WITH (fillfactor = 70);
CREATE INDEX attempt_calling ON attempt (supplier_id, lease_until) WHERE status = 0;
CREATE INDEX attempt_asking ON attempt (ask_at) WHERE status = 1;
CREATE INDEX attempt_by_hand ON attempt (placed_at) WHERE status = 2;
CREATE INDEX attempt_placed ON attempt (supplier_id, placed_at);

-- What was bought stays bought, and an owner that was replaced stays replaced.
CREATE TRIGGER attempt_forwards BEFORE UPDATE ON attempt
    FOR EACH ROW WHEN (NEW.fence < OLD.fence OR NEW.codes < OLD.codes OR (OLD.status = 3 AND NEW.status <> 3)
                       OR (OLD.status = 4 AND NEW.status NOT IN (3, 4)) OR (OLD.status <> 0 AND NEW.status = 0))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER attempt_unchanging BEFORE DELETE OR TRUNCATE OR UPDATE OF id, supplier_id, state, product_id, face_minor,
    sku, quote_id, price_minor, price_max_minor, count, urgent, placed_at ON attempt
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- For whom it was bought.
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

-- Codes that a supplier sold us and that the vault has already: nobody gets them before a person has looked.
CREATE TABLE quarantined_code (
    attempt_id uuid NOT NULL REFERENCES attempt,
    place      integer NOT NULL CHECK (place >= 0),
    sealed     bytea NOT NULL,
    blind      bytea NOT NULL CHECK (length(blind) = 16),
    reason     text NOT NULL CHECK (reason IN ('known', 'malformed', 'expired')),
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (attempt_id, place),
    UNIQUE (attempt_id, blind)
);
CREATE TRIGGER quarantined_code_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON quarantined_code
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ── what that changes elsewhere ─────────────────────────────────────────────────────────────────────────

-- A lot that was bought for somebody says by which purchase. The sandbox's own lots are generated, but what a sandbox
-- supplier sold has codes like any other.
ALTER TABLE lot
    ADD COLUMN attempt_id uuid REFERENCES attempt,
    ADD COLUMN external_id text CHECK (length(external_id) <= 200),
    ADD COLUMN spare integer NOT NULL DEFAULT 0,
    DROP CONSTRAINT lot_check2,
    ADD CONSTRAINT lot_generated_in_sandbox CHECK (CASE WHEN generated THEN state = 1 AND attempt_id IS NULL
                                                        ELSE state = 0 OR attempt_id IS NOT NULL END),
    ADD CONSTRAINT lot_spare_fits CHECK (spare BETWEEN 0 AND size AND (spare = 0 OR attempt_id IS NOT NULL));
CREATE INDEX lot_attempt ON lot (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE TRIGGER lot_bought_once BEFORE UPDATE OF attempt_id, external_id, spare ON lot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What suppliers are owed for codes, and what those codes are to us: sums of lots, never updated in place.
CREATE VIEW purchase_leg AS
    SELECT l.attempt_id, a.supplier_id, l.state, l.purchase_currency AS currency, leg.account, leg.amount_minor
    FROM lot l JOIN attempt a ON a.id = l.attempt_id
    CROSS JOIN LATERAL (VALUES ('stock', (l.size - l.spare) * l.purchase_minor), ('spare', l.spare * l.purchase_minor),
                               ('supplier', -l.size * l.purchase_minor)) AS leg (account, amount_minor);

-- Cancelled while a purchase was under way: what that brings is delivered, what it does not bring is refunded (OP-45).
ALTER TABLE orders
    ADD COLUMN cancelling boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT orders_cancelling_fits CHECK (NOT cancelling OR status IN (1, 2, 3));

-- A wait is at one of four places: a supplier is to be asked for it, it is being bought, it pauses before a supplier
-- is looked for, or it waits for the shelf alone. Each has an index of its own, so that a million waits elsewhere cost
-- nothing. At most one purchase is under way for a line, because a line is in one wait and a wait names one purchase.
ALTER TABLE waiting
    ADD COLUMN urgent      boolean NOT NULL DEFAULT false,  -- Resolve: never behind others.
    ADD COLUMN supplier_id integer REFERENCES supplier,
    ADD COLUMN attempt_id  uuid REFERENCES attempt,
    ADD COLUMN ask_at      timestamptz,
    ADD COLUMN tried       integer[] NOT NULL DEFAULT '{}',  -- Suppliers that failed in this round.
    ADD COLUMN rounds      integer NOT NULL DEFAULT 0 CHECK (rounds >= 0),
    ADD CONSTRAINT waiting_in_one_place CHECK (num_nonnulls(supplier_id, attempt_id, ask_at) <= 1);
CREATE INDEX waiting_to_ask ON waiting (supplier_id, urgent, company_id, order_id, line_from) WHERE supplier_id IS NOT NULL;
CREATE INDEX waiting_attempt ON waiting (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX waiting_pausing ON waiting (ask_at) WHERE ask_at IS NOT NULL;
CREATE INDEX waiting_pausing_for ON waiting (state, product_id, face_minor, ask_at) WHERE ask_at IS NOT NULL;
CREATE INDEX waiting_for_shelf ON waiting (state, product_id, face_minor)
    WHERE supplier_id IS NULL AND attempt_id IS NULL AND ask_at IS NULL;

DROP INDEX waiting_order;
CREATE UNIQUE INDEX waiting_order ON waiting (order_id, line_from);

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

-- A wait is let go of by a purchase only once that can't bring anything for it any more without a person's help.
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

-- The same guard with the lock that a foreign key does not wait for: claims point at orders that somebody changes.
CREATE OR REPLACE FUNCTION guard_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Under a snapshot of the transaction's start the look below would not see what the lock waited for.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outcomes are written under read committed' USING ERRCODE = 'invalid_transaction_state';
    END IF;
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
