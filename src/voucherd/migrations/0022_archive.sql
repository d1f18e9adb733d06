-- The archive: closed months of orders, which lie in files and not in tables.

CREATE TABLE archive_month (
    month      date PRIMARY KEY CHECK (extract(day FROM month) = 1),
    orders     bigint NOT NULL CHECK (orders >= 0),
    last_at    timestamptz NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now(),
    removed_at timestamptz
);
COMMENT ON TABLE archive_month IS
    'One row is a month (UTC) whose orders were written to files, which were then read back and compared (OP-129).';
COMMENT ON COLUMN archive_month.orders IS 'In its files.';
COMMENT ON COLUMN archive_month.last_at IS 'Nothing of it was delivered or cancelled after this.';
COMMENT ON COLUMN archive_month.removed_at IS 'When the last of its orders left the tables; NULL: they are leaving.';

CREATE TABLE archive_file (
    month    date NOT NULL REFERENCES archive_month,
    name     text NOT NULL CHECK (name ~ '^[0-9a-z-]{1,60}\.parquet$'),
    first_id bigint NOT NULL,
    last_id  bigint NOT NULL,
    orders   integer NOT NULL CHECK (orders > 0),
    bytes    bigint NOT NULL CHECK (bytes > 0),
    sha256   bytea NOT NULL CHECK (length(sha256) = 32),
    PRIMARY KEY (month, name),
    CONSTRAINT archive_file_in_order CHECK (first_id <= last_id)
);
COMMENT ON TABLE archive_file IS
    'One row is a file of a month. An order that is in no table is looked for in the files whose numbers reach over its own.';

CREATE TABLE archived_wallet (
    wallet_id      bigint NOT NULL REFERENCES wallet,
    month          date NOT NULL REFERENCES archive_month,
    orders         bigint NOT NULL CHECK (orders > 0),
    charged_minor  bigint NOT NULL CHECK (charged_minor >= 0),
    refunded_minor bigint NOT NULL,
    PRIMARY KEY (wallet_id, month),
    CONSTRAINT archived_wallet_refunds CHECK (refunded_minor BETWEEN 0 AND charged_minor)
);
COMMENT ON TABLE archived_wallet IS
    'One row is what the orders of a month that left the tables were charged and refunded in one wallet, which is the sum of '
    'the entries that left with them.';

CREATE TABLE archived_ledger (
    wallet_id     bigint PRIMARY KEY REFERENCES wallet,
    seq           bigint NOT NULL CHECK (seq > 0),
    balance_minor bigint NOT NULL,
    held_minor    bigint NOT NULL,
    CONSTRAINT archived_ledger_not_overdrawn CHECK (held_minor >= 0 AND balance_minor >= held_minor)
);
COMMENT ON TABLE archived_ledger IS
    'One row is how a wallet stood behind the last of its entries that left the tables. From there on its entries are without '
    'a gap; of those up to there only top-ups, corrections and entries of orders that stayed are left.';
COMMENT ON COLUMN archived_ledger.seq IS 'The number of that entry.';

CREATE TABLE archived_codes (
    lot_id   bigint NOT NULL,
    seq_from integer NOT NULL CHECK (seq_from >= 0),
    seq_to   integer NOT NULL,
    PRIMARY KEY (lot_id, seq_from),
    CONSTRAINT archived_codes_some CHECK (seq_from < seq_to)
);
COMMENT ON TABLE archived_codes IS
    'One row is a range of codes of a lot that were sold to orders which left the tables. Ranges that touch are one.';

CREATE TABLE archived_purchase (
    attempt_id uuid NOT NULL REFERENCES attempt,
    month      date NOT NULL REFERENCES archive_month,
    lines      integer NOT NULL CHECK (lines > 0),
    PRIMARY KEY (attempt_id, month)
);
COMMENT ON TABLE archived_purchase IS 'One row is how many lines of a purchase were of orders which left the tables.';

CREATE TABLE archived_view (
    order_id          bigint NOT NULL,
    line              integer NOT NULL CHECK (line >= 0),
    company_id        integer NOT NULL REFERENCES company,
    link_viewed_at    timestamptz,
    voucher_viewed_at timestamptz,
    returned_at       timestamptz,
    PRIMARY KEY (order_id, line),
    CONSTRAINT archived_view_opened_first CHECK (voucher_viewed_at IS NULL OR link_viewed_at IS NOT NULL),
    CONSTRAINT archived_view_in_order CHECK (voucher_viewed_at >= link_viewed_at),
    CONSTRAINT archived_view_says_something CHECK (num_nonnulls(link_viewed_at, returned_at) > 0)
);
COMMENT ON TABLE archived_view IS
    'One row is as in line_view, of a line whose order left the tables: links are opened years later, too.';
CREATE TRIGGER archived_view_once BEFORE UPDATE ON archived_view FOR EACH ROW
    WHEN (NEW.order_id <> OLD.order_id OR NEW.line <> OLD.line OR NEW.company_id <> OLD.company_id
          OR (OLD.link_viewed_at IS NOT NULL AND NEW.link_viewed_at IS DISTINCT FROM OLD.link_viewed_at)
          OR (OLD.voucher_viewed_at IS NOT NULL AND NEW.voucher_viewed_at IS DISTINCT FROM OLD.voucher_viewed_at)
          OR (OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at))
    EXECUTE FUNCTION refuse_change();

-- Who may take rows of history away: the owner of the tables, within the functions below.

CREATE FUNCTION refuse_unarchived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('voucherd.archiving', true) = 'on' AND TG_OP <> 'TRUNCATE'
       AND (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = TG_RELID) THEN
        IF TG_LEVEL = 'STATEMENT' THEN
            RETURN NULL;
        END IF;
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
COMMENT ON FUNCTION refuse_unarchived IS
    'Refuses changes but those of the archive, which the owner of the tables makes. The role of the service can not.';

DROP TRIGGER orders_kept ON orders;
CREATE TRIGGER orders_kept BEFORE DELETE ON orders
    FOR EACH ROW WHEN (OLD.status <> 0) EXECUTE FUNCTION refuse_unarchived();
COMMENT ON TRIGGER orders_kept ON orders IS
    'Only an order that was never confirmed may be removed (OP-40), and one that is in the archive (OP-129).';
DROP TRIGGER outcome_append_only ON outcome;
CREATE TRIGGER outcome_append_only BEFORE UPDATE OR TRUNCATE ON outcome
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER outcome_kept BEFORE DELETE ON outcome FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
DROP TRIGGER attempt_line_append_only ON attempt_line;
CREATE TRIGGER attempt_line_append_only BEFORE UPDATE OR TRUNCATE ON attempt_line
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER attempt_line_kept BEFORE DELETE ON attempt_line
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
DROP TRIGGER entry_append_only ON entry;
CREATE TRIGGER entry_append_only BEFORE UPDATE OR TRUNCATE ON entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entry_kept BEFORE DELETE ON entry FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
DROP TRIGGER line_view_stays ON line_view;
CREATE TRIGGER line_view_stays BEFORE DELETE OR TRUNCATE ON line_view
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();

CREATE TRIGGER archive_month_kept BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON archive_month
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archive_file_kept BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON archive_file
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_wallet_kept BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON archived_wallet
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_ledger_kept BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON archived_ledger
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_codes_kept BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON archived_codes
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_purchase_kept BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON archived_purchase
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_view_stays BEFORE DELETE OR TRUNCATE ON archived_view
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();

CREATE FUNCTION remember_archived_codes(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    lots   bigint[];
    starts integer[];
    ends   integer[];
    sold   bigint;
BEGIN
    -- Ranges that are there already count where they lie between the new ones, or touch them.
    WITH fresh AS (
        SELECT lot_id, seq_from, seq_from + line_to - line_from AS seq_to FROM outcome
        WHERE order_id = ANY (ids) AND lot_id IS NOT NULL
    ), taken AS (
        SELECT * FROM fresh
        UNION ALL
        SELECT a.lot_id, a.seq_from, a.seq_to
        FROM (SELECT lot_id, min(seq_from) AS low, max(seq_to) AS high FROM fresh GROUP BY lot_id) f
        JOIN archived_codes a ON a.lot_id = f.lot_id AND a.seq_from <= f.high AND a.seq_to >= f.low
    ), merged AS (
        SELECT lot_id, range_agg(int4range(seq_from, seq_to)) AS ranges FROM taken GROUP BY lot_id
    )
    SELECT array_agg(m.lot_id), array_agg(lower(one)), array_agg(upper(one)), (SELECT sum(seq_to - seq_from) FROM taken)
    INTO lots, starts, ends, sold
    FROM merged m CROSS JOIN LATERAL unnest(m.ranges) AS one;
    IF sold <> (SELECT sum(r.seq_to - r.seq_from) FROM unnest(starts, ends) AS r (seq_from, seq_to)) THEN
        RAISE EXCEPTION 'a code was sold twice' USING ERRCODE = 'exclusion_violation';
    END IF;
    DELETE FROM archived_codes a
    USING (SELECT r.lot_id, min(r.seq_from) AS low, max(r.seq_to) AS high
           FROM unnest(lots, starts, ends) AS r (lot_id, seq_from, seq_to) GROUP BY 1) f
    WHERE a.lot_id = f.lot_id AND a.seq_from >= f.low AND a.seq_to <= f.high;
    INSERT INTO archived_codes (lot_id, seq_from, seq_to)
    SELECT r.lot_id, r.seq_from, r.seq_to FROM unnest(lots, starts, ends) AS r (lot_id, seq_from, seq_to);
END $$;
COMMENT ON FUNCTION remember_archived_codes IS
    'Keeps which codes were sold to orders that leave, as ranges; refuses a code that was sold to two of them.';

CREATE FUNCTION remove_archived_entries(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM orders o LEFT JOIN entry e ON e.order_id = o.id LEFT JOIN wallet w ON w.id = e.wallet_id
        WHERE o.id = ANY (ids) GROUP BY o.id
        HAVING coalesce(sum(e.amount_minor), 0) <> o.refunded_minor - o.charged_minor
            OR coalesce(sum(e.hold_minor), 0) <> 0
            OR NOT coalesce(bool_and((w.company_id, w.currency, w.state)
                                     IS NOT DISTINCT FROM (o.company_id, o.payment_currency, (o.id & 1)::smallint))
                            FILTER (WHERE e.seq IS NOT NULL), true)) THEN
        RAISE EXCEPTION 'the entries of an order are not what it was charged and refunded'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    -- From where the last run has left to the last entry that goes now, every one is there and carries on.
    IF EXISTS (
        SELECT FROM (SELECT wallet_id, max(seq) AS seq FROM entry WHERE order_id = ANY (ids) GROUP BY 1) last
        JOIN entry e ON e.wallet_id = last.wallet_id AND e.seq = last.seq
        LEFT JOIN archived_ledger a ON a.wallet_id = last.wallet_id
        CROSS JOIN LATERAL (
            SELECT count(*) AS count, sum(b.amount_minor) AS amount, sum(b.hold_minor) AS hold FROM entry b
            WHERE b.wallet_id = last.wallet_id AND b.seq > coalesce(a.seq, 0) AND b.seq <= last.seq) between_them
        WHERE last.seq > coalesce(a.seq, 0)
          AND (between_them.count <> last.seq - coalesce(a.seq, 0)
               OR coalesce(a.balance_minor, 0) + between_them.amount <> e.balance_after_minor
               OR coalesce(a.held_minor, 0) + between_them.hold <> e.held_after_minor)) THEN
        RAISE EXCEPTION 'the entries of a wallet do not continue one another'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    INSERT INTO archived_ledger AS a (wallet_id, seq, balance_minor, held_minor)
    SELECT e.wallet_id, e.seq, e.balance_after_minor, e.held_after_minor
    FROM (SELECT wallet_id, max(seq) AS seq FROM entry WHERE order_id = ANY (ids) GROUP BY 1) last
    JOIN entry e ON e.wallet_id = last.wallet_id AND e.seq = last.seq
    ON CONFLICT (wallet_id) DO UPDATE
    SET seq = excluded.seq, balance_minor = excluded.balance_minor, held_minor = excluded.held_minor
    WHERE a.seq < excluded.seq;
    DELETE FROM entry WHERE order_id = ANY (ids);
END $$;
COMMENT ON FUNCTION remove_archived_entries IS
    'Takes the entries of orders out of the ledger, and leaves behind how each wallet stood after the last of them.';

CREATE FUNCTION remove_archived(of_month date, ids bigint[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    removed integer;
BEGIN
    PERFORM FROM archive_month WHERE month = of_month AND removed_at IS NULL FOR UPDATE;
    IF NOT FOUND OR of_month + interval '2 months' > now() AT TIME ZONE 'UTC' THEN
        RAISE EXCEPTION 'the orders of % were not written to files, or are too young', of_month
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM FROM orders WHERE id = ANY (ids) ORDER BY id FOR UPDATE;
    IF EXISTS (
        SELECT FROM orders o
        WHERE o.id = ANY (ids) AND (o.status NOT IN (2, 3, 4) OR o.held_minor <> 0
            OR date_trunc('month', o.created_at AT TIME ZONE 'UTC') <> of_month
            OR NOT EXISTS (SELECT FROM archive_file f
                           WHERE f.month = of_month AND o.id BETWEEN f.first_id AND f.last_id)
            OR EXISTS (SELECT FROM waiting w WHERE w.order_id = o.id)
            OR EXISTS (SELECT FROM order_pin p WHERE p.order_id = o.id)
            OR EXISTS (SELECT FROM approval p WHERE p.order_id = o.id)
            OR EXISTS (SELECT FROM attempt_line l JOIN attempt a ON a.id = l.attempt_id
                       WHERE l.order_id = o.id AND a.status < 3))) THEN
        RAISE EXCEPTION 'an order that is not over, or not of this month, stays in its table'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM set_config('voucherd.archiving', 'on', true);

    INSERT INTO archived_wallet AS a (wallet_id, month, orders, charged_minor, refunded_minor)
    SELECT w.id, of_month, count(*), sum(o.charged_minor), sum(o.refunded_minor)
    FROM orders o JOIN wallet w
      ON w.company_id = o.company_id AND w.currency = o.payment_currency AND w.state = (o.id & 1)
    WHERE o.id = ANY (ids) GROUP BY w.id
    ON CONFLICT (wallet_id, month) DO UPDATE
    SET orders = a.orders + excluded.orders, charged_minor = a.charged_minor + excluded.charged_minor,
        refunded_minor = a.refunded_minor + excluded.refunded_minor;

    PERFORM remember_archived_codes(ids);

    INSERT INTO archived_purchase AS a (attempt_id, month, lines)
    SELECT attempt_id, of_month, sum(line_to - line_from) FROM attempt_line WHERE order_id = ANY (ids) GROUP BY 1
    ON CONFLICT (attempt_id, month) DO UPDATE SET lines = a.lines + excluded.lines;

    INSERT INTO archived_view (order_id, line, company_id, link_viewed_at, voucher_viewed_at, returned_at)
    SELECT v.order_id, v.line, o.company_id, v.link_viewed_at, v.voucher_viewed_at, v.returned_at
    FROM line_view v JOIN orders o ON o.id = v.order_id WHERE v.order_id = ANY (ids);

    PERFORM remove_archived_entries(ids);
    DELETE FROM line_view WHERE order_id = ANY (ids);
    DELETE FROM attempt_line WHERE order_id = ANY (ids);
    DELETE FROM outcome WHERE order_id = ANY (ids);
    DELETE FROM orders WHERE id = ANY (ids);
    GET DIAGNOSTICS removed = ROW_COUNT;
    PERFORM set_config('voucherd.archiving', 'off', true);
    RETURN removed;
END $$;
COMMENT ON FUNCTION remove_archived IS
    'Takes orders of a month out of the tables, with their entries. What the books need of them stays behind: sums for each '
    'wallet, ranges of codes, lines of purchases, and what recipients saw. Only the owner of the tables may.';
