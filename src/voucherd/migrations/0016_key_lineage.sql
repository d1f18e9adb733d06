-- Keys: who answers for each of them, with which key it was made, and what it may confirm alone.

ALTER TABLE api_key
    ADD COLUMN made_by bigint REFERENCES app_user,
    ADD COLUMN maker_role text,
    ADD COLUMN parent_id bigint REFERENCES api_key,
    ADD COLUMN first_id bigint,
    ADD COLUMN confirms_alone boolean NOT NULL DEFAULT true;
-- Keys that were there before go on as they did; from now on an owner or the operator says so of a key.
ALTER TABLE api_key ALTER COLUMN confirms_alone SET DEFAULT false;
COMMENT ON COLUMN api_key.made_by IS
    'The person who answers for it: it reaches no further than this person does now. NULL: the operator does, and for '
    'keys that are older than this column.';
COMMENT ON COLUMN api_key.maker_role IS
    'The role that this person has now, empty for one who is not active; kept in step by triggers, so that a key is '
    'judged by its own row alone.';
COMMENT ON COLUMN api_key.parent_id IS 'The key that it was made with; it ends when that one ends.';
COMMENT ON COLUMN api_key.first_id IS
    'The first of the keys that rotations made of one another; NULL for that one itself. All of them share one counter '
    'of the spending of a day.';
COMMENT ON COLUMN api_key.confirms_alone IS 'The rule of the company about a second person does not bind it.';

CREATE FUNCTION note_maker() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    maker app_user;
BEGIN
    NEW.maker_role := NULL;
    IF NEW.made_by IS NOT NULL THEN
        -- Locked, so that a person who is losing a right just now makes no key that keeps it.
        SELECT * INTO maker FROM app_user WHERE id = NEW.made_by FOR SHARE;
        IF maker.company_id IS DISTINCT FROM NEW.company_id THEN
            RAISE EXCEPTION 'people of its own company answer for a key'
                USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        NEW.maker_role := CASE WHEN maker.active THEN maker.role ELSE '' END;
    END IF;
    IF NEW.parent_id IS NOT NULL
       AND NOT EXISTS (SELECT FROM api_key p
                       WHERE p.id = NEW.parent_id AND p.company_id = NEW.company_id AND p.state = NEW.state
                         AND p.id <> NEW.id) THEN
        RAISE EXCEPTION 'a key is made with another one of its company and state'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER api_key_lineage BEFORE INSERT OR UPDATE OF made_by, maker_role, parent_id ON api_key
    FOR EACH ROW EXECUTE FUNCTION note_maker();
COMMENT ON FUNCTION note_maker IS
    'Writes the present role of the person who answers for a key beside it; refuses people and keys of others.';

CREATE FUNCTION tell_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE api_key SET made_by = made_by WHERE made_by = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER app_user_keys AFTER UPDATE OF role, active ON app_user
    FOR EACH ROW WHEN ((OLD.role, OLD.active) IS DISTINCT FROM (NEW.role, NEW.active))
    EXECUTE FUNCTION tell_keys();
COMMENT ON FUNCTION tell_keys IS
    'A person who gets another role or is let in no more: the keys that the person answers for lose what the person '
    'lost, in the same transaction, whichever program does it.';

CREATE OR REPLACE TRIGGER api_key_epoch
    AFTER DELETE OR UPDATE OF company_id, state, scopes, allow_ips, rate_limit, expires_at, revoked_at, hash,
                              spend_order_eur_minor, spend_day_eur_minor, made_by, parent_id, first_id,
                              confirms_alone ON api_key
    FOR EACH STATEMENT EXECUTE FUNCTION bump_access_epoch();

ALTER TABLE idempotency ADD COLUMN asked_by bigint;
COMMENT ON COLUMN idempotency.asked_by IS
    'The API key that asked, or the first of those that rotations made of one another: another key that sends the same '
    'header has a row of its own. NULL: from before this was kept.';
