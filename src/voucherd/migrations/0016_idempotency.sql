-- Requests that carried an Idempotency-Key, for 30 days (OP-28). The key and the request are kept as hashes. An order that
-- the request changed is named in the transaction that changed it: whoever finds the row without an answer knows by that
-- whether something happened. The answer is sealed, and a voucher code is never in it: codes are read from the vault again.
CREATE TABLE idempotency (
    company_id    integer NOT NULL REFERENCES company,
    state         smallint NOT NULL CHECK (state IN (0, 1)),
    key           bytea NOT NULL CHECK (length(key) = 32),
    request       bytea NOT NULL CHECK (length(request) = 32),
    began_at      timestamptz NOT NULL DEFAULT now(),
    running_until timestamptz NOT NULL,
    order_id      bigint,
    answer        bytea,
    PRIMARY KEY (company_id, state, key),
    CONSTRAINT idempotency_same_state CHECK ((order_id & 1) = state)
) WITH (fillfactor = 60);
CREATE INDEX idempotency_age ON idempotency (began_at);
-- An answer that was given once is the answer for good.
CREATE TRIGGER idempotency_answered_once BEFORE UPDATE ON idempotency
    FOR EACH ROW WHEN (OLD.answer IS NOT NULL OR (OLD.order_id IS NOT NULL AND NEW.order_id IS DISTINCT FROM OLD.order_id))
    EXECUTE FUNCTION refuse_change();
