-- What a company, or one key of it, may spend: on one order, and in one day (UTC). Limits are in EUR; an order counts with
-- the rate that was fixed at its Create, and counts when it is finalised, whatever becomes of it: a stolen key that cancels
-- and buys again must not get round them.
ALTER TABLE company
    ADD COLUMN spend_order_eur_minor bigint CHECK (spend_order_eur_minor > 0),
    ADD COLUMN spend_day_eur_minor bigint CHECK (spend_day_eur_minor > 0);
ALTER TABLE api_key
    ADD COLUMN spend_order_eur_minor bigint CHECK (spend_order_eur_minor > 0),
    ADD COLUMN spend_day_eur_minor bigint CHECK (spend_day_eur_minor > 0);
DROP TRIGGER api_key_epoch ON api_key;
CREATE TRIGGER api_key_epoch
    AFTER DELETE OR UPDATE OF company_id, state, scopes, allow_ips, rate_limit, expires_at, revoked_at, hash,
                              spend_order_eur_minor, spend_day_eur_minor ON api_key
    FOR EACH STATEMENT EXECUTE FUNCTION bump_access_epoch();

-- Written for those only who have a limit for the day. Locked after wallets and before lots.
CREATE TABLE spend (
    company_id      integer NOT NULL REFERENCES company,
    key_id          bigint NOT NULL CHECK (key_id >= 0),  -- 0: the company as a whole.
    state           smallint NOT NULL CHECK (state IN (0, 1)),
    day             date NOT NULL,
    spent_eur_minor bigint NOT NULL DEFAULT 0 CHECK (spent_eur_minor >= 0),
    PRIMARY KEY (company_id, key_id, state, day)
) WITH (fillfactor = 50);
CREATE TRIGGER spend_forwards BEFORE UPDATE ON spend
    FOR EACH ROW WHEN (NEW.spent_eur_minor < OLD.spent_eur_minor) EXECUTE FUNCTION refuse_change();

-- Below which balance the owner of a wallet wants to hear of it; `told` until it is above again.
CREATE TABLE wallet_alert (
    wallet_id bigint PRIMARY KEY REFERENCES wallet,
    low_minor bigint NOT NULL CHECK (low_minor > 0),
    told      boolean NOT NULL DEFAULT false
);
