-- The archive of the audit trail: sealed blocks of trail and reveal, which lie in files and not in tables.

CREATE TABLE archived_blocks (
    book        text NOT NULL CHECK (book IN ('trail', 'reveal')),
    first_block bigint NOT NULL CHECK (first_block > 0),
    last_block  bigint NOT NULL,
    first_id    bigint NOT NULL,
    last_id     bigint NOT NULL,
    rows        bigint NOT NULL CHECK (rows > 0),
    last_at     timestamptz NOT NULL,
    bytes       bigint NOT NULL CHECK (bytes > 0),
    sha256      bytea NOT NULL CHECK (length(sha256) = 32),
    written_at  timestamptz NOT NULL DEFAULT now(),
    removed_at  timestamptz,
    PRIMARY KEY (book, first_block),
    CONSTRAINT archived_blocks_in_order CHECK (first_block <= last_block AND first_id <= last_id)
);
COMMENT ON TABLE archived_blocks IS
    'One row is a file with whole blocks of trail or reveal, from the first block of the book on without a gap. Its blocks '
    'were read back, and have the hashes that trail_seal tells (OP-134).';
COMMENT ON COLUMN archived_blocks.last_at IS 'No row of it is younger.';
COMMENT ON COLUMN archived_blocks.removed_at IS 'When the last of its rows left the table; NULL: they are leaving.';

CREATE FUNCTION guard_archived_blocks() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before record;
    sealed record;
BEGIN
    SELECT last_block, last_id INTO before FROM archived_blocks
    WHERE book = NEW.book ORDER BY first_block DESC LIMIT 1;
    IF NEW.first_block <> coalesce(before.last_block, 0) + 1 THEN
        RAISE EXCEPTION 'only blocks that follow those in the archive may follow them there'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT count(*) AS blocks, sum(s.rows) AS rows, min(s.first_id) AS first_id, max(s.last_id) AS last_id INTO sealed
    FROM trail_seal s WHERE s.book = NEW.book AND s.block BETWEEN NEW.first_block AND NEW.last_block;
    IF (sealed.blocks, sealed.rows, sealed.first_id, sealed.last_id)
       IS DISTINCT FROM (NEW.last_block - NEW.first_block + 1, NEW.rows::numeric, NEW.first_id, NEW.last_id) THEN
        RAISE EXCEPTION 'the file does not hold the blocks that were sealed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_archived_blocks IS
    'Refuses a file of blocks that were not sealed so, or that leaves a gap behind the files before it.';
CREATE TRIGGER archived_blocks_follow BEFORE INSERT ON archived_blocks
    FOR EACH ROW EXECUTE FUNCTION guard_archived_blocks();
CREATE TRIGGER archived_blocks_kept BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON archived_blocks
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_blocks_once BEFORE UPDATE ON archived_blocks FOR EACH ROW
    WHEN (OLD.removed_at IS NOT NULL OR to_jsonb(NEW) - 'removed_at' <> to_jsonb(OLD) - 'removed_at')
    EXECUTE FUNCTION refuse_change();

-- Rows go by the function below, which the owner of the tables calls.

DROP TRIGGER trail_append_only ON trail;
CREATE TRIGGER trail_append_only BEFORE UPDATE OR TRUNCATE ON trail
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER trail_kept BEFORE DELETE ON trail FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
DROP TRIGGER reveal_append_only ON reveal;
CREATE TRIGGER reveal_append_only BEFORE UPDATE OR TRUNCATE ON reveal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER reveal_kept BEFORE DELETE ON reveal FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();

CREATE FUNCTION remove_archived_blocks(of_book text, from_block bigint, to_block bigint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    file    record;
    low     bigint;
    high    bigint;
    sealed  bigint;
    stored  record;
    removed integer;
BEGIN
    SELECT * INTO file FROM archived_blocks
    WHERE book = of_book AND first_block <= from_block AND last_block >= to_block AND removed_at IS NULL FOR UPDATE;
    IF NOT FOUND OR from_block > to_block OR file.last_at + interval '1 month' > now() THEN
        RAISE EXCEPTION 'blocks % to % of % are in no file, or too young', from_block, to_block, of_book
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT min(first_id) - 1, max(last_id), sum(rows) INTO low, high, sealed FROM trail_seal
    WHERE book = of_book AND block BETWEEN from_block AND to_block;
    EXECUTE format('SELECT count(*) AS count, max(at) AS last_at FROM %I WHERE id > $1 AND id <= $2', of_book)
        INTO stored USING low, high;
    IF stored.count <> sealed OR stored.last_at > file.last_at THEN
        RAISE EXCEPTION 'blocks % to % of % are not whole in their table', from_block, to_block, of_book
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM set_config('voucherd.archiving', 'on', true);
    IF of_book = 'reveal' THEN
        DELETE FROM reveal WHERE id > low AND id <= high;
    ELSE
        DELETE FROM trail t WHERE t.id > low AND t.id <= high
            AND NOT EXISTS (SELECT FROM payment_deed d WHERE d.trail_id = t.id);
    END IF;
    GET DIAGNOSTICS removed = ROW_COUNT;
    PERFORM set_config('voucherd.archiving', 'off', true);
    RETURN removed;
END $$;
COMMENT ON FUNCTION remove_archived_blocks IS
    'Takes whole blocks that are in a file out of their table. Rows of the trail that payments are tied to stay. Only the '
    'owner of the tables may.';

CREATE OR REPLACE FUNCTION arrange_service() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF to_regrole('voucherd_service') IS NULL OR pg_has_role('voucherd_service', current_user, 'MEMBER') THEN
        RETURN false;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO voucherd_service', current_schema());
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO voucherd_service', current_schema());
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO voucherd_service', current_schema());
    REVOKE INSERT, UPDATE, DELETE ON schema_migration, archived_blocks FROM voucherd_service;
    RETURN true;
END $$;
