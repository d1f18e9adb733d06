-- How people prove who they are, how often they may be wrong, and what takes two of them (OP-92, OP-93).
ALTER TABLE app_user ALTER COLUMN password_hash DROP NOT NULL;  -- Who was invited has chosen none yet.

ALTER TABLE company ADD COLUMN second_factor boolean NOT NULL DEFAULT false;  -- Its people must have one.
ALTER TABLE company ADD COLUMN approve_from_eur_minor bigint CHECK (approve_from_eur_minor > 0);

CREATE TABLE totp (
    user_id      bigint PRIMARY KEY REFERENCES app_user,
    secret       bytea NOT NULL,  -- Sealed.
    confirmed_at timestamptz,     -- It counts from the first right code on.
    last_step    bigint NOT NULL DEFAULT 0 CHECK (last_step >= 0)
);
-- A code that was used, or an older one, never counts again.
CREATE TRIGGER totp_forwards BEFORE UPDATE ON totp
    FOR EACH ROW WHEN (NEW.secret = OLD.secret AND NEW.last_step < OLD.last_step) EXECUTE FUNCTION refuse_change();

CREATE TABLE recovery_code (
    user_id bigint NOT NULL REFERENCES app_user,
    hash    bytea NOT NULL CHECK (length(hash) = 32),
    used_at timestamptz,
    PRIMARY KEY (user_id, hash)
);
CREATE TRIGGER recovery_code_once BEFORE UPDATE ON recovery_code
    FOR EACH ROW WHEN (OLD.used_at IS NOT NULL) EXECUTE FUNCTION refuse_change();

CREATE TABLE passkey (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id    bigint NOT NULL REFERENCES app_user,
    credential bytea NOT NULL UNIQUE CHECK (length(credential) BETWEEN 1 AND 1023),
    public_key bytea NOT NULL CHECK (length(public_key) BETWEEN 1 AND 2000),
    sign_count bigint NOT NULL CHECK (sign_count >= 0),
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
    created_at timestamptz NOT NULL DEFAULT now(),
    used_at    timestamptz
);
CREATE INDEX passkey_user ON passkey (user_id);

-- What a passkey is asked to sign; taken out when it is answered.
CREATE TABLE passkey_challenge (
    hash    bytea PRIMARY KEY CHECK (length(hash) = 32),
    user_id bigint REFERENCES app_user,  -- None: whoever signs in.
    network text NOT NULL CHECK (length(network) BETWEEN 1 AND 50),
    ends_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenge_network ON passkey_challenge (network, ends_at);
CREATE INDEX passkey_challenge_age ON passkey_challenge (ends_at);

-- A link that was mailed, for one use; taken out when it is used.
CREATE TABLE account_link (
    hash    bytea PRIMARY KEY CHECK (length(hash) = 32),
    user_id bigint NOT NULL REFERENCES app_user,
    kind    text NOT NULL CHECK (kind IN ('reset', 'invitation')),
    ends_at timestamptz NOT NULL
);
CREATE INDEX account_link_user ON account_link (user_id);
CREATE INDEX account_link_age ON account_link (ends_at);

-- Addresses for which somebody wants a new password; whether they are anybody's is looked up later, so that the
-- answer takes as long for a stranger's.
CREATE TABLE reset_request (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email text NOT NULL CHECK (length(email) BETWEEN 1 AND 254)
);

-- How often something was tried in vain; the key is a hash of who and from where.
CREATE TABLE throttle (
    key      bytea PRIMARY KEY CHECK (length(key) = 32),
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    last_at  timestamptz NOT NULL DEFAULT now(),
    until    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);
CREATE INDEX throttle_age ON throttle (last_at);

-- What one person asks for and another one allows.
CREATE TABLE approval (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         smallint NOT NULL CHECK (kind BETWEEN 1 AND 3),  -- order, top-up, correction
    company_id   integer NOT NULL REFERENCES company,
    state        smallint NOT NULL CHECK (state IN (0, 1)),
    order_id     bigint REFERENCES orders ON DELETE CASCADE,
    amount_minor bigint NOT NULL,
    currency     text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    reference    text CHECK (length(reference) BETWEEN 1 AND 200),
    note         text NOT NULL DEFAULT '' CHECK (length(note) <= 500),
    requested_by bigint NOT NULL REFERENCES app_user,
    requested_at timestamptz NOT NULL DEFAULT now(),
    ends_at      timestamptz NOT NULL,
    status       smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 3),  -- open, approved, rejected, ended
    decided_by   bigint REFERENCES app_user,
    decided_at   timestamptz,
    CONSTRAINT approval_two_people CHECK (decided_by <> requested_by),
    CONSTRAINT approval_decided CHECK ((status IN (1, 2)) = (decided_by IS NOT NULL)),
    CONSTRAINT approval_ended CHECK ((status = 0) = (decided_at IS NULL)),
    CONSTRAINT approval_subject CHECK ((kind = 1) = (order_id IS NOT NULL) AND (kind = 1) = (reference IS NULL)),
    CONSTRAINT approval_same_state CHECK ((order_id & 1) = state),
    CONSTRAINT approval_amount CHECK (amount_minor <> 0 AND (kind = 3 OR amount_minor > 0))
);
CREATE UNIQUE INDEX approval_open_order ON approval (order_id) WHERE status = 0;
CREATE UNIQUE INDEX approval_open_money ON approval (company_id, state, currency, reference)
    WHERE status = 0 AND kind <> 1;
CREATE INDEX approval_order ON approval (order_id);
CREATE INDEX approval_newest ON approval (company_id, state, id DESC);
-- What was decided stays so, and nobody turns a request into another one.
CREATE TRIGGER approval_decided_once BEFORE UPDATE ON approval
    FOR EACH ROW WHEN (OLD.status <> 0 OR NEW.kind <> OLD.kind OR NEW.company_id <> OLD.company_id
                       OR NEW.state <> OLD.state OR NEW.amount_minor <> OLD.amount_minor
                       OR NEW.currency <> OLD.currency OR NEW.requested_by <> OLD.requested_by)
    EXECUTE FUNCTION refuse_change();

-- Mail that is tried again, and whose text goes once it is sent or too late.
DROP INDEX mail_unsent;
ALTER TABLE mail ADD COLUMN secret boolean NOT NULL DEFAULT false;  -- The text opens something.
ALTER TABLE mail ADD COLUMN ends_at timestamptz;                    -- It is of no use afterwards.
ALTER TABLE mail ADD COLUMN tries smallint NOT NULL DEFAULT 0 CHECK (tries >= 0);
ALTER TABLE mail ADD COLUMN problem text CHECK (length(problem) <= 300);
ALTER TABLE mail ADD COLUMN next_at timestamptz;                    -- None: it was sent or given up.
UPDATE mail SET next_at = at WHERE sent_at IS NULL;
ALTER TABLE mail ALTER COLUMN next_at SET DEFAULT now();
ALTER TABLE mail ADD CONSTRAINT mail_over CHECK (sent_at IS NULL OR next_at IS NULL);
CREATE INDEX mail_due ON mail (next_at, id) WHERE next_at IS NOT NULL;
