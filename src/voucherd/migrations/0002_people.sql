-- People: how they prove who they are, where they are signed in, and how often they may be wrong (OP-92, OP-93).

CREATE TABLE app_user (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text NOT NULL CHECK (email = lower(email) AND length(email) <= 254),
    company_id    integer REFERENCES company,
    role          text NOT NULL,
    password_hash text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    active        boolean NOT NULL DEFAULT true,
    name          text NOT NULL DEFAULT '' CHECK (length(name) <= 200),
    UNIQUE (email),
    CHECK (role = ANY (CASE WHEN company_id IS NULL
                            THEN ARRAY['admin', 'support', 'stock', 'finance']
                            ELSE ARRAY['owner', 'buyer', 'finance', 'viewer', 'developer'] END))
);
COMMENT ON TABLE app_user IS 'One row is a person who signs in: to the portal of a company, or to the console.';
COMMENT ON COLUMN app_user.company_id IS 'NULL: one of the people of the operator.';
COMMENT ON COLUMN app_user.password_hash IS 'NULL: was invited and has chosen no password yet.';

CREATE TABLE session (
    key        bytea PRIMARY KEY CHECK (length(key) = 32),
    user_id    bigint NOT NULL REFERENCES app_user ON DELETE CASCADE,
    state      smallint NOT NULL DEFAULT 0 CHECK (state IN (0, 1)),
    csrf       bytea NOT NULL CHECK (length(csrf) = 32),
    pending    boolean NOT NULL DEFAULT false,
    strong_at  timestamptz,
    flash      text CHECK (length(flash) <= 500),
    flash_kind text CHECK (flash_kind IN ('good', 'bad', 'note')),
    address    text NOT NULL CHECK (length(address) <= 100),
    agent      text NOT NULL CHECK (length(agent) <= 300),
    created_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    CONSTRAINT session_pending_is_weak CHECK (NOT pending OR strong_at IS NULL),
    CONSTRAINT session_flash_has_kind CHECK ((flash IS NULL) = (flash_kind IS NULL)),
    CONSTRAINT session_lasts CHECK (expires_at > created_at)
);
CREATE INDEX session_of_user ON session (user_id);
CREATE INDEX session_expiry ON session (expires_at);
COMMENT ON TABLE session IS 'One row is a browser in which a person is signed in.';
COMMENT ON COLUMN session.key IS 'The hash of a token that only the browser has.';
COMMENT ON COLUMN session.state IS 'Whether the person looks at live or at the sandbox.';
COMMENT ON COLUMN session.csrf IS 'Every form of the session must send it back.';
COMMENT ON COLUMN session.pending IS 'The password was right, the second factor is still wanted.';
COMMENT ON COLUMN session.strong_at IS 'When a second factor was given last.';
COMMENT ON COLUMN session.flash IS 'A sentence that the next page shows once.';

CREATE TABLE totp (
    user_id      bigint PRIMARY KEY REFERENCES app_user,
    secret       bytea NOT NULL,
    confirmed_at timestamptz,
    last_step    bigint NOT NULL DEFAULT 0 CHECK (last_step >= 0)
);
CREATE TRIGGER totp_forwards BEFORE UPDATE ON totp
    FOR EACH ROW WHEN (NEW.secret = OLD.secret AND NEW.last_step < OLD.last_step) EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE totp IS 'One row is the authenticator app of a person: the second factor by six digits.';
COMMENT ON COLUMN totp.secret IS 'Sealed.';
COMMENT ON COLUMN totp.confirmed_at IS 'It counts from the first right code on.';
COMMENT ON COLUMN totp.last_step IS 'The time step of the last code that was used.';
COMMENT ON TRIGGER totp_forwards ON totp IS 'A code that was used, or an older one, never counts again.';

CREATE TABLE recovery_code (
    user_id bigint NOT NULL REFERENCES app_user,
    hash    bytea NOT NULL CHECK (length(hash) = 32),
    used_at timestamptz,
    PRIMARY KEY (user_id, hash)
);
CREATE TRIGGER recovery_code_once BEFORE UPDATE ON recovery_code
    FOR EACH ROW WHEN (OLD.used_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE recovery_code IS 'One row is a code on paper that replaces the second factor once.';

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
COMMENT ON TABLE passkey IS 'One row is a passkey (WebAuthn) of a person.';
COMMENT ON COLUMN passkey.sign_count IS 'As the device counts; a lower count tells of a copy.';

CREATE TABLE passkey_challenge (
    hash    bytea PRIMARY KEY CHECK (length(hash) = 32),
    user_id bigint REFERENCES app_user,
    network text NOT NULL CHECK (length(network) BETWEEN 1 AND 50),
    ends_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenge_network ON passkey_challenge (network, ends_at);
CREATE INDEX passkey_challenge_age ON passkey_challenge (ends_at);
COMMENT ON TABLE passkey_challenge IS 'One row is a challenge that a passkey is to sign; the answer removes it.';
COMMENT ON COLUMN passkey_challenge.user_id IS 'NULL: for a sign-in, when the person is not known yet.';
COMMENT ON COLUMN passkey_challenge.network IS 'Where it was asked for: one network can have so many open at a time.';

CREATE TABLE account_link (
    hash    bytea PRIMARY KEY CHECK (length(hash) = 32),
    user_id bigint NOT NULL REFERENCES app_user,
    kind    text NOT NULL CHECK (kind IN ('reset', 'invitation')),
    ends_at timestamptz NOT NULL
);
CREATE INDEX account_link_user ON account_link (user_id);
CREATE INDEX account_link_age ON account_link (ends_at);
COMMENT ON TABLE account_link IS 'One row is a link for one use that was mailed to a person; its use removes it.';

CREATE TABLE reset_request (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email text NOT NULL CHECK (length(email) BETWEEN 1 AND 254)
);
COMMENT ON TABLE reset_request IS
    'One row is an address for which somebody wants a new password. The worker looks up later whose it is, so that '
    'the answer takes equally long for an address that nobody has.';

CREATE TABLE throttle (
    key      bytea PRIMARY KEY CHECK (length(key) = 32),
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    last_at  timestamptz NOT NULL DEFAULT now(),
    until    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);
CREATE INDEX throttle_age ON throttle (last_at);
COMMENT ON TABLE throttle IS 'One row counts how often something was tried in vain, such as a password from one network.';
COMMENT ON COLUMN throttle.key IS 'A hash of who tried and from where.';
COMMENT ON COLUMN throttle.until IS 'Every try before this is refused unseen.';
