-- Recovery: a restored database, the codes that it may have sold already, and whether its backups are any good.

CREATE TABLE recovery (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    noted_at     timestamptz NOT NULL DEFAULT now(),
    moment       timestamptz NOT NULL,
    source       text NOT NULL CHECK (length(source) BETWEEN 1 AND 300),
    recovered_at timestamptz
);
CREATE UNIQUE INDEX recovery_open ON recovery ((true)) WHERE recovered_at IS NULL;
CREATE TRIGGER recovery_kept BEFORE DELETE OR TRUNCATE OR UPDATE OF id, noted_at, moment, source ON recovery
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER recovery_once BEFORE UPDATE OF recovered_at ON recovery
    FOR EACH ROW WHEN (OLD.recovered_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE recovery IS
    'One row is a restore of this database to an earlier moment (OP-119). While recovered_at is NULL nothing may be sold.';
COMMENT ON COLUMN recovery.moment IS 'What happened after it is unknown to this database.';
COMMENT ON COLUMN recovery.source IS 'What it was restored from, in words.';
COMMENT ON COLUMN recovery.recovered_at IS 'When `voucherd recover` withheld codes and let the numbers jump.';

CREATE TABLE withheld (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recovery_id bigint NOT NULL REFERENCES recovery,
    lot_id      bigint NOT NULL,
    seq_from    integer NOT NULL CHECK (seq_from >= 0),
    seq_to      integer NOT NULL,
    CONSTRAINT withheld_some CHECK (seq_from < seq_to),
    UNIQUE (lot_id, seq_from)
);
CREATE TRIGGER withheld_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON withheld
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE withheld IS
    'One row is a range of codes of a lot that may have been sold in a time that this database does not know. The cursor '
    'of the lot has passed them, so nobody sells them from there.';

CREATE FUNCTION guard_withheld() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM lot WHERE id IN (SELECT lot_id FROM fresh) ORDER BY id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM fresh f LEFT JOIN lot l ON l.id = f.lot_id
        WHERE l.id IS NULL OR f.seq_to > l.cursor
           OR EXISTS (SELECT FROM withheld w WHERE w.lot_id = f.lot_id AND w.id <> f.id
                      AND w.seq_from < f.seq_to AND w.seq_to > f.seq_from)
           OR EXISTS (SELECT FROM outcome o WHERE o.lot_id = f.lot_id AND o.seq_from < f.seq_to
                      AND o.seq_from + (o.line_to - o.line_from) > f.seq_from)) THEN
        RAISE EXCEPTION 'these codes were sold or withheld already, or the cursor has not passed them'
            USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER withheld_guard AFTER INSERT ON withheld REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_withheld();
COMMENT ON FUNCTION guard_withheld IS
    'Refuses to withhold a code twice, a code that was sold, or one that may still be sold. It stands for a foreign key, '
    'too, which every sale would pay for.';

CREATE TABLE withheld_release (
    lot_id      bigint PRIMARY KEY,
    withheld_id bigint NOT NULL REFERENCES withheld,
    seq_from    integer NOT NULL,
    seq_to      integer NOT NULL,
    released_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT withheld_release_some CHECK (seq_from < seq_to)
);
CREATE INDEX withheld_release_of ON withheld_release (withheld_id);
CREATE TRIGGER withheld_release_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON withheld_release
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE withheld_release IS
    'One row is a range of withheld codes that the operator found unsold. They moved to a new lot, because a lot sells '
    'forwards only.';
COMMENT ON COLUMN withheld_release.lot_id IS 'The lot that they are in now.';

CREATE FUNCTION guard_releases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM lot WHERE id IN (SELECT w.lot_id FROM fresh f JOIN withheld w ON w.id = f.withheld_id)
    ORDER BY id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM fresh f JOIN withheld w ON w.id = f.withheld_id LEFT JOIN lot l ON l.id = f.lot_id
        WHERE l.id IS NULL OR f.seq_from < w.seq_from OR f.seq_to > w.seq_to
           OR EXISTS (SELECT FROM withheld_release r WHERE r.withheld_id = f.withheld_id AND r.lot_id <> f.lot_id
                      AND r.seq_from < f.seq_to AND r.seq_to > f.seq_from)) THEN
        RAISE EXCEPTION 'these codes are not withheld' USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER withheld_release_guard AFTER INSERT ON withheld_release REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_releases();
COMMENT ON FUNCTION guard_releases IS 'Refuses to release a code that is not withheld, or was released already.';

-- A code moves when it is released, and at no other time.

DROP TRIGGER code_append_only ON code;
CREATE TRIGGER code_append_only BEFORE DELETE OR TRUNCATE OR UPDATE OF blind ON code
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TRIGGER code_append_only ON code IS 'Only a rotation of the vault keys, and a release, seal it anew.';
CREATE FUNCTION guard_code_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM withheld_release r JOIN withheld w ON w.id = r.withheld_id
                   WHERE r.lot_id = NEW.lot_id AND w.lot_id = OLD.lot_id
                     AND OLD.seq >= r.seq_from AND OLD.seq < r.seq_to AND NEW.seq = OLD.seq - r.seq_from) THEN
        RAISE EXCEPTION 'a code stays in its place' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER code_stays BEFORE UPDATE OF lot_id, seq ON code
    FOR EACH ROW EXECUTE FUNCTION guard_code_moves();
COMMENT ON FUNCTION guard_code_moves IS 'Refuses to move a code that was not released to the lot it goes to.';

CREATE TABLE drill (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT now(),
    backup_at timestamptz NOT NULL,
    ok        boolean NOT NULL,
    said      text NOT NULL CHECK (length(said) <= 500),
    seconds   double precision NOT NULL CHECK (seconds >= 0)
);
CREATE TRIGGER drill_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON drill
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE drill IS 'One row is a restore that was tried out beside the database (OP-122), and how it ended.';
COMMENT ON COLUMN drill.backup_at IS 'When the backup was taken that was tried.';
COMMENT ON COLUMN drill.said IS 'What was wrong; empty if nothing was.';
