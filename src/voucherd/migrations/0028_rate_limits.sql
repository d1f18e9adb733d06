-- Rate limits (OP-27): how many requests of a key's quota are lent to processes in the key's present minute.
--
-- A process borrows some requests at a time and hands them out from memory, so nothing is written for a request. The
-- sum of what is lent never exceeds the quota. Unlogged: after a crash of the server everybody begins with a new minute.
CREATE UNLOGGED TABLE rate_window (
    key_id   bigint PRIMARY KEY,          -- No reference: it would lock the key's row, and make the write a logged one.
    number   bigint NOT NULL DEFAULT 0,   -- Which minute since 1970, shifted so that not all keys turn at once.
    lent     integer NOT NULL DEFAULT 0,  -- In that minute.
    before   integer NOT NULL DEFAULT 0,  -- In the minute before it.
    CONSTRAINT rate_window_counts CHECK (lent >= 0 AND before >= 0)
) WITH (fillfactor = 50);

-- Lends to each key as much as it wants and may have, and takes back what was not used in the minute `back_numbers`. A
-- sliding window: the minute before counts for the part of it that lies within the last sixty seconds. When little is
-- left, an eighth of it is lent at a time, so that no process sits on what others need. The clock is this server's;
-- `moment` is for tests.
CREATE FUNCTION lend_requests(
    keys bigint[], quotas integer[], wanted integer[], back integer[], back_numbers bigint[],
    moment timestamptz DEFAULT NULL
) RETURNS TABLE (key_id bigint, number bigint, given integer, lent integer, before integer, left_ms bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now_ms bigint;
BEGIN
    INSERT INTO rate_window (key_id) SELECT k FROM unnest(keys) AS k ORDER BY k ON CONFLICT DO NOTHING;
    -- In the order of their keys, so that two processes never wait for each other.
    PERFORM FROM rate_window r WHERE r.key_id = ANY (keys) ORDER BY r.key_id FOR UPDATE;
    now_ms := floor(extract(epoch FROM coalesce(moment, clock_timestamp())) * 1000);
    RETURN QUERY
    WITH asked AS (
        SELECT r.key_id, a.quota, a.want, a.back, a.back_number, r.lent, r.before, r.number AS old_number,
               -- A clock that is set back does not lend a minute twice.
               greatest(r.number, (now_ms + a.key_id * 7919 % 60000) / 60000) AS number,
               now_ms + a.key_id * 7919 % 60000 AS own_ms
        FROM unnest(keys, quotas, wanted, back, back_numbers) AS a (key_id, quota, want, back, back_number)
        JOIN rate_window r ON r.key_id = a.key_id
    ), turned AS (
        SELECT a.key_id, a.quota, a.want, a.number, (a.number + 1) * 60000 - a.own_ms AS left_ms,
               CASE WHEN a.number > a.old_number THEN 0
                    ELSE greatest(0, a.lent - CASE WHEN a.back_number = a.number THEN a.back ELSE 0 END) END AS lent,
               greatest(0, CASE a.number - a.old_number WHEN 0 THEN a.before WHEN 1 THEN a.lent ELSE 0 END
                           - CASE WHEN a.back_number = a.number - 1 THEN a.back ELSE 0 END) AS before
        FROM asked a
    ), free AS (
        SELECT t.*, t.quota - t.lent - (t.before * least(t.left_ms, 60000) / 60000)::integer AS free FROM turned t
    ), loans AS (
        SELECT f.*, greatest(0, least(f.want, f.free, greatest(1, f.free / 8))) AS given FROM free f
    )
    UPDATE rate_window r SET number = l.number, lent = l.lent + l.given, before = l.before
    FROM loans l WHERE r.key_id = l.key_id
    RETURNING l.key_id, l.number, l.given, r.lent, r.before, l.left_ms;
END $$;
