-- The ground floor: who may buy (access), what is for sale (catalogue), what it costs (fx, VAT), what was
-- paid (wallet), what is on the shelf (vault), what was ordered (orders), and what happened (event).
--
-- Two conventions hold everywhere:
--   * Money is a bigint of minor units beside its currency; a rate is a bigint of 1e-8 (`…_e8`).
--   * Live and sandbox never meet. The lowest bit of every order, wallet and lot id is its state
--     (0 live, 1 sandbox), so a plain CHECK refuses a row that points across.

-- ── access ──────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE company (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
    country      text NOT NULL CHECK (country ~ '^[A-Z]{2}$'),
    vat_number   text CHECK (length(vat_number) BETWEEN 4 AND 20),
    active       boolean NOT NULL DEFAULT true,
    verified     boolean NOT NULL DEFAULT false,
    expose_costs boolean NOT NULL DEFAULT true,
    created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_key (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id    integer NOT NULL REFERENCES company,
    state         smallint NOT NULL CHECK (state IN (0, 1)),
    prefix        text NOT NULL,
    hash          bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    description   text NOT NULL DEFAULT '' CHECK (length(description) <= 200),
    scopes        text[] NOT NULL,
    allow_ips     cidr[] NOT NULL DEFAULT '{}',
    rate_limit    integer NOT NULL DEFAULT 600 CHECK (rate_limit > 0),
    expires_at    timestamptz,
    revoked_at    timestamptz,
    replaced_by   bigint REFERENCES api_key,
    created_at    timestamptz NOT NULL DEFAULT now(),
    last_used_at  timestamptz
);
CREATE INDEX api_key_company ON api_key (company_id);

CREATE TABLE app_user (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text NOT NULL CHECK (email = lower(email) AND length(email) <= 254),
    company_id    integer REFERENCES company,  -- NULL: one of the operator's own people.
    role          text NOT NULL,
    password_hash text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (email),
    CHECK (role = ANY (CASE WHEN company_id IS NULL
                            THEN ARRAY['admin', 'support', 'stock', 'finance']
                            ELSE ARRAY['owner', 'buyer', 'finance', 'viewer', 'developer'] END))
);

-- Every process keeps keys in memory and polls this one row; whatever changes who may do what moves it.
CREATE TABLE access_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch    bigint NOT NULL
);
INSERT INTO access_epoch (epoch) VALUES (1);

CREATE FUNCTION bump_access_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE access_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER company_epoch AFTER UPDATE OR DELETE ON company
    FOR EACH STATEMENT EXECUTE FUNCTION bump_access_epoch();
-- Not on last_used_at: it changes all the time and decides nothing.
CREATE TRIGGER api_key_epoch
    AFTER DELETE OR UPDATE OF company_id, state, scopes, allow_ips, rate_limit, expires_at, revoked_at, hash ON api_key
    FOR EACH STATEMENT EXECUTE FUNCTION bump_access_epoch();

-- ── catalogue ───────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE brand (
    id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(slug) <= 100),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200)
);

-- A product is a name for its newest version. Versions never change, so an order can point at the one it was
-- priced with, and a process can keep them in memory for ever.
CREATE TABLE product (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug       text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(slug) <= 100),
    active     boolean NOT NULL DEFAULT true,
    version_id integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE product_version (
    id              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id      integer NOT NULL REFERENCES product DEFERRABLE INITIALLY DEFERRED,
    brand_id        integer NOT NULL REFERENCES brand,
    name            text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    product_type    text NOT NULL CHECK (product_type IN ('giftcard', 'gamecard', 'topup', 'paymentcard', 'subscription')),
    category        text NOT NULL CHECK (category ~ '^[a-z0-9]+(-[a-z0-9]+)*$'),
    redeem_type     text NOT NULL CHECK (redeem_type IN ('currency', 'product', 'subscription')),
    region          text NOT NULL CHECK (length(region) BETWEEN 2 AND 20),
    vat_category    text NOT NULL CHECK (vat_category IN ('single_purpose', 'multi_purpose', 'exempt')),
    async_delivery  boolean NOT NULL,
    incentive       boolean NOT NULL DEFAULT false,
    face_currency   text NOT NULL CHECK (face_currency ~ '^[A-Z]{3}$'),
    face_minor      bigint CHECK (face_minor > 0),
    face_min_minor  bigint CHECK (face_min_minor > 0),
    face_max_minor  bigint CHECK (face_max_minor >= face_min_minor),
    price_minor     bigint CHECK (price_minor > 0),
    price_currency  text CHECK (price_currency ~ '^[A-Z]{3}$'),
    fee_variable_e8 bigint CHECK (fee_variable_e8 > 0),
    fee_fixed_minor bigint CHECK (fee_fixed_minor >= 0),
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- A fixed face value, or a range (OP-51).
    CHECK (num_nonnulls(face_minor) + num_nonnulls(face_min_minor, face_max_minor) IN (1, 2)
           AND (face_minor IS NULL) = (face_min_minor IS NOT NULL)
           AND (face_min_minor IS NULL) = (face_max_minor IS NULL)),
    -- A fixed price, or a fee; a variable product always has the fee (OP-51).
    CHECK ((price_minor IS NULL) = (price_currency IS NULL)
           AND (fee_variable_e8 IS NULL) = (fee_fixed_minor IS NULL)
           AND (price_minor IS NULL) <> (fee_variable_e8 IS NULL)
           AND (face_minor IS NOT NULL OR fee_variable_e8 IS NOT NULL)),
    UNIQUE (product_id, id)
);
ALTER TABLE product ADD FOREIGN KEY (id, version_id) REFERENCES product_version (product_id, id)
    DEFERRABLE INITIALLY DEFERRED;

CREATE TABLE fx_rate (
    currency text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    day      date NOT NULL,
    eur_e8   bigint NOT NULL CHECK (eur_e8 > 0),  -- What one unit of the currency is worth in EUR (OP-50).
    source   text NOT NULL,
    set_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (currency, day)
);

CREATE TABLE vat_rate (
    country    text NOT NULL CHECK (country ~ '^[A-Z]{2}$'),
    valid_from date NOT NULL,
    rate_bp    integer NOT NULL CHECK (rate_bp BETWEEN 0 AND 10000),  -- Basis points: 21% is 2100.
    PRIMARY KEY (country, valid_from)
);

-- ── vault ───────────────────────────────────────────────────────────────────────────────────────────────

-- A lot is a run of codes bought together: what the wire calls an offer. Selling moves `cursor`; no code row
-- is ever touched. A generated lot (sandbox only) has no code rows: its codes are computed.
CREATE SEQUENCE lot_number AS bigint;
CREATE TABLE lot (
    id                bigint PRIMARY KEY,
    product_id        integer NOT NULL REFERENCES product,
    face_minor        bigint NOT NULL CHECK (face_minor > 0),
    state             smallint NOT NULL CHECK (state IN (0, 1)),
    generated         boolean NOT NULL DEFAULT false,
    supplier          text NOT NULL CHECK (length(supplier) BETWEEN 1 AND 100),
    purchase_minor    bigint NOT NULL CHECK (purchase_minor >= 0),
    purchase_currency text NOT NULL CHECK (purchase_currency ~ '^[A-Z]{3}$'),
    purchase_fx_e8    bigint NOT NULL CHECK (purchase_fx_e8 > 0),
    expires_at        timestamptz,
    key_version       smallint NOT NULL DEFAULT 1,
    size              integer NOT NULL CHECK (size > 0),
    cursor            integer NOT NULL DEFAULT 0 CHECK (cursor BETWEEN 0 AND size),
    exhausted         boolean NOT NULL GENERATED ALWAYS AS (cursor >= size) STORED,
    imported_at       timestamptz NOT NULL DEFAULT now(),
    CHECK ((id & 1) = state),
    CHECK (generated = (state = 1))
) WITH (fillfactor = 50);
-- `exhausted` changes once in a lot's life, so moving the cursor stays a heap-only update.
CREATE INDEX lot_on_shelf ON lot (product_id, face_minor, state) WHERE NOT exhausted;
CREATE INDEX lot_product ON lot (product_id);

CREATE TABLE code (
    lot_id bigint NOT NULL,
    seq    integer NOT NULL CHECK (seq >= 0),
    sealed bytea NOT NULL,
    blind  bytea NOT NULL CHECK (length(blind) = 16),
    PRIMARY KEY (lot_id, seq)
);
CREATE UNIQUE INDEX code_blind ON code (blind);

-- A foreign key says the same and doubles the time of an import (measured: 12 µs a row instead of 6).
CREATE FUNCTION guard_codes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM (SELECT DISTINCT lot_id FROM fresh) f LEFT JOIN lot l ON l.id = f.lot_id
               WHERE l.id IS NULL OR l.generated) THEN
        RAISE EXCEPTION 'a code needs a lot that holds codes' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER code_has_lot AFTER INSERT ON code REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_codes();

-- Which master key sealed what is here: a wrong key file is noticed at the start, not at the first sale.
CREATE TABLE vault_key (
    version     smallint PRIMARY KEY CHECK (version > 0),
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- ── wallet ──────────────────────────────────────────────────────────────────────────────────────────────

CREATE SEQUENCE wallet_number AS bigint;
CREATE TABLE wallet (
    id            bigint PRIMARY KEY,
    company_id    integer NOT NULL REFERENCES company,
    currency      text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    state         smallint NOT NULL CHECK (state IN (0, 1)),
    balance_minor bigint NOT NULL DEFAULT 0,
    held_minor    bigint NOT NULL DEFAULT 0,
    seq           bigint NOT NULL DEFAULT 0,
    UNIQUE (company_id, currency, state),
    CHECK ((id & 1) = state),
    CONSTRAINT wallet_not_overdrawn CHECK (held_minor >= 0 AND balance_minor >= held_minor)
) WITH (fillfactor = 50);

-- One row is one whole transfer: `amount_minor` into the wallet (negative: out of it), the opposite split over
-- the house's accounts (`vat_minor` of it to VAT, the rest to the account that the kind names). A transfer
-- that does not balance can't be written down. Holds move `held_minor` only.
CREATE TABLE entry (
    wallet_id           bigint NOT NULL REFERENCES wallet,
    seq                 bigint NOT NULL CHECK (seq > 0),
    kind                smallint NOT NULL CHECK (kind BETWEEN 1 AND 6),  -- top-up, order, refund, hold, release, correction
    amount_minor        bigint NOT NULL,
    vat_minor           bigint NOT NULL DEFAULT 0,
    hold_minor          bigint NOT NULL DEFAULT 0,
    balance_after_minor bigint NOT NULL,
    held_after_minor    bigint NOT NULL,
    order_id            bigint,
    reference           text CHECK (length(reference) <= 200),
    at                  timestamptz NOT NULL,
    PRIMARY KEY (wallet_id, seq),
    CONSTRAINT entry_not_overdrawn CHECK (held_after_minor >= 0 AND balance_after_minor >= held_after_minor),
    CONSTRAINT entry_same_state CHECK (order_id IS NULL OR (order_id & 1) = (wallet_id & 1)),
    CONSTRAINT entry_kind_fits CHECK (CASE kind
        WHEN 1 THEN amount_minor > 0 AND vat_minor = 0 AND hold_minor = 0 AND reference IS NOT NULL
        WHEN 2 THEN amount_minor <= 0 AND vat_minor BETWEEN amount_minor AND 0 AND hold_minor IN (0, amount_minor) AND order_id IS NOT NULL
        WHEN 3 THEN amount_minor >= 0 AND vat_minor BETWEEN 0 AND amount_minor AND hold_minor = 0 AND order_id IS NOT NULL
        WHEN 4 THEN amount_minor = 0 AND vat_minor = 0 AND hold_minor >= 0 AND order_id IS NOT NULL
        WHEN 5 THEN amount_minor = 0 AND vat_minor = 0 AND hold_minor <= 0 AND order_id IS NOT NULL
        ELSE vat_minor = 0 AND hold_minor = 0 AND reference IS NOT NULL END)
);
CREATE UNIQUE INDEX entry_top_up_once ON entry (wallet_id, reference) WHERE kind = 1;
CREATE INDEX entry_order ON entry (order_id) WHERE order_id IS NOT NULL;

-- The balance follows the entries and nothing else: each must continue the wallet's chain without a gap.
CREATE FUNCTION carry_entries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wallets_touched integer;
    wallets_moved integer;
BEGIN
    IF EXISTS (
        SELECT FROM (
            SELECT seq, amount_minor, hold_minor, balance_after_minor, held_after_minor,
                   lag(seq) OVER chain AS seq_before,
                   lag(balance_after_minor) OVER chain AS balance_before,
                   lag(held_after_minor) OVER chain AS held_before
            FROM fresh WINDOW chain AS (PARTITION BY wallet_id ORDER BY seq)) link
        WHERE seq_before IS NOT NULL AND (seq <> seq_before + 1
              OR balance_after_minor <> balance_before + amount_minor
              OR held_after_minor <> held_before + hold_minor)) THEN
        RAISE EXCEPTION 'entries do not continue one another' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT count(DISTINCT wallet_id) INTO wallets_touched FROM fresh;
    UPDATE wallet w SET balance_minor = last.balance_after_minor, held_minor = last.held_after_minor, seq = last.seq
    FROM (SELECT DISTINCT ON (wallet_id) wallet_id, seq, balance_after_minor, held_after_minor,
                 min(seq) OVER own AS seq_from, sum(amount_minor) OVER own AS amount_minor, sum(hold_minor) OVER own AS hold_minor
          FROM fresh WINDOW own AS (PARTITION BY wallet_id) ORDER BY wallet_id, seq DESC) last
    WHERE w.id = last.wallet_id AND last.seq_from = w.seq + 1
      AND last.balance_after_minor = w.balance_minor + last.amount_minor
      AND last.held_after_minor = w.held_minor + last.hold_minor;
    GET DIAGNOSTICS wallets_moved = ROW_COUNT;
    IF wallets_moved <> wallets_touched THEN
        RAISE EXCEPTION 'entries do not continue their wallet' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER entry_carry AFTER INSERT ON entry REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION carry_entries();

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER product_version_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON product_version
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- What a lot is never changes (processes keep it in memory), and it only ever sells forwards.
CREATE TRIGGER lot_unchanging BEFORE DELETE OR TRUNCATE OR UPDATE OF id, product_id, face_minor, state, generated,
    supplier, purchase_minor, purchase_currency, purchase_fx_e8, expires_at ON lot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER lot_forwards BEFORE UPDATE OF cursor ON lot
    FOR EACH ROW WHEN (NEW.cursor < OLD.cursor) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER code_append_only BEFORE DELETE OR TRUNCATE OR UPDATE OF lot_id, seq, blind ON code
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A balance that changed by any other way than an entry would break the chain unseen.
CREATE FUNCTION refuse_direct_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a balance changes through entries only' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER wallet_through_entries BEFORE UPDATE ON wallet
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_direct_balance();
CREATE TRIGGER wallet_starts_empty BEFORE INSERT ON wallet
    FOR EACH ROW WHEN (NEW.balance_minor <> 0 OR NEW.held_minor <> 0 OR NEW.seq <> 0)
    EXECUTE FUNCTION refuse_direct_balance();

-- The three legs of every entry, for the accountant: they sum to zero by construction.
CREATE VIEW ledger_leg AS
    SELECT e.wallet_id, e.seq, w.currency, w.state, 'wallet' AS account, e.amount_minor
    FROM entry e JOIN wallet w ON w.id = e.wallet_id
    UNION ALL
    SELECT e.wallet_id, e.seq, w.currency, w.state,
           CASE e.kind WHEN 1 THEN 'funding' WHEN 6 THEN 'correction' ELSE 'sales' END, e.vat_minor - e.amount_minor
    FROM entry e JOIN wallet w ON w.id = e.wallet_id
    UNION ALL
    SELECT e.wallet_id, e.seq, w.currency, w.state, 'vat', -e.vat_minor
    FROM entry e JOIN wallet w ON w.id = e.wallet_id WHERE e.vat_minor <> 0;

-- ── orders ──────────────────────────────────────────────────────────────────────────────────────────────

CREATE SEQUENCE order_block AS bigint;  -- A process takes a block of ids at a time.

CREATE TABLE orders (
    id               bigint PRIMARY KEY,
    company_id       integer NOT NULL REFERENCES company,
    type             smallint NOT NULL CHECK (type IN (0, 1)),            -- api, portal
    status           smallint NOT NULL CHECK (status BETWEEN 0 AND 4),    -- created, pending, finished, cancelled, deleted
    payment_status   smallint NOT NULL DEFAULT 0 CHECK (payment_status BETWEEN 0 AND 3),  -- unpaid, paid, partially_refunded, refunded
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
    resolving        boolean NOT NULL DEFAULT false,  -- Finalised by Resolve: all of it by the deadline, or nothing.
    downloaded       boolean NOT NULL DEFAULT false,
    version          integer NOT NULL DEFAULT 1,
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    deadline_at      timestamptz,  -- The end of the delivery window, or of Resolve's limit.
    reference        text CHECK (length(reference) <= 1000),
    CONSTRAINT orders_lines_add_up CHECK (lines_finished >= 0 AND lines_cancelled >= 0 AND lines_finished + lines_cancelled <= lines),
    CONSTRAINT orders_never_refund_more CHECK (refunded_minor BETWEEN 0 AND charged_minor
                                               AND charged_minor IN (0, price_minor + vat_minor)),
    CONSTRAINT orders_status_fits CHECK (CASE status
        WHEN 0 THEN charged_minor = 0 AND held_minor = 0 AND lines_finished = 0 AND lines_cancelled = 0
        WHEN 1 THEN lines_finished + lines_cancelled < lines
        WHEN 2 THEN lines_finished = lines AND held_minor = 0 AND refunded_minor = 0
        WHEN 3 THEN lines_finished + lines_cancelled = lines AND lines_cancelled > 0 AND held_minor = 0
        ELSE charged_minor = 0 AND held_minor = 0 AND lines_finished = 0 END)
) WITH (fillfactor = 60);
-- Only what was never confirmed may be removed (OP-40).
CREATE TRIGGER orders_kept BEFORE DELETE ON orders
    FOR EACH ROW WHEN (OLD.status <> 0) EXECUTE FUNCTION refuse_change();
-- No index holds a column that changes, so every move of an order is a heap-only update.
CREATE INDEX orders_company ON orders (company_id, (id & 1), created_at, id);
CREATE INDEX orders_reference ON orders (company_id, hashtextextended(reference, 0)) WHERE reference IS NOT NULL;
CREATE INDEX orders_created ON orders USING brin (created_at) WITH (autosummarize = on, pages_per_range = 32);

CREATE TABLE order_item (
    order_id                bigint NOT NULL REFERENCES orders ON DELETE CASCADE,
    item_no                 smallint NOT NULL CHECK (item_no BETWEEN 0 AND 99),
    version_id              integer NOT NULL REFERENCES product_version,
    amount                  integer NOT NULL CHECK (amount BETWEEN 1 AND 10000),
    first_line              integer NOT NULL CHECK (first_line >= 0 AND first_line + amount <= 10000),
    face_minor              bigint NOT NULL,
    face_fx_e8              bigint NOT NULL,
    price_currency          text NOT NULL,
    price_fx_e8             bigint NOT NULL,
    price_minor             bigint NOT NULL CHECK (price_minor >= 0),           -- One unit, in the price currency.
    vat_minor               bigint NOT NULL CHECK (vat_minor >= 0),
    turnover_minor          bigint NOT NULL CHECK (turnover_minor >= 0),
    pay_price_minor         bigint NOT NULL CHECK (pay_price_minor >= 0),       -- One unit, in the payment currency.
    pay_vat_minor           bigint NOT NULL CHECK (pay_vat_minor >= 0),
    pay_turnover_minor      bigint NOT NULL CHECK (pay_turnover_minor >= 0),
    offers                  bigint[] NOT NULL,  -- Lot, stock, lot, stock …: the offers that Create saw, best first.
    PRIMARY KEY (order_id, item_no)
);

-- What became of a range of lines: delivered from a range of a lot, or (without one) cancelled.
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

-- No line twice, no code twice. An exclusion constraint says the same and costs 70 µs a row (measured); this
-- costs three. It locks the orders and lots itself (they are locked already on every path of ours), so two
-- transactions that can't see each other can't both pass.
CREATE FUNCTION guard_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Under a snapshot of the transaction's start the look below would not see what the lock waited for.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outcomes are written under read committed' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    PERFORM FROM orders WHERE id IN (SELECT order_id FROM fresh) ORDER BY id FOR UPDATE;
    PERFORM FROM lot WHERE id IN (SELECT lot_id FROM fresh) ORDER BY id FOR UPDATE;
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
CREATE TRIGGER outcome_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON outcome
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Lines that were paid (or held) and wait for a code. The key's order is the order of service: within a product
-- companies take turns by a loose index scan, and within a company the oldest order comes first.
CREATE TABLE waiting (
    state       smallint NOT NULL CHECK (state IN (0, 1)),
    product_id  integer NOT NULL,
    face_minor  bigint NOT NULL,
    company_id  integer NOT NULL,
    order_id    bigint NOT NULL REFERENCES orders,
    line_from   integer NOT NULL,
    line_to     integer NOT NULL,
    not_before  timestamptz NOT NULL,  -- Sandbox orders may ask to be slow (OP-49).
    deadline_at timestamptz NOT NULL,  -- When the wait ends: the delivery window's end, or Resolve's limit.
    PRIMARY KEY (state, product_id, face_minor, company_id, order_id, line_from),
    CHECK (line_from < line_to),
    CONSTRAINT waiting_same_state CHECK ((order_id & 1) = state)
);
CREATE INDEX waiting_order ON waiting (order_id);
CREATE INDEX waiting_deadline ON waiting (deadline_at);

-- ── events ──────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE event (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    company_id integer,
    state      smallint CHECK (state IN (0, 1)),
    type       text NOT NULL,
    order_id   bigint,
    seq        integer,  -- The order's version after this event.
    data       jsonb,
    CONSTRAINT event_same_state CHECK (order_id IS NULL OR (state IS NOT NULL AND (order_id & 1) = state))
);
CREATE INDEX event_order ON event (order_id, seq) WHERE order_id IS NOT NULL;
CREATE TRIGGER event_append_only BEFORE UPDATE OR TRUNCATE ON event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- How far each periodic sweep has come.
CREATE TABLE sweep (
    name text PRIMARY KEY,
    upto timestamptz NOT NULL
);
