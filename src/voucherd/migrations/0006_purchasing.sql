-- Purchasing: the suppliers, their prices, and every purchase that we made there.
--
-- Locks are taken in the order orders, wallet, spend, lot, waiting, attempt; a claim of lines takes supplier_health,
-- waiting, attempt.

CREATE TABLE supplier (
    id              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(name) <= 60),
    kind            text NOT NULL CHECK (kind IN ('voucherd', 'http', 'sandbox')),
    state           smallint NOT NULL CHECK (state IN (0, 1)),
    active          boolean NOT NULL DEFAULT true,
    config          jsonb NOT NULL,
    secret          bytea,
    timeout_s       integer NOT NULL DEFAULT 20 CHECK (timeout_s BETWEEN 1 AND 300),
    settle_s        integer NOT NULL DEFAULT 120 CHECK (settle_s BETWEEN 0 AND 86400),
    quote_age_s     integer NOT NULL DEFAULT 300 CHECK (quote_age_s BETWEEN 1 AND 86400),
    concurrency_max integer NOT NULL DEFAULT 8 CHECK (concurrency_max BETWEEN 1 AND 1000),
    price_slack_bp  integer NOT NULL DEFAULT 100 CHECK (price_slack_bp BETWEEN 0 AND 10000),
    on_unknown      text NOT NULL DEFAULT 'wait' CHECK (on_unknown IN ('wait', 'rebuy')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (id, state),
    CHECK (kind <> 'sandbox' OR state = 1)
);
COMMENT ON TABLE supplier IS 'One row is a supplier of codes, as the operator described it.';
COMMENT ON COLUMN supplier.secret IS 'Its credentials, sealed.';
COMMENT ON COLUMN supplier.timeout_s IS 'How long one call may take.';
COMMENT ON COLUMN supplier.settle_s IS 'A purchase may turn up this long after its call.';
COMMENT ON COLUMN supplier.quote_age_s IS 'An older quote no longer counts; at half this age it is asked for again.';
COMMENT ON COLUMN supplier.price_slack_bp IS 'A purchase may be dearer than its quote by no more than this.';
COMMENT ON COLUMN supplier.on_unknown IS 'After a purchase whose end is unknown: wait for a person, or buy elsewhere.';

CREATE TABLE supplier_health (
    supplier_id   integer PRIMARY KEY REFERENCES supplier,
    failures      integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    open_until    timestamptz,
    quoting_until timestamptz NOT NULL DEFAULT '-infinity',
    quote_error   text CHECK (length(quote_error) <= 300)
) WITH (fillfactor = 50);
COMMENT ON TABLE supplier_health IS
    'One row is how a supplier does. It changes with every call and so stands apart from the words of the operator.';
COMMENT ON COLUMN supplier_health.failures IS 'In a row; from a number of them on the supplier is left alone for a while.';
COMMENT ON COLUMN supplier_health.open_until IS 'Nobody calls before this; then one call tries.';
COMMENT ON COLUMN supplier_health.quoting_until IS 'A process asks for prices until then; others need not.';

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
COMMENT ON TABLE quote IS
    'One row is a price that a supplier asked for a code. It stays as it was: an order shows the quotes that its Create '
    'saw. A quote over a range of face values gives the price at both ends; between them it is a straight line.';
COMMENT ON COLUMN quote.id IS 'Twice a number of quote_number, plus the state.';

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
COMMENT ON TABLE offer IS 'One row says that a supplier sells one of our products, and under which name.';
COMMENT ON COLUMN offer.sku IS 'The name that the supplier has for it.';
COMMENT ON COLUMN offer.stock IS 'A hint, which may be old.';

CREATE TABLE offer_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch    bigint NOT NULL
);
INSERT INTO offer_epoch (epoch) VALUES (1);
COMMENT ON TABLE offer_epoch IS
    'The only row is a counter that grows when offers come or go. '
    'Every process remembers which products have offers and reads this row to learn that they changed.';

CREATE FUNCTION bump_offer_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE offer_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER offer_epoch_moves AFTER INSERT OR DELETE OR UPDATE OF active ON offer
    FOR EACH STATEMENT EXECUTE FUNCTION bump_offer_epoch();
CREATE TRIGGER supplier_epoch_moves AFTER UPDATE OF active ON supplier
    FOR EACH STATEMENT EXECUTE FUNCTION bump_offer_epoch();
COMMENT ON FUNCTION bump_offer_epoch IS 'Tells every process that the offers it remembers are old.';

CREATE TABLE attempt (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    supplier_id     integer NOT NULL,
    state           smallint NOT NULL,
    product_id      integer NOT NULL REFERENCES product,
    face_minor      bigint NOT NULL CHECK (face_minor > 0),
    sku             text NOT NULL,
    quote_id        bigint NOT NULL REFERENCES quote,
    price_minor     bigint NOT NULL CHECK (price_minor >= 0),
    price_max_minor bigint NOT NULL CHECK (price_max_minor >= price_minor),
    count           integer NOT NULL CHECK (count BETWEEN 1 AND 10000),
    urgent          boolean NOT NULL,
    status          smallint NOT NULL CHECK (status BETWEEN 0 AND 4),
    fence           integer NOT NULL DEFAULT 1 CHECK (fence > 0),
    worker          text NOT NULL CHECK (length(worker) BETWEEN 1 AND 100),
    lease_until     timestamptz NOT NULL,
    placed_at       timestamptz NOT NULL DEFAULT now(),
    settles_at      timestamptz NOT NULL,
    ask_at          timestamptz,
    look_ups        integer NOT NULL DEFAULT 0,
    ended_at        timestamptz,
    call_ms         integer CHECK (call_ms >= 0),
    external_id     text CHECK (length(external_id) <= 200),
    codes           integer NOT NULL DEFAULT 0 CHECK (codes >= 0),
    spare           integer NOT NULL DEFAULT 0 CHECK (spare BETWEEN 0 AND codes),
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
CREATE INDEX attempt_problem ON attempt (placed_at, id)
    WHERE status = 2 OR spare > 0 OR quarantined > 0 OR codes > count OR (status = 3 AND codes < count);
CREATE INDEX attempt_failed ON attempt (placed_at, id) WHERE status = 4;
CREATE INDEX attempt_external ON attempt (supplier_id, external_id) WHERE external_id IS NOT NULL;
CREATE TRIGGER attempt_forwards BEFORE UPDATE ON attempt
    FOR EACH ROW WHEN (NEW.fence < OLD.fence OR NEW.codes < OLD.codes OR (OLD.status = 3 AND NEW.status <> 3)
                       OR (OLD.status = 4 AND NEW.status NOT IN (3, 4)) OR (OLD.status <> 0 AND NEW.status = 0))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER attempt_unchanging BEFORE DELETE OR TRUNCATE OR UPDATE OF id, supplier_id, state, product_id, face_minor,
    sku, quote_id, price_minor, price_max_minor, count, urgent, placed_at ON attempt
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE attempt IS
    'One row is one purchase at a supplier. It is written before the supplier is called, and its id is our reference '
    'there. The id is random: a database that was restored from a backup must not use a reference twice.';
COMMENT ON COLUMN attempt.price_minor IS 'Of one code, as it was quoted.';
COMMENT ON COLUMN attempt.price_max_minor IS 'Of one code, the most that we pay.';
COMMENT ON COLUMN attempt.urgent IS 'For a Resolve, which never waits behind others.';
COMMENT ON COLUMN attempt.status IS '0 calling, 1 asking, 2 unknown, 3 bought, 4 failed.';
COMMENT ON COLUMN attempt.fence IS 'Grows with each owner; a refusal that reaches an earlier owner no longer counts.';
COMMENT ON COLUMN attempt.worker IS 'Its owner, until lease_until.';
COMMENT ON COLUMN attempt.settles_at IS 'From then on "not found" means "never bought".';
COMMENT ON COLUMN attempt.ask_at IS 'When the supplier is asked next how the purchase ended.';
COMMENT ON COLUMN attempt.external_id IS 'The name that the supplier has for the purchase.';
COMMENT ON COLUMN attempt.spare IS 'Codes that no line took: they came late, or were too many.';
COMMENT ON COLUMN attempt.settled_by IS 'The person who decided how it ended.';
COMMENT ON INDEX attempt_problem IS 'Purchases that a person may want to look at, newest first.';
COMMENT ON INDEX attempt_external IS 'The statement of a supplier names its own ids more often than ours.';
COMMENT ON TRIGGER attempt_forwards ON attempt IS 'A purchase that succeeded stays so, and an owner that was replaced stays replaced.';

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
CREATE TRIGGER quarantined_code_append_only BEFORE DELETE OR TRUNCATE OR UPDATE OF attempt_id, place, blind, reason, at
    ON quarantined_code FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE quarantined_code IS
    'One row is a code that a supplier sold us and that is in the vault already, is malformed or has expired: nobody '
    'gets it before a person has looked.';
COMMENT ON COLUMN quarantined_code.blind IS 'A keyed hash of the code, to find it again without opening it.';
COMMENT ON TRIGGER quarantined_code_append_only ON quarantined_code IS 'Only a rotation of the vault keys seals it anew.';

CREATE TABLE sandbox_purchase (
    supplier       text NOT NULL CHECK (length(supplier) BETWEEN 1 AND 100),
    reference      text NOT NULL CHECK (length(reference) BETWEEN 1 AND 200),
    outcome        text NOT NULL CHECK (length(outcome) BETWEEN 1 AND 40),
    sku            text NOT NULL CHECK (length(sku) BETWEEN 1 AND 200),
    count          integer NOT NULL CHECK (count BETWEEN 1 AND 10000),
    price_minor    bigint NOT NULL CHECK (price_minor > 0),
    price_currency text NOT NULL CHECK (price_currency ~ '^[A-Z]{3}$'),
    bought_at      timestamptz NOT NULL DEFAULT now(),
    due_at         timestamptz NOT NULL,
    cancelled      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (supplier, reference),
    CONSTRAINT sandbox_purchase_due_check CHECK (due_at >= bought_at)
);
CREATE SEQUENCE sandbox_purchase_number;
COMMENT ON TABLE sandbox_purchase IS
    'One row is a purchase that the sandbox supplier "sold", so that it can be looked up from every process and after a '
    'restart. Its codes are computed from the row.';
COMMENT ON COLUMN sandbox_purchase.due_at IS 'When its codes are there.';
COMMENT ON SEQUENCE sandbox_purchase_number IS 'Counts purchases, of which a sandbox supplier can be told to refuse every so many.';
