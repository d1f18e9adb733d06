-- Companies and their API keys: who may call, how often, for how much, and which calls were answered before.
--
-- Three conventions hold in every migration:
--   * Money is a bigint of minor units beside its currency. A rate is a bigint of 1e-8 (`…_e8`), a share is an integer of
--     basis points (`…_bp`).
--   * Live and sandbox never meet. The column `state` is 0 for live and 1 for the sandbox. It is also the lowest bit of
--     every id of an order, a wallet, a lot and a quote, so that a plain CHECK refuses a row that points across.
--   * The words about a table or a column are COMMENTs, so that they are in the database and in schema.sql, too.

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
COMMENT ON FUNCTION refuse_change IS
    'The one guard of append-only tables: each trigger names the changes that it refuses.';

CREATE TABLE company (
    id                     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name                   text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
    country                text NOT NULL CHECK (country ~ '^[A-Z]{2}$'),
    vat_number             text CHECK (length(vat_number) BETWEEN 4 AND 20),
    active                 boolean NOT NULL DEFAULT true,
    verified               boolean NOT NULL DEFAULT false,
    expose_costs           boolean NOT NULL DEFAULT true,
    created_at             timestamptz NOT NULL DEFAULT now(),
    spend_order_eur_minor  bigint CHECK (spend_order_eur_minor > 0),
    spend_day_eur_minor    bigint CHECK (spend_day_eur_minor > 0),
    second_factor          boolean NOT NULL DEFAULT false,
    approve_from_eur_minor bigint CHECK (approve_from_eur_minor > 0)
);
COMMENT ON TABLE company IS 'One row is a customer: it holds wallets, keys and people, and everything it buys is its own.';
COMMENT ON COLUMN company.active IS 'False: nobody of it can sign in, and no key of it can order.';
COMMENT ON COLUMN company.verified IS 'The operator has checked who it is; until then Confirm and Resolve are refused.';
COMMENT ON COLUMN company.expose_costs IS 'Its orders show the purchase prices of their offers.';
COMMENT ON COLUMN company.spend_order_eur_minor IS 'The most that one order may cost, at the rate that Create fixed.';
COMMENT ON COLUMN company.spend_day_eur_minor IS 'The most that all orders of one day (UTC) may cost together.';
COMMENT ON COLUMN company.second_factor IS 'Its people must sign in with a second factor.';
COMMENT ON COLUMN company.approve_from_eur_minor IS 'Orders of the portal from this worth on need a second person.';

CREATE TABLE api_key (
    id                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id            integer NOT NULL REFERENCES company,
    state                 smallint NOT NULL CHECK (state IN (0, 1)),
    prefix                text NOT NULL,
    hash                  bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    description           text NOT NULL DEFAULT '' CHECK (length(description) <= 200),
    scopes                text[] NOT NULL,
    allow_ips             cidr[] NOT NULL DEFAULT '{}',
    rate_limit            integer NOT NULL DEFAULT 600 CHECK (rate_limit > 0),
    expires_at            timestamptz,
    revoked_at            timestamptz,
    replaced_by           bigint REFERENCES api_key,
    created_at            timestamptz NOT NULL DEFAULT now(),
    last_used_at          timestamptz,
    spend_order_eur_minor bigint CHECK (spend_order_eur_minor > 0),
    spend_day_eur_minor   bigint CHECK (spend_day_eur_minor > 0)
);
CREATE INDEX api_key_company ON api_key (company_id);
COMMENT ON TABLE api_key IS 'One row is a bearer key of a company for one state. Only its hash is kept.';
COMMENT ON COLUMN api_key.prefix IS 'The first characters of the key, for people to tell keys apart.';
COMMENT ON COLUMN api_key.allow_ips IS 'The networks that may use it. Empty: all.';
COMMENT ON COLUMN api_key.rate_limit IS 'Requests per minute.';
COMMENT ON COLUMN api_key.replaced_by IS 'The key that a rotation made in its place.';
COMMENT ON COLUMN api_key.spend_order_eur_minor IS 'As of the company; the lower of both holds.';

CREATE TABLE access_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch    bigint NOT NULL
);
INSERT INTO access_epoch (epoch) VALUES (1);
COMMENT ON TABLE access_epoch IS
    'The only row is a counter that grows with every change of who may do what. '
    'Every process keeps keys in memory and reads this row to learn that they changed.';

CREATE FUNCTION bump_access_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE access_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER company_epoch AFTER UPDATE OR DELETE ON company
    FOR EACH STATEMENT EXECUTE FUNCTION bump_access_epoch();
CREATE TRIGGER api_key_epoch
    AFTER DELETE OR UPDATE OF company_id, state, scopes, allow_ips, rate_limit, expires_at, revoked_at, hash,
                              spend_order_eur_minor, spend_day_eur_minor ON api_key
    FOR EACH STATEMENT EXECUTE FUNCTION bump_access_epoch();
COMMENT ON FUNCTION bump_access_epoch IS 'Tells every process that the keys and companies it remembers are old.';
COMMENT ON TRIGGER api_key_epoch ON api_key IS 'Not on last_used_at, which changes all the time and decides nothing.';

CREATE UNLOGGED TABLE rate_window (
    key_id bigint PRIMARY KEY,
    number bigint NOT NULL DEFAULT 0,
    lent   integer NOT NULL DEFAULT 0,
    before integer NOT NULL DEFAULT 0,
    CONSTRAINT rate_window_counts CHECK (lent >= 0 AND before >= 0)
) WITH (fillfactor = 50);
COMMENT ON TABLE rate_window IS
    'One row says how many requests of a key are lent to processes in the present minute of the key (OP-27). A process '
    'borrows some requests at a time and counts them down in memory, so a request writes nothing. All loans together '
    'never exceed the quota. Unlogged: after a crash of the database every key begins a new minute.';
COMMENT ON COLUMN rate_window.key_id IS 'No foreign key: it would lock the row of the key and make the write a logged one.';
COMMENT ON COLUMN rate_window.number IS 'Which minute since 1970, shifted per key so that not all keys turn at once.';
COMMENT ON COLUMN rate_window.lent IS 'In that minute.';
COMMENT ON COLUMN rate_window.before IS 'In the minute before it.';

CREATE FUNCTION lend_requests(
    keys bigint[], quotas integer[], wanted integer[], back integer[], back_numbers bigint[],
    moment timestamptz DEFAULT NULL
) RETURNS TABLE (key_id bigint, number bigint, given integer, lent integer, before integer, left_ms bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now_ms bigint;
BEGIN
    INSERT INTO rate_window (key_id) SELECT k FROM unnest(keys) AS k ORDER BY k ON CONFLICT DO NOTHING;
    -- In the order of their keys, so that two processes never wait for each other.
    PERFORM FROM rate_window r WHERE r.key_id = ANY (keys) ORDER BY r.key_id FOR UPDATE;
    now_ms := floor(extract(epoch FROM coalesce(moment, clock_timestamp())) * 1000);
    RETURN QUERY
    WITH asked AS (
        SELECT r.key_id, a.quota, a.want, a.back, a.back_number, r.lent, r.before, r.number AS old_number,
               -- A clock that is set back does not lend a minute twice.
               greatest(r.number, (now_ms + a.key_id * 7919 % 60000) / 60000) AS number,
               now_ms + a.key_id * 7919 % 60000 AS own_ms
        FROM unnest(keys, quotas, wanted, back, back_numbers) AS a (key_id, quota, want, back, back_number)
        JOIN rate_window r ON r.key_id = a.key_id
    ), turned AS (
        SELECT a.key_id, a.quota, a.want, a.number, (a.number + 1) * 60000 - a.own_ms AS left_ms,
               CASE WHEN a.number > a.old_number THEN 0
                    ELSE greatest(0, a.lent - CASE WHEN a.back_number = a.number THEN a.back ELSE 0 END) END AS lent,
               greatest(0, CASE a.number - a.old_number WHEN 0 THEN a.before WHEN 1 THEN a.lent ELSE 0 END
                           - CASE WHEN a.back_number = a.number - 1 THEN a.back ELSE 0 END) AS before
        FROM asked a
    ), free AS (
        SELECT t.*, t.quota - t.lent - (t.before * least(t.left_ms, 60000) / 60000)::integer AS free FROM turned t
    ), loans AS (
        SELECT f.*, greatest(0, least(f.want, f.free, greatest(1, f.free / 8))) AS given FROM free f
    )
    UPDATE rate_window r SET number = l.number, lent = l.lent + l.given, before = l.before
    FROM loans l WHERE r.key_id = l.key_id
    RETURNING l.key_id, l.number, l.given, r.lent, r.before, l.left_ms;
END $$;
COMMENT ON FUNCTION lend_requests IS
    'Lends each key as many requests as it wants and may have, and takes back those that were not used in the minute '
    '`back_numbers`. The window slides: the minute before counts for the part of it that lies within the last sixty '
    'seconds. When little is left, an eighth of it is lent at a time, so that no process keeps what others need. The '
    'clock is that of the database; `moment` is for tests.';

CREATE TABLE spend (
    company_id      integer NOT NULL REFERENCES company,
    key_id          bigint NOT NULL CHECK (key_id >= 0),
    state           smallint NOT NULL CHECK (state IN (0, 1)),
    day             date NOT NULL,
    spent_eur_minor bigint NOT NULL DEFAULT 0 CHECK (spent_eur_minor >= 0),
    PRIMARY KEY (company_id, key_id, state, day)
) WITH (fillfactor = 50);
CREATE TRIGGER spend_forwards BEFORE UPDATE ON spend
    FOR EACH ROW WHEN (NEW.spent_eur_minor < OLD.spent_eur_minor) EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE spend IS
    'One row is what a company or a key has spent in one day (UTC); only those with a daily limit have rows. An order '
    'counts when it is finalised, whatever becomes of it: a stolen key that cancels and buys again must not get round '
    'the limit. Locked after wallets and before lots.';
COMMENT ON COLUMN spend.key_id IS '0: the company as a whole.';
COMMENT ON TRIGGER spend_forwards ON spend IS 'A refund gives no room back.';

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
CREATE TRIGGER idempotency_answered_once BEFORE UPDATE ON idempotency
    FOR EACH ROW WHEN ((OLD.answer IS NOT NULL
                        AND (current_setting('voucherd.resealing', true) IS DISTINCT FROM 'on' OR NEW.answer IS NULL
                             OR NEW.order_id IS DISTINCT FROM OLD.order_id
                             OR (NEW.request, NEW.began_at, NEW.running_until) <> (OLD.request, OLD.began_at, OLD.running_until)))
                       OR (OLD.order_id IS NOT NULL AND NEW.order_id IS DISTINCT FROM OLD.order_id))
    EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE idempotency IS 'One row is a request that carried an Idempotency-Key, kept for 30 days (OP-28).';
COMMENT ON COLUMN idempotency.key IS 'A hash of the header.';
COMMENT ON COLUMN idempotency.request IS 'A hash of the request: the same key with another request is refused.';
COMMENT ON COLUMN idempotency.running_until IS 'The first call has until then; afterwards a repeated call takes over.';
COMMENT ON COLUMN idempotency.order_id IS
    'The order that the request changed, written in the transaction that changed it: a row without an answer tells by '
    'this whether something happened.';
COMMENT ON COLUMN idempotency.answer IS 'Sealed. A voucher code is never in it: codes are read from the vault again.';
COMMENT ON TRIGGER idempotency_answered_once ON idempotency IS
    'The first answer is the answer for good. A rotation of the vault keys may seal it anew.';
