-- Envelope encryption (OP-95). The master key wraps the root and the data keys; data keys seal. Version 1 is derived from
-- the root, as it always was, so nothing that is sealed has to be touched. What version sealed something is written in
-- front of it; what has no such mark is of version 1. A lot's key_version is the lowest that any of its codes may have.
ALTER TABLE vault_key
    ADD COLUMN wrapped    bytea CHECK (length(wrapped) = 60),  -- NULL for version 1, and for what was destroyed.
    ADD COLUMN active_at  timestamptz DEFAULT now(),           -- NULL: processes learn it, none seals with it yet.
    ADD COLUMN retired_at timestamptz,
    ADD CONSTRAINT vault_key_wrapped_fits CHECK ((wrapped IS NOT NULL) = (version > 1 AND retired_at IS NULL)),
    ADD CONSTRAINT vault_key_retired_fits CHECK (retired_at IS NULL OR active_at IS NOT NULL);
UPDATE vault_key SET active_at = created_at;
CREATE TRIGGER vault_key_kept BEFORE DELETE OR TRUNCATE OR UPDATE OF version, fingerprint ON vault_key
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER vault_key_forwards BEFORE UPDATE ON vault_key
    FOR EACH ROW WHEN ((OLD.active_at IS NOT NULL AND NEW.active_at IS DISTINCT FROM OLD.active_at)
                       OR (OLD.retired_at IS NOT NULL AND NEW.retired_at IS DISTINCT FROM OLD.retired_at))
    EXECUTE FUNCTION refuse_change();

-- What seals a lot can't be destroyed, and what is destroyed can't seal one.
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

-- Which master key fits, and the root under it: what identifiers, blind indexes and the sandbox's codes are computed from.
-- It stays the same whatever is rotated.
CREATE TABLE vault_master (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    generation  integer NOT NULL DEFAULT 1 CHECK (generation > 0),
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    root        bytea NOT NULL CHECK (length(root) = 60),
    changed_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER vault_master_kept BEFORE DELETE OR TRUNCATE ON vault_master
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Sealed again, what is in them stays what it was.
DROP TRIGGER quarantined_code_append_only ON quarantined_code;
CREATE TRIGGER quarantined_code_append_only BEFORE DELETE OR TRUNCATE OR UPDATE OF attempt_id, place, blind, reason, at
    ON quarantined_code FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
DROP TRIGGER idempotency_answered_once ON idempotency;
CREATE TRIGGER idempotency_answered_once BEFORE UPDATE ON idempotency
    FOR EACH ROW WHEN ((OLD.answer IS NOT NULL
                        AND (current_setting('voucherd.resealing', true) IS DISTINCT FROM 'on' OR NEW.answer IS NULL
                             OR NEW.order_id IS DISTINCT FROM OLD.order_id
                             OR (NEW.request, NEW.began_at, NEW.running_until) <> (OLD.request, OLD.began_at, OLD.running_until)))
                       OR (OLD.order_id IS NOT NULL AND NEW.order_id IS DISTINCT FROM OLD.order_id))
    EXECUTE FUNCTION refuse_change();
