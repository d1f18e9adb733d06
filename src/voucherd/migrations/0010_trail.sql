-- The audit trail: who did what, from where (OP-94), and every time that codes were shown.

CREATE TABLE trail (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor_kind smallint NOT NULL CHECK (actor_kind BETWEEN 0 AND 5),
    actor_id   bigint,
    actor      text NOT NULL CHECK (length(actor) BETWEEN 1 AND 300),
    action     text NOT NULL CHECK (action ~ '^[a-z][a-z0-9_]*([.-][a-z0-9_]+)+$' AND length(action) <= 100),
    subject    text NOT NULL CHECK (length(subject) BETWEEN 1 AND 300),
    company_id integer,
    state      smallint CHECK (state IN (0, 1)),
    address    inet,
    request_id text CHECK (length(request_id) BETWEEN 1 AND 200),
    detail     jsonb CHECK (jsonb_typeof(detail) = 'object')
);
CREATE INDEX trail_company ON trail (company_id, id) WHERE company_id IS NOT NULL;
CREATE TRIGGER trail_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON trail
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE trail IS
    'One row is something that somebody did. Rows are only added, and no row knows the one before it, so that writers '
    'do not wait for one another; the worker seals them in blocks afterwards (trail_seal).';
COMMENT ON COLUMN trail.actor_kind IS '0 operator, 1 person, 2 key, 3 command, 4 system, 5 recipient.';
COMMENT ON COLUMN trail.actor IS 'The name of the actor as it was then.';
COMMENT ON COLUMN trail.subject IS 'What it was done to.';

CREATE TABLE reveal (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    order_id   bigint NOT NULL,
    company_id integer NOT NULL,
    line_from  integer NOT NULL CHECK (line_from BETWEEN 0 AND 9999),
    lines      integer NOT NULL CHECK (lines BETWEEN 1 AND 10000),
    via        smallint NOT NULL CHECK (via BETWEEN 0 AND 8),
    actor_kind smallint NOT NULL CHECK (actor_kind BETWEEN 0 AND 5),
    actor_id   bigint,
    address    inet,
    state      smallint NOT NULL GENERATED ALWAYS AS ((order_id & 1)::smallint) STORED
);
CREATE INDEX reveal_order ON reveal (order_id);
CREATE TRIGGER reveal_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON reveal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE reveal IS
    'One row says that codes of an order were shown in one answer, however many. It is written before they leave.';
COMMENT ON COLUMN reveal.line_from IS 'The first line that was shown.';
COMMENT ON COLUMN reveal.via IS '0 Confirm, 1 Resolve, 2 Find, 3 Find all, 4 lines, 5 file, 6 portal, 7 redemption link, 8 Cancel.';
COMMENT ON COLUMN reveal.actor_kind IS 'As in trail.';
COMMENT ON COLUMN reveal.state IS 'Of its order, so that the policy of companies holds here, too.';

CREATE TABLE trail_seal (
    book     text NOT NULL CHECK (book IN ('trail', 'reveal')),
    block    bigint NOT NULL CHECK (block > 0),
    first_id bigint NOT NULL,
    last_id  bigint NOT NULL,
    rows     integer NOT NULL CHECK (rows > 0),
    previous bytea NOT NULL CHECK (length(previous) = 32),
    hash     bytea NOT NULL CHECK (length(hash) = 32),
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (book, block),
    CONSTRAINT trail_seal_in_order CHECK (0 < first_id AND first_id <= last_id AND rows <= last_id - first_id + 1)
);
CREATE TRIGGER trail_seal_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON trail_seal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE trail_seal IS
    'One row is a block of trail or reveal: all rows with ids above the block before it, up to its last_id. The worker '
    'seals a block once no older row can come to light any more. Its hash covers the block before it: a change of a '
    'sealed row breaks the chain from there on, and a rewritten chain has another head, which can be noted elsewhere '
    '(docs/decisions/0023).';
