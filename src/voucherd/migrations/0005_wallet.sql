-- The wallet: the balances of companies and every movement of them.

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
COMMENT ON TABLE wallet IS 'One row is the balance of a company in one currency and state. Entries alone change it.';
COMMENT ON COLUMN wallet.id IS 'Twice a number of wallet_number, plus the state.';
COMMENT ON COLUMN wallet.held_minor IS 'The part of the balance that Resolve has set aside for orders under way.';
COMMENT ON COLUMN wallet.seq IS 'The number of its last entry.';

CREATE TABLE entry (
    wallet_id           bigint NOT NULL REFERENCES wallet,
    seq                 bigint NOT NULL CHECK (seq > 0),
    kind                smallint NOT NULL CHECK (kind BETWEEN 1 AND 6),
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
CREATE INDEX entry_kind ON entry (wallet_id, kind, seq) WHERE kind IN (1, 3, 6);
CREATE TRIGGER entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE entry IS
    'One row is one whole transfer: amount_minor into the wallet (negative: out of it), the opposite split over the '
    'accounts of the operator (vat_minor of it to VAT, the rest to the account that the kind names). A transfer that '
    'does not balance can not be written. A hold or a release changes held_minor of the wallet only.';
COMMENT ON COLUMN entry.kind IS '1 top-up, 2 order, 3 refund, 4 hold, 5 release, 6 correction.';
COMMENT ON COLUMN entry.order_id IS 'No foreign key: an order that was never confirmed has no entry, and all others stay.';
COMMENT ON INDEX entry_top_up_once IS 'The reference of a top-up makes it happen once.';
COMMENT ON INDEX entry_kind IS
    'Top-ups, refunds and corrections are few among orders and holds, and people look for them. No order and no hold is '
    'in it, so Confirm and Resolve do not pay for it.';

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
COMMENT ON FUNCTION carry_entries IS
    'Brings the balance up to date with new entries; each must continue the entries of its wallet without a gap.';

CREATE FUNCTION refuse_direct_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a balance changes through entries only' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER wallet_through_entries BEFORE UPDATE ON wallet
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_direct_balance();
CREATE TRIGGER wallet_starts_empty BEFORE INSERT ON wallet
    FOR EACH ROW WHEN (NEW.balance_minor <> 0 OR NEW.held_minor <> 0 OR NEW.seq <> 0)
    EXECUTE FUNCTION refuse_direct_balance();
COMMENT ON FUNCTION refuse_direct_balance IS
    'Refuses a balance that changes in any other way than by an entry, which would break the chain unseen.';

CREATE TABLE wallet_alert (
    wallet_id bigint PRIMARY KEY REFERENCES wallet,
    low_minor bigint NOT NULL CHECK (low_minor > 0),
    told      boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE wallet_alert IS 'One row is the balance below which the company wants to be told.';
COMMENT ON COLUMN wallet_alert.told IS 'It was told, and the balance was not above again since.';

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
COMMENT ON VIEW ledger_leg IS 'One row is a leg of an entry, for the accountant: the two or three legs of each sum to zero.';
