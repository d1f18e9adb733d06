-- The feed: events in an order that every reader can follow without missing one.
--
-- Transactions take ids from a sequence and commit when they please, so an id may become visible after higher ones. A
-- reader therefore stops at `settled`: every id up to there is in the table or never will be. Finding that number costs
-- writers nothing. Whoever inserts an event holds the table's lock in row exclusive mode from before he takes an id
-- until after his commit is visible. So: read the last id that was taken, then who holds the lock; once all of those are
-- gone, nothing up to that id is under way any more. Others who write elsewhere, for however long, are not waited for.
CREATE TABLE event_mark (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    settled    bigint NOT NULL DEFAULT 0,
    seen       bigint NOT NULL DEFAULT 0,     -- The last id that was taken when `waits_for` was read.
    waits_for  text[] NOT NULL DEFAULT '{}',  -- The virtual transactions that held the lock then.
    removed    bigint NOT NULL DEFAULT 0,     -- Events up to here were kept for their time and removed.
    removed_at timestamptz,                   -- None of those happened after this.
    CONSTRAINT event_mark_in_order CHECK (0 <= removed AND removed <= settled AND settled <= seen),
    CONSTRAINT event_mark_removed_fits CHECK ((removed = 0) = (removed_at IS NULL))
) WITH (fillfactor = 50);
INSERT INTO event_mark DEFAULT VALUES;
CREATE TRIGGER event_mark_forwards BEFORE UPDATE ON event_mark
    FOR EACH ROW WHEN (NEW.settled < OLD.settled OR NEW.removed < OLD.removed) EXECUTE FUNCTION refuse_change();

-- Moves the mark as far as it may go, and tells where it stands. To be called outside of transactions: what it tells is
-- visible to the statements that follow, and not to a snapshot that is older. Any number of processes may call it at
-- once: what it writes is true whenever it is written, and is written only over what it was concluded from.
CREATE FUNCTION settle_events(OUT settled_id bigint, OUT removed_id bigint) LANGUAGE plpgsql AS $$
DECLARE
    mark    record;
    taken   bigint;
    writers text[];
BEGIN
    SELECT * INTO STRICT mark FROM event_mark;
    settled_id := mark.settled;
    removed_id := mark.removed;
    -- First the id and then the lock: whoever took one of these ids holds it still, or has ended.
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

-- A company's own events, from any place on. It costs each insert some microseconds; without it a small company's page
-- would read through everybody's events (docs/decisions/0020).
CREATE INDEX event_company ON event (company_id, state, id);
