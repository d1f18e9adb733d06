-- People: somebody new, and a rule that was loosened, count only after a day or a second person's word (OP-102).

ALTER TABLE app_user
    ADD COLUMN rests_until timestamptz NOT NULL DEFAULT '2026-01-01 00:00:00+00',
    ADD COLUMN rests_by bigint REFERENCES app_user,
    ADD COLUMN invited_as text CHECK (invited_as = lower(invited_as) AND length(invited_as) <= 254);
-- Whoever is here already has been known for long; everybody who comes from now on rests.
ALTER TABLE app_user ALTER COLUMN rests_until SET DEFAULT now() + interval '24 hours';
COMMENT ON COLUMN app_user.rests_until IS
    'Until then the person approves nothing, and whoever let it in does not approve what it asks for.';
COMMENT ON COLUMN app_user.rests_by IS 'The person who let this one in; NULL: the command line.';
COMMENT ON COLUMN app_user.invited_as IS
    'An address that has an account elsewhere was invited: the row keeps its place, and nobody ever signs in by it.';

CREATE TABLE rule_change (
    company_id             integer PRIMARY KEY REFERENCES company,
    approve_from_eur_minor bigint CHECK (approve_from_eur_minor > 0),
    asked_by               bigint NOT NULL REFERENCES app_user,
    asked_at               timestamptz NOT NULL DEFAULT now(),
    holds_from             timestamptz NOT NULL DEFAULT now() + interval '24 hours',
    CONSTRAINT rule_change_rests CHECK (holds_from >= asked_at + interval '24 hours')
);
COMMENT ON TABLE rule_change IS
    'One row is a looser rule about second persons that a company waits for; the worker puts it into force.';
COMMENT ON COLUMN rule_change.approve_from_eur_minor IS 'NULL: no order needs a second person then.';

CREATE FUNCTION refuse_resting_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM app_user u WHERE u.rests_until > now()
               AND (u.id = NEW.decided_by OR u.id = NEW.requested_by AND u.rests_by = NEW.decided_by)) THEN
        RAISE EXCEPTION 'somebody who rests is no second person' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION refuse_resting_person IS 'Refuses a yes by, or to, a person who is not known for a day.';
CREATE TRIGGER approval_by_known_people BEFORE UPDATE ON approval
    FOR EACH ROW WHEN (NEW.status = 1) EXECUTE FUNCTION refuse_resting_person();
COMMENT ON TRIGGER approval_by_known_people ON approval IS
    'A person who is new approves nothing, and is not the puppet of who let it in.';

-- An app that was shown and never confirmed counts for nothing: each try has a secret of its own now.
DELETE FROM totp WHERE confirmed_at IS NULL;
