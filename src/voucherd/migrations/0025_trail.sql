-- The audit trail: who did what, from where (OP-94). Rows are only ever added. Writers don't wait for one another: no row
-- knows the one before it. A round of the worker seals rows in blocks once nothing older can come to light any more, and
-- each block's hash covers the block before it: whoever changes, adds or removes a sealed row breaks the chain from there
-- on, and whoever rewrites the whole chain changes its head, which can be noted elsewhere (docs/decisions/0023).
CREATE TABLE trail (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor_kind smallint NOT NULL CHECK (actor_kind BETWEEN 0 AND 5),  -- operator, person, key, command, system, recipient
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
CREATE TRIGGER trail_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON trail
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE INDEX trail_company ON trail (company_id, id) WHERE company_id IS NOT NULL;

-- Every time that codes were shown: one row for an order and an answer, however many codes. Written before they leave.
CREATE TABLE reveal (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    order_id   bigint NOT NULL,
    company_id integer NOT NULL,
    line_from  integer NOT NULL CHECK (line_from BETWEEN 0 AND 9999),  -- The first line that was shown, and how many.
    lines      integer NOT NULL CHECK (lines BETWEEN 1 AND 10000),
    via        smallint NOT NULL CHECK (via BETWEEN 0 AND 8),
    actor_kind smallint NOT NULL CHECK (actor_kind BETWEEN 0 AND 5),
    actor_id   bigint,
    address    inet
);
CREATE TRIGGER reveal_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON reveal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE INDEX reveal_order ON reveal (order_id);

-- The blocks of both books. A block holds every row with an id above that of the block before it, up to its own last.
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
