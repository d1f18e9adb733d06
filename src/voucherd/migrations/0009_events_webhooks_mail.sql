-- Events, and who is told of them: the feed, webhooks and mail.

CREATE TABLE event (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    company_id integer,
    state      smallint CHECK (state IN (0, 1)),
    type       text NOT NULL,
    order_id   bigint,
    seq        integer,
    data       jsonb,
    CONSTRAINT event_same_state CHECK (order_id IS NULL OR (state IS NOT NULL AND (order_id & 1) = state))
);
CREATE INDEX event_order ON event (order_id, seq) WHERE order_id IS NOT NULL;
CREATE INDEX event_company ON event (company_id, state, id);
CREATE INDEX event_attempt ON event ((data ->> 'attempt'), id)
    WHERE type IN ('attempt.settled', 'attempt.retried', 'attempt.revealed');
CREATE TRIGGER event_append_only BEFORE UPDATE OR TRUNCATE ON event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE event IS
    'One row is something that happened, written in the transaction in which it happened. Old events are removed.';
COMMENT ON COLUMN event.company_id IS 'NULL: for all companies, or for the operator alone.';
COMMENT ON COLUMN event.state IS 'NULL: of live and of the sandbox.';
COMMENT ON COLUMN event.seq IS 'The version of the order after this event.';
COMMENT ON INDEX event_company IS
    'The events of a company, from any place on. It costs each insert some microseconds; without it the page of a small '
    'company would read through the events of all (docs/decisions/0020).';
COMMENT ON INDEX event_attempt IS 'What people did about a purchase.';

CREATE TABLE event_mark (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    settled    bigint NOT NULL DEFAULT 0,
    seen       bigint NOT NULL DEFAULT 0,
    waits_for  text[] NOT NULL DEFAULT '{}',
    removed    bigint NOT NULL DEFAULT 0,
    removed_at timestamptz,
    CONSTRAINT event_mark_in_order CHECK (0 <= removed AND removed <= settled AND settled <= seen),
    CONSTRAINT event_mark_removed_fits CHECK ((removed = 0) = (removed_at IS NULL))
) WITH (fillfactor = 50);
INSERT INTO event_mark DEFAULT VALUES;
CREATE TRIGGER event_mark_forwards BEFORE UPDATE ON event_mark
    FOR EACH ROW WHEN (NEW.settled < OLD.settled OR NEW.removed < OLD.removed) EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE event_mark IS
    'The only row says up to which id the feed of events may be read. Transactions take ids from a sequence and commit '
    'in any order, so an id may become visible after higher ones. A reader therefore stops at `settled`: every id up to '
    'there is in the table or never will be. Finding that number costs writers nothing. A transaction that inserts an '
    'event holds the lock of the table in row exclusive mode from before it takes an id until after its commit is '
    'visible. So: read the last id that was taken, then who holds the lock; once all of those are gone, nothing up to '
    'that id is under way any more. Transactions that write elsewhere, for however long, are not waited for.';
COMMENT ON COLUMN event_mark.seen IS 'The last id that was taken when `waits_for` was read.';
COMMENT ON COLUMN event_mark.waits_for IS 'The virtual transactions that held the lock then.';
COMMENT ON COLUMN event_mark.removed IS 'Events up to this id were kept for their time and removed.';
COMMENT ON COLUMN event_mark.removed_at IS 'None of those happened after this.';

CREATE FUNCTION settle_events(OUT settled_id bigint, OUT removed_id bigint) LANGUAGE plpgsql AS $$
DECLARE
    mark    record;
    taken   bigint;
    writers text[];
BEGIN
    SELECT * INTO STRICT mark FROM event_mark;
    settled_id := mark.settled;
    removed_id := mark.removed;
    -- First the id and then the lock: a transaction that took one of these ids holds it still, or has ended.
    SELECT CASE WHEN is_called THEN last_value ELSE 0 END INTO STRICT taken FROM event_id_seq;
    IF taken <= mark.settled THEN
        RETURN;
    END IF;
    SELECT coalesce(array_agg(virtualtransaction), '{}') INTO STRICT writers FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'event'::regclass AND mode = 'RowExclusiveLock' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
    IF writers = '{}' THEN
        settled_id := taken;
    ELSIF NOT mark.waits_for && writers THEN
        settled_id := mark.seen;
    ELSE
        RETURN;
    END IF;
    UPDATE event_mark SET settled = settled_id, seen = taken, waits_for = writers
    WHERE settled = mark.settled AND seen = mark.seen AND waits_for = mark.waits_for;
    IF NOT FOUND THEN
        SELECT settled INTO STRICT settled_id FROM event_mark;
    END IF;
END $$;
COMMENT ON FUNCTION settle_events IS
    'Moves the mark as far as it may go, and tells where it stands. To be called outside of transactions: the statements '
    'that follow see everything up to there, a snapshot that is older does not. Any number of processes may call it at '
    'once: it writes only over the mark that it concluded from.';

CREATE SEQUENCE webhook_number AS bigint;
CREATE TABLE webhook (
    id              bigint PRIMARY KEY,
    company_id      integer NOT NULL REFERENCES company,
    state           smallint NOT NULL CHECK (state IN (0, 1)),
    slot            smallint NOT NULL CHECK (slot BETWEEN 1 AND 20),
    url             text CHECK (length(url) BETWEEN 1 AND 2000),
    description     text NOT NULL DEFAULT '' CHECK (length(description) <= 200),
    types           text[] NOT NULL DEFAULT '{}',
    enabled         boolean NOT NULL DEFAULT true,
    disabled_reason text CHECK (disabled_reason IN ('gone', 'failing')),
    secret          bytea NOT NULL,
    old_secret      bytea,
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
COMMENT ON TABLE webhook IS 'One row is an endpoint to which a company wants its events sent (OP-54).';
COMMENT ON COLUMN webhook.slot IS 'A company has at most 20 endpoints in each state.';
COMMENT ON COLUMN webhook.url IS 'NULL: each order names its own address.';
COMMENT ON COLUMN webhook.types IS 'Empty: all.';
COMMENT ON COLUMN webhook.disabled_reason IS 'NULL: a person disabled it.';
COMMENT ON COLUMN webhook.secret IS 'Signs what is sent. Sealed, as are old_secret and headers.';
COMMENT ON COLUMN webhook.old_secret IS 'Signs beside the new one until old_until.';

CREATE TABLE webhook_queue (
    webhook_id    bigint PRIMARY KEY REFERENCES webhook ON DELETE CASCADE,
    next_at       timestamptz,
    leased        boolean NOT NULL DEFAULT false,
    fence         bigint NOT NULL DEFAULT 0,
    slow          boolean NOT NULL DEFAULT false,
    failures      integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    failing_since timestamptz,
    CONSTRAINT webhook_queue_failing_fits CHECK ((failures = 0) = (failing_since IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX webhook_queue_due ON webhook_queue (slow, next_at) WHERE next_at IS NOT NULL;
COMMENT ON TABLE webhook_queue IS 'One row says when an endpoint has its next turn.';
COMMENT ON COLUMN webhook_queue.next_at IS
    'When something is due. The process that takes the endpoint moves it ahead by a lease, so that no other takes it '
    'and it comes back by itself if that process dies. NULL: nothing to send.';
COMMENT ON COLUMN webhook_queue.fence IS 'Grows with each owner; an earlier one writes nothing any more.';
COMMENT ON COLUMN webhook_queue.slow IS 'Waits with other slow ones, so that it holds up no quick one.';
COMMENT ON COLUMN webhook_queue.failures IS 'Since the last success.';

CREATE TABLE webhook_delivery (
    webhook_id bigint NOT NULL REFERENCES webhook ON DELETE CASCADE,
    event_id   bigint NOT NULL,
    type       text NOT NULL,
    url        text CHECK (length(url) BETWEEN 1 AND 2000),
    status     smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 2),
    attempts   integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    tries      integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at    timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (webhook_id, event_id),
    CONSTRAINT webhook_delivery_waits CHECK ((status = 0) = (next_at IS NOT NULL))
) WITH (fillfactor = 70);
CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, next_at, event_id) WHERE status = 0;
CREATE INDEX webhook_delivery_age ON webhook_delivery (created_at);
CREATE INDEX webhook_delivery_event ON webhook_delivery (event_id);
COMMENT ON TABLE webhook_delivery IS 'One row is an event that one endpoint is to get.';
COMMENT ON COLUMN webhook_delivery.url IS 'Of an order that named its own address.';
COMMENT ON COLUMN webhook_delivery.status IS '0 waiting, 1 delivered, 2 failed.';
COMMENT ON COLUMN webhook_delivery.tries IS 'Attempts since it was last queued: they pick the pause.';
COMMENT ON COLUMN webhook_delivery.next_at IS 'While it waits: for when.';

CREATE TABLE webhook_attempt (
    webhook_id bigint NOT NULL,
    event_id   bigint NOT NULL,
    number     integer NOT NULL CHECK (number > 0),
    sent_at    timestamptz NOT NULL,
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
COMMENT ON TABLE webhook_attempt IS 'One row is a request to an endpoint, and the start of its answer.';
COMMENT ON COLUMN webhook_attempt.sent_at IS 'The header webhook-timestamp, which has whole seconds.';
COMMENT ON COLUMN webhook_attempt.http IS 'The status of the answer; NULL: there was none, but an error.';

CREATE TABLE order_webhook (
    order_id bigint PRIMARY KEY REFERENCES orders ON DELETE CASCADE,
    url      text NOT NULL CHECK (length(url) BETWEEN 1 AND 2000)
);
CREATE TRIGGER order_webhook_unchanging BEFORE UPDATE OR TRUNCATE ON order_webhook
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE order_webhook IS
    'One row is the address that an order named at Create: its events go there beside the endpoints of the company.';

CREATE TABLE webhook_cursor (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    upto     bigint NOT NULL CHECK (upto >= 0)
);
INSERT INTO webhook_cursor (upto) VALUES (0);
CREATE TRIGGER webhook_cursor_forwards BEFORE UPDATE ON webhook_cursor
    FOR EACH ROW WHEN (NEW.upto < OLD.upto) EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE webhook_cursor IS 'The only row says up to which event deliveries were made.';

CREATE TABLE mail (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    recipients text[] NOT NULL CHECK (cardinality(recipients) BETWEEN 1 AND 100),
    subject    text NOT NULL CHECK (length(subject) BETWEEN 1 AND 200),
    body       text NOT NULL CHECK (length(body) <= 20000),
    sent_at    timestamptz,
    secret     boolean NOT NULL DEFAULT false,
    ends_at    timestamptz,
    tries      smallint NOT NULL DEFAULT 0 CHECK (tries >= 0),
    problem    text CHECK (length(problem) <= 300),
    next_at    timestamptz DEFAULT now(),
    CONSTRAINT mail_over CHECK (sent_at IS NULL OR next_at IS NULL)
);
CREATE INDEX mail_due ON mail (next_at, id) WHERE next_at IS NOT NULL;
COMMENT ON TABLE mail IS
    'One row is a letter to people, written in the transaction that it is about and sent afterwards. Its text is removed '
    'once it is sent or too late.';
COMMENT ON COLUMN mail.secret IS 'The text opens something.';
COMMENT ON COLUMN mail.ends_at IS 'It is of no use afterwards.';
COMMENT ON COLUMN mail.problem IS 'Of the last try.';
COMMENT ON COLUMN mail.next_at IS 'NULL: it was sent or given up.';
