-- Webhooks: where a company wants its events sent, what is still to be sent, and what came of each attempt (OP-54).

CREATE SEQUENCE webhook_number AS bigint;
CREATE TABLE webhook (
    id              bigint PRIMARY KEY,
    company_id      integer NOT NULL REFERENCES company,
    state           smallint NOT NULL CHECK (state IN (0, 1)),
    slot            smallint NOT NULL CHECK (slot BETWEEN 1 AND 20),  -- At most 20 endpoints a company and state.
    url             text CHECK (length(url) BETWEEN 1 AND 2000),      -- NULL: each order names its own address.
    description     text NOT NULL DEFAULT '' CHECK (length(description) <= 200),
    types           text[] NOT NULL DEFAULT '{}',                     -- Empty: all.
    enabled         boolean NOT NULL DEFAULT true,
    disabled_reason text CHECK (disabled_reason IN ('gone', 'failing')),  -- NULL: a person did it.
    secret          bytea NOT NULL,                                   -- Sealed, as are the others.
    old_secret      bytea,                                            -- Signs beside the new one until `old_until`.
    old_until       timestamptz,
    headers         bytea,
    header_names    text[] NOT NULL DEFAULT '{}',
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (company_id, state, slot),
    CONSTRAINT webhook_old_secret_ends CHECK ((old_secret IS NULL) = (old_until IS NULL)),
    CONSTRAINT webhook_reason_fits CHECK (disabled_reason IS NULL OR NOT enabled),
    CONSTRAINT webhook_headers_named CHECK ((headers IS NULL) = (header_names = '{}'))
);
CREATE UNIQUE INDEX webhook_per_order ON webhook (company_id, state) WHERE url IS NULL;

-- Whose turn it is. `next_at` is when the endpoint has something due; whoever takes the endpoint moves it ahead by a
-- lease, so that nobody else takes it and so that it comes back by itself if he dies. NULL: nothing to send.
CREATE TABLE webhook_queue (
    webhook_id    bigint PRIMARY KEY REFERENCES webhook ON DELETE CASCADE,
    next_at       timestamptz,
    leased        boolean NOT NULL DEFAULT false,
    fence         bigint NOT NULL DEFAULT 0,
    slow          boolean NOT NULL DEFAULT false,  -- Waits with its like, so that it holds up nobody who is quick.
    failures      integer NOT NULL DEFAULT 0 CHECK (failures >= 0),  -- Since the last success.
    failing_since timestamptz,
    CONSTRAINT webhook_queue_failing_fits CHECK ((failures = 0) = (failing_since IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX webhook_queue_due ON webhook_queue (slow, next_at) WHERE next_at IS NOT NULL;

-- One row for each event and endpoint. While it waits, `next_at` says for when.
CREATE TABLE webhook_delivery (
    webhook_id bigint NOT NULL REFERENCES webhook ON DELETE CASCADE,
    event_id   bigint NOT NULL,
    type       text NOT NULL,
    url        text CHECK (length(url) BETWEEN 1 AND 2000),  -- Of an order that named its own.
    status     smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 2),  -- waiting, delivered, failed
    attempts   integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    tries      integer NOT NULL DEFAULT 0 CHECK (tries >= 0),  -- Attempts since it was last queued: they pick the pause.
    next_at    timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (webhook_id, event_id),
    CONSTRAINT webhook_delivery_waits CHECK ((status = 0) = (next_at IS NOT NULL))
) WITH (fillfactor = 70);
CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, next_at, event_id) WHERE status = 0;
CREATE INDEX webhook_delivery_age ON webhook_delivery (created_at);
CREATE INDEX webhook_delivery_event ON webhook_delivery (event_id);

CREATE TABLE webhook_attempt (
    webhook_id bigint NOT NULL,
    event_id   bigint NOT NULL,
    number     integer NOT NULL CHECK (number > 0),
    sent_at    timestamptz NOT NULL,  -- What the header webhook-timestamp said, in whole seconds of it.
    ms         integer NOT NULL CHECK (ms >= 0),
    url        text NOT NULL,
    http       smallint CHECK (http BETWEEN 100 AND 999),
    error      text CHECK (length(error) <= 300),
    head       text NOT NULL DEFAULT '' CHECK (length(head) <= 1000),
    body       text NOT NULL DEFAULT '' CHECK (length(body) <= 500),
    PRIMARY KEY (webhook_id, event_id, number),
    FOREIGN KEY (webhook_id, event_id) REFERENCES webhook_delivery ON DELETE CASCADE,
    CONSTRAINT webhook_attempt_ended CHECK ((http IS NULL) <> (error IS NULL))
);
CREATE TRIGGER webhook_attempt_append_only BEFORE UPDATE OR TRUNCATE ON webhook_attempt
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Where an order's own events go beside the company's endpoints; it was said at Create and never changes.
CREATE TABLE order_webhook (
    order_id bigint PRIMARY KEY REFERENCES orders ON DELETE CASCADE,
    url      text NOT NULL CHECK (length(url) BETWEEN 1 AND 2000)
);
CREATE TRIGGER order_webhook_unchanging BEFORE UPDATE OR TRUNCATE ON order_webhook
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- How far events were turned into deliveries.
CREATE TABLE webhook_cursor (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    upto     bigint NOT NULL CHECK (upto >= 0)
);
-- Nobody has an endpoint yet, so nothing that has happened so far is to be sent.
INSERT INTO webhook_cursor (upto) SELECT coalesce(max(id), 0) FROM event;
CREATE TRIGGER webhook_cursor_forwards BEFORE UPDATE ON webhook_cursor
    FOR EACH ROW WHEN (NEW.upto < OLD.upto) EXECUTE FUNCTION refuse_change();

-- Mail to people, written with what it is about and sent afterwards.
CREATE TABLE mail (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    recipients text[] NOT NULL CHECK (cardinality(recipients) BETWEEN 1 AND 100),
    subject    text NOT NULL CHECK (length(subject) BETWEEN 1 AND 200),
    body       text NOT NULL CHECK (length(body) <= 20000),
    sent_at    timestamptz
);
CREATE INDEX mail_unsent ON mail (id) WHERE sent_at IS NULL;
