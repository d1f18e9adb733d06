-- The vault: sealed codes in lots, and the keys that seal them.

CREATE TABLE vault_master (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    generation  integer NOT NULL DEFAULT 1 CHECK (generation > 0),
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    root        bytea NOT NULL CHECK (length(root) = 60),
    changed_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER vault_master_kept BEFORE DELETE OR TRUNCATE ON vault_master
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE vault_master IS
    'The only row says which master key fits, so that a wrong key file is noticed at the start and not at the first '
    'sale, and keeps the root key that the master key wraps.';
COMMENT ON COLUMN vault_master.generation IS 'Grows with every new master key.';
COMMENT ON COLUMN vault_master.root IS
    'Identifiers, blind indexes and the codes of the sandbox are computed from it. It stays the same in every rotation.';

CREATE TABLE vault_key (
    version     smallint PRIMARY KEY CHECK (version > 0),
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    created_at  timestamptz NOT NULL DEFAULT now(),
    wrapped     bytea CHECK (length(wrapped) = 60),
    active_at   timestamptz DEFAULT now(),
    retired_at  timestamptz,
    CONSTRAINT vault_key_wrapped_fits CHECK ((wrapped IS NOT NULL) = (version > 1 AND retired_at IS NULL)),
    CONSTRAINT vault_key_retired_fits CHECK (retired_at IS NULL OR active_at IS NOT NULL)
);
CREATE TRIGGER vault_key_kept BEFORE DELETE OR TRUNCATE OR UPDATE OF version, fingerprint ON vault_key
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER vault_key_forwards BEFORE UPDATE ON vault_key
    FOR EACH ROW WHEN ((OLD.active_at IS NOT NULL AND NEW.active_at IS DISTINCT FROM OLD.active_at)
                       OR (OLD.retired_at IS NOT NULL AND NEW.retired_at IS DISTINCT FROM OLD.retired_at))
    EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE vault_key IS
    'One row is a data key, which seals (OP-95). Version 1 is derived from the root key; later versions are random and '
    'wrapped with the master key. Sealed bytes begin with the version that sealed them; those without a mark are of 1.';
COMMENT ON COLUMN vault_key.wrapped IS 'NULL for version 1, and for a key that was destroyed.';
COMMENT ON COLUMN vault_key.active_at IS 'NULL: processes learn the key, none seals with it yet.';
COMMENT ON COLUMN vault_key.retired_at IS 'When it was destroyed.';

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
    attempt_id        uuid REFERENCES attempt,
    external_id       text CHECK (length(external_id) <= 200),
    spare             integer NOT NULL DEFAULT 0,
    CHECK ((id & 1) = state),
    CONSTRAINT lot_generated_in_sandbox CHECK (CASE WHEN generated THEN state = 1 AND attempt_id IS NULL
                                                    ELSE state = 0 OR attempt_id IS NOT NULL END),
    CONSTRAINT lot_spare_fits CHECK (spare BETWEEN 0 AND size AND (spare = 0 OR attempt_id IS NOT NULL))
) WITH (fillfactor = 50);
CREATE INDEX lot_on_shelf ON lot (product_id, face_minor, state) WHERE NOT exhausted;
CREATE INDEX lot_product ON lot (product_id);
CREATE INDEX lot_expiring ON lot (state, coalesce(expires_at, 'infinity'::timestamptz), id) WHERE NOT exhausted;
CREATE INDEX lot_attempt ON lot (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE TRIGGER lot_unchanging BEFORE DELETE OR TRUNCATE OR UPDATE OF id, product_id, face_minor, state, generated,
    supplier, purchase_minor, purchase_currency, purchase_fx_e8, expires_at ON lot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER lot_bought_once BEFORE UPDATE OF attempt_id, external_id, spare ON lot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER lot_forwards BEFORE UPDATE OF cursor ON lot
    FOR EACH ROW WHEN (NEW.cursor < OLD.cursor) EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE lot IS
    'One row is a number of codes that were bought together; the API calls it an offer. A sale moves the cursor and '
    'touches no row of a code.';
COMMENT ON COLUMN lot.id IS 'Twice a number of lot_number, plus the state.';
COMMENT ON COLUMN lot.generated IS 'A lot of the sandbox without rows of codes: they are computed.';
COMMENT ON COLUMN lot.key_version IS 'The lowest version of a data key that any of its codes may be sealed with.';
COMMENT ON COLUMN lot.cursor IS 'How many of its codes are sold or put aside, from the first on.';
COMMENT ON COLUMN lot.exhausted IS
    'Changes once in the life of a lot. No index holds the cursor itself, so a sale stays a heap-only update.';
COMMENT ON COLUMN lot.attempt_id IS 'The purchase that brought it; NULL: a person imported it.';
COMMENT ON COLUMN lot.external_id IS 'The name that the supplier has for that purchase.';
COMMENT ON COLUMN lot.spare IS 'How many of its codes no line took when it came.';
COMMENT ON CONSTRAINT lot_generated_in_sandbox ON lot IS
    'Lots of the sandbox are generated, but those that a sandbox supplier sold have codes like any other.';
COMMENT ON TRIGGER lot_unchanging ON lot IS 'Processes keep a lot in memory.';
COMMENT ON TRIGGER lot_forwards ON lot IS 'A code that was sold is never sold again.';

CREATE TABLE code (
    lot_id bigint NOT NULL,
    seq    integer NOT NULL CHECK (seq >= 0),
    sealed bytea NOT NULL,
    blind  bytea NOT NULL CHECK (length(blind) = 16),
    PRIMARY KEY (lot_id, seq)
);
CREATE UNIQUE INDEX code_blind ON code (blind);
CREATE TRIGGER code_append_only BEFORE DELETE OR TRUNCATE OR UPDATE OF lot_id, seq, blind ON code
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE code IS 'One row is a code of a lot.';
COMMENT ON COLUMN code.sealed IS 'The code and its serial, encrypted and bound to this place.';
COMMENT ON COLUMN code.blind IS 'A keyed hash of the code: the same code can not be imported twice.';
COMMENT ON TRIGGER code_append_only ON code IS 'Only a rotation of the vault keys seals it anew.';

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
COMMENT ON FUNCTION guard_codes IS
    'Refuses a code without a lot. A foreign key does the same and doubles the time of an import (measured: 12 µs a row '
    'instead of 6).';

CREATE FUNCTION refuse_lost_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM lot WHERE key_version = NEW.version AND NOT generated) THEN
        RAISE EXCEPTION 'key % still seals lots', NEW.version USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER vault_key_seals_nothing AFTER UPDATE OF retired_at ON vault_key
    FOR EACH ROW WHEN (OLD.retired_at IS NULL AND NEW.retired_at IS NOT NULL) EXECUTE FUNCTION refuse_lost_key();
CREATE FUNCTION refuse_retired_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM vault_key WHERE version = NEW.key_version AND retired_at IS NOT NULL) THEN
        RAISE EXCEPTION 'key % is retired', NEW.key_version USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER lot_key_is_kept AFTER INSERT ON lot FOR EACH ROW EXECUTE FUNCTION refuse_retired_key();
COMMENT ON FUNCTION refuse_lost_key IS 'Refuses to destroy a key that still seals a lot.';
COMMENT ON FUNCTION refuse_retired_key IS 'Refuses a lot that a destroyed key sealed.';

CREATE VIEW purchase_leg AS
    SELECT l.attempt_id, a.supplier_id, l.state, l.purchase_currency AS currency, leg.account, leg.amount_minor
    FROM lot l JOIN attempt a ON a.id = l.attempt_id
    CROSS JOIN LATERAL (VALUES ('stock', (l.size - l.spare) * l.purchase_minor), ('spare', l.spare * l.purchase_minor),
                               ('supplier', -l.size * l.purchase_minor)) AS leg (account, amount_minor);
COMMENT ON VIEW purchase_leg IS
    'One row is a leg of a purchase: the debt to the supplier, the worth of the codes that lines took, and of the spare '
    'ones. They are sums of lots and never updated in place.';

CREATE TABLE upload (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id    bigint NOT NULL REFERENCES app_user,
    kind       text NOT NULL CHECK (kind IN ('stock', 'products')),
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    bytes      integer NOT NULL CHECK (bytes BETWEEN 1 AND 33554432),
    terms      jsonb NOT NULL CHECK (jsonb_typeof(terms) = 'object'),
    sealed     bytea,
    status     smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 4),
    permille   smallint NOT NULL DEFAULT 0 CHECK (permille BETWEEN 0 AND 1000),
    report     jsonb CHECK (jsonb_typeof(report) = 'object'),
    created_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT upload_status_fits CHECK (
        CASE status WHEN 0 THEN report IS NULL WHEN 1 THEN report IS NOT NULL WHEN 2 THEN report IS NOT NULL
                    ELSE report IS NOT NULL AND sealed IS NULL END)
);
-- Sealed bytes can not be compressed, so PostgreSQL need not try.
ALTER TABLE upload ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE INDEX upload_age ON upload (created_at);
COMMENT ON TABLE upload IS
    'One row is a file that a person uploaded to the console: tried out first, then imported. It may hold codes, so it '
    'is kept sealed, and only until it is imported, refused or a quarter of an hour old.';
COMMENT ON COLUMN upload.terms IS 'The fields of the form beside the file.';
COMMENT ON COLUMN upload.status IS '0 being tried, 1 ready, 2 being imported, 3 imported, 4 refused.';
COMMENT ON COLUMN upload.permille IS 'How far the work has come.';
COMMENT ON CONSTRAINT upload_status_fits ON upload IS 'An upload that is over has a report and no file.';
