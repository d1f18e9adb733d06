-- The sandbox: play money that nobody else has to allow, a clock for each company, late webhooks. And the request log.

-- Play money: the payments of the sandbox need their row of the trail and nobody's approval.

CREATE OR REPLACE FUNCTION tie_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    owner record;
    deed record;
    agreed bigint;
BEGIN
    SELECT * INTO owner FROM wallet WHERE id = NEW.wallet_id;
    -- Written in this transaction, and not used for another payment of it.
    SELECT * INTO deed FROM trail t
    WHERE t.company_id = owner.company_id AND t.state = owner.state AND t.at = now()
      AND t.action IN ('wallet.top-up', 'money.approve') AND t.detail ->> 'reference' = NEW.reference
      AND split_part(t.detail ->> 'amount', ' ', 2) = owner.currency
      AND regexp_replace(replace(split_part(t.detail ->> 'amount', ' ', 1), '.', ''), '^(-?)0+(?=[0-9])', '\1')
          = NEW.amount_minor::text
      AND NOT EXISTS (SELECT FROM payment_deed used WHERE used.trail_id = t.id)
    ORDER BY t.company_id DESC, t.id DESC LIMIT 1;
    IF deed.id IS NULL THEN
        RAISE EXCEPTION 'a payment needs its row of the trail' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF deed.action = 'money.approve' THEN
        SELECT a.id INTO agreed FROM approval a
        WHERE a.id = substring(deed.subject FROM '^payment ([0-9]{1,18})$')::bigint AND a.status = 1
          AND a.kind = CASE NEW.kind WHEN 1 THEN 2 ELSE 3 END AND a.company_id = owner.company_id AND a.state = owner.state
          AND a.currency = owner.currency AND a.amount_minor = NEW.amount_minor AND a.reference = NEW.reference;
    END IF;
    IF agreed IS NULL AND (NEW.kind = 6 OR deed.action = 'money.approve'
                           OR (owner.state = 0 AND deed.actor_kind NOT IN (3, 4))) THEN
        RAISE EXCEPTION 'this payment needs an approval' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    INSERT INTO payment_deed (wallet_id, seq, trail_id, approval_id) VALUES (NEW.wallet_id, NEW.seq, deed.id, agreed);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION tie_payment IS
    'Ties a top-up or a correction to the row of the trail that tells of it, when the transaction commits. Commands and '
    'the program itself top up by themselves, and anybody tops up play money in the sandbox; everything else takes an '
    'approval of the same payment.';

-- The test clock.

CREATE TABLE test_clock (
    company_id integer PRIMARY KEY REFERENCES company,
    ahead_s    bigint NOT NULL CHECK (ahead_s >= 0),
    moved_at   timestamptz NOT NULL DEFAULT now(),
    next_at    timestamptz
);
CREATE INDEX test_clock_due ON test_clock (next_at) WHERE next_at IS NOT NULL;
COMMENT ON TABLE test_clock IS
    'One row is how far a company has moved the time of its sandbox ahead. Moving it brings what its sandbox waits for '
    'closer by as much, so nothing else has to know of it.';
COMMENT ON COLUMN test_clock.ahead_s IS 'In all, since it was last reset.';
COMMENT ON COLUMN test_clock.next_at IS
    'When the first order expires whose window was shortened: until then nobody looks at orders for it.';

-- Late webhooks.

CREATE TABLE webhook_delay (
    order_id bigint PRIMARY KEY REFERENCES orders ON DELETE CASCADE,
    delay_s  integer NOT NULL CHECK (delay_s BETWEEN 1 AND 3600),
    CONSTRAINT webhook_delay_in_sandbox CHECK ((order_id & 1) = 1)
);
COMMENT ON TABLE webhook_delay IS
    'One row is an order of the sandbox that asked at Create for webhooks that come so many seconds late (OP-145).';

-- The request log.

CREATE TABLE request_count (
    company_id integer NOT NULL REFERENCES company,
    state      smallint NOT NULL CHECK (state IN (0, 1)),
    logged     bigint NOT NULL CHECK (logged >= 0),
    PRIMARY KEY (company_id, state)
) WITH (fillfactor = 50);
COMMENT ON TABLE request_count IS 'One row is how many calls of a company in one state were ever logged.';

CREATE TABLE request_log (
    company_id integer NOT NULL REFERENCES company,
    state      smallint NOT NULL CHECK (state IN (0, 1)),
    slot       smallint NOT NULL,
    seq        bigint NOT NULL CHECK (seq > 0),
    at         timestamptz NOT NULL,
    request_id text NOT NULL CHECK (length(request_id) BETWEEN 1 AND 128),
    key_id     bigint NOT NULL,
    method     text NOT NULL CHECK (length(method) <= 10),
    path       text NOT NULL CHECK (length(path) <= 500),
    status     smallint NOT NULL CHECK (status BETWEEN 100 AND 999),
    ms         integer NOT NULL CHECK (ms >= 0),
    request    text NOT NULL DEFAULT '' CHECK (length(request) <= 4000),
    answer     text NOT NULL DEFAULT '' CHECK (length(answer) <= 4000),
    PRIMARY KEY (company_id, state, slot),
    CONSTRAINT request_log_in_its_slot CHECK (slot = seq % 10000)
);
CREATE INDEX request_log_newest ON request_log (company_id, state, seq);
CREATE INDEX request_log_age ON request_log (at);
COMMENT ON TABLE request_log IS
    'One row is a call of a key and its answer, without codes, keys and secrets (OP-148). A company has 10,000 slots in '
    'each state, and the newest call takes the place of the oldest.';
COMMENT ON COLUMN request_log.seq IS 'The number of the call among all that were logged of its company and state.';
COMMENT ON COLUMN request_log.path IS 'With the query.';
COMMENT ON COLUMN request_log.request IS 'The beginning of what was sent, redacted.';
