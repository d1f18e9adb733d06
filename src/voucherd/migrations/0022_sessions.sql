-- People sign in to pages. A session is known by the hash of a token that only its browser has.

ALTER TABLE app_user
    ADD COLUMN active boolean NOT NULL DEFAULT true,
    ADD COLUMN name   text NOT NULL DEFAULT '' CHECK (length(name) <= 200);

CREATE TABLE session (
    key        bytea PRIMARY KEY CHECK (length(key) = 32),
    user_id    bigint NOT NULL REFERENCES app_user ON DELETE CASCADE,
    state      smallint NOT NULL DEFAULT 0 CHECK (state IN (0, 1)),  -- What the person looks at: live or sandbox.
    csrf       bytea NOT NULL CHECK (length(csrf) = 32),
    pending    boolean NOT NULL DEFAULT false,  -- The password was given, the second factor is still wanted.
    strong_at  timestamptz,                     -- When a second factor was given last.
    flash      text CHECK (length(flash) <= 500),  -- What the next page says once.
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
