-- {"version": "0.1.0", "company_id": 1, "company": "Company 1", "keys": {"live": "vk_live_8NSSyGsPiDW3UcJGBkAdTUylyr1FhNTi3H4ZYh", "sandbox": "vk_test_rfYT8FhoeXvyTmalL6Ii3sTZRCMqvBSJ3rgIb7"}, "orders": {"created": "TRX0H8T7ZSVGJ17XDT011ZFY5WV1A", "created to cancel": "TRX32Q6PKBGMP1KCVD723FDWMR4R1", "expired": "TRX3NQS8T8VHYYBMGPM42Z1PZCGQ2", "deleted": "TRX5KEFT78M42WEZ0PVBGVNBMM0TB", "finished": "TRX11V0QA3Y8014BNYJ1A8DG8XBMK", "waiting": "TRX2HMXHWHEM8YZX74M94MYN6EWBH", "cancelled": "TRX4VWPCJ2TPHVBB3B558KJPW16DM", "partly refunded": "TRX6C2PG3YW8E5CBQ62ERFPBG9G9D", "finished once": "TRX13YM11H8WXFTYSEHY8P27V61SB", "sandbox created": "TRX79P8A2DRF0WGQPQPYK73PE1GKX", "sandbox finished": "TRX5TRMEC8SHQG6NY3MJFNV7JT9WD", "sandbox cancelled": "TRX2PD1C3PZB4DC6SGM53H8G8EMQN", "sandbox waiting": "TRX46V72B7HWWH286ZT1CT063THX2", "to approve": "TRX3B7Q1BY3GAH1ZB52210BWZW6P6", "portal finished": "TRX6RHSV50CP6CERJR95JNZXQ94V0", "bought": "TRX2RE99PMHBYNZYN30BXH06W651V", "bought too many": "TRX2PJ3730EXRG0S49Z3XHJC4ZKMC", "refused by the supplier": "TRX4ZAND17WERE8FWW3ES9B8XWQCN", "asked about": "TRX349896TZSCWJP0VHFHDWYZ3CPD", "of unknown end": "TRX1SKMHKZ2SJ295BSTFYGR1MBVWB", "of known codes": "TRX5X8P4ZJA9J5Z5VMPSA1E4MS3XF", "at a supplier": "TRX1NMD4SDHVC48FT4MW5CRKQH3VR", "cancelling": "TRX5NT05VDHNDTZ106TGPGM0GXVQC", "held": "TRX2JXDQ2Y7HST0MP4X1028280R3C", "finished by a limited key": "TRX3WB1JR80A3ZAGHGPVAYHYH2B2M", "finished and told": "TRX1H3VV4T1H7HD13ZN5NFZ5NW03M"}, "codes": {"finished": ["GIFT-0000", "GIFT-0001", "GIFT-0002"], "finished once": ["GIFT-0003"], "bought": ["F-0a21f9aae3dcd0ac", "F-09ed09e8199bbfbb"], "bought too many": ["F-93496220166226be", "F-079c3a0b08ea1a06"], "finished by a limited key": ["GIFT-0005"], "finished and told": ["GIFT-0006"]}}


SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;



CREATE FUNCTION voucherd_release.arrange_tenants() RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    one record;
    -- Tables that no company reads: hashes, answers and purchases of the operator. They have a policy all the same.
    hidden text[] := '{app_user,attempt_line,idempotency,order_pin,pin_try}';
    -- Tables without a company that it may read: the goods for sale, and the mark of the feed of events.
    shared text[] := '{brand,product,product_version,product_listing,product_count,product_change,fx_rate,vat_rate,event_mark}';
BEGIN
    BEGIN
        IF to_regrole('voucherd_tenant') IS NULL THEN
            CREATE ROLE voucherd_tenant NOLOGIN;
        END IF;
    EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL;  -- Another database of this server was faster.
        WHEN insufficient_privilege THEN RETURN false;
    END;
    IF (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = 'voucherd_tenant') THEN
        RETURN false;
    END IF;
    BEGIN
        IF NOT pg_has_role('voucherd_tenant', 'MEMBER') THEN
            -- Not inherited: its policies are for those who take the role, not for those who may.
            EXECUTE 'GRANT voucherd_tenant TO CURRENT_USER'
                || CASE WHEN current_setting('server_version_num')::int >= 160000 THEN ' WITH INHERIT FALSE, SET TRUE' ELSE '' END;
        END IF;
    EXCEPTION WHEN insufficient_privilege THEN RETURN false;
    END;
    IF NOT has_schema_privilege('voucherd_tenant', current_schema(), 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO voucherd_tenant', current_schema());
    END IF;
    FOR one IN
        SELECT r.relation, r.rule FROM tenant_rules() r
        WHERE NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = r.relation AND p.polname = 'tenant') ORDER BY 1
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', one.relation);
        EXECUTE format('CREATE POLICY everybody ON %s USING (true) WITH CHECK (true)', one.relation);
        EXECUTE format('CREATE POLICY tenant ON %s AS RESTRICTIVE TO voucherd_tenant USING (%s)', one.relation, one.rule);
    END LOOP;
    FOR one IN
        SELECT relation FROM tenant_rules() WHERE relation <> ALL (SELECT coalesce(to_regclass(name), 0) FROM unnest(hidden) name)
        UNION SELECT to_regclass(name) FROM unnest(shared) AS name ORDER BY 1
    LOOP
        IF NOT has_table_privilege('voucherd_tenant', one.relation, 'SELECT') THEN
            EXECUTE format('GRANT SELECT ON %s TO voucherd_tenant', one.relation);
        END IF;
    END LOOP;
    RETURN true;
END $$;


COMMENT ON FUNCTION voucherd_release.arrange_tenants() IS 'Makes the role if this user may, and the policies and rights that are missing; returns whether it could. It runs after every migration, so that a table with a company can not be forgotten.';


CREATE FUNCTION voucherd_release.bump_access_epoch() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE access_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.bump_access_epoch() IS 'Tells every process that the keys and companies it remembers are old.';


CREATE FUNCTION voucherd_release.bump_offer_epoch() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE offer_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.bump_offer_epoch() IS 'Tells every process that the offers it remembers are old.';


CREATE FUNCTION voucherd_release.bump_price_epoch() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE price_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.bump_price_epoch() IS 'Tells every process that the margins and price lists it remembers are old.';


CREATE FUNCTION voucherd_release.carry_entries() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    wallets_touched integer;
    wallets_moved integer;
BEGIN
    IF EXISTS (
        SELECT FROM (
            SELECT seq, amount_minor, hold_minor, balance_after_minor, held_after_minor,
                   lag(seq) OVER chain AS seq_before,
                   lag(balance_after_minor) OVER chain AS balance_before,
                   lag(held_after_minor) OVER chain AS held_before
            FROM fresh WINDOW chain AS (PARTITION BY wallet_id ORDER BY seq)) link
        WHERE seq_before IS NOT NULL AND (seq <> seq_before + 1
              OR balance_after_minor <> balance_before + amount_minor
              OR held_after_minor <> held_before + hold_minor)) THEN
        RAISE EXCEPTION 'entries do not continue one another' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT count(DISTINCT wallet_id) INTO wallets_touched FROM fresh;
    UPDATE wallet w SET balance_minor = last.balance_after_minor, held_minor = last.held_after_minor, seq = last.seq
    FROM (SELECT DISTINCT ON (wallet_id) wallet_id, seq, balance_after_minor, held_after_minor,
                 min(seq) OVER own AS seq_from, sum(amount_minor) OVER own AS amount_minor, sum(hold_minor) OVER own AS hold_minor
          FROM fresh WINDOW own AS (PARTITION BY wallet_id) ORDER BY wallet_id, seq DESC) last
    WHERE w.id = last.wallet_id AND last.seq_from = w.seq + 1
      AND last.balance_after_minor = w.balance_minor + last.amount_minor
      AND last.held_after_minor = w.held_minor + last.hold_minor;
    GET DIAGNOSTICS wallets_moved = ROW_COUNT;
    IF wallets_moved <> wallets_touched THEN
        RAISE EXCEPTION 'entries do not continue their wallet' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.carry_entries() IS 'Brings the balance up to date with new entries; each must continue the entries of its wallet without a gap.';


SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE voucherd_release.product_count (
    kind text NOT NULL,
    slug text NOT NULL,
    count integer NOT NULL,
    CONSTRAINT product_count_count_check CHECK ((count >= 0)),
    CONSTRAINT product_count_kind_check CHECK ((kind = ANY (ARRAY['all'::text, 'brand'::text, 'category'::text])))
);


COMMENT ON TABLE voucherd_release.product_count IS 'One row is the number of products for sale: in all, of a brand, or of a category.';


CREATE TABLE voucherd_release.product_listing (
    product_id integer NOT NULL,
    version_id integer NOT NULL,
    slug text NOT NULL,
    brand_slug text NOT NULL,
    product_type text NOT NULL,
    category text NOT NULL,
    redeem_type text NOT NULL,
    region text NOT NULL,
    variable boolean NOT NULL,
    face_currency text NOT NULL,
    face_low bigint NOT NULL,
    face_high bigint NOT NULL,
    price_currency text NOT NULL,
    price_minor bigint NOT NULL,
    name_key text NOT NULL COLLATE pg_catalog."C",
    brand_key text NOT NULL COLLATE pg_catalog."C",
    words tsvector NOT NULL,
    stocked boolean DEFAULT false NOT NULL,
    updated_at timestamp with time zone NOT NULL
);


COMMENT ON TABLE voucherd_release.product_listing IS 'One row is a product that is for sale, with everything that it is found and sorted by. Prices are compared by their worth in EUR without a column for it, which every new exchange rate would rewrite: the index has the prices of each currency in order, and a page merges the currencies (docs/decisions/0014).';


COMMENT ON COLUMN voucherd_release.product_listing.price_minor IS 'Of the smallest face value.';


COMMENT ON COLUMN voucherd_release.product_listing.name_key IS 'The folded name, in the order of its bytes.';


COMMENT ON COLUMN voucherd_release.product_listing.stocked IS 'Whether live stock was there when it was last announced.';


CREATE FUNCTION voucherd_release.count_products(ids integer[], step integer) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 INSERT INTO voucherd_release.product_count AS c (kind, slug, count)  SELECT one.kind,
             one.slug,
             count(*) AS count
            FROM ((unnest(count_products.ids) wanted(id)
              JOIN voucherd_release.product_listing l ON ((l.product_id = wanted.id)))
              CROSS JOIN LATERAL ( VALUES ('all'::text,''::text), ('brand'::text,l.brand_slug), ('category'::text,l.category)) one(kind, slug))
           GROUP BY one.kind, one.slug ON CONFLICT(kind, slug) DO UPDATE SET count = (c.count + (count_products.step * excluded.count));
END;


COMMENT ON FUNCTION voucherd_release.count_products(ids integer[], step integer) IS 'Counts the listings of these products in (step 1), or out (step -1).';


CREATE FUNCTION voucherd_release.folded(words text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN lower(regexp_replace(NORMALIZE(words, NFKD), '[\u0300-\u036f]+'::text, ''::text, 'g'::text));


COMMENT ON FUNCTION voucherd_release.folded(words text) IS 'The text without accents and in lower case: names are compared and searched in this form, the same on every server.';


CREATE FUNCTION voucherd_release.guard_attempt_ends() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.attempt_id IS NOT NULL OR EXISTS (SELECT FROM attempt WHERE id = OLD.attempt_id AND status < 2) THEN
        RAISE EXCEPTION 'a purchase is under way for these lines' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;


COMMENT ON FUNCTION voucherd_release.guard_attempt_ends() IS 'A purchase lets go of its lines only once it can bring nothing for them any more without the help of a person.';


CREATE FUNCTION voucherd_release.guard_codes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM (SELECT DISTINCT lot_id FROM fresh) f LEFT JOIN lot l ON l.id = f.lot_id
               WHERE l.id IS NULL OR l.generated) THEN
        RAISE EXCEPTION 'a code needs a lot that holds codes' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.guard_codes() IS 'Refuses a code without a lot. A foreign key does the same and doubles the time of an import (measured: 12 µs a row instead of 6).';


CREATE FUNCTION voucherd_release.guard_outcomes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Under a snapshot of the transaction's start the look below would not see what the lock waited for.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outcomes are written under read committed' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    -- FOR NO KEY UPDATE, which a foreign key does not wait for: claims point at orders that somebody changes.
    PERFORM FROM orders WHERE id IN (SELECT order_id FROM fresh) ORDER BY id FOR NO KEY UPDATE;
    PERFORM FROM lot WHERE id IN (SELECT lot_id FROM fresh) ORDER BY id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM fresh f LEFT JOIN orders o ON o.id = f.order_id
        WHERE o.id IS NULL OR f.line_to > o.lines
           OR EXISTS (SELECT FROM (SELECT p.line_to FROM outcome p WHERE p.order_id = f.order_id AND p.line_from < f.line_from
                                   ORDER BY p.line_from DESC LIMIT 1) before WHERE before.line_to > f.line_from)
           OR EXISTS (SELECT FROM outcome n WHERE n.order_id = f.order_id AND n.line_from > f.line_from AND n.line_from < f.line_to)) THEN
        RAISE EXCEPTION 'a line would have two outcomes' USING ERRCODE = 'exclusion_violation';
    END IF;
    IF EXISTS (
        SELECT FROM fresh f LEFT JOIN lot l ON l.id = f.lot_id
        WHERE f.lot_id IS NOT NULL
          AND (l.id IS NULL OR f.seq_from + (f.line_to - f.line_from) > l.cursor
           OR EXISTS (SELECT FROM (SELECT p.seq_from + (p.line_to - p.line_from) AS seq_to FROM outcome p
                                   WHERE p.lot_id = f.lot_id AND p.seq_from < f.seq_from
                                   ORDER BY p.seq_from DESC LIMIT 1) before WHERE before.seq_to > f.seq_from)
           OR EXISTS (SELECT FROM outcome n WHERE n.lot_id = f.lot_id AND n.seq_from > f.seq_from
                      AND n.seq_from < f.seq_from + (f.line_to - f.line_from)))) THEN
        RAISE EXCEPTION 'a code would be on two lines' USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.guard_outcomes() IS 'Refuses a line with two outcomes and a code on two lines. An exclusion constraint does the same and costs 70 µs a row (measured); this costs three. It locks the orders and lots itself (every path of the program has locked them already), so two transactions that can not see each other can not both pass.';


CREATE FUNCTION voucherd_release.guard_views() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM fresh f WHERE NOT EXISTS (
        SELECT FROM outcome o
        WHERE o.order_id = f.order_id AND o.line_from <= f.line AND o.line_to > f.line AND o.lot_id IS NOT NULL)) THEN
        RAISE EXCEPTION 'a line without a code can''t be viewed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.guard_views() IS 'Refuses the view of a line that has no code: only a line with a code has a link.';


CREATE FUNCTION voucherd_release.guard_waits() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM fresh f
        WHERE EXISTS (SELECT FROM (SELECT p.line_to FROM waiting p WHERE p.order_id = f.order_id AND p.line_from < f.line_from
                                   ORDER BY p.line_from DESC LIMIT 1) before WHERE before.line_to > f.line_from)
           OR EXISTS (SELECT FROM waiting n WHERE n.order_id = f.order_id AND n.line_from > f.line_from
                      AND n.line_from < f.line_to)) THEN
        RAISE EXCEPTION 'a line would wait twice' USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.guard_waits() IS 'Refuses a line that would wait twice.';


CREATE FUNCTION voucherd_release.lend_requests(keys bigint[], quotas integer[], wanted integer[], back integer[], back_numbers bigint[], moment timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(key_id bigint, number bigint, given integer, lent integer, before integer, left_ms bigint)
    LANGUAGE plpgsql
    AS $$
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


COMMENT ON FUNCTION voucherd_release.lend_requests(keys bigint[], quotas integer[], wanted integer[], back integer[], back_numbers bigint[], moment timestamp with time zone) IS 'Lends each key as many requests as it wants and may have, and takes back those that were not used in the minute `back_numbers`. The window slides: the minute before counts for the part of it that lies within the last sixty seconds. When little is left, an eighth of it is lent at a time, so that no process keeps what others need. The clock is that of the database; `moment` is for tests.';


CREATE FUNCTION voucherd_release.list_products(ids integer[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    moment timestamptz;
BEGIN
    LOCK TABLE product_change IN SHARE ROW EXCLUSIVE MODE;
    moment := clock_timestamp();
    INSERT INTO product_change (at, product_id, version_id, kind, active, stocked)
    SELECT moment, p.id, p.version_id, change.kind, p.active, coalesce(l.stocked, false)
    FROM unnest(ids) AS wanted (id)
    JOIN product p ON p.id = wanted.id
    JOIN product_version v ON v.id = p.version_id
    LEFT JOIN product_listing l ON l.product_id = p.id
    LEFT JOIN product_version w ON w.id = l.version_id AND w.id <> v.id
    CROSS JOIN LATERAL (VALUES
        (1, 'activation', p.active = (l.product_id IS NULL)),
        (2, 'price', p.active AND w.id IS NOT NULL
            AND ((v.price_minor, v.price_currency, v.fee_variable_e8, v.fee_fixed_minor, v.vat_category)
                 IS DISTINCT FROM (w.price_minor, w.price_currency, w.fee_variable_e8, w.fee_fixed_minor, w.vat_category)
              OR (v.price_minor IS NULL AND (v.face_currency, v.face_minor, v.face_min_minor, v.face_max_minor)
                  IS DISTINCT FROM (w.face_currency, w.face_minor, w.face_min_minor, w.face_max_minor)))),
        (3, 'content', p.active AND w.id IS NOT NULL
            AND (v.name, v.brand_id, v.product_type, v.category, v.redeem_type, v.region, v.async_delivery, v.incentive,
                 v.face_currency, v.face_minor, v.face_min_minor, v.face_max_minor,
                 v.redeem_instructions, v.terms, v.image_url)
             IS DISTINCT FROM
                (w.name, w.brand_id, w.product_type, w.category, w.redeem_type, w.region, w.async_delivery, w.incentive,
                 w.face_currency, w.face_minor, w.face_min_minor, w.face_max_minor,
                 w.redeem_instructions, w.terms, w.image_url))) AS change (place, kind, happened)
    WHERE change.happened
    ORDER BY p.id, change.place;

    PERFORM count_products(ids, -1);
    DELETE FROM product_listing l USING unnest(ids) AS wanted (id) JOIN product p ON p.id = wanted.id
    WHERE l.product_id = p.id AND NOT p.active;

    INSERT INTO product_listing AS l (product_id, version_id, slug, brand_slug, product_type, category, redeem_type,
        region, variable, face_currency, face_low, face_high, price_currency, price_minor, name_key, brand_key, words,
        updated_at)
    SELECT p.id, v.id, p.slug, b.slug, v.product_type, v.category, v.redeem_type, v.region, v.face_minor IS NULL,
           v.face_currency, coalesce(v.face_minor, v.face_min_minor), coalesce(v.face_minor, v.face_max_minor),
           coalesce(v.price_currency, v.face_currency),
           -- Rounded half up, as price_with_fee does.
           coalesce(v.price_minor, div(2 * coalesce(v.face_minor, v.face_min_minor)::numeric * v.fee_variable_e8 + 100000000,
                                       200000000)::bigint + v.fee_fixed_minor),
           folded(v.name), folded(b.name), words_of(v.name || ' ' || b.name || ' ' || p.slug || ' ' || b.slug), moment
    FROM unnest(ids) AS wanted (id)
    JOIN product p ON p.id = wanted.id JOIN product_version v ON v.id = p.version_id JOIN brand b ON b.id = v.brand_id
    WHERE p.active
    ON CONFLICT (product_id) DO UPDATE SET
        version_id = excluded.version_id, brand_slug = excluded.brand_slug, product_type = excluded.product_type,
        category = excluded.category, redeem_type = excluded.redeem_type, region = excluded.region,
        variable = excluded.variable, face_currency = excluded.face_currency, face_low = excluded.face_low,
        face_high = excluded.face_high, price_currency = excluded.price_currency, price_minor = excluded.price_minor,
        name_key = excluded.name_key, brand_key = excluded.brand_key, words = excluded.words,
        updated_at = excluded.updated_at
    WHERE l.version_id <> excluded.version_id;
    PERFORM count_products(ids, 1);
END $$;


COMMENT ON FUNCTION voucherd_release.list_products(ids integer[]) IS 'Brings the listings of these products up to date and writes a row for each change. A second call changes nothing.';


CREATE FUNCTION voucherd_release.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;


COMMENT ON FUNCTION voucherd_release.refuse_change() IS 'The one guard of append-only tables: each trigger names the changes that it refuses.';


CREATE FUNCTION voucherd_release.refuse_direct_balance() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'a balance changes through entries only' USING ERRCODE = 'integrity_constraint_violation';
END $$;


COMMENT ON FUNCTION voucherd_release.refuse_direct_balance() IS 'Refuses a balance that changes in any other way than by an entry, which would break the chain unseen.';


CREATE FUNCTION voucherd_release.refuse_lost_key() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM lot WHERE key_version = NEW.version AND NOT generated) THEN
        RAISE EXCEPTION 'key % still seals lots', NEW.version USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.refuse_lost_key() IS 'Refuses to destroy a key that still seals a lot.';


CREATE FUNCTION voucherd_release.refuse_retired_key() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM vault_key WHERE version = NEW.key_version AND retired_at IS NOT NULL) THEN
        RAISE EXCEPTION 'key % is retired', NEW.key_version USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.refuse_retired_key() IS 'Refuses a lot that a destroyed key sealed.';


CREATE FUNCTION voucherd_release.relist_products() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM list_products(array_agg(id)) FROM fresh HAVING count(*) > 0;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.relist_products() IS 'Lists the products that a statement wrote.';


CREATE FUNCTION voucherd_release.relist_versions() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM list_products(array_agg(p.id)) FROM fresh f JOIN product p ON p.id = f.product_id AND p.version_id = f.id
    HAVING count(*) > 0;
    RETURN NULL;
END $$;


COMMENT ON FUNCTION voucherd_release.relist_versions() IS 'Lists the products whose newest version a statement wrote: of a new product either row may come last.';


CREATE FUNCTION voucherd_release.settle_events(OUT settled_id bigint, OUT removed_id bigint) RETURNS record
    LANGUAGE plpgsql
    AS $$
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


COMMENT ON FUNCTION voucherd_release.settle_events(OUT settled_id bigint, OUT removed_id bigint) IS 'Moves the mark as far as it may go, and tells where it stands. To be called outside of transactions: the statements that follow see everything up to there, a snapshot that is older does not. Any number of processes may call it at once: it writes only over the mark that it concluded from.';


CREATE FUNCTION voucherd_release.tenant_company() RETURNS integer
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('voucherd.company'::text, true), ''::text))::integer;


COMMENT ON FUNCTION voucherd_release.tenant_company() IS 'The company that the transaction serves.';


CREATE FUNCTION voucherd_release.tenant_role() RETURNS text
    LANGUAGE sql STABLE
    RETURN CASE WHEN pg_has_role((to_regrole('voucherd_tenant'::text))::oid, 'MEMBER'::text) THEN 'voucherd_tenant'::text ELSE 'none'::text END;


COMMENT ON FUNCTION voucherd_release.tenant_role() IS 'The role to take; `none` where there is none, as on a server that lets this user make no role.';


CREATE FUNCTION voucherd_release.tenant_rules() RETURNS TABLE(relation regclass, rule text)
    LANGUAGE sql STABLE
    AS $$
    WITH special (name, rule) AS (VALUES
        ('company', 'id = tenant_company()'),
        ('orders', 'company_id = tenant_company() AND (id & 1) = tenant_state()'),
        -- An event for all companies has no company, and so has one for the operator alone. A CASE and not an OR: the
        -- planner takes an OR for two ways into the table, and gathered all events of a company to find the next fifty.
        ('event', 'CASE WHEN company_id IS NULL THEN type = ''product.updated'' AND coalesce(state = tenant_state(), true)'
                  ' ELSE company_id = tenant_company() AND state = tenant_state() END')
    ), owner (place, name, rule) AS (VALUES
        (1, 'company_id', 'company_id = tenant_company()'),
        (2, 'order_id', '(SELECT o.company_id FROM orders o WHERE o.id = order_id) = tenant_company()'),
        (3, 'wallet_id', 'wallet_id IN (SELECT w.id FROM wallet w)'),
        (4, 'webhook_id', 'webhook_id IN (SELECT w.id FROM webhook w)')
    ), owned AS (
        SELECT c.oid, c.relname, o.place, o.rule,
               bool_or(a.attname = 'state' AND a.atttypid = 'smallint'::regtype) OVER (PARTITION BY c.oid) AS has_state
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        -- An order that may be missing, as of an entry, owns nothing.
        LEFT JOIN owner o ON o.name = a.attname AND (a.attnotnull OR o.place = 1)
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    )
    SELECT c.oid::regclass, s.rule FROM special s
    JOIN pg_class c ON c.relname = s.name AND c.relnamespace = current_schema()::regnamespace
    UNION ALL
    SELECT * FROM (
        SELECT DISTINCT ON (oid) oid::regclass,
               rule || CASE WHEN place = 1 AND has_state THEN ' AND state = tenant_state()' ELSE '' END
        FROM owned WHERE place IS NOT NULL AND relname NOT IN (SELECT name FROM special) ORDER BY oid, place) first
$$;


COMMENT ON FUNCTION voucherd_release.tenant_rules() IS 'The condition under which a company sees a row, for each table that has a company or belongs to a row that has one. A condition that reads another table is under the policy of that one. An order is found by its key, row by row, because a company may have millions; of wallets and endpoints it has few, so they are looked up once.';


CREATE FUNCTION voucherd_release.tenant_state() RETURNS smallint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('voucherd.state'::text, true), ''::text))::smallint;


COMMENT ON FUNCTION voucherd_release.tenant_state() IS 'The state that the transaction serves.';


CREATE FUNCTION voucherd_release.words_of(text text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN array_to_tsvector(array_remove(regexp_split_to_array(voucherd_release.folded(text), '[\u0001-/:-@\[-`{-\u007f]+'::text), ''::text));


COMMENT ON FUNCTION voucherd_release.words_of(text text) IS 'The folded words of a text, as the search compares them.';


CREATE TABLE voucherd_release.access_epoch (
    only_row boolean DEFAULT true NOT NULL,
    epoch bigint NOT NULL,
    CONSTRAINT access_epoch_only_row_check CHECK (only_row)
);


COMMENT ON TABLE voucherd_release.access_epoch IS 'The only row is a counter that grows with every change of who may do what. Every process keeps keys in memory and reads this row to learn that they changed.';


CREATE TABLE voucherd_release.account_link (
    hash bytea NOT NULL,
    user_id bigint NOT NULL,
    kind text NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    CONSTRAINT account_link_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT account_link_kind_check CHECK ((kind = ANY (ARRAY['reset'::text, 'invitation'::text])))
);


COMMENT ON TABLE voucherd_release.account_link IS 'One row is a link for one use that was mailed to a person; its use removes it.';


CREATE TABLE voucherd_release.api_key (
    id bigint NOT NULL,
    company_id integer NOT NULL,
    state smallint NOT NULL,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    scopes text[] NOT NULL,
    allow_ips cidr[] DEFAULT '{}'::cidr[] NOT NULL,
    rate_limit integer DEFAULT 600 NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    replaced_by bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone,
    spend_order_eur_minor bigint,
    spend_day_eur_minor bigint,
    CONSTRAINT api_key_description_check CHECK ((length(description) <= 200)),
    CONSTRAINT api_key_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT api_key_rate_limit_check CHECK ((rate_limit > 0)),
    CONSTRAINT api_key_spend_day_eur_minor_check CHECK ((spend_day_eur_minor > 0)),
    CONSTRAINT api_key_spend_order_eur_minor_check CHECK ((spend_order_eur_minor > 0)),
    CONSTRAINT api_key_state_check CHECK ((state = ANY (ARRAY[0, 1])))
);


COMMENT ON TABLE voucherd_release.api_key IS 'One row is a bearer key of a company for one state. Only its hash is kept.';


COMMENT ON COLUMN voucherd_release.api_key.prefix IS 'The first characters of the key, for people to tell keys apart.';


COMMENT ON COLUMN voucherd_release.api_key.allow_ips IS 'The networks that may use it. Empty: all.';


COMMENT ON COLUMN voucherd_release.api_key.rate_limit IS 'Requests per minute.';


COMMENT ON COLUMN voucherd_release.api_key.replaced_by IS 'The key that a rotation made in its place.';


COMMENT ON COLUMN voucherd_release.api_key.spend_order_eur_minor IS 'As of the company; the lower of both holds.';


ALTER TABLE voucherd_release.api_key ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.api_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.app_user (
    id bigint NOT NULL,
    email text NOT NULL,
    company_id integer,
    role text NOT NULL,
    password_hash text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    active boolean DEFAULT true NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    CONSTRAINT app_user_check CHECK ((role = ANY (
CASE
    WHEN (company_id IS NULL) THEN ARRAY['admin'::text, 'support'::text, 'stock'::text, 'finance'::text]
    ELSE ARRAY['owner'::text, 'buyer'::text, 'finance'::text, 'viewer'::text, 'developer'::text]
END))),
    CONSTRAINT app_user_email_check CHECK (((email = lower(email)) AND (length(email) <= 254))),
    CONSTRAINT app_user_name_check CHECK ((length(name) <= 200))
);


COMMENT ON TABLE voucherd_release.app_user IS 'One row is a person who signs in: to the portal of a company, or to the console.';


COMMENT ON COLUMN voucherd_release.app_user.company_id IS 'NULL: one of the people of the operator.';


COMMENT ON COLUMN voucherd_release.app_user.password_hash IS 'NULL: was invited and has chosen no password yet.';


ALTER TABLE voucherd_release.app_user ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.app_user_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.approval (
    id bigint NOT NULL,
    kind smallint NOT NULL,
    company_id integer NOT NULL,
    state smallint NOT NULL,
    order_id bigint,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    reference text,
    note text DEFAULT ''::text NOT NULL,
    requested_by bigint NOT NULL,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    status smallint DEFAULT 0 NOT NULL,
    decided_by bigint,
    decided_at timestamp with time zone,
    CONSTRAINT approval_amount CHECK (((amount_minor <> 0) AND ((kind = 3) OR (amount_minor > 0)))),
    CONSTRAINT approval_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT approval_decided CHECK (((status = ANY (ARRAY[1, 2])) = (decided_by IS NOT NULL))),
    CONSTRAINT approval_ended CHECK (((status = 0) = (decided_at IS NULL))),
    CONSTRAINT approval_kind_check CHECK (((kind >= 1) AND (kind <= 3))),
    CONSTRAINT approval_note_check CHECK ((length(note) <= 500)),
    CONSTRAINT approval_reference_check CHECK (((length(reference) >= 1) AND (length(reference) <= 200))),
    CONSTRAINT approval_same_state CHECK (((order_id & (1)::bigint) = state)),
    CONSTRAINT approval_state_check CHECK ((state = ANY (ARRAY[0, 1]))),
    CONSTRAINT approval_status_check CHECK (((status >= 0) AND (status <= 3))),
    CONSTRAINT approval_subject CHECK ((((kind = 1) = (order_id IS NOT NULL)) AND ((kind = 1) = (reference IS NULL)))),
    CONSTRAINT approval_two_people CHECK ((decided_by <> requested_by))
);


COMMENT ON TABLE voucherd_release.approval IS 'One row is a request of one person that another one allows or rejects.';


COMMENT ON COLUMN voucherd_release.approval.kind IS '1 order, 2 top-up, 3 correction.';


COMMENT ON COLUMN voucherd_release.approval.status IS '0 open, 1 approved, 2 rejected, 3 ended.';


ALTER TABLE voucherd_release.approval ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.approval_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.attempt (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    supplier_id integer NOT NULL,
    state smallint NOT NULL,
    product_id integer NOT NULL,
    face_minor bigint NOT NULL,
    sku text NOT NULL,
    quote_id bigint NOT NULL,
    price_minor bigint NOT NULL,
    price_max_minor bigint NOT NULL,
    count integer NOT NULL,
    urgent boolean NOT NULL,
    status smallint NOT NULL,
    fence integer DEFAULT 1 NOT NULL,
    worker text NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    placed_at timestamp with time zone DEFAULT now() NOT NULL,
    settles_at timestamp with time zone NOT NULL,
    ask_at timestamp with time zone,
    look_ups integer DEFAULT 0 NOT NULL,
    ended_at timestamp with time zone,
    call_ms integer,
    external_id text,
    codes integer DEFAULT 0 NOT NULL,
    spare integer DEFAULT 0 NOT NULL,
    quarantined integer DEFAULT 0 NOT NULL,
    reason text,
    settled_by text,
    CONSTRAINT attempt_call_ms_check CHECK ((call_ms >= 0)),
    CONSTRAINT attempt_check CHECK ((price_max_minor >= price_minor)),
    CONSTRAINT attempt_check1 CHECK (((spare >= 0) AND (spare <= codes))),
    CONSTRAINT attempt_codes_check CHECK ((codes >= 0)),
    CONSTRAINT attempt_count_check CHECK (((count >= 1) AND (count <= 10000))),
    CONSTRAINT attempt_external_id_check CHECK ((length(external_id) <= 200)),
    CONSTRAINT attempt_face_minor_check CHECK ((face_minor > 0)),
    CONSTRAINT attempt_fence_check CHECK ((fence > 0)),
    CONSTRAINT attempt_price_minor_check CHECK ((price_minor >= 0)),
    CONSTRAINT attempt_quarantined_check CHECK ((quarantined >= 0)),
    CONSTRAINT attempt_reason_check CHECK ((length(reason) <= 300)),
    CONSTRAINT attempt_same_state CHECK (((quote_id & (1)::bigint) = state)),
    CONSTRAINT attempt_settled_by_check CHECK (((length(settled_by) >= 1) AND (length(settled_by) <= 200))),
    CONSTRAINT attempt_status_check CHECK (((status >= 0) AND (status <= 4))),
    CONSTRAINT attempt_status_fits CHECK (
CASE status
    WHEN 0 THEN ((ask_at IS NULL) AND (ended_at IS NULL))
    WHEN 1 THEN ((ask_at IS NOT NULL) AND (ended_at IS NULL))
    WHEN 2 THEN ((ask_at IS NULL) AND (ended_at IS NULL))
    WHEN 3 THEN ((ask_at IS NULL) AND (ended_at IS NOT NULL))
    ELSE ((ask_at IS NULL) AND (ended_at IS NOT NULL) AND (codes = 0))
END),
    CONSTRAINT attempt_worker_check CHECK (((length(worker) >= 1) AND (length(worker) <= 100)))
)
WITH (fillfactor='70');


COMMENT ON TABLE voucherd_release.attempt IS 'One row is one purchase at a supplier. It is written before the supplier is called, and its id is our reference there. The id is random: a database that was restored from a backup must not use a reference twice.';


COMMENT ON COLUMN voucherd_release.attempt.price_minor IS 'Of one code, as it was quoted.';


COMMENT ON COLUMN voucherd_release.attempt.price_max_minor IS 'Of one code, the most that we pay.';


COMMENT ON COLUMN voucherd_release.attempt.urgent IS 'For a Resolve, which never waits behind others.';


COMMENT ON COLUMN voucherd_release.attempt.status IS '0 calling, 1 asking, 2 unknown, 3 bought, 4 failed.';


COMMENT ON COLUMN voucherd_release.attempt.fence IS 'Grows with each owner; a refusal that reaches an earlier owner no longer counts.';


COMMENT ON COLUMN voucherd_release.attempt.worker IS 'Its owner, until lease_until.';


COMMENT ON COLUMN voucherd_release.attempt.settles_at IS 'From then on "not found" means "never bought".';


COMMENT ON COLUMN voucherd_release.attempt.ask_at IS 'When the supplier is asked next how the purchase ended.';


COMMENT ON COLUMN voucherd_release.attempt.external_id IS 'The name that the supplier has for the purchase.';


COMMENT ON COLUMN voucherd_release.attempt.spare IS 'Codes that no line took: they came late, or were too many.';


COMMENT ON COLUMN voucherd_release.attempt.settled_by IS 'The person who decided how it ended.';


CREATE TABLE voucherd_release.attempt_line (
    attempt_id uuid NOT NULL,
    order_id bigint NOT NULL,
    line_from integer NOT NULL,
    line_to integer NOT NULL,
    CONSTRAINT attempt_line_check CHECK ((line_from < line_to)),
    CONSTRAINT attempt_line_line_from_check CHECK ((line_from >= 0)),
    CONSTRAINT attempt_line_line_to_check CHECK ((line_to <= 10000))
);


COMMENT ON TABLE voucherd_release.attempt_line IS 'One row is a range of lines that a purchase was made for.';


CREATE TABLE voucherd_release.backup (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    bytes bigint NOT NULL,
    seconds double precision NOT NULL,
    CONSTRAINT backup_bytes_check CHECK ((bytes > 0)),
    CONSTRAINT backup_seconds_check CHECK ((seconds >= (0)::double precision))
);


COMMENT ON TABLE voucherd_release.backup IS 'One row is a backup that was taken.';


ALTER TABLE voucherd_release.backup ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.backup_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.brand (
    id integer NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    CONSTRAINT brand_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT brand_slug_check CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(slug) <= 100)))
);


COMMENT ON TABLE voucherd_release.brand IS 'One row is the maker of some products.';


ALTER TABLE voucherd_release.brand ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.brand_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.brand_logo (
    brand_id integer NOT NULL,
    name text NOT NULL,
    content bytea NOT NULL,
    set_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT brand_logo_content_check CHECK (((length(content) >= 1) AND (length(content) <= 102400))),
    CONSTRAINT brand_logo_name_check CHECK ((name ~ '^[0-9a-f]{32}\.(png|jpg|webp)$'::text))
);


COMMENT ON TABLE voucherd_release.brand_logo IS 'One row is the logo of a brand, small enough to be kept here: pages show no picture of another host.';


COMMENT ON COLUMN voucherd_release.brand_logo.name IS 'A hash of the content, and its kind.';


CREATE TABLE voucherd_release.cart (
    user_id bigint NOT NULL,
    state smallint NOT NULL,
    payment_currency text NOT NULL,
    CONSTRAINT cart_payment_currency_check CHECK ((payment_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT cart_state_check CHECK ((state = ANY (ARRAY[0, 1])))
);


COMMENT ON TABLE voucherd_release.cart IS 'One row is the cart of a person in the portal: one for live and one for the sandbox.';


CREATE TABLE voucherd_release.cart_item (
    user_id bigint NOT NULL,
    state smallint NOT NULL,
    product_id integer NOT NULL,
    face_minor bigint NOT NULL,
    amount integer NOT NULL,
    added_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT cart_item_amount_check CHECK (((amount >= 1) AND (amount <= 10000))),
    CONSTRAINT cart_item_face_minor_check CHECK ((face_minor >= 0))
);


COMMENT ON TABLE voucherd_release.cart_item IS 'One row is a product in a cart.';


COMMENT ON COLUMN voucherd_release.cart_item.face_minor IS '0: the face value of the product, where that is fixed.';


CREATE TABLE voucherd_release.code (
    lot_id bigint NOT NULL,
    seq integer NOT NULL,
    sealed bytea NOT NULL,
    blind bytea NOT NULL,
    CONSTRAINT code_blind_check CHECK ((length(blind) = 16)),
    CONSTRAINT code_seq_check CHECK ((seq >= 0))
);


COMMENT ON TABLE voucherd_release.code IS 'One row is a code of a lot.';


COMMENT ON COLUMN voucherd_release.code.sealed IS 'The code and its serial, encrypted and bound to this place.';


COMMENT ON COLUMN voucherd_release.code.blind IS 'A keyed hash of the code: the same code can not be imported twice.';


CREATE TABLE voucherd_release.company (
    id integer NOT NULL,
    name text NOT NULL,
    country text NOT NULL,
    vat_number text,
    active boolean DEFAULT true NOT NULL,
    verified boolean DEFAULT false NOT NULL,
    expose_costs boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    spend_order_eur_minor bigint,
    spend_day_eur_minor bigint,
    second_factor boolean DEFAULT false NOT NULL,
    approve_from_eur_minor bigint,
    CONSTRAINT company_approve_from_eur_minor_check CHECK ((approve_from_eur_minor > 0)),
    CONSTRAINT company_country_check CHECK ((country ~ '^[A-Z]{2}$'::text)),
    CONSTRAINT company_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT company_spend_day_eur_minor_check CHECK ((spend_day_eur_minor > 0)),
    CONSTRAINT company_spend_order_eur_minor_check CHECK ((spend_order_eur_minor > 0)),
    CONSTRAINT company_vat_number_check CHECK (((length(vat_number) >= 4) AND (length(vat_number) <= 20)))
);


COMMENT ON TABLE voucherd_release.company IS 'One row is a customer: it holds wallets, keys and people, and everything it buys is its own.';


COMMENT ON COLUMN voucherd_release.company.active IS 'False: nobody of it can sign in, and no key of it can order.';


COMMENT ON COLUMN voucherd_release.company.verified IS 'The operator has checked who it is; until then Confirm and Resolve are refused.';


COMMENT ON COLUMN voucherd_release.company.expose_costs IS 'Its orders show the purchase prices of their offers.';


COMMENT ON COLUMN voucherd_release.company.spend_order_eur_minor IS 'The most that one order may cost, at the rate that Create fixed.';


COMMENT ON COLUMN voucherd_release.company.spend_day_eur_minor IS 'The most that all orders of one day (UTC) may cost together.';


COMMENT ON COLUMN voucherd_release.company.second_factor IS 'Its people must sign in with a second factor.';


COMMENT ON COLUMN voucherd_release.company.approve_from_eur_minor IS 'Orders of the portal from this worth on need a second person.';


ALTER TABLE voucherd_release.company ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.company_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.entry (
    wallet_id bigint NOT NULL,
    seq bigint NOT NULL,
    kind smallint NOT NULL,
    amount_minor bigint NOT NULL,
    vat_minor bigint DEFAULT 0 NOT NULL,
    hold_minor bigint DEFAULT 0 NOT NULL,
    balance_after_minor bigint NOT NULL,
    held_after_minor bigint NOT NULL,
    order_id bigint,
    reference text,
    at timestamp with time zone NOT NULL,
    CONSTRAINT entry_kind_check CHECK (((kind >= 1) AND (kind <= 6))),
    CONSTRAINT entry_kind_fits CHECK (
CASE kind
    WHEN 1 THEN ((amount_minor > 0) AND (vat_minor = 0) AND (hold_minor = 0) AND (reference IS NOT NULL))
    WHEN 2 THEN ((amount_minor <= 0) AND ((vat_minor >= amount_minor) AND (vat_minor <= 0)) AND ((hold_minor = 0) OR (hold_minor = amount_minor)) AND (order_id IS NOT NULL))
    WHEN 3 THEN ((amount_minor >= 0) AND ((vat_minor >= 0) AND (vat_minor <= amount_minor)) AND (hold_minor = 0) AND (order_id IS NOT NULL))
    WHEN 4 THEN ((amount_minor = 0) AND (vat_minor = 0) AND (hold_minor >= 0) AND (order_id IS NOT NULL))
    WHEN 5 THEN ((amount_minor = 0) AND (vat_minor = 0) AND (hold_minor <= 0) AND (order_id IS NOT NULL))
    ELSE ((vat_minor = 0) AND (hold_minor = 0) AND (reference IS NOT NULL))
END),
    CONSTRAINT entry_not_overdrawn CHECK (((held_after_minor >= 0) AND (balance_after_minor >= held_after_minor))),
    CONSTRAINT entry_reference_check CHECK ((length(reference) <= 200)),
    CONSTRAINT entry_same_state CHECK (((order_id IS NULL) OR ((order_id & (1)::bigint) = (wallet_id & (1)::bigint)))),
    CONSTRAINT entry_seq_check CHECK ((seq > 0))
);


COMMENT ON TABLE voucherd_release.entry IS 'One row is one whole transfer: amount_minor into the wallet (negative: out of it), the opposite split over the accounts of the operator (vat_minor of it to VAT, the rest to the account that the kind names). A transfer that does not balance can not be written. A hold or a release changes held_minor of the wallet only.';


COMMENT ON COLUMN voucherd_release.entry.kind IS '1 top-up, 2 order, 3 refund, 4 hold, 5 release, 6 correction.';


COMMENT ON COLUMN voucherd_release.entry.order_id IS 'No foreign key: an order that was never confirmed has no entry, and all others stay.';


CREATE TABLE voucherd_release.event (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    company_id integer,
    state smallint,
    type text NOT NULL,
    order_id bigint,
    seq integer,
    data jsonb,
    CONSTRAINT event_same_state CHECK (((order_id IS NULL) OR ((state IS NOT NULL) AND ((order_id & (1)::bigint) = state)))),
    CONSTRAINT event_state_check CHECK ((state = ANY (ARRAY[0, 1])))
);


COMMENT ON TABLE voucherd_release.event IS 'One row is something that happened, written in the transaction in which it happened. Old events are removed.';


COMMENT ON COLUMN voucherd_release.event.company_id IS 'NULL: for all companies, or for the operator alone.';


COMMENT ON COLUMN voucherd_release.event.state IS 'NULL: of live and of the sandbox.';


COMMENT ON COLUMN voucherd_release.event.seq IS 'The version of the order after this event.';


ALTER TABLE voucherd_release.event ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.event_mark (
    only_row boolean DEFAULT true NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    seen bigint DEFAULT 0 NOT NULL,
    waits_for text[] DEFAULT '{}'::text[] NOT NULL,
    removed bigint DEFAULT 0 NOT NULL,
    removed_at timestamp with time zone,
    CONSTRAINT event_mark_in_order CHECK (((0 <= removed) AND (removed <= settled) AND (settled <= seen))),
    CONSTRAINT event_mark_only_row_check CHECK (only_row),
    CONSTRAINT event_mark_removed_fits CHECK (((removed = 0) = (removed_at IS NULL)))
)
WITH (fillfactor='50');


COMMENT ON TABLE voucherd_release.event_mark IS 'The only row says up to which id the feed of events may be read. Transactions take ids from a sequence and commit in any order, so an id may become visible after higher ones. A reader therefore stops at `settled`: every id up to there is in the table or never will be. Finding that number costs writers nothing. A transaction that inserts an event holds the lock of the table in row exclusive mode from before it takes an id until after its commit is visible. So: read the last id that was taken, then who holds the lock; once all of those are gone, nothing up to that id is under way any more. Transactions that write elsewhere, for however long, are not waited for.';


COMMENT ON COLUMN voucherd_release.event_mark.seen IS 'The last id that was taken when `waits_for` was read.';


COMMENT ON COLUMN voucherd_release.event_mark.waits_for IS 'The virtual transactions that held the lock then.';


COMMENT ON COLUMN voucherd_release.event_mark.removed IS 'Events up to this id were kept for their time and removed.';


COMMENT ON COLUMN voucherd_release.event_mark.removed_at IS 'None of those happened after this.';


CREATE TABLE voucherd_release.fx_feed (
    only_row boolean DEFAULT true NOT NULL,
    attempted_at timestamp with time zone,
    taken_at timestamp with time zone,
    problem text,
    CONSTRAINT fx_feed_only_row_check CHECK (only_row),
    CONSTRAINT fx_feed_problem_check CHECK ((length(problem) <= 500))
);


COMMENT ON TABLE voucherd_release.fx_feed IS 'The only row says how the refresh of rates from an address stands.';


COMMENT ON COLUMN voucherd_release.fx_feed.attempted_at IS 'The worker that moves it forward is the one that asks.';


COMMENT ON COLUMN voucherd_release.fx_feed.problem IS 'Of the last attempt; NULL if it went well.';


CREATE TABLE voucherd_release.fx_margin (
    from_currency text NOT NULL,
    to_currency text NOT NULL,
    margin_bp integer NOT NULL,
    set_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT fx_margin_from_currency_check CHECK ((from_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT fx_margin_margin_bp_check CHECK (((margin_bp >= 1) AND (margin_bp <= 5000))),
    CONSTRAINT fx_margin_of_a_pair CHECK ((from_currency <> to_currency)),
    CONSTRAINT fx_margin_to_currency_check CHECK ((to_currency ~ '^[A-Z]{3}$'::text))
);


COMMENT ON TABLE voucherd_release.fx_margin IS 'One row is the share that is added to a price in one currency that is paid in another.';


CREATE TABLE voucherd_release.fx_rate (
    currency text NOT NULL,
    day date NOT NULL,
    eur_e8 bigint NOT NULL,
    source text NOT NULL,
    set_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT fx_rate_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT fx_rate_eur_e8_check CHECK ((eur_e8 > 0))
);


COMMENT ON TABLE voucherd_release.fx_rate IS 'One row is the exchange rate of a currency on a day.';


COMMENT ON COLUMN voucherd_release.fx_rate.eur_e8 IS 'The worth of one unit of the currency in EUR (OP-50).';


CREATE TABLE voucherd_release.idempotency (
    company_id integer NOT NULL,
    state smallint NOT NULL,
    key bytea NOT NULL,
    request bytea NOT NULL,
    began_at timestamp with time zone DEFAULT now() NOT NULL,
    running_until timestamp with time zone NOT NULL,
    order_id bigint,
    answer bytea,
    CONSTRAINT idempotency_key_check CHECK ((length(key) = 32)),
    CONSTRAINT idempotency_request_check CHECK ((length(request) = 32)),
    CONSTRAINT idempotency_same_state CHECK (((order_id & (1)::bigint) = state)),
    CONSTRAINT idempotency_state_check CHECK ((state = ANY (ARRAY[0, 1])))
)
WITH (fillfactor='60');


COMMENT ON TABLE voucherd_release.idempotency IS 'One row is a request that carried an Idempotency-Key, kept for 30 days (OP-28).';


COMMENT ON COLUMN voucherd_release.idempotency.key IS 'A hash of the header.';


COMMENT ON COLUMN voucherd_release.idempotency.request IS 'A hash of the request: the same key with another request is refused.';


COMMENT ON COLUMN voucherd_release.idempotency.running_until IS 'The first call has until then; afterwards a repeated call takes over.';


COMMENT ON COLUMN voucherd_release.idempotency.order_id IS 'The order that the request changed, written in the transaction that changed it: a row without an answer tells by this whether something happened.';


COMMENT ON COLUMN voucherd_release.idempotency.answer IS 'Sealed. A voucher code is never in it: codes are read from the vault again.';


CREATE TABLE voucherd_release.wallet (
    id bigint NOT NULL,
    company_id integer NOT NULL,
    currency text NOT NULL,
    state smallint NOT NULL,
    balance_minor bigint DEFAULT 0 NOT NULL,
    held_minor bigint DEFAULT 0 NOT NULL,
    seq bigint DEFAULT 0 NOT NULL,
    CONSTRAINT wallet_check CHECK (((id & (1)::bigint) = state)),
    CONSTRAINT wallet_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT wallet_not_overdrawn CHECK (((held_minor >= 0) AND (balance_minor >= held_minor))),
    CONSTRAINT wallet_state_check CHECK ((state = ANY (ARRAY[0, 1])))
)
WITH (fillfactor='50');


COMMENT ON TABLE voucherd_release.wallet IS 'One row is the balance of a company in one currency and state. Entries alone change it.';


COMMENT ON COLUMN voucherd_release.wallet.id IS 'Twice a number of wallet_number, plus the state.';


COMMENT ON COLUMN voucherd_release.wallet.held_minor IS 'The part of the balance that Resolve has set aside for orders under way.';


COMMENT ON COLUMN voucherd_release.wallet.seq IS 'The number of its last entry.';


CREATE VIEW voucherd_release.ledger_leg AS
 SELECT e.wallet_id,
    e.seq,
    w.currency,
    w.state,
    'wallet'::text AS account,
    e.amount_minor
   FROM (voucherd_release.entry e
     JOIN voucherd_release.wallet w ON ((w.id = e.wallet_id)))
UNION ALL
 SELECT e.wallet_id,
    e.seq,
    w.currency,
    w.state,
        CASE e.kind
            WHEN 1 THEN 'funding'::text
            WHEN 6 THEN 'correction'::text
            ELSE 'sales'::text
        END AS account,
    (e.vat_minor - e.amount_minor) AS amount_minor
   FROM (voucherd_release.entry e
     JOIN voucherd_release.wallet w ON ((w.id = e.wallet_id)))
UNION ALL
 SELECT e.wallet_id,
    e.seq,
    w.currency,
    w.state,
    'vat'::text AS account,
    (- e.vat_minor) AS amount_minor
   FROM (voucherd_release.entry e
     JOIN voucherd_release.wallet w ON ((w.id = e.wallet_id)))
  WHERE (e.vat_minor <> 0);


COMMENT ON VIEW voucherd_release.ledger_leg IS 'One row is a leg of an entry, for the accountant: the two or three legs of each sum to zero.';


CREATE TABLE voucherd_release.line_view (
    order_id bigint NOT NULL,
    line integer NOT NULL,
    link_viewed_at timestamp with time zone,
    voucher_viewed_at timestamp with time zone,
    returned_at timestamp with time zone,
    CONSTRAINT line_view_in_order CHECK ((voucher_viewed_at >= link_viewed_at)),
    CONSTRAINT line_view_line_check CHECK ((line >= 0)),
    CONSTRAINT line_view_opened_first CHECK (((voucher_viewed_at IS NULL) OR (link_viewed_at IS NOT NULL))),
    CONSTRAINT line_view_says_something CHECK ((num_nonnulls(link_viewed_at, returned_at) > 0))
);


COMMENT ON TABLE voucherd_release.line_view IS 'One row is a line whose redemption link was opened, or whose code the operator took back (OP-57). A date that is written stays: the first time is the first time.';


COMMENT ON COLUMN voucherd_release.line_view.link_viewed_at IS 'When a recipient first opened the link.';


COMMENT ON COLUMN voucherd_release.line_view.voucher_viewed_at IS 'When a recipient first saw the code.';


COMMENT ON COLUMN voucherd_release.line_view.returned_at IS 'When the operator took the code back; its link shows it no more. A refund for it is a movement of its own.';


CREATE TABLE voucherd_release.lot (
    id bigint NOT NULL,
    product_id integer NOT NULL,
    face_minor bigint NOT NULL,
    state smallint NOT NULL,
    generated boolean DEFAULT false NOT NULL,
    supplier text NOT NULL,
    purchase_minor bigint NOT NULL,
    purchase_currency text NOT NULL,
    purchase_fx_e8 bigint NOT NULL,
    expires_at timestamp with time zone,
    key_version smallint DEFAULT 1 NOT NULL,
    size integer NOT NULL,
    cursor integer DEFAULT 0 NOT NULL,
    exhausted boolean GENERATED ALWAYS AS ((cursor >= size)) STORED NOT NULL,
    imported_at timestamp with time zone DEFAULT now() NOT NULL,
    attempt_id uuid,
    external_id text,
    spare integer DEFAULT 0 NOT NULL,
    CONSTRAINT lot_check CHECK (((cursor >= 0) AND (cursor <= size))),
    CONSTRAINT lot_check1 CHECK (((id & (1)::bigint) = state)),
    CONSTRAINT lot_external_id_check CHECK ((length(external_id) <= 200)),
    CONSTRAINT lot_face_minor_check CHECK ((face_minor > 0)),
    CONSTRAINT lot_generated_in_sandbox CHECK (
CASE
    WHEN generated THEN ((state = 1) AND (attempt_id IS NULL))
    ELSE ((state = 0) OR (attempt_id IS NOT NULL))
END),
    CONSTRAINT lot_purchase_currency_check CHECK ((purchase_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT lot_purchase_fx_e8_check CHECK ((purchase_fx_e8 > 0)),
    CONSTRAINT lot_purchase_minor_check CHECK ((purchase_minor >= 0)),
    CONSTRAINT lot_size_check CHECK ((size > 0)),
    CONSTRAINT lot_spare_fits CHECK ((((spare >= 0) AND (spare <= size)) AND ((spare = 0) OR (attempt_id IS NOT NULL)))),
    CONSTRAINT lot_state_check CHECK ((state = ANY (ARRAY[0, 1]))),
    CONSTRAINT lot_supplier_check CHECK (((length(supplier) >= 1) AND (length(supplier) <= 100)))
)
WITH (fillfactor='50');


COMMENT ON TABLE voucherd_release.lot IS 'One row is a number of codes that were bought together; the API calls it an offer. A sale moves the cursor and touches no row of a code.';


COMMENT ON COLUMN voucherd_release.lot.id IS 'Twice a number of lot_number, plus the state.';


COMMENT ON COLUMN voucherd_release.lot.generated IS 'A lot of the sandbox without rows of codes: they are computed.';


COMMENT ON COLUMN voucherd_release.lot.key_version IS 'The lowest version of a data key that any of its codes may be sealed with.';


COMMENT ON COLUMN voucherd_release.lot.cursor IS 'How many of its codes are sold or put aside, from the first on.';


COMMENT ON COLUMN voucherd_release.lot.exhausted IS 'Changes once in the life of a lot. No index holds the cursor itself, so a sale stays a heap-only update.';


COMMENT ON COLUMN voucherd_release.lot.attempt_id IS 'The purchase that brought it; NULL: a person imported it.';


COMMENT ON COLUMN voucherd_release.lot.external_id IS 'The name that the supplier has for that purchase.';


COMMENT ON COLUMN voucherd_release.lot.spare IS 'How many of its codes no line took when it came.';


COMMENT ON CONSTRAINT lot_generated_in_sandbox ON voucherd_release.lot IS 'Lots of the sandbox are generated, but those that a sandbox supplier sold have codes like any other.';


CREATE SEQUENCE voucherd_release.lot_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


CREATE TABLE voucherd_release.mail (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    recipients text[] NOT NULL,
    subject text NOT NULL,
    body text NOT NULL,
    sent_at timestamp with time zone,
    secret boolean DEFAULT false NOT NULL,
    ends_at timestamp with time zone,
    tries smallint DEFAULT 0 NOT NULL,
    problem text,
    next_at timestamp with time zone DEFAULT now(),
    CONSTRAINT mail_body_check CHECK ((length(body) <= 20000)),
    CONSTRAINT mail_over CHECK (((sent_at IS NULL) OR (next_at IS NULL))),
    CONSTRAINT mail_problem_check CHECK ((length(problem) <= 300)),
    CONSTRAINT mail_recipients_check CHECK (((cardinality(recipients) >= 1) AND (cardinality(recipients) <= 100))),
    CONSTRAINT mail_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 200))),
    CONSTRAINT mail_tries_check CHECK ((tries >= 0))
);


COMMENT ON TABLE voucherd_release.mail IS 'One row is a letter to people, written in the transaction that it is about and sent afterwards. Its text is removed once it is sent or too late.';


COMMENT ON COLUMN voucherd_release.mail.secret IS 'The text opens something.';


COMMENT ON COLUMN voucherd_release.mail.ends_at IS 'It is of no use afterwards.';


COMMENT ON COLUMN voucherd_release.mail.problem IS 'Of the last try.';


COMMENT ON COLUMN voucherd_release.mail.next_at IS 'NULL: it was sent or given up.';


ALTER TABLE voucherd_release.mail ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.mail_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.offer (
    supplier_id integer NOT NULL,
    state smallint NOT NULL,
    product_id integer NOT NULL,
    face_minor bigint NOT NULL,
    face_to_minor bigint,
    sku text NOT NULL,
    active boolean DEFAULT true NOT NULL,
    quote_id bigint,
    stock integer DEFAULT 0 NOT NULL,
    quoted_at timestamp with time zone,
    CONSTRAINT offer_check CHECK ((face_to_minor > face_minor)),
    CONSTRAINT offer_check1 CHECK (((quote_id IS NULL) OR (quoted_at IS NOT NULL))),
    CONSTRAINT offer_face_minor_check CHECK ((face_minor > 0)),
    CONSTRAINT offer_same_state CHECK (((quote_id & (1)::bigint) = state)),
    CONSTRAINT offer_sku_check CHECK (((length(sku) >= 1) AND (length(sku) <= 200))),
    CONSTRAINT offer_stock_check CHECK ((stock >= 0))
);


COMMENT ON TABLE voucherd_release.offer IS 'One row says that a supplier sells one of our products, and under which name.';


COMMENT ON COLUMN voucherd_release.offer.sku IS 'The name that the supplier has for it.';


COMMENT ON COLUMN voucherd_release.offer.stock IS 'A hint, which may be old.';


CREATE TABLE voucherd_release.offer_epoch (
    only_row boolean DEFAULT true NOT NULL,
    epoch bigint NOT NULL,
    CONSTRAINT offer_epoch_only_row_check CHECK (only_row)
);


COMMENT ON TABLE voucherd_release.offer_epoch IS 'The only row is a counter that grows when offers come or go. Every process remembers which products have offers and reads this row to learn that they changed.';


CREATE SEQUENCE voucherd_release.order_block
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


COMMENT ON SEQUENCE voucherd_release.order_block IS 'A process takes a block of order ids at a time.';


CREATE TABLE voucherd_release.order_item (
    order_id bigint NOT NULL,
    item_no smallint NOT NULL,
    version_id integer NOT NULL,
    amount integer NOT NULL,
    first_line integer NOT NULL,
    face_minor bigint NOT NULL,
    face_fx_e8 bigint NOT NULL,
    price_currency text NOT NULL,
    price_fx_e8 bigint NOT NULL,
    price_minor bigint NOT NULL,
    vat_minor bigint NOT NULL,
    turnover_minor bigint NOT NULL,
    pay_price_minor bigint NOT NULL,
    pay_vat_minor bigint NOT NULL,
    pay_turnover_minor bigint NOT NULL,
    offers bigint[] NOT NULL,
    CONSTRAINT order_item_amount_check CHECK (((amount >= 1) AND (amount <= 10000))),
    CONSTRAINT order_item_check CHECK (((first_line >= 0) AND ((first_line + amount) <= 10000))),
    CONSTRAINT order_item_item_no_check CHECK (((item_no >= 0) AND (item_no <= 99))),
    CONSTRAINT order_item_pay_price_minor_check CHECK ((pay_price_minor >= 0)),
    CONSTRAINT order_item_pay_turnover_minor_check CHECK ((pay_turnover_minor >= 0)),
    CONSTRAINT order_item_pay_vat_minor_check CHECK ((pay_vat_minor >= 0)),
    CONSTRAINT order_item_price_minor_check CHECK ((price_minor >= 0)),
    CONSTRAINT order_item_turnover_minor_check CHECK ((turnover_minor >= 0)),
    CONSTRAINT order_item_vat_minor_check CHECK ((vat_minor >= 0))
);


COMMENT ON TABLE voucherd_release.order_item IS 'One row is an item of an order: so many lines of one product at one price. Lines have no rows of their own; they are the numbers from first_line on.';


COMMENT ON COLUMN voucherd_release.order_item.price_minor IS 'Of one unit, in the currency of the price; so are vat_minor and turnover_minor.';


COMMENT ON COLUMN voucherd_release.order_item.pay_price_minor IS 'Of one unit, in the currency of the payment; so are the other pay_ columns.';


COMMENT ON COLUMN voucherd_release.order_item.offers IS 'Lot, stock, lot, stock …: the offers that Create saw, best first.';


CREATE TABLE voucherd_release.order_pin (
    order_id bigint NOT NULL,
    hash bytea NOT NULL,
    set_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT order_pin_hash_check CHECK ((length(hash) = 32))
);


COMMENT ON TABLE voucherd_release.order_pin IS 'One row is the PIN that recipients must give before they see a code of the order.';


COMMENT ON COLUMN voucherd_release.order_pin.hash IS 'Keyed with the master key: a PIN is short, and a thief of the database alone can not try them all.';


CREATE TABLE voucherd_release.order_webhook (
    order_id bigint NOT NULL,
    url text NOT NULL,
    CONSTRAINT order_webhook_url_check CHECK (((length(url) >= 1) AND (length(url) <= 2000)))
);


COMMENT ON TABLE voucherd_release.order_webhook IS 'One row is the address that an order named at Create: its events go there beside the endpoints of the company.';


CREATE TABLE voucherd_release.orders (
    id bigint NOT NULL,
    company_id integer NOT NULL,
    type smallint NOT NULL,
    status smallint NOT NULL,
    payment_status smallint DEFAULT 0 NOT NULL,
    payment_currency text NOT NULL,
    payment_fx_e8 bigint NOT NULL,
    price_minor bigint NOT NULL,
    vat_minor bigint NOT NULL,
    charged_minor bigint DEFAULT 0 NOT NULL,
    refunded_minor bigint DEFAULT 0 NOT NULL,
    held_minor bigint DEFAULT 0 NOT NULL,
    lines integer NOT NULL,
    lines_finished integer DEFAULT 0 NOT NULL,
    lines_cancelled integer DEFAULT 0 NOT NULL,
    resolving boolean DEFAULT false NOT NULL,
    downloaded boolean DEFAULT false NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deadline_at timestamp with time zone,
    reference text,
    cancelling boolean DEFAULT false NOT NULL,
    CONSTRAINT orders_cancelling_fits CHECK (((NOT cancelling) OR (status = ANY (ARRAY[1, 2, 3])))),
    CONSTRAINT orders_downloaded_has_codes CHECK (((NOT downloaded) OR (lines_finished > 0))),
    CONSTRAINT orders_held_minor_check CHECK ((held_minor >= 0)),
    CONSTRAINT orders_lines_add_up CHECK (((lines_finished >= 0) AND (lines_cancelled >= 0) AND ((lines_finished + lines_cancelled) <= lines))),
    CONSTRAINT orders_lines_check CHECK (((lines >= 1) AND (lines <= 10000))),
    CONSTRAINT orders_never_refund_more CHECK ((((refunded_minor >= 0) AND (refunded_minor <= charged_minor)) AND ((charged_minor = 0) OR (charged_minor = (price_minor + vat_minor))))),
    CONSTRAINT orders_payment_currency_check CHECK ((payment_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT orders_payment_fx_e8_check CHECK ((payment_fx_e8 > 0)),
    CONSTRAINT orders_payment_status_check CHECK (((payment_status >= 0) AND (payment_status <= 3))),
    CONSTRAINT orders_price_minor_check CHECK ((price_minor >= 0)),
    CONSTRAINT orders_reference_check CHECK ((length(reference) <= 1000)),
    CONSTRAINT orders_status_check CHECK (((status >= 0) AND (status <= 4))),
    CONSTRAINT orders_status_fits CHECK (
CASE status
    WHEN 0 THEN ((charged_minor = 0) AND (held_minor = 0) AND (lines_finished = 0) AND (lines_cancelled = 0))
    WHEN 1 THEN ((lines_finished + lines_cancelled) < lines)
    WHEN 2 THEN ((lines_finished = lines) AND (held_minor = 0) AND (refunded_minor = 0))
    WHEN 3 THEN (((lines_finished + lines_cancelled) = lines) AND (lines_cancelled > 0) AND (held_minor = 0))
    ELSE ((charged_minor = 0) AND (held_minor = 0) AND (lines_finished = 0))
END),
    CONSTRAINT orders_type_check CHECK ((type = ANY (ARRAY[0, 1]))),
    CONSTRAINT orders_vat_minor_check CHECK ((vat_minor >= 0))
)
WITH (fillfactor='60');


COMMENT ON TABLE voucherd_release.orders IS 'One row is an order of a company. No index holds a column that changes, so every change of an order is a heap-only update.';


COMMENT ON COLUMN voucherd_release.orders.id IS 'From a block of order_block, with the state as its lowest bit; clients see it encrypted, as the trx.';


COMMENT ON COLUMN voucherd_release.orders.type IS '0 api, 1 portal.';


COMMENT ON COLUMN voucherd_release.orders.status IS '0 created, 1 pending, 2 finished, 3 cancelled, 4 deleted.';


COMMENT ON COLUMN voucherd_release.orders.payment_status IS '0 unpaid, 1 paid, 2 partially refunded, 3 refunded.';


COMMENT ON COLUMN voucherd_release.orders.payment_fx_e8 IS 'The worth of one unit of the payment currency in EUR, as Create fixed it.';


COMMENT ON COLUMN voucherd_release.orders.held_minor IS 'What Resolve holds of the wallet for it.';


COMMENT ON COLUMN voucherd_release.orders.resolving IS 'Finalised by Resolve: all of it by the deadline, or nothing.';


COMMENT ON COLUMN voucherd_release.orders.downloaded IS 'Its codes were handed out as a file (OP-56).';


COMMENT ON COLUMN voucherd_release.orders.version IS 'Grows with every change; events of the order are numbered by it.';


COMMENT ON COLUMN voucherd_release.orders.deadline_at IS 'The end of the delivery window, or of the limit of Resolve.';


COMMENT ON COLUMN voucherd_release.orders.cancelling IS 'Cancelled while a purchase was under way: lines that it brings codes for are delivered, the others refunded (OP-45).';


CREATE TABLE voucherd_release.outcome (
    order_id bigint NOT NULL,
    line_from integer NOT NULL,
    line_to integer NOT NULL,
    lot_id bigint,
    seq_from integer,
    at timestamp with time zone NOT NULL,
    CONSTRAINT outcome_check CHECK ((line_from < line_to)),
    CONSTRAINT outcome_check1 CHECK (((lot_id IS NULL) = (seq_from IS NULL))),
    CONSTRAINT outcome_line_from_check CHECK ((line_from >= 0)),
    CONSTRAINT outcome_line_to_check CHECK ((line_to <= 10000)),
    CONSTRAINT outcome_same_state CHECK (((lot_id IS NULL) OR ((lot_id & (1)::bigint) = (order_id & (1)::bigint)))),
    CONSTRAINT outcome_seq_from_check CHECK ((seq_from >= 0))
);


COMMENT ON TABLE voucherd_release.outcome IS 'One row is what became of a range of lines: delivered from a range of a lot, or (without a lot) cancelled.';


COMMENT ON COLUMN voucherd_release.outcome.line_to IS 'The first line that is no longer of the range.';


COMMENT ON COLUMN voucherd_release.outcome.seq_from IS 'The code of line_from; those of the other lines follow it.';


CREATE TABLE voucherd_release.passkey (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    credential bytea NOT NULL,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT passkey_credential_check CHECK (((length(credential) >= 1) AND (length(credential) <= 1023))),
    CONSTRAINT passkey_name_check CHECK (((length(name) >= 1) AND (length(name) <= 60))),
    CONSTRAINT passkey_public_key_check CHECK (((length(public_key) >= 1) AND (length(public_key) <= 2000))),
    CONSTRAINT passkey_sign_count_check CHECK ((sign_count >= 0))
);


COMMENT ON TABLE voucherd_release.passkey IS 'One row is a passkey (WebAuthn) of a person.';


COMMENT ON COLUMN voucherd_release.passkey.sign_count IS 'As the device counts; a lower count tells of a copy.';


CREATE TABLE voucherd_release.passkey_challenge (
    hash bytea NOT NULL,
    user_id bigint,
    network text NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    CONSTRAINT passkey_challenge_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT passkey_challenge_network_check CHECK (((length(network) >= 1) AND (length(network) <= 50)))
);


COMMENT ON TABLE voucherd_release.passkey_challenge IS 'One row is a challenge that a passkey is to sign; the answer removes it.';


COMMENT ON COLUMN voucherd_release.passkey_challenge.user_id IS 'NULL: for a sign-in, when the person is not known yet.';


COMMENT ON COLUMN voucherd_release.passkey_challenge.network IS 'Where it was asked for: one network can have so many open at a time.';


ALTER TABLE voucherd_release.passkey ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.passkey_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.pin_try (
    order_id bigint NOT NULL,
    line integer NOT NULL,
    wrong integer NOT NULL,
    tried_at timestamp with time zone DEFAULT now() NOT NULL,
    blocked_until timestamp with time zone,
    CONSTRAINT pin_try_line_check CHECK ((line >= 0)),
    CONSTRAINT pin_try_wrong_check CHECK ((wrong > 0))
);


COMMENT ON TABLE voucherd_release.pin_try IS 'One row counts the wrong PINs at one link since the last right one; after every few of them the link is blocked, longer each time.';


CREATE TABLE voucherd_release.price_entry (
    id bigint NOT NULL,
    list_id integer NOT NULL,
    product_id integer,
    brand_id integer,
    discount_bp integer,
    price_minor bigint,
    price_currency text,
    fee_variable_e8 bigint,
    fee_fixed_minor bigint,
    face_currency text,
    face_minor bigint,
    valid_from date,
    valid_until date,
    set_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT price_entry_agreed_for CHECK ((((face_currency IS NULL) = (discount_bp IS NOT NULL)) AND ((face_minor IS NULL) = (price_minor IS NULL)))),
    CONSTRAINT price_entry_discount_bp_check CHECK (((discount_bp >= 1) AND (discount_bp <= 9999))),
    CONSTRAINT price_entry_face_currency_check CHECK ((face_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT price_entry_face_minor_check CHECK ((face_minor > 0)),
    CONSTRAINT price_entry_fee_fixed_minor_check CHECK ((fee_fixed_minor >= 0)),
    CONSTRAINT price_entry_fee_variable_e8_check CHECK ((fee_variable_e8 > 0)),
    CONSTRAINT price_entry_of_a_product CHECK (((discount_bp IS NOT NULL) OR (product_id IS NOT NULL))),
    CONSTRAINT price_entry_one_kind CHECK (((num_nonnulls(discount_bp, price_minor, fee_variable_e8) = 1) AND ((price_minor IS NULL) = (price_currency IS NULL)) AND ((fee_variable_e8 IS NULL) = (fee_fixed_minor IS NULL)))),
    CONSTRAINT price_entry_one_target CHECK ((num_nonnulls(product_id, brand_id) <= 1)),
    CONSTRAINT price_entry_period CHECK ((valid_until >= valid_from)),
    CONSTRAINT price_entry_price_currency_check CHECK ((price_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT price_entry_price_minor_check CHECK ((price_minor > 0))
);


COMMENT ON TABLE voucherd_release.price_entry IS 'One row is what a list says of a product, of a brand, or (neither) of everything: a discount, a fixed price, or a fee. Of several that are in force for one target the one that began last applies, so a promotion lies over the price that it replaces for a while.';


COMMENT ON COLUMN voucherd_release.price_entry.face_currency IS 'With face_minor: the face value that a price, or the currency that a fee, was agreed for. For another one it means nothing.';


COMMENT ON COLUMN voucherd_release.price_entry.valid_from IS 'The first day, in UTC; NULL: it has always been in force.';


COMMENT ON COLUMN voucherd_release.price_entry.valid_until IS 'The last day; NULL: it does not end.';


ALTER TABLE voucherd_release.price_entry ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.price_entry_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.price_epoch (
    only_row boolean DEFAULT true NOT NULL,
    epoch bigint NOT NULL,
    CONSTRAINT price_epoch_only_row_check CHECK (only_row)
);


COMMENT ON TABLE voucherd_release.price_epoch IS 'The only row is a counter that grows when a margin or the price list of a company changes. Every process remembers those and reads this row to learn that they changed.';


CREATE TABLE voucherd_release.price_list (
    id integer NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT price_list_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100)))
);


COMMENT ON TABLE voucherd_release.price_list IS 'One row is a list of prices that were agreed with one or more companies.';


CREATE TABLE voucherd_release.price_list_company (
    company_id integer NOT NULL,
    list_id integer NOT NULL,
    assigned_at timestamp with time zone DEFAULT now() NOT NULL
);


COMMENT ON TABLE voucherd_release.price_list_company IS 'One row says which list a company has. It has one at most; a list may serve many.';


ALTER TABLE voucherd_release.price_list ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.price_list_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.product (
    id integer NOT NULL,
    slug text NOT NULL,
    active boolean DEFAULT true NOT NULL,
    version_id integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    allow_loss boolean DEFAULT false NOT NULL,
    CONSTRAINT product_slug_check CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(slug) <= 100)))
);


COMMENT ON TABLE voucherd_release.product IS 'One row is a product: a name for its newest version.';


COMMENT ON COLUMN voucherd_release.product.active IS 'It is for sale.';


COMMENT ON COLUMN voucherd_release.product.allow_loss IS 'It may be sold below its purchase price.';


CREATE TABLE voucherd_release.product_change (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    product_id integer NOT NULL,
    version_id integer NOT NULL,
    kind text NOT NULL,
    active boolean NOT NULL,
    stocked boolean NOT NULL,
    CONSTRAINT product_change_check CHECK ((active OR (kind = 'activation'::text))),
    CONSTRAINT product_change_kind_check CHECK ((kind = ANY (ARRAY['activation'::text, 'price'::text, 'content'::text, 'stock'::text])))
);


COMMENT ON TABLE voucherd_release.product_change IS 'One row is a change of a product that is for sale, or was until then. A writer holds the lock of the table to the end of its transaction, so ids become visible in their order and a reader who goes on from one misses nothing.';


COMMENT ON CONSTRAINT product_change_check ON voucherd_release.product_change IS 'Of a product that is not for sale clients learn only that it is not.';


ALTER TABLE voucherd_release.product_change ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.product_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


ALTER TABLE voucherd_release.product ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.product_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.product_version (
    id integer CONSTRAINT product_version_id_not_null1 NOT NULL,
    product_id integer NOT NULL,
    brand_id integer NOT NULL,
    name text NOT NULL,
    product_type text NOT NULL,
    category text NOT NULL,
    redeem_type text NOT NULL,
    region text NOT NULL,
    vat_category text NOT NULL,
    async_delivery boolean NOT NULL,
    incentive boolean DEFAULT false NOT NULL,
    face_currency text NOT NULL,
    face_minor bigint,
    face_min_minor bigint,
    face_max_minor bigint,
    price_minor bigint,
    price_currency text,
    fee_variable_e8 bigint,
    fee_fixed_minor bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    redeem_instructions text,
    terms text,
    image_url text,
    CONSTRAINT product_version_category_check CHECK ((category ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text)),
    CONSTRAINT product_version_check CHECK ((face_max_minor >= face_min_minor)),
    CONSTRAINT product_version_check1 CHECK ((((num_nonnulls(face_minor) + num_nonnulls(face_min_minor, face_max_minor)) = ANY (ARRAY[1, 2])) AND ((face_minor IS NULL) = (face_min_minor IS NOT NULL)) AND ((face_min_minor IS NULL) = (face_max_minor IS NULL)))),
    CONSTRAINT product_version_check2 CHECK ((((price_minor IS NULL) = (price_currency IS NULL)) AND ((fee_variable_e8 IS NULL) = (fee_fixed_minor IS NULL)) AND ((price_minor IS NULL) <> (fee_variable_e8 IS NULL)) AND ((face_minor IS NOT NULL) OR (fee_variable_e8 IS NOT NULL)))),
    CONSTRAINT product_version_face_currency_check CHECK ((face_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT product_version_face_min_minor_check CHECK ((face_min_minor > 0)),
    CONSTRAINT product_version_face_minor_check CHECK ((face_minor > 0)),
    CONSTRAINT product_version_fee_fixed_minor_check CHECK ((fee_fixed_minor >= 0)),
    CONSTRAINT product_version_fee_variable_e8_check CHECK ((fee_variable_e8 > 0)),
    CONSTRAINT product_version_image_url_check CHECK (((image_url ~ '^https://'::text) AND (length(image_url) <= 500))),
    CONSTRAINT product_version_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT product_version_price_currency_check CHECK ((price_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT product_version_price_minor_check CHECK ((price_minor > 0)),
    CONSTRAINT product_version_product_type_check CHECK ((product_type = ANY (ARRAY['giftcard'::text, 'gamecard'::text, 'topup'::text, 'paymentcard'::text, 'subscription'::text]))),
    CONSTRAINT product_version_redeem_instructions_check CHECK (((length(redeem_instructions) >= 1) AND (length(redeem_instructions) <= 4000))),
    CONSTRAINT product_version_redeem_type_check CHECK ((redeem_type = ANY (ARRAY['currency'::text, 'product'::text, 'subscription'::text]))),
    CONSTRAINT product_version_region_check CHECK (((length(region) >= 2) AND (length(region) <= 20))),
    CONSTRAINT product_version_terms_check CHECK (((length(terms) >= 1) AND (length(terms) <= 20000))),
    CONSTRAINT product_version_vat_category_check CHECK ((vat_category = ANY (ARRAY['single_purpose'::text, 'multi_purpose'::text, 'exempt'::text])))
);


COMMENT ON TABLE voucherd_release.product_version IS 'One row is a product as it was from some moment on. It never changes, so an order can point at the one that it was priced with, and a process can keep it in memory for ever.';


COMMENT ON COLUMN voucherd_release.product_version.async_delivery IS 'An order may wait for it after Confirm has answered.';


COMMENT ON COLUMN voucherd_release.product_version.face_minor IS 'A fixed face value; NULL: any from face_min_minor to face_max_minor.';


COMMENT ON COLUMN voucherd_release.product_version.price_minor IS 'A fixed price; NULL: the face value times fee_variable_e8 plus fee_fixed_minor.';


COMMENT ON CONSTRAINT product_version_check1 ON voucherd_release.product_version IS 'A fixed face value, or a range (OP-51).';


COMMENT ON CONSTRAINT product_version_check2 ON voucherd_release.product_version IS 'A fixed price, or a fee; a product with a range always has the fee (OP-51).';


ALTER TABLE voucherd_release.product_version ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.product_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE VIEW voucherd_release.purchase_leg AS
 SELECT l.attempt_id,
    a.supplier_id,
    l.state,
    l.purchase_currency AS currency,
    leg.account,
    leg.amount_minor
   FROM ((voucherd_release.lot l
     JOIN voucherd_release.attempt a ON ((a.id = l.attempt_id)))
     CROSS JOIN LATERAL ( VALUES ('stock'::text,((l.size - l.spare) * l.purchase_minor)), ('spare'::text,(l.spare * l.purchase_minor)), ('supplier'::text,((- l.size) * l.purchase_minor))) leg(account, amount_minor));


COMMENT ON VIEW voucherd_release.purchase_leg IS 'One row is a leg of a purchase: the debt to the supplier, the worth of the codes that lines took, and of the spare ones. They are sums of lots and never updated in place.';


CREATE TABLE voucherd_release.quarantined_code (
    attempt_id uuid NOT NULL,
    place integer NOT NULL,
    sealed bytea NOT NULL,
    blind bytea NOT NULL,
    reason text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT quarantined_code_blind_check CHECK ((length(blind) = 16)),
    CONSTRAINT quarantined_code_place_check CHECK ((place >= 0)),
    CONSTRAINT quarantined_code_reason_check CHECK ((reason = ANY (ARRAY['known'::text, 'malformed'::text, 'expired'::text])))
);


COMMENT ON TABLE voucherd_release.quarantined_code IS 'One row is a code that a supplier sold us and that is in the vault already, is malformed or has expired: nobody gets it before a person has looked.';


COMMENT ON COLUMN voucherd_release.quarantined_code.blind IS 'A keyed hash of the code, to find it again without opening it.';


CREATE TABLE voucherd_release.quote (
    id bigint NOT NULL,
    supplier_id integer NOT NULL,
    state smallint NOT NULL,
    product_id integer NOT NULL,
    face_minor bigint NOT NULL,
    price_minor bigint NOT NULL,
    face_to_minor bigint,
    price_to_minor bigint,
    currency text NOT NULL,
    fx_e8 bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT quote_check CHECK ((face_to_minor > face_minor)),
    CONSTRAINT quote_check1 CHECK ((price_to_minor >= price_minor)),
    CONSTRAINT quote_check2 CHECK (((face_to_minor IS NULL) = (price_to_minor IS NULL))),
    CONSTRAINT quote_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT quote_face_minor_check CHECK ((face_minor > 0)),
    CONSTRAINT quote_fx_e8_check CHECK ((fx_e8 > 0)),
    CONSTRAINT quote_price_minor_check CHECK ((price_minor >= 0)),
    CONSTRAINT quote_same_state CHECK (((id & (1)::bigint) = state))
);


COMMENT ON TABLE voucherd_release.quote IS 'One row is a price that a supplier asked for a code. It stays as it was: an order shows the quotes that its Create saw. A quote over a range of face values gives the price at both ends; between them it is a straight line.';


COMMENT ON COLUMN voucherd_release.quote.id IS 'Twice a number of quote_number, plus the state.';


CREATE SEQUENCE voucherd_release.quote_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


CREATE UNLOGGED TABLE voucherd_release.rate_window (
    key_id bigint NOT NULL,
    number bigint DEFAULT 0 NOT NULL,
    lent integer DEFAULT 0 NOT NULL,
    before integer DEFAULT 0 NOT NULL,
    CONSTRAINT rate_window_counts CHECK (((lent >= 0) AND (before >= 0)))
)
WITH (fillfactor='50');


COMMENT ON TABLE voucherd_release.rate_window IS 'One row says how many requests of a key are lent to processes in the present minute of the key (OP-27). A process borrows some requests at a time and counts them down in memory, so a request writes nothing. All loans together never exceed the quota. Unlogged: after a crash of the database every key begins a new minute.';


COMMENT ON COLUMN voucherd_release.rate_window.key_id IS 'No foreign key: it would lock the row of the key and make the write a logged one.';


COMMENT ON COLUMN voucherd_release.rate_window.number IS 'Which minute since 1970, shifted per key so that not all keys turn at once.';


COMMENT ON COLUMN voucherd_release.rate_window.lent IS 'In that minute.';


COMMENT ON COLUMN voucherd_release.rate_window.before IS 'In the minute before it.';


CREATE TABLE voucherd_release.recovery_code (
    user_id bigint NOT NULL,
    hash bytea NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT recovery_code_hash_check CHECK ((length(hash) = 32))
);


COMMENT ON TABLE voucherd_release.recovery_code IS 'One row is a code on paper that replaces the second factor once.';


CREATE TABLE voucherd_release.reset_request (
    id bigint NOT NULL,
    email text NOT NULL,
    CONSTRAINT reset_request_email_check CHECK (((length(email) >= 1) AND (length(email) <= 254)))
);


COMMENT ON TABLE voucherd_release.reset_request IS 'One row is an address for which somebody wants a new password. The worker looks up later whose it is, so that the answer takes equally long for an address that nobody has.';


ALTER TABLE voucherd_release.reset_request ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.reset_request_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.reveal (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    order_id bigint NOT NULL,
    company_id integer NOT NULL,
    line_from integer NOT NULL,
    lines integer NOT NULL,
    via smallint NOT NULL,
    actor_kind smallint NOT NULL,
    actor_id bigint,
    address inet,
    state smallint GENERATED ALWAYS AS (((order_id & (1)::bigint))::smallint) STORED NOT NULL,
    CONSTRAINT reveal_actor_kind_check CHECK (((actor_kind >= 0) AND (actor_kind <= 5))),
    CONSTRAINT reveal_line_from_check CHECK (((line_from >= 0) AND (line_from <= 9999))),
    CONSTRAINT reveal_lines_check CHECK (((lines >= 1) AND (lines <= 10000))),
    CONSTRAINT reveal_via_check CHECK (((via >= 0) AND (via <= 8)))
);


COMMENT ON TABLE voucherd_release.reveal IS 'One row says that codes of an order were shown in one answer, however many. It is written before they leave.';


COMMENT ON COLUMN voucherd_release.reveal.line_from IS 'The first line that was shown.';


COMMENT ON COLUMN voucherd_release.reveal.via IS '0 Confirm, 1 Resolve, 2 Find, 3 Find all, 4 lines, 5 file, 6 portal, 7 redemption link, 8 Cancel.';


COMMENT ON COLUMN voucherd_release.reveal.actor_kind IS 'As in trail.';


COMMENT ON COLUMN voucherd_release.reveal.state IS 'Of its order, so that the policy of companies holds here, too.';


ALTER TABLE voucherd_release.reveal ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.reveal_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.sandbox_purchase (
    supplier text NOT NULL,
    reference text NOT NULL,
    outcome text NOT NULL,
    sku text NOT NULL,
    count integer NOT NULL,
    price_minor bigint NOT NULL,
    price_currency text NOT NULL,
    bought_at timestamp with time zone DEFAULT now() NOT NULL,
    due_at timestamp with time zone NOT NULL,
    cancelled boolean DEFAULT false NOT NULL,
    CONSTRAINT sandbox_purchase_count_check CHECK (((count >= 1) AND (count <= 10000))),
    CONSTRAINT sandbox_purchase_due_check CHECK ((due_at >= bought_at)),
    CONSTRAINT sandbox_purchase_outcome_check CHECK (((length(outcome) >= 1) AND (length(outcome) <= 40))),
    CONSTRAINT sandbox_purchase_price_currency_check CHECK ((price_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT sandbox_purchase_price_minor_check CHECK ((price_minor > 0)),
    CONSTRAINT sandbox_purchase_reference_check CHECK (((length(reference) >= 1) AND (length(reference) <= 200))),
    CONSTRAINT sandbox_purchase_sku_check CHECK (((length(sku) >= 1) AND (length(sku) <= 200))),
    CONSTRAINT sandbox_purchase_supplier_check CHECK (((length(supplier) >= 1) AND (length(supplier) <= 100)))
);


COMMENT ON TABLE voucherd_release.sandbox_purchase IS 'One row is a purchase that the sandbox supplier "sold", so that it can be looked up from every process and after a restart. Its codes are computed from the row.';


COMMENT ON COLUMN voucherd_release.sandbox_purchase.due_at IS 'When its codes are there.';


CREATE SEQUENCE voucherd_release.sandbox_purchase_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


COMMENT ON SEQUENCE voucherd_release.sandbox_purchase_number IS 'Counts purchases, of which a sandbox supplier can be told to refuse every so many.';


CREATE TABLE voucherd_release.schema_migration (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);


COMMENT ON TABLE voucherd_release.schema_migration IS 'One row is a migration that ran; a file that changed afterwards is refused.';


CREATE TABLE voucherd_release.session (
    key bytea NOT NULL,
    user_id bigint NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    csrf bytea NOT NULL,
    pending boolean DEFAULT false NOT NULL,
    strong_at timestamp with time zone,
    flash text,
    flash_kind text,
    address text NOT NULL,
    agent text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT session_address_check CHECK ((length(address) <= 100)),
    CONSTRAINT session_agent_check CHECK ((length(agent) <= 300)),
    CONSTRAINT session_csrf_check CHECK ((length(csrf) = 32)),
    CONSTRAINT session_flash_check CHECK ((length(flash) <= 500)),
    CONSTRAINT session_flash_has_kind CHECK (((flash IS NULL) = (flash_kind IS NULL))),
    CONSTRAINT session_flash_kind_check CHECK ((flash_kind = ANY (ARRAY['good'::text, 'bad'::text, 'note'::text]))),
    CONSTRAINT session_key_check CHECK ((length(key) = 32)),
    CONSTRAINT session_lasts CHECK ((expires_at > created_at)),
    CONSTRAINT session_pending_is_weak CHECK (((NOT pending) OR (strong_at IS NULL))),
    CONSTRAINT session_state_check CHECK ((state = ANY (ARRAY[0, 1])))
);


COMMENT ON TABLE voucherd_release.session IS 'One row is a browser in which a person is signed in.';


COMMENT ON COLUMN voucherd_release.session.key IS 'The hash of a token that only the browser has.';


COMMENT ON COLUMN voucherd_release.session.state IS 'Whether the person looks at live or at the sandbox.';


COMMENT ON COLUMN voucherd_release.session.csrf IS 'Every form of the session must send it back.';


COMMENT ON COLUMN voucherd_release.session.pending IS 'The password was right, the second factor is still wanted.';


COMMENT ON COLUMN voucherd_release.session.strong_at IS 'When a second factor was given last.';


COMMENT ON COLUMN voucherd_release.session.flash IS 'A sentence that the next page shows once.';


CREATE TABLE voucherd_release.spend (
    company_id integer NOT NULL,
    key_id bigint NOT NULL,
    state smallint NOT NULL,
    day date NOT NULL,
    spent_eur_minor bigint DEFAULT 0 NOT NULL,
    CONSTRAINT spend_key_id_check CHECK ((key_id >= 0)),
    CONSTRAINT spend_spent_eur_minor_check CHECK ((spent_eur_minor >= 0)),
    CONSTRAINT spend_state_check CHECK ((state = ANY (ARRAY[0, 1])))
)
WITH (fillfactor='50');


COMMENT ON TABLE voucherd_release.spend IS 'One row is what a company or a key has spent in one day (UTC); only those with a daily limit have rows. An order counts when it is finalised, whatever becomes of it: a stolen key that cancels and buys again must not get round the limit. Locked after wallets and before lots.';


COMMENT ON COLUMN voucherd_release.spend.key_id IS '0: the company as a whole.';


CREATE TABLE voucherd_release.supplier (
    id integer NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    state smallint NOT NULL,
    active boolean DEFAULT true NOT NULL,
    config jsonb NOT NULL,
    secret bytea,
    timeout_s integer DEFAULT 20 NOT NULL,
    settle_s integer DEFAULT 120 NOT NULL,
    quote_age_s integer DEFAULT 300 NOT NULL,
    concurrency_max integer DEFAULT 8 NOT NULL,
    price_slack_bp integer DEFAULT 100 NOT NULL,
    on_unknown text DEFAULT 'wait'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT supplier_check CHECK (((kind <> 'sandbox'::text) OR (state = 1))),
    CONSTRAINT supplier_concurrency_max_check CHECK (((concurrency_max >= 1) AND (concurrency_max <= 1000))),
    CONSTRAINT supplier_kind_check CHECK ((kind = ANY (ARRAY['voucherd'::text, 'http'::text, 'sandbox'::text]))),
    CONSTRAINT supplier_name_check CHECK (((name ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(name) <= 60))),
    CONSTRAINT supplier_on_unknown_check CHECK ((on_unknown = ANY (ARRAY['wait'::text, 'rebuy'::text]))),
    CONSTRAINT supplier_price_slack_bp_check CHECK (((price_slack_bp >= 0) AND (price_slack_bp <= 10000))),
    CONSTRAINT supplier_quote_age_s_check CHECK (((quote_age_s >= 1) AND (quote_age_s <= 86400))),
    CONSTRAINT supplier_settle_s_check CHECK (((settle_s >= 0) AND (settle_s <= 86400))),
    CONSTRAINT supplier_state_check CHECK ((state = ANY (ARRAY[0, 1]))),
    CONSTRAINT supplier_timeout_s_check CHECK (((timeout_s >= 1) AND (timeout_s <= 300)))
);


COMMENT ON TABLE voucherd_release.supplier IS 'One row is a supplier of codes, as the operator described it.';


COMMENT ON COLUMN voucherd_release.supplier.secret IS 'Its credentials, sealed.';


COMMENT ON COLUMN voucherd_release.supplier.timeout_s IS 'How long one call may take.';


COMMENT ON COLUMN voucherd_release.supplier.settle_s IS 'A purchase may turn up this long after its call.';


COMMENT ON COLUMN voucherd_release.supplier.quote_age_s IS 'An older quote no longer counts; at half this age it is asked for again.';


COMMENT ON COLUMN voucherd_release.supplier.price_slack_bp IS 'A purchase may be dearer than its quote by no more than this.';


COMMENT ON COLUMN voucherd_release.supplier.on_unknown IS 'After a purchase whose end is unknown: wait for a person, or buy elsewhere.';


CREATE TABLE voucherd_release.supplier_health (
    supplier_id integer NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    open_until timestamp with time zone,
    quoting_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    quote_error text,
    CONSTRAINT supplier_health_failures_check CHECK ((failures >= 0)),
    CONSTRAINT supplier_health_quote_error_check CHECK ((length(quote_error) <= 300))
)
WITH (fillfactor='50');


COMMENT ON TABLE voucherd_release.supplier_health IS 'One row is how a supplier does. It changes with every call and so stands apart from the words of the operator.';


COMMENT ON COLUMN voucherd_release.supplier_health.failures IS 'In a row; from a number of them on the supplier is left alone for a while.';


COMMENT ON COLUMN voucherd_release.supplier_health.open_until IS 'Nobody calls before this; then one call tries.';


COMMENT ON COLUMN voucherd_release.supplier_health.quoting_until IS 'A process asks for prices until then; others need not.';


ALTER TABLE voucherd_release.supplier ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.supplier_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.sweep (
    name text NOT NULL,
    upto timestamp with time zone NOT NULL
);


COMMENT ON TABLE voucherd_release.sweep IS 'One row says how far a periodic task of the worker has come.';


CREATE TABLE voucherd_release.throttle (
    key bytea NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    last_at timestamp with time zone DEFAULT now() NOT NULL,
    until timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT throttle_failures_check CHECK ((failures >= 0)),
    CONSTRAINT throttle_key_check CHECK ((length(key) = 32))
)
WITH (fillfactor='70');


COMMENT ON TABLE voucherd_release.throttle IS 'One row counts how often something was tried in vain, such as a password from one network.';


COMMENT ON COLUMN voucherd_release.throttle.key IS 'A hash of who tried and from where.';


COMMENT ON COLUMN voucherd_release.throttle.until IS 'Every try before this is refused unseen.';


CREATE TABLE voucherd_release.totp (
    user_id bigint NOT NULL,
    secret bytea NOT NULL,
    confirmed_at timestamp with time zone,
    last_step bigint DEFAULT 0 NOT NULL,
    CONSTRAINT totp_last_step_check CHECK ((last_step >= 0))
);


COMMENT ON TABLE voucherd_release.totp IS 'One row is the authenticator app of a person: the second factor by six digits.';


COMMENT ON COLUMN voucherd_release.totp.secret IS 'Sealed.';


COMMENT ON COLUMN voucherd_release.totp.confirmed_at IS 'It counts from the first right code on.';


COMMENT ON COLUMN voucherd_release.totp.last_step IS 'The time step of the last code that was used.';


CREATE TABLE voucherd_release.trail (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    actor_kind smallint NOT NULL,
    actor_id bigint,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    company_id integer,
    state smallint,
    address inet,
    request_id text,
    detail jsonb,
    CONSTRAINT trail_action_check CHECK (((action ~ '^[a-z][a-z0-9_]*([.-][a-z0-9_]+)+$'::text) AND (length(action) <= 100))),
    CONSTRAINT trail_actor_check CHECK (((length(actor) >= 1) AND (length(actor) <= 300))),
    CONSTRAINT trail_actor_kind_check CHECK (((actor_kind >= 0) AND (actor_kind <= 5))),
    CONSTRAINT trail_detail_check CHECK ((jsonb_typeof(detail) = 'object'::text)),
    CONSTRAINT trail_request_id_check CHECK (((length(request_id) >= 1) AND (length(request_id) <= 200))),
    CONSTRAINT trail_state_check CHECK ((state = ANY (ARRAY[0, 1]))),
    CONSTRAINT trail_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 300)))
);


COMMENT ON TABLE voucherd_release.trail IS 'One row is something that somebody did. Rows are only added, and no row knows the one before it, so that writers do not wait for one another; the worker seals them in blocks afterwards (trail_seal).';


COMMENT ON COLUMN voucherd_release.trail.actor_kind IS '0 operator, 1 person, 2 key, 3 command, 4 system, 5 recipient.';


COMMENT ON COLUMN voucherd_release.trail.actor IS 'The name of the actor as it was then.';


COMMENT ON COLUMN voucherd_release.trail.subject IS 'What it was done to.';


ALTER TABLE voucherd_release.trail ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME voucherd_release.trail_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE voucherd_release.trail_seal (
    book text NOT NULL,
    block bigint NOT NULL,
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    rows integer NOT NULL,
    previous bytea NOT NULL,
    hash bytea NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT trail_seal_block_check CHECK ((block > 0)),
    CONSTRAINT trail_seal_book_check CHECK ((book = ANY (ARRAY['trail'::text, 'reveal'::text]))),
    CONSTRAINT trail_seal_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT trail_seal_in_order CHECK (((0 < first_id) AND (first_id <= last_id) AND (rows <= ((last_id - first_id) + 1)))),
    CONSTRAINT trail_seal_previous_check CHECK ((length(previous) = 32)),
    CONSTRAINT trail_seal_rows_check CHECK ((rows > 0))
);


COMMENT ON TABLE voucherd_release.trail_seal IS 'One row is a block of trail or reveal: all rows with ids above the block before it, up to its last_id. The worker seals a block once no older row can come to light any more. Its hash covers the block before it: a change of a sealed row breaks the chain from there on, and a rewritten chain has another head, which can be noted elsewhere (docs/decisions/0023).';


CREATE TABLE voucherd_release.upload (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id bigint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    bytes integer NOT NULL,
    terms jsonb NOT NULL,
    sealed bytea,
    status smallint DEFAULT 0 NOT NULL,
    permille smallint DEFAULT 0 NOT NULL,
    report jsonb,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT upload_bytes_check CHECK (((bytes >= 1) AND (bytes <= 33554432))),
    CONSTRAINT upload_kind_check CHECK ((kind = ANY (ARRAY['stock'::text, 'products'::text]))),
    CONSTRAINT upload_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT upload_permille_check CHECK (((permille >= 0) AND (permille <= 1000))),
    CONSTRAINT upload_report_check CHECK ((jsonb_typeof(report) = 'object'::text)),
    CONSTRAINT upload_status_check CHECK (((status >= 0) AND (status <= 4))),
    CONSTRAINT upload_status_fits CHECK (
CASE status
    WHEN 0 THEN (report IS NULL)
    WHEN 1 THEN (report IS NOT NULL)
    WHEN 2 THEN (report IS NOT NULL)
    ELSE ((report IS NOT NULL) AND (sealed IS NULL))
END),
    CONSTRAINT upload_terms_check CHECK ((jsonb_typeof(terms) = 'object'::text))
);
ALTER TABLE ONLY voucherd_release.upload ALTER COLUMN sealed SET STORAGE EXTERNAL;


COMMENT ON TABLE voucherd_release.upload IS 'One row is a file that a person uploaded to the console: tried out first, then imported. It may hold codes, so it is kept sealed, and only until it is imported, refused or a quarter of an hour old.';


COMMENT ON COLUMN voucherd_release.upload.terms IS 'The fields of the form beside the file.';


COMMENT ON COLUMN voucherd_release.upload.status IS '0 being tried, 1 ready, 2 being imported, 3 imported, 4 refused.';


COMMENT ON COLUMN voucherd_release.upload.permille IS 'How far the work has come.';


COMMENT ON CONSTRAINT upload_status_fits ON voucherd_release.upload IS 'An upload that is over has a report and no file.';


CREATE TABLE voucherd_release.vat_rate (
    country text NOT NULL,
    valid_from date NOT NULL,
    rate_bp integer NOT NULL,
    CONSTRAINT vat_rate_country_check CHECK ((country ~ '^[A-Z]{2}$'::text)),
    CONSTRAINT vat_rate_rate_bp_check CHECK (((rate_bp >= 0) AND (rate_bp <= 10000)))
);


COMMENT ON TABLE voucherd_release.vat_rate IS 'One row is the standard VAT rate of a country from a day on. A new rate is a new row, entered before its day; a past row never changes, so an order can always be explained (OP-52). Regions with a rate of their own (the Azores, Jungholz …) are left out: of a company only the country is known.';


COMMENT ON COLUMN voucherd_release.vat_rate.rate_bp IS '2100 is 21%.';


CREATE TABLE voucherd_release.vault_key (
    version smallint NOT NULL,
    fingerprint bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    wrapped bytea,
    active_at timestamp with time zone DEFAULT now(),
    retired_at timestamp with time zone,
    CONSTRAINT vault_key_fingerprint_check CHECK ((length(fingerprint) = 32)),
    CONSTRAINT vault_key_retired_fits CHECK (((retired_at IS NULL) OR (active_at IS NOT NULL))),
    CONSTRAINT vault_key_version_check CHECK ((version > 0)),
    CONSTRAINT vault_key_wrapped_check CHECK ((length(wrapped) = 60)),
    CONSTRAINT vault_key_wrapped_fits CHECK (((wrapped IS NOT NULL) = ((version > 1) AND (retired_at IS NULL))))
);


COMMENT ON TABLE voucherd_release.vault_key IS 'One row is a data key, which seals (OP-95). Version 1 is derived from the root key; later versions are random and wrapped with the master key. Sealed bytes begin with the version that sealed them; those without a mark are of 1.';


COMMENT ON COLUMN voucherd_release.vault_key.wrapped IS 'NULL for version 1, and for a key that was destroyed.';


COMMENT ON COLUMN voucherd_release.vault_key.active_at IS 'NULL: processes learn the key, none seals with it yet.';


COMMENT ON COLUMN voucherd_release.vault_key.retired_at IS 'When it was destroyed.';


CREATE TABLE voucherd_release.vault_master (
    only_row boolean DEFAULT true NOT NULL,
    generation integer DEFAULT 1 NOT NULL,
    fingerprint bytea NOT NULL,
    root bytea NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT vault_master_fingerprint_check CHECK ((length(fingerprint) = 32)),
    CONSTRAINT vault_master_generation_check CHECK ((generation > 0)),
    CONSTRAINT vault_master_only_row_check CHECK (only_row),
    CONSTRAINT vault_master_root_check CHECK ((length(root) = 60))
);


COMMENT ON TABLE voucherd_release.vault_master IS 'The only row says which master key fits, so that a wrong key file is noticed at the start and not at the first sale, and keeps the root key that the master key wraps.';


COMMENT ON COLUMN voucherd_release.vault_master.generation IS 'Grows with every new master key.';


COMMENT ON COLUMN voucherd_release.vault_master.root IS 'Identifiers, blind indexes and the codes of the sandbox are computed from it. It stays the same in every rotation.';


CREATE TABLE voucherd_release.waiting (
    state smallint NOT NULL,
    product_id integer NOT NULL,
    face_minor bigint NOT NULL,
    company_id integer NOT NULL,
    order_id bigint NOT NULL,
    line_from integer NOT NULL,
    line_to integer NOT NULL,
    not_before timestamp with time zone NOT NULL,
    deadline_at timestamp with time zone NOT NULL,
    urgent boolean DEFAULT false NOT NULL,
    supplier_id integer,
    attempt_id uuid,
    ask_at timestamp with time zone,
    tried integer[] DEFAULT '{}'::integer[] NOT NULL,
    rounds integer DEFAULT 0 NOT NULL,
    CONSTRAINT waiting_check CHECK ((line_from < line_to)),
    CONSTRAINT waiting_in_one_place CHECK ((num_nonnulls(supplier_id, attempt_id, ask_at) <= 1)),
    CONSTRAINT waiting_rounds_check CHECK ((rounds >= 0)),
    CONSTRAINT waiting_same_state CHECK (((order_id & (1)::bigint) = state)),
    CONSTRAINT waiting_state_check CHECK ((state = ANY (ARRAY[0, 1])))
);


COMMENT ON TABLE voucherd_release.waiting IS 'One row is a range of lines that were paid (or held) and wait for codes. The order of the key is the order of service: within a product companies take turns by a loose index scan, and within a company the oldest order comes first. The lines are at one of four places: a supplier is to be asked for them, they are being bought, they pause before a supplier is looked for, or they wait for stock alone. Each place has an index of its own, so that a million rows elsewhere cost nothing. At most one purchase is under way for a line, because a line is in one row and a row names one purchase.';


COMMENT ON COLUMN voucherd_release.waiting.not_before IS 'Orders of the sandbox may ask to be slow (OP-49).';


COMMENT ON COLUMN voucherd_release.waiting.deadline_at IS 'When the wait ends: at the end of the delivery window, or of the limit of Resolve.';


COMMENT ON COLUMN voucherd_release.waiting.urgent IS 'Of a Resolve: never behind others.';


COMMENT ON COLUMN voucherd_release.waiting.supplier_id IS 'The supplier that is to be asked.';


COMMENT ON COLUMN voucherd_release.waiting.attempt_id IS 'The purchase that is under way.';


COMMENT ON COLUMN voucherd_release.waiting.ask_at IS 'The end of the pause before a supplier is looked for.';


COMMENT ON COLUMN voucherd_release.waiting.tried IS 'The suppliers that failed in this round.';


COMMENT ON COLUMN voucherd_release.waiting.rounds IS 'How often every supplier has failed.';


CREATE TABLE voucherd_release.wallet_alert (
    wallet_id bigint NOT NULL,
    low_minor bigint NOT NULL,
    told boolean DEFAULT false NOT NULL,
    CONSTRAINT wallet_alert_low_minor_check CHECK ((low_minor > 0))
);


COMMENT ON TABLE voucherd_release.wallet_alert IS 'One row is the balance below which the company wants to be told.';


COMMENT ON COLUMN voucherd_release.wallet_alert.told IS 'It was told, and the balance was not above again since.';


CREATE SEQUENCE voucherd_release.wallet_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


CREATE TABLE voucherd_release.webhook (
    id bigint NOT NULL,
    company_id integer NOT NULL,
    state smallint NOT NULL,
    slot smallint NOT NULL,
    url text,
    description text DEFAULT ''::text NOT NULL,
    types text[] DEFAULT '{}'::text[] NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    disabled_reason text,
    secret bytea NOT NULL,
    old_secret bytea,
    old_until timestamp with time zone,
    headers bytea,
    header_names text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT webhook_description_check CHECK ((length(description) <= 200)),
    CONSTRAINT webhook_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY['gone'::text, 'failing'::text]))),
    CONSTRAINT webhook_headers_named CHECK (((headers IS NULL) = (header_names = '{}'::text[]))),
    CONSTRAINT webhook_old_secret_ends CHECK (((old_secret IS NULL) = (old_until IS NULL))),
    CONSTRAINT webhook_reason_fits CHECK (((disabled_reason IS NULL) OR (NOT enabled))),
    CONSTRAINT webhook_slot_check CHECK (((slot >= 1) AND (slot <= 20))),
    CONSTRAINT webhook_state_check CHECK ((state = ANY (ARRAY[0, 1]))),
    CONSTRAINT webhook_url_check CHECK (((length(url) >= 1) AND (length(url) <= 2000)))
);


COMMENT ON TABLE voucherd_release.webhook IS 'One row is an endpoint to which a company wants its events sent (OP-54).';


COMMENT ON COLUMN voucherd_release.webhook.slot IS 'A company has at most 20 endpoints in each state.';


COMMENT ON COLUMN voucherd_release.webhook.url IS 'NULL: each order names its own address.';


COMMENT ON COLUMN voucherd_release.webhook.types IS 'Empty: all.';


COMMENT ON COLUMN voucherd_release.webhook.disabled_reason IS 'NULL: a person disabled it.';


COMMENT ON COLUMN voucherd_release.webhook.secret IS 'Signs what is sent. Sealed, as are old_secret and headers.';


COMMENT ON COLUMN voucherd_release.webhook.old_secret IS 'Signs beside the new one until old_until.';


CREATE TABLE voucherd_release.webhook_attempt (
    webhook_id bigint NOT NULL,
    event_id bigint NOT NULL,
    number integer NOT NULL,
    sent_at timestamp with time zone NOT NULL,
    ms integer NOT NULL,
    url text NOT NULL,
    http smallint,
    error text,
    head text DEFAULT ''::text NOT NULL,
    body text DEFAULT ''::text NOT NULL,
    CONSTRAINT webhook_attempt_body_check CHECK ((length(body) <= 500)),
    CONSTRAINT webhook_attempt_ended CHECK (((http IS NULL) <> (error IS NULL))),
    CONSTRAINT webhook_attempt_error_check CHECK ((length(error) <= 300)),
    CONSTRAINT webhook_attempt_head_check CHECK ((length(head) <= 1000)),
    CONSTRAINT webhook_attempt_http_check CHECK (((http >= 100) AND (http <= 999))),
    CONSTRAINT webhook_attempt_ms_check CHECK ((ms >= 0)),
    CONSTRAINT webhook_attempt_number_check CHECK ((number > 0))
);


COMMENT ON TABLE voucherd_release.webhook_attempt IS 'One row is a request to an endpoint, and the start of its answer.';


COMMENT ON COLUMN voucherd_release.webhook_attempt.sent_at IS 'The header webhook-timestamp, which has whole seconds.';


COMMENT ON COLUMN voucherd_release.webhook_attempt.http IS 'The status of the answer; NULL: there was none, but an error.';


CREATE TABLE voucherd_release.webhook_cursor (
    only_row boolean DEFAULT true NOT NULL,
    upto bigint NOT NULL,
    CONSTRAINT webhook_cursor_only_row_check CHECK (only_row),
    CONSTRAINT webhook_cursor_upto_check CHECK ((upto >= 0))
);


COMMENT ON TABLE voucherd_release.webhook_cursor IS 'The only row says up to which event deliveries were made.';


CREATE TABLE voucherd_release.webhook_delivery (
    webhook_id bigint NOT NULL,
    event_id bigint NOT NULL,
    type text NOT NULL,
    url text,
    status smallint DEFAULT 0 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    next_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT webhook_delivery_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT webhook_delivery_status_check CHECK (((status >= 0) AND (status <= 2))),
    CONSTRAINT webhook_delivery_tries_check CHECK ((tries >= 0)),
    CONSTRAINT webhook_delivery_url_check CHECK (((length(url) >= 1) AND (length(url) <= 2000))),
    CONSTRAINT webhook_delivery_waits CHECK (((status = 0) = (next_at IS NOT NULL)))
)
WITH (fillfactor='70');


COMMENT ON TABLE voucherd_release.webhook_delivery IS 'One row is an event that one endpoint is to get.';


COMMENT ON COLUMN voucherd_release.webhook_delivery.url IS 'Of an order that named its own address.';


COMMENT ON COLUMN voucherd_release.webhook_delivery.status IS '0 waiting, 1 delivered, 2 failed.';


COMMENT ON COLUMN voucherd_release.webhook_delivery.tries IS 'Attempts since it was last queued: they pick the pause.';


COMMENT ON COLUMN voucherd_release.webhook_delivery.next_at IS 'While it waits: for when.';


CREATE SEQUENCE voucherd_release.webhook_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


CREATE TABLE voucherd_release.webhook_queue (
    webhook_id bigint NOT NULL,
    next_at timestamp with time zone,
    leased boolean DEFAULT false NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    slow boolean DEFAULT false NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    failing_since timestamp with time zone,
    CONSTRAINT webhook_queue_failing_fits CHECK (((failures = 0) = (failing_since IS NULL))),
    CONSTRAINT webhook_queue_failures_check CHECK ((failures >= 0))
)
WITH (fillfactor='50');


COMMENT ON TABLE voucherd_release.webhook_queue IS 'One row says when an endpoint has its next turn.';


COMMENT ON COLUMN voucherd_release.webhook_queue.next_at IS 'When something is due. The process that takes the endpoint moves it ahead by a lease, so that no other takes it and it comes back by itself if that process dies. NULL: nothing to send.';


COMMENT ON COLUMN voucherd_release.webhook_queue.fence IS 'Grows with each owner; an earlier one writes nothing any more.';


COMMENT ON COLUMN voucherd_release.webhook_queue.slow IS 'Waits with other slow ones, so that it holds up no quick one.';


COMMENT ON COLUMN voucherd_release.webhook_queue.failures IS 'Since the last success.';


CREATE TABLE voucherd_release.worker_seen (
    id uuid NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT worker_seen_host_check CHECK (((length(host) >= 1) AND (length(host) <= 200))),
    CONSTRAINT worker_seen_pid_check CHECK ((pid > 0))
);


COMMENT ON TABLE voucherd_release.worker_seen IS 'One row is a worker that says every few seconds that it runs. The others remove a row that is a day old.';


INSERT INTO voucherd_release.access_epoch VALUES
	(true, 3);




INSERT INTO voucherd_release.api_key OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 0, 'vk_live_8NSSyG', '\x59a383308de6a8b0003dd3129cd04b439b32cc95fd5768a389d69abee7b3c2dc', '', '{catalogue:read,codes:read,events:read,keys:write,orders:read,orders:write,wallet:read,webhooks:write}', '{}', 1000000, NULL, NULL, NULL, '2026-11-15 14:57:32.454818+00', '2026-11-15 14:57:37.443079+00', NULL, NULL),
	(2, 1, 1, 'vk_test_rfYT8F', '\x2bd578b9dc8f6d0e9ffb860a1d42d3610a1c3b46e975f6f9bc43520fae587cad', '', '{catalogue:read,codes:read,events:read,keys:write,orders:read,orders:write,wallet:read,webhooks:write}', '{}', 1000000, NULL, NULL, NULL, '2026-11-15 14:57:32.454818+00', '2026-11-15 14:57:34.05027+00', NULL, NULL),
	(4, 1, 0, 'vk_live_mmty8H', '\x0836a6d6d6ad3b369ca75461421644194edd393a3ac7e5e59403102fb4ce8d9b', 'till', '{catalogue:read,codes:read,events:read,orders:read,orders:write,wallet:read,webhooks:write}', '{}', 600, NULL, NULL, NULL, '2026-11-15 14:57:38.777625+00', NULL, NULL, 50000),
	(3, 1, 0, 'vk_live_0dgUqy', '\xb6063f981c6ecde94b25a332dec4c7fcc039f32c447bd34e4017bd138094cae1', 'till', '{catalogue:read,codes:read,events:read,orders:read,orders:write,wallet:read,webhooks:write}', '{}', 600, '2026-11-16 14:57:38.777625+00', NULL, 4, '2026-11-15 14:57:38.610112+00', NULL, NULL, 50000);


INSERT INTO voucherd_release.app_user OVERRIDING SYSTEM VALUE VALUES
	(1, 'finance1@people.example', NULL, 'finance', 'no password opens this', '2026-11-15 14:57:34.078501+00', true, ''),
	(2, 'admin2@people.example', NULL, 'admin', 'no password opens this', '2026-11-15 14:57:34.097405+00', true, ''),
	(3, 'owner3@people.example', 1, 'owner', 'no password opens this', '2026-11-15 14:57:34.304663+00', true, ''),
	(4, 'buyer4@people.example', 1, 'buyer', 'no password opens this', '2026-11-15 14:57:34.318024+00', true, '');


INSERT INTO voucherd_release.approval OVERRIDING SYSTEM VALUE VALUES
	(1, 2, 1, 0, NULL, 25000, 'EUR', 'transfer 1', '', 1, '2026-11-15 14:57:34.119756+00', '2026-11-29 14:57:34.119756+00', 1, 2, '2026-11-15 14:57:34.163354+00'),
	(2, 2, 1, 0, NULL, 25000, 'EUR', 'transfer 2', '', 1, '2026-11-15 14:57:34.20973+00', '2026-11-29 14:57:34.20973+00', 0, NULL, NULL),
	(3, 1, 1, 0, 2074, 2278, 'EUR', NULL, '', 4, '2026-11-15 14:57:34.70479+00', '2026-11-16 14:57:34.502857+00', 0, NULL, NULL);


INSERT INTO voucherd_release.attempt VALUES
	('f67f7fc2-7fc9-4b06-8971-aa1ec03c09ba', 1, 0, 5, 1000, 'sku-bought', 2, 900, 909, 2, false, 3, 1, 'worker/21195/e828fd', '2026-11-15 14:57:46.449218+00', '2026-11-15 14:57:35.449218+00', '2026-11-15 15:57:46.449218+00', NULL, 0, '2026-11-15 14:57:35.536082+00', 0, 'F1', 2, 0, 0, NULL, NULL),
	('25d020da-e331-4be3-9780-a4954a50459a', 2, 0, 6, 1000, 'sku-bought-too-many', 4, 900, 909, 2, false, 3, 1, 'worker/21195/e828fd', '2026-11-15 14:57:47.00691+00', '2026-11-15 14:57:36.00691+00', '2026-11-15 15:57:47.00691+00', NULL, 0, '2026-11-15 14:57:36.125795+00', 0, 'F1', 4, 2, 0, '4 codes came, 2 were asked for', NULL),
	('972e1f08-ee47-4597-a450-523fc87bd756', 3, 0, 7, 1000, 'sku-refused-by-the-supplier', 6, 900, 909, 2, false, 4, 1, 'worker/21195/e828fd', '2026-11-15 14:57:47.412595+00', '2026-11-15 14:57:36.412595+00', '2026-11-15 15:57:47.412595+00', NULL, 0, '2026-11-15 14:57:36.51888+00', 0, NULL, 0, 0, 0, 'out_of_stock', NULL),
	('86d1c294-7697-43c0-bf12-97bf3d500f40', 3, 0, 7, 1000, 'sku-refused-by-the-supplier', 6, 900, 909, 2, false, 3, 1, 'worker/21195/e828fd', '2026-11-15 14:57:47.827015+00', '2026-11-15 14:57:36.827015+00', '2026-11-15 15:57:47.827015+00', NULL, 0, '2026-11-15 14:57:36.925198+00', 0, 'F1', 2, 0, 0, NULL, NULL),
	('09111184-c103-47bf-944c-fba233714d3c', 4, 0, 8, 1000, 'sku-asked-about', 8, 900, 909, 2, false, 1, 1, 'worker/21195/e828fd', '2026-11-15 14:57:47.92902+00', '2026-11-15 14:57:36.92902+00', '2026-11-15 15:57:47.92902+00', '2026-11-15 14:57:37.436058+00', 0, NULL, 0, NULL, 0, 0, 0, 'reset', NULL),
	('597ab83b-0b67-43e5-9fc6-6446323651f0', 5, 0, 9, 1000, 'sku-of-unknown-end', 10, 900, 909, 2, false, 2, 1, 'worker/21195/e828fd', '2026-11-15 14:57:48.17688+00', '2026-11-15 14:57:37.17688+00', '2026-11-15 15:57:48.17688+00', NULL, 0, NULL, 0, NULL, 0, 0, 0, 'reset', NULL),
	('b1152e1f-7ac9-4138-81bb-7f571956e9f5', 1, 0, 5, 1000, 'sku-bought', 2, 900, 909, 2, false, 3, 1, 'worker/21195/e828fd', '2026-11-15 14:57:48.321112+00', '2026-11-15 14:57:37.321112+00', '2026-11-15 15:57:48.321112+00', NULL, 0, '2026-11-15 14:57:37.352093+00', 0, 'F1', 0, 0, 2, '0 codes came, 2 were asked for', NULL),
	('3b42fd74-5af2-455d-b173-3555bdecffe2', 6, 0, 10, 1000, 'sku-later-10', 12, 900, 909, 1, false, 0, 1, 'worker/21195/e828fd', '2026-11-15 14:59:48.0351+00', '2026-11-15 14:57:38.0351+00', '2026-11-15 14:59:48.0351+00', NULL, 0, NULL, NULL, NULL, 0, 0, 0, NULL, NULL),
	('2142915c-3f5b-4e39-9dd5-aaf2b1104f72', 6, 0, 10, 1000, 'sku-later-10', 12, 900, 909, 1, false, 0, 1, 'worker/21195/e828fd', '2026-11-15 14:59:48.100428+00', '2026-11-15 14:57:38.100428+00', '2026-11-15 14:59:48.100428+00', NULL, 0, NULL, NULL, NULL, 0, 0, 0, NULL, NULL),
	('a15033f2-e529-4298-bde7-6cc9443bd247', 1, 0, 5, 1000, 'sku-bought', 2, 900, 909, 2, false, 3, 1, 'worker/21195/e828fd', '2026-11-15 14:57:48.925318+00', '2026-11-15 14:57:37.925318+00', '2026-11-15 15:57:48.925318+00', NULL, 0, '2026-11-15 14:57:38.035072+00', 0, 'F3', 2, 0, 0, NULL, NULL),
	('0db6e066-794c-4ce5-b0f4-01360fe0f911', 6, 0, 10, 1000, 'sku-later-10', 12, 900, 909, 1, true, 0, 1, 'worker/21195/e828fd', '2026-11-15 14:59:48.4724+00', '2026-11-15 14:57:38.4724+00', '2026-11-15 14:59:48.4724+00', NULL, 0, NULL, NULL, NULL, 0, 0, 0, NULL, NULL);


INSERT INTO voucherd_release.attempt_line VALUES
	('f67f7fc2-7fc9-4b06-8971-aa1ec03c09ba', 2078, 0, 2),
	('25d020da-e331-4be3-9780-a4954a50459a', 2080, 0, 2),
	('972e1f08-ee47-4597-a450-523fc87bd756', 2082, 0, 2),
	('86d1c294-7697-43c0-bf12-97bf3d500f40', 2082, 0, 2),
	('09111184-c103-47bf-944c-fba233714d3c', 2084, 0, 2),
	('597ab83b-0b67-43e5-9fc6-6446323651f0', 2086, 0, 2),
	('b1152e1f-7ac9-4138-81bb-7f571956e9f5', 2088, 0, 2),
	('a15033f2-e529-4298-bde7-6cc9443bd247', 2088, 0, 2),
	('3b42fd74-5af2-455d-b173-3555bdecffe2', 2090, 0, 1),
	('2142915c-3f5b-4e39-9dd5-aaf2b1104f72', 2092, 0, 1),
	('0db6e066-794c-4ce5-b0f4-01360fe0f911', 2094, 0, 1);




INSERT INTO voucherd_release.brand OVERRIDING SYSTEM VALUE VALUES
	(1, 'testbrand', 'Testbrand');




INSERT INTO voucherd_release.cart VALUES
	(4, 0, 'EUR');


INSERT INTO voucherd_release.cart_item VALUES
	(4, 0, 3, 2500, 1, '2026-11-15 14:57:34.852991+00');


INSERT INTO voucherd_release.code VALUES
	(2, 13, '\x619c7d80a149b37f9bd8c8dc1568a93d521af85f1255f72bb7a3c1fff03e1b7f', '\x0f9fbdff83d65d264dd83f29397493ab'),
	(2, 23, '\x3a2203d55a35d6f67b7ff17cad51ac7430136079ce405ce936bbec15f7b8eeca', '\x123dd03e604fc069c15e3849a6b95c43'),
	(2, 4, '\x8aaae4dfe2190dedc66093eb21cd5ef8b2ac04b3f548d0e27b272472c614bb1f', '\x1d98487db251811c5290a40785fd535e'),
	(2, 2, '\x42d3551a796c3446914a527443c3c9a1e932fb196430698d2af1de310a401508', '\x313a627646354046ea12932c33a7641e'),
	(2, 26, '\x7b9eb29098b946621fc22d065f5ea9ca486e44a83aa696991ff354061038f533', '\x371846fa96c911f98afcd73d73754681'),
	(2, 16, '\x60f9da43553c20440606d9eee54f5e330f319241d4e3f00682d5a329b6221b38', '\x4544209ea58db5397d50fedfbc54d4f2'),
	(2, 9, '\x1b81787a98e4a4d7e76b1998b51ff0e8795bd100214f54b63f707786963a471e', '\x454e03d272c0e94d953c353c54f0f25a'),
	(2, 19, '\x2a827a36d75ba2608a5fa393d10ec84ac921fcaee1e78fa7a925cdccf43e6e33', '\x4d42661fb924a5aa602dd9e9dc59a2b6'),
	(2, 24, '\xc5b6261824cd951b7bbf353b81d6b15807dab279b017a0ad6d415fa07a306cf8', '\x589534880ce515ce1bbe101df6826737'),
	(2, 17, '\x296419ef9583866f93c84ffdac40290d6587c77c76aeaa695889e21db81fcc00', '\x921eb60cad816d5d022c14e3e16bcd68'),
	(2, 14, '\x91d0c7895fcedf9ea153193ebbf731702a6ad1811f9636cf0a48873bfb422d79', '\x96b53ed801fe69ca90ea5ea9614cb290'),
	(2, 15, '\x1cfdb546941c98a7ac5d940f8219885a4859b4b94743509dc14c1353b2a2ec4e', '\xa042f90e87b7d413b610cac4acb0b760'),
	(2, 0, '\x913646a5f5a19e03c20fe0c326c536dd8ad008eaee41d405a76726f76264faba', '\xa22706051bfd26027747f54f3fa3d69d'),
	(2, 11, '\x44bc93cd006ff5ea7efda6591efe620e37852cccb76ce952f2578d311ba86450', '\xa979185bc30534e590a3f299494e925a'),
	(2, 22, '\x1ea12d06f33318f2f577a7ea19a80bf59866a34658a9c9f75bca824447ec6625', '\xada96f4468ed1410f36fcdbb571c3bed'),
	(2, 18, '\x3434c10e9d5faa866fbd7878f80773bff74ecd5b54651a6f58cd224c5562a29a', '\xb30c19f3ac2877b5197efdc2502e82ee'),
	(2, 27, '\xaa775b2f9d762b784daa4e7aff261695eb9b234654e92f619aa31de799c09f40', '\xb6958d1d7475b8a7e9219867dc48dc31'),
	(2, 8, '\xffb0bf85b2446e6db4089f042da2bff2485dc5090e4008e308f52b288e480ffa', '\xb87ebc4bded645fd68fe02bffa4e4b94'),
	(2, 3, '\xf13c4f64de5423093fa28a6929fec66c6e728f87d59249d6d137d102e4e64412', '\xc753f69b79daa45c7e4b6b6b49ab72ac'),
	(2, 29, '\xcbdb907df5aef31485b24a6515360a2157a6a088f7e6f6d23033a8bec54be092', '\xc843faf95b5684eb260a156c2e287c05'),
	(2, 20, '\x47e30e47989e9092d5f0d57375c107166b5ca16e52dd3234755eda22ba206ef1', '\xcbcec03a052cab922dc592e73147b889'),
	(2, 12, '\x2738af116e43c3ae6527e8ab2bf906e5c3855aead3c09579d3f9149baef530b6', '\xdd0eba4743d838e41dcd72278e223765'),
	(2, 7, '\x0e6ad77d2654868703751df3e2dc61ede7bc9b4351200fe4050e39b7ad546d3a', '\xdff9caadf7e152aa680c6ea54479b303'),
	(2, 28, '\x39effd6dc360b31a17486e79327f580025d521ea66adcb8d24b401d27b271984', '\xe1a3677eeb6334fbb86a15e088a0c9c8'),
	(2, 10, '\x71e035a275ae55589d2e2aa3cf9f0479d8136cac4884d4171d300465bf8451b8', '\xe616e36fcef18a35394a0e2559a1a5e1'),
	(2, 6, '\xd50b5adc5f0c7f19ca4eafb762585335779973f6880e4834c30dc3decb96e6d3', '\xe8445db34fd5a15e37bea840db490bf7'),
	(2, 1, '\x63ea393ac28a09e450098229369ae322715ed44709723b17aa1786202b87026f', '\xf090c0b94238f19bd4a3e301f9f13ec8'),
	(2, 21, '\x5bac4130006b494bba43b62763a3a4f793494ffce9af135b3a2b67be64cebee2', '\xf5201e983f6e3cf5f436fa475bd9cfb8'),
	(2, 5, '\xe397eada3e71e266f0f0b66c2af6b61a96cb6841bbb4979cd6ea348f9f7d4009', '\xfa777907d0be8153bf75fd038b425e12'),
	(2, 25, '\xc00e93b87db8269781a832d927a5d03b339037925875c996522832e576ab103d', '\xffcfa35ea7f1f60e6280e4a7a6423704'),
	(4, 0, '\xa864c36544041dd532d4c7f45e7cdf98d16b74d453fb864e847f09ddbfc76573', '\xfeb0538fe4d105ac9cb0b54f68c83712'),
	(8, 0, '\xa7592768b893f4e944e405d3d992045dfe82e49948d52791aebfb8c14c435d82112a62002e7a', '\x0922b83c17e23277a17e52a7cb1f1028'),
	(8, 1, '\x5183a680efcbc2f4dd5c64d5426b657b4665e73cef08dff39924e55578a1dfdcf8dc16a004c1', '\xe115bbabd2d9e2efa5fd19af44434a6c'),
	(10, 3, '\x08441c4f851ee0edabbe386c7547013a8f7d87a2f98203b362cd35f189ad6330d0eb23ae9f3f', '\x040f954ad21865a966a279143cee01ce'),
	(10, 1, '\x1384db8e38e3176d6c4815e9986198352c3ecd01ab0bc8a89471e6b262200148a7f8cd69cc09', '\x58ef87e7632753dbbb8bc277e9c247f3'),
	(10, 2, '\xab7f47bd82c967b9685358df13928c0df309562035860faea32fb16a88ffa7952fc242e421c3', '\x7d5bd7bb86bfd033b8c1302611b71102'),
	(10, 0, '\xf1177033d1396e9907993c21f24d9b9c508e101ffdf8d6142f45136f7e7241406f7039233af6', '\x84ff92630cb79b5f103cc90488a34df3'),
	(12, 1, '\xdca89b12a0b4369bd93e16a51787491998d909cdad87c88efd27f95f24674c53801b994ef9b3', '\x0fa09b969aa1c10141b40cf00d4bfd71'),
	(12, 0, '\x1bdeb45364b05f5e3157fbee34a100e9375478b6efa465241399e26a1829fbcf2842ffacd4f8', '\x542852d5c77ab44483582b975e3a2a71'),
	(14, 0, '\x5bc7681c85284d68c9bbda0ce242dc96a5d6aafc181aef8970b98429ef6439d2ee3e6425f693', '\x25503d35129b5fffc0b45031f700cced'),
	(14, 1, '\xa04dc63e525afcb16da0e553d4ef427d416da0dc1e45fc010152a5f52451497b531c072cf975', '\xa9dfe3378df9303796d456068a6a080e');


INSERT INTO voucherd_release.company OVERRIDING SYSTEM VALUE VALUES
	(1, 'Company 1', 'NL', NULL, true, true, true, '2026-11-15 14:57:32.443035+00', NULL, NULL, false, 1500);


INSERT INTO voucherd_release.entry VALUES
	(2, 1, 1, 100000, 0, 0, 100000, 0, NULL, 'd10e608dcd8623c1', '2026-11-15 14:57:32.566897+00'),
	(5, 1, 1, 100000, 0, 0, 100000, 0, NULL, '0cb69dbe434af4de', '2026-11-15 14:57:32.594611+00'),
	(2, 2, 2, -3450, -600, 0, 96550, 0, 2056, NULL, '2026-11-15 14:57:33.311291+00'),
	(2, 3, 2, -3800, 0, 0, 92750, 0, 2062, NULL, '2026-11-15 14:57:33.481565+00'),
	(2, 4, 2, -3800, 0, 0, 88950, 0, 2058, NULL, '2026-11-15 14:57:33.665876+00'),
	(2, 5, 2, -3800, 0, 0, 85150, 0, 2060, NULL, '2026-11-15 14:57:33.705734+00'),
	(2, 6, 3, 3800, 0, 0, 88950, 0, 2060, NULL, '2026-11-15 14:57:33.736864+00'),
	(2, 7, 3, 1900, 0, 0, 90850, 0, 2062, NULL, '2026-11-15 14:57:33.776919+00'),
	(2, 8, 2, -1150, -200, 0, 89700, 0, 2064, NULL, '2026-11-15 14:57:33.921054+00'),
	(5, 2, 2, -2300, -400, 0, 97700, 0, 2069, NULL, '2026-11-15 14:57:33.991666+00'),
	(5, 3, 2, -2300, -400, 0, 95400, 0, 2073, NULL, '2026-11-15 14:57:34.064363+00'),
	(2, 9, 1, 25000, 0, 0, 114700, 0, NULL, 'transfer 1', '2026-11-15 14:57:34.1852+00'),
	(2, 10, 2, -1139, -198, 0, 113561, 0, 2076, NULL, '2026-11-15 14:57:34.775251+00'),
	(2, 11, 2, -1900, 0, 0, 111661, 0, 2078, NULL, '2026-11-15 14:57:35.409073+00'),
	(2, 12, 2, -1900, 0, 0, 109761, 0, 2080, NULL, '2026-11-15 14:57:35.954669+00'),
	(2, 13, 2, -1900, 0, 0, 107861, 0, 2082, NULL, '2026-11-15 14:57:36.351116+00'),
	(2, 14, 2, -1900, 0, 0, 105961, 0, 2084, NULL, '2026-11-15 14:57:36.690407+00'),
	(2, 15, 2, -1900, 0, 0, 104061, 0, 2086, NULL, '2026-11-15 14:57:37.142564+00'),
	(2, 16, 2, -1900, 0, 0, 102161, 0, 2088, NULL, '2026-11-15 14:57:37.284337+00'),
	(2, 17, 2, -950, 0, 0, 101211, 0, 2090, NULL, '2026-11-15 14:57:37.793289+00'),
	(2, 18, 2, -950, 0, 0, 100261, 0, 2092, NULL, '2026-11-15 14:57:38.081788+00'),
	(2, 19, 4, 0, 0, 950, 100261, 950, 2094, NULL, '2026-11-15 14:57:38.421137+00'),
	(2, 20, 2, -1139, -198, 0, 99122, 950, 2096, NULL, '2026-11-15 14:57:38.75661+00'),
	(2, 21, 2, -1139, -198, 0, 97983, 950, 2098, NULL, '2026-11-15 14:57:38.89989+00');


INSERT INTO voucherd_release.event OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-15 14:57:33.104576+00', 1, 0, 'order.created', 2048, 1, NULL),
	(2, '2026-11-15 14:57:33.172516+00', 1, 0, 'order.created', 2050, 1, NULL),
	(3, '2026-11-15 14:57:33.188337+00', 1, 0, 'order.created', 2052, 1, NULL),
	(4, '2026-11-15 14:57:33.207387+00', 1, 0, 'order.created', 2054, 1, NULL),
	(5, '2026-11-15 14:57:33.221063+00', 1, 0, 'order.created', 2056, 1, NULL),
	(6, '2026-11-15 14:57:33.246439+00', 1, 0, 'order.deleted', 2054, 2, NULL),
	(7, '2026-11-15 14:57:33.2994+00', 1, 0, 'order.finished', 2056, 2, NULL),
	(8, '2026-11-15 14:57:33.412567+00', 1, 0, 'order.created', 2058, 1, NULL),
	(9, '2026-11-15 14:57:33.43648+00', 1, 0, 'order.created', 2060, 1, NULL),
	(10, '2026-11-15 14:57:33.45335+00', 1, 0, 'order.created', 2062, 1, NULL),
	(11, '2026-11-15 14:57:33.469666+00', 1, 0, 'order.pending', 2062, 2, NULL),
	(12, '2026-11-15 14:57:33.552843+00', 1, 0, 'order.line_finished', 2062, 3, NULL),
	(13, '2026-11-15 14:57:33.654362+00', 1, 0, 'order.pending', 2058, 2, NULL),
	(14, '2026-11-15 14:57:33.687765+00', 1, 0, 'order.pending', 2060, 2, NULL),
	(15, '2026-11-15 14:57:33.730585+00', 1, 0, 'order.cancelled', 2060, 3, NULL),
	(16, '2026-11-15 14:57:33.747056+00', 1, 0, 'order.cancelled', 2062, 4, NULL),
	(17, '2026-11-15 14:57:33.884041+00', 1, 0, 'order.created', 2064, 1, NULL),
	(18, '2026-11-15 14:57:33.906967+00', 1, 0, 'order.finished', 2064, 2, NULL),
	(19, '2026-11-15 14:57:33.946693+00', 1, 1, 'order.created', 2067, 1, NULL),
	(20, '2026-11-15 14:57:33.972283+00', 1, 1, 'order.created', 2069, 1, NULL),
	(21, '2026-11-15 14:57:33.983774+00', 1, 1, 'order.finished', 2069, 2, NULL),
	(22, '2026-11-15 14:57:34.011+00', 1, 1, 'order.created', 2071, 1, NULL),
	(23, '2026-11-15 14:57:34.027756+00', 1, 1, 'order.cancelled', 2071, 2, NULL),
	(24, '2026-11-15 14:57:34.044393+00', 1, 1, 'order.created', 2073, 1, NULL),
	(25, '2026-11-15 14:57:34.050655+00', 1, 1, 'order.pending', 2073, 2, NULL),
	(26, '2026-11-15 14:57:34.163354+00', 1, 0, 'wallet.topped_up', NULL, NULL, '{"amount": 250.00, "balance": 1147.00, "currency": "EUR", "reference": "transfer 1"}'),
	(27, '2026-11-15 14:57:34.502857+00', 1, 0, 'order.created', 2074, 1, NULL),
	(28, '2026-11-15 14:57:34.652506+00', 1, 0, 'order.created', 2076, 1, NULL),
	(29, '2026-11-15 14:57:34.759174+00', 1, 0, 'order.finished', 2076, 2, NULL),
	(30, '2026-11-15 14:57:35.359938+00', 1, 0, 'order.created', 2078, 1, NULL),
	(31, '2026-11-15 14:57:35.390594+00', 1, 0, 'order.pending', 2078, 2, NULL),
	(32, '2026-11-15 14:57:35.536082+00', 1, 0, 'order.finished', 2078, 3, NULL),
	(33, '2026-11-15 14:57:35.917383+00', 1, 0, 'order.created', 2080, 1, NULL),
	(34, '2026-11-15 14:57:35.935752+00', 1, 0, 'order.pending', 2080, 2, NULL),
	(35, '2026-11-15 14:57:36.125795+00', 1, 0, 'order.finished', 2080, 3, NULL),
	(36, '2026-11-15 14:57:36.32462+00', 1, 0, 'order.created', 2082, 1, NULL),
	(37, '2026-11-15 14:57:36.341696+00', 1, 0, 'order.pending', 2082, 2, NULL),
	(38, '2026-11-15 14:57:36.668467+00', 1, 0, 'order.created', 2084, 1, NULL),
	(39, '2026-11-15 14:57:36.679359+00', 1, 0, 'order.pending', 2084, 2, NULL),
	(40, '2026-11-15 14:57:36.925198+00', 1, 0, 'order.finished', 2082, 3, NULL),
	(41, '2026-11-15 14:57:37.117624+00', 1, 0, 'order.created', 2086, 1, NULL),
	(42, '2026-11-15 14:57:37.136045+00', 1, 0, 'order.pending', 2086, 2, NULL),
	(43, '2026-11-15 14:57:37.256691+00', 1, 0, 'order.created', 2088, 1, NULL),
	(44, '2026-11-15 14:57:37.261324+00', 1, 0, 'order.pending', 2088, 2, NULL),
	(45, '2026-11-15 14:57:37.681266+00', 1, 0, 'order.created', 2090, 1, NULL),
	(46, '2026-11-15 14:57:37.726288+00', 1, 0, 'order.created', 2092, 1, NULL),
	(47, '2026-11-15 14:57:37.748293+00', 1, 0, 'order.created', 2094, 1, NULL),
	(48, '2026-11-15 14:57:37.759747+00', 1, 0, 'order.pending', 2090, 2, NULL),
	(49, '2026-11-15 14:57:38.069071+00', 1, 0, 'order.pending', 2092, 2, NULL),
	(50, '2026-11-15 14:57:38.035072+00', 1, 0, 'order.finished', 2088, 3, NULL),
	(51, '2026-11-15 14:57:38.149828+00', 1, 0, 'order.pending', 2092, 3, NULL),
	(52, '2026-11-15 14:57:38.381798+00', 1, 0, 'order.pending', 2094, 2, NULL),
	(53, '2026-11-15 14:57:38.71602+00', 1, 0, 'order.created', 2096, 1, NULL),
	(54, '2026-11-15 14:57:38.724492+00', 1, 0, 'order.finished', 2096, 2, NULL),
	(55, '2026-11-15 14:57:38.777625+00', 1, 0, 'key.rotated', NULL, NULL, '{"id": 3, "replacedBy": 4}'),
	(56, '2026-11-15 14:57:38.887147+00', 1, 0, 'order.created', 2098, 1, NULL),
	(57, '2026-11-15 14:57:38.893522+00', 1, 0, 'order.finished', 2098, 2, NULL),
	(58, '2026-11-15 14:57:39.484799+00', 1, 0, 'order.expired', 2052, 2, NULL),
	(59, '2026-11-15 14:57:39.535759+00', NULL, 0, 'product.updated', NULL, NULL, '{"slug": "gift-10", "active": true, "stocked": true}'),
	(60, '2026-11-15 14:57:39.535759+00', NULL, 0, 'product.updated', NULL, NULL, '{"slug": "bought", "active": true, "stocked": true}'),
	(61, '2026-11-15 14:57:39.535759+00', NULL, 0, 'product.updated', NULL, NULL, '{"slug": "bought-too-many", "active": true, "stocked": true}'),
	(62, '2026-11-15 14:57:39.535759+00', NULL, 0, 'product.updated', NULL, NULL, '{"slug": "refused-by-the-supplier", "active": true, "stocked": true}'),
	(63, '2026-11-15 14:57:39.535759+00', NULL, 0, 'product.updated', NULL, NULL, '{"slug": "asked-about", "active": true, "stocked": true}'),
	(64, '2026-11-15 14:57:39.535759+00', NULL, 0, 'product.updated', NULL, NULL, '{"slug": "of-unknown-end", "active": true, "stocked": true}'),
	(65, '2026-11-15 14:57:39.535759+00', NULL, 0, 'product.updated', NULL, NULL, '{"slug": "later-10", "active": true, "stocked": true}');


INSERT INTO voucherd_release.event_mark VALUES
	(true, 65, 65, '{}', 0, NULL);


INSERT INTO voucherd_release.fx_feed VALUES
	(true, NULL, NULL, NULL);




INSERT INTO voucherd_release.fx_rate VALUES
	('USD', '2026-11-15', 92000000, 'manual', '2026-11-15 14:57:32.600476+00');


INSERT INTO voucherd_release.idempotency VALUES
	(1, 0, '\xd79698ebcf197f88e2a58a7688158065a10cabf848fa513050e7110952d9392d', '\xddb347e76b13e30f11fc1dc53c7113b04be11d0eae1b5d437a66b89d646459e5', '2026-11-15 14:57:33.84769+00', '2026-11-15 14:57:33.904697+00', 2064, '\x5104fcac1fb216f27aea16f2b177951b85102ab1c0f98347caee794e7d653933aba7f6688780c9d5a72b973ae5315bee103330dcad6871c4b5c3303fcd8e24dcc4925503039be77affb77439beed09a94df1b613c5b0d5e72cd78d648a63893e8fb77db9dd025914f4c42caa9319b1fd6d853bd2159e375791ba762b540a64189960e69918da985ae36fa4175479546e23533c112d2dc5ae34aa69ae9cacdc263c5a96083020a50508ca6b763c4f5e976058536f70b7c9013e91b1be8af67aa811e87a5f0cc84b72bcdcdc9cfc004dd3c3791b6951f8f7a5d79796a9340c57e285823555b5d329d1046782d663e003173ecd8ecc9e21919f0bac438a7a950caa5139c30b6b7a23cd3c9566b9c01dbd947a81f0384d64c7ee816c8851823feb353bd4e735cce7478a10e2963a341f687434e59ac0249ad3aa651213f7e8e54e3a2d5f2ab81752e75b8df512d842a4ad549dcd217daa3d7114f7dd37c01c249be254eba12bea2f6271587e0e03044e8570bb370c21743e844b36833a96c9e1f2a5e730b4fec59e44f6dcf260dcfcd9a6d9a6d44647abe7ee9ca585cef743a7ab8c233dfe436a2bf52bac82f366e88535fe7968444230e6131c20b8af88aaf72eed160fa0eaad964351220c17a39266a9814983a063cf6a5adb74f44aa0fadd058fc91d89349bebde3aa40d638e6024eb3dba00d6fe1dd24d5f15350a167181e84c448f2095f78069c18bc0561e6c8d7398c2007a022efa52a358f586a71652da16cdce59def12c17af0c249687129d751a57cd2c982d2f9d2a241b73fdd9795b28cdab46479fdb289e67ab50ef0243ffb95f924559842dd5dfe929f68bc2fba057900d75e9a3f23885650a72140ab7cc327060fd90efb370db09185a5ff5d866c411ec843ab1662c98c90e2876dea874de1590c39ac2821a29ddc7174f885f673a04def8125c384fbc9f2f66de572bcc6d0625411e181dcfd295337d1ab91a649dec7c40a55b6cd4966a868c16796fd9ad692b9a61ad9c649b9f0ad9e7dbd00a4d0c22add6d84e0dfb092bbd9b81307a7e19c89a7c5f6bd7cc5f51adc4c2106f06586051aa8dc8bc3e0949125fd427e9017e509d1a5f3655dc303bd67cf66f6a8e2a50a1d2a96ce77e3fda63da71cdfdb562b7f4feed6c25ff85045f18cafbca6a2961bace7778a5a9332630a413bb82e5870d20e0ad9ef2f2fa984b8f29cde453c9f7e76fbd6d3f5699f498aa3e721d0f27679a30a5b522ce025832daaf9c8aeea794b13547caf96bf121528ea35eb3916a44a4ffd2b2331951de6d31558c23b7fd39f2cb3bdf5c7d70d75a42e9312fdedb25c071855b985487e547866bd3463ebb691e1462de96cf9cd93cc764743571cf70de0d7042021b6ff718a8c1ee3b7cafe2bf90062df11cbd47ad570dad5425af110a6d84babf4e555e48199bdcc35c3fac6f976bd63394c8c623dbd52975b15e5ec776a7cc17e5e42adb0c549486f96276ac9ee0513a46c91d4a579aa3e77cc0a1bfea29ef553dc0be5d932661ea17d0d95667f54d11b0f9502b1aec9125d166191077ef46d1');


INSERT INTO voucherd_release.line_view VALUES
	(2056, 0, '2026-11-15 14:57:34.912352+00', '2026-11-15 14:57:35.150545+00', NULL),
	(2056, 1, '2026-11-15 14:57:35.213064+00', NULL, NULL);


INSERT INTO voucherd_release.lot VALUES
	(4, 2, 2000, 0, false, 'wholesale', 900, 'EUR', 100000000, NULL, 1, 1, 1, DEFAULT, '2026-11-15 14:57:33.51976+00', NULL, NULL, 0),
	(7, 1, 1000, 1, true, 'sandbox', 0, 'EUR', 100000000, NULL, 1, 2000000000, 2, DEFAULT, '2026-11-15 14:57:33.947409+00', NULL, NULL, 0),
	(8, 5, 1000, 0, false, 'bought', 900, 'EUR', 100000000, NULL, 1, 2, 2, DEFAULT, '2026-11-15 14:57:35.536082+00', 'f67f7fc2-7fc9-4b06-8971-aa1ec03c09ba', 'F1', 0),
	(10, 6, 1000, 0, false, 'bought-too-many', 900, 'EUR', 100000000, NULL, 1, 4, 2, DEFAULT, '2026-11-15 14:57:36.125795+00', '25d020da-e331-4be3-9780-a4954a50459a', 'F1', 2),
	(12, 7, 1000, 0, false, 'refused-by-the-supplier', 900, 'EUR', 100000000, NULL, 1, 2, 2, DEFAULT, '2026-11-15 14:57:36.925198+00', '86d1c294-7697-43c0-bf12-97bf3d500f40', 'F1', 0),
	(14, 5, 1000, 0, false, 'bought', 900, 'EUR', 100000000, NULL, 1, 2, 2, DEFAULT, '2026-11-15 14:57:38.035072+00', 'a15033f2-e529-4298-bde7-6cc9443bd247', 'F3', 0),
	(2, 1, 1000, 0, false, 'wholesale', 900, 'EUR', 100000000, NULL, 1, 30, 7, DEFAULT, '2026-11-15 14:57:32.73014+00', NULL, NULL, 0);


INSERT INTO voucherd_release.mail OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-15 14:57:34.70479+00', '{owner3@people.example}', 'An order of 22.78 EUR waits for approval', 'buyer4@people.example wants to confirm an order of 22.78 EUR (live). At Company 1 that takes a second person.

Sign in and look at Approvals: one of you can approve or reject it until 2026-11-16 14:57 UTC.
', NULL, false, NULL, 0, NULL, '2026-11-15 14:57:34.70479+00');


INSERT INTO voucherd_release.offer VALUES
	(5, 0, 9, 1000, NULL, 'sku-of-unknown-end', true, 10, 1000, '2026-11-15 14:57:37.548305+00'),
	(3, 0, 7, 1000, NULL, 'sku-refused-by-the-supplier', true, 6, 1000, '2026-11-15 14:57:37.558871+00'),
	(4, 0, 8, 1000, NULL, 'sku-asked-about', true, 8, 1000, '2026-11-15 14:57:37.558075+00'),
	(2, 0, 6, 1000, NULL, 'sku-bought-too-many', true, 4, 1000, '2026-11-15 14:57:37.556247+00'),
	(1, 0, 5, 1000, NULL, 'sku-bought', true, 2, 998, '2026-11-15 14:57:37.558912+00'),
	(6, 0, 10, 1000, NULL, 'sku-later-10', true, 12, 997, '2026-11-15 14:57:37.619169+00');


INSERT INTO voucherd_release.offer_epoch VALUES
	(true, 13);


INSERT INTO voucherd_release.order_item VALUES
	(2048, 0, 5, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{2,30}'),
	(2050, 0, 5, 1, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{2,30}'),
	(2052, 0, 5, 1, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{2,30}'),
	(2054, 0, 5, 1, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{2,30}'),
	(2056, 0, 5, 3, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{2,30}'),
	(2058, 0, 2, 2, 0, 2000, 100000000, 'EUR', 100000000, 1900, 0, 0, 1900, 0, 0, '{}'),
	(2060, 0, 2, 2, 0, 2000, 100000000, 'EUR', 100000000, 1900, 0, 0, 1900, 0, 0, '{}'),
	(2062, 0, 2, 2, 0, 2000, 100000000, 'EUR', 100000000, 1900, 0, 0, 1900, 0, 0, '{}'),
	(2064, 0, 5, 1, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{2,27}'),
	(2067, 0, 5, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{7,2000000000}'),
	(2069, 0, 5, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{7,2000000000}'),
	(2071, 0, 5, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{7,1999999998}'),
	(2073, 0, 5, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 200, 950, 950, 200, 950, '{7,1999999998}'),
	(2074, 0, 5, 2, 0, 1000, 100000000, 'EUR', 100000000, 941, 198, 941, 941, 198, 941, '{2,26}'),
	(2076, 0, 5, 1, 0, 1000, 100000000, 'EUR', 100000000, 941, 198, 941, 941, 198, 941, '{2,26}'),
	(2078, 0, 6, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 0, 0, 950, 0, 0, '{-2,1000}'),
	(2080, 0, 7, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 0, 0, 950, 0, 0, '{-4,1000}'),
	(2082, 0, 8, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 0, 0, 950, 0, 0, '{-6,1000}'),
	(2084, 0, 9, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 0, 0, 950, 0, 0, '{-8,1000}'),
	(2086, 0, 10, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 0, 0, 950, 0, 0, '{-10,1000}'),
	(2088, 0, 6, 2, 0, 1000, 100000000, 'EUR', 100000000, 950, 0, 0, 950, 0, 0, '{-2,1000}'),
	(2090, 0, 11, 1, 0, 1000, 100000000, 'EUR', 100000000, 950, 0, 0, 950, 0, 0, '{-12,1000}'),
	(2092, 0, 11, 1, 0, 1000, 100000000, 'EUR', 100000000, 950, 0, 0, 950, 0, 0, '{-12,1000}'),
	(2094, 0, 11, 1, 0, 1000, 100000000, 'EUR', 100000000, 950, 0, 0, 950, 0, 0, '{-12,1000}'),
	(2096, 0, 5, 1, 0, 1000, 100000000, 'EUR', 100000000, 941, 198, 941, 941, 198, 941, '{2,25}'),
	(2098, 0, 5, 1, 0, 1000, 100000000, 'EUR', 100000000, 941, 198, 941, 941, 198, 941, '{2,24}');


INSERT INTO voucherd_release.order_pin VALUES
	(2056, '\xd744f610f46c0ec6e1c2ae2ff9d8511c2c6c7f429ee9af0fb18c764e1ef20314', '2026-11-15 14:57:33.339731+00');


INSERT INTO voucherd_release.order_webhook VALUES
	(2064, 'http://127.0.0.1:9/orders/7');


INSERT INTO voucherd_release.orders VALUES
	(2048, 1, 0, 0, 0, 'EUR', 100000000, 1900, 400, 0, 0, 0, 2, 0, 0, false, false, 1, '2026-11-15 14:57:33.104576+00', '2026-11-16 14:57:33.104576+00', '2026-11-15 14:57:33.104576+00', NULL, 'PO created', false),
	(2050, 1, 0, 0, 0, 'EUR', 100000000, 950, 200, 0, 0, 0, 1, 0, 0, false, false, 1, '2026-11-15 14:57:33.172516+00', '2026-11-16 14:57:33.172516+00', '2026-11-15 14:57:33.172516+00', NULL, 'PO created to cancel', false),
	(2054, 1, 0, 4, 0, 'EUR', 100000000, 950, 200, 0, 0, 0, 1, 0, 0, false, false, 2, '2026-11-15 14:57:33.207387+00', '2026-11-16 14:57:33.207387+00', '2026-11-15 14:57:33.246439+00', NULL, 'PO deleted', false),
	(2056, 1, 0, 2, 1, 'EUR', 100000000, 2850, 600, 3450, 0, 0, 3, 3, 0, false, true, 2, '2026-11-15 14:57:33.221063+00', '2026-11-16 14:57:33.221063+00', '2026-11-15 14:57:33.2994+00', NULL, 'PO finished', false),
	(2058, 1, 0, 1, 1, 'EUR', 100000000, 3800, 0, 3800, 0, 0, 2, 0, 0, false, false, 2, '2026-11-15 14:57:33.412567+00', '2026-11-16 14:57:33.412567+00', '2026-11-15 14:57:33.654362+00', '2026-11-18 14:57:33.654362+00', NULL, false),
	(2060, 1, 0, 3, 3, 'EUR', 100000000, 3800, 0, 3800, 3800, 0, 2, 0, 2, false, false, 3, '2026-11-15 14:57:33.43648+00', '2026-11-16 14:57:33.43648+00', '2026-11-15 14:57:33.730585+00', '2026-11-18 14:57:33.687765+00', NULL, false),
	(2062, 1, 0, 3, 2, 'EUR', 100000000, 3800, 0, 3800, 1900, 0, 2, 1, 1, false, false, 4, '2026-11-15 14:57:33.45335+00', '2026-11-16 14:57:33.45335+00', '2026-11-15 14:57:33.747056+00', '2026-11-18 14:57:33.469666+00', NULL, false),
	(2064, 1, 0, 2, 1, 'EUR', 100000000, 950, 200, 1150, 0, 0, 1, 1, 0, false, false, 2, '2026-11-15 14:57:33.884041+00', '2026-11-16 14:57:33.884041+00', '2026-11-15 14:57:33.906967+00', NULL, NULL, false),
	(2067, 1, 0, 0, 0, 'EUR', 100000000, 1900, 400, 0, 0, 0, 2, 0, 0, false, false, 1, '2026-11-15 14:57:33.946693+00', '2026-11-16 14:57:33.946693+00', '2026-11-15 14:57:33.946693+00', NULL, NULL, false),
	(2069, 1, 0, 2, 1, 'EUR', 100000000, 1900, 400, 2300, 0, 0, 2, 2, 0, false, false, 2, '2026-11-15 14:57:33.972283+00', '2026-11-16 14:57:33.972283+00', '2026-11-15 14:57:33.983774+00', NULL, NULL, false),
	(2071, 1, 0, 3, 0, 'EUR', 100000000, 1900, 400, 0, 0, 0, 2, 0, 2, false, false, 2, '2026-11-15 14:57:34.011+00', '2026-11-16 14:57:34.011+00', '2026-11-15 14:57:34.027756+00', NULL, NULL, false),
	(2073, 1, 0, 1, 1, 'EUR', 100000000, 1900, 400, 2300, 0, 0, 2, 0, 0, false, false, 2, '2026-11-15 14:57:34.044393+00', '2026-11-16 14:57:34.044393+00', '2026-11-15 14:57:34.050655+00', '2026-11-18 14:57:34.050655+00', NULL, false),
	(2074, 1, 1, 0, 0, 'EUR', 100000000, 1882, 396, 0, 0, 0, 2, 0, 0, false, false, 1, '2026-11-15 14:57:34.502857+00', '2026-11-16 14:57:34.502857+00', '2026-11-15 14:57:34.502857+00', NULL, 'PO portal', false),
	(2052, 1, 0, 0, 0, 'EUR', 100000000, 950, 200, 0, 0, 0, 1, 0, 0, false, false, 2, '2026-11-13 14:57:33.188337+00', '2026-11-14 14:57:33.188337+00', '2026-11-15 14:57:33.188337+00', NULL, 'PO expired', false),
	(2076, 1, 1, 2, 1, 'EUR', 100000000, 941, 198, 1139, 0, 0, 1, 1, 0, false, false, 2, '2026-11-15 14:57:34.652506+00', '2026-11-16 14:57:34.652506+00', '2026-11-15 14:57:34.759174+00', NULL, 'PO portal', false),
	(2078, 1, 0, 2, 1, 'EUR', 100000000, 1900, 0, 1900, 0, 0, 2, 2, 0, false, false, 3, '2026-11-15 14:57:35.359938+00', '2026-11-16 14:57:35.359938+00', '2026-11-15 14:57:35.536082+00', '2026-11-18 14:57:35.390594+00', NULL, false),
	(2080, 1, 0, 2, 1, 'EUR', 100000000, 1900, 0, 1900, 0, 0, 2, 2, 0, false, false, 3, '2026-11-15 14:57:35.917383+00', '2026-11-16 14:57:35.917383+00', '2026-11-15 14:57:36.125795+00', '2026-11-18 14:57:35.935752+00', NULL, false),
	(2084, 1, 0, 1, 1, 'EUR', 100000000, 1900, 0, 1900, 0, 0, 2, 0, 0, false, false, 2, '2026-11-15 14:57:36.668467+00', '2026-11-16 14:57:36.668467+00', '2026-11-15 14:57:36.679359+00', '2026-11-18 14:57:36.679359+00', NULL, false),
	(2082, 1, 0, 2, 1, 'EUR', 100000000, 1900, 0, 1900, 0, 0, 2, 2, 0, false, false, 3, '2026-11-15 14:57:36.32462+00', '2026-11-16 14:57:36.32462+00', '2026-11-15 14:57:36.925198+00', '2026-11-18 14:57:36.341696+00', NULL, false),
	(2086, 1, 0, 1, 1, 'EUR', 100000000, 1900, 0, 1900, 0, 0, 2, 0, 0, false, false, 2, '2026-11-15 14:57:37.117624+00', '2026-11-16 14:57:37.117624+00', '2026-11-15 14:57:37.136045+00', '2026-11-18 14:57:37.136045+00', NULL, false),
	(2090, 1, 0, 1, 1, 'EUR', 100000000, 950, 0, 950, 0, 0, 1, 0, 0, false, false, 2, '2026-11-15 14:57:37.681266+00', '2026-11-16 14:57:37.681266+00', '2026-11-15 14:57:37.759747+00', '2026-11-18 14:57:37.759747+00', NULL, false),
	(2088, 1, 0, 2, 1, 'EUR', 100000000, 1900, 0, 1900, 0, 0, 2, 2, 0, false, false, 3, '2026-11-15 14:57:37.256691+00', '2026-11-16 14:57:37.256691+00', '2026-11-15 14:57:38.035072+00', '2026-11-18 14:57:37.261324+00', NULL, false),
	(2092, 1, 0, 1, 1, 'EUR', 100000000, 950, 0, 950, 0, 0, 1, 0, 0, false, false, 3, '2026-11-15 14:57:37.726288+00', '2026-11-16 14:57:37.726288+00', '2026-11-15 14:57:38.149828+00', '2026-11-18 14:57:38.069071+00', NULL, true),
	(2094, 1, 0, 1, 0, 'EUR', 100000000, 950, 0, 0, 0, 950, 1, 0, 0, true, false, 2, '2026-11-15 14:57:37.748293+00', '2026-11-16 14:57:37.748293+00', '2026-11-15 14:57:38.381798+00', '2026-11-15 14:59:38.381798+00', NULL, false),
	(2096, 1, 0, 2, 1, 'EUR', 100000000, 941, 198, 1139, 0, 0, 1, 1, 0, false, false, 2, '2026-11-15 14:57:38.71602+00', '2026-11-16 14:57:38.71602+00', '2026-11-15 14:57:38.724492+00', NULL, NULL, false),
	(2098, 1, 0, 2, 1, 'EUR', 100000000, 941, 198, 1139, 0, 0, 1, 1, 0, false, false, 2, '2026-11-15 14:57:38.887147+00', '2026-11-16 14:57:38.887147+00', '2026-11-15 14:57:38.893522+00', NULL, NULL, false);


INSERT INTO voucherd_release.outcome VALUES
	(2056, 0, 3, 2, 0, '2026-11-15 14:57:33.2994+00'),
	(2062, 0, 1, 4, 0, '2026-11-15 14:57:33.552843+00'),
	(2060, 0, 2, NULL, NULL, '2026-11-15 14:57:33.730585+00'),
	(2062, 1, 2, NULL, NULL, '2026-11-15 14:57:33.747056+00'),
	(2064, 0, 1, 2, 3, '2026-11-15 14:57:33.906967+00'),
	(2069, 0, 2, 7, 0, '2026-11-15 14:57:33.983774+00'),
	(2071, 0, 2, NULL, NULL, '2026-11-15 14:57:34.027756+00'),
	(2076, 0, 1, 2, 4, '2026-11-15 14:57:34.759174+00'),
	(2078, 0, 2, 8, 0, '2026-11-15 14:57:35.536082+00'),
	(2080, 0, 2, 10, 0, '2026-11-15 14:57:36.125795+00'),
	(2082, 0, 2, 12, 0, '2026-11-15 14:57:36.925198+00'),
	(2088, 0, 2, 14, 0, '2026-11-15 14:57:38.035072+00'),
	(2096, 0, 1, 2, 5, '2026-11-15 14:57:38.724492+00'),
	(2098, 0, 1, 2, 6, '2026-11-15 14:57:38.893522+00');






INSERT INTO voucherd_release.pin_try VALUES
	(2056, 1, 1, '2026-11-15 14:57:35.227752+00', NULL);


INSERT INTO voucherd_release.price_entry OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1, NULL, 100, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-15 14:57:34.246009+00'),
	(2, 1, 3, NULL, NULL, NULL, NULL, 101000000, 5, 'EUR', NULL, NULL, NULL, '2026-11-15 14:57:34.265339+00');


INSERT INTO voucherd_release.price_epoch VALUES
	(true, 3);


INSERT INTO voucherd_release.price_list OVERRIDING SYSTEM VALUE VALUES
	(1, 'Friends', '2026-11-15 14:57:34.225458+00');


INSERT INTO voucherd_release.price_list_company VALUES
	(1, 1, '2026-11-15 14:57:34.225458+00');


INSERT INTO voucherd_release.product OVERRIDING SYSTEM VALUE VALUES
	(2, 'slow-20', true, 2, '2026-11-15 14:57:32.85269+00', false),
	(3, 'any-value', true, 3, '2026-11-15 14:57:32.885804+00', false),
	(4, 'gone-10', false, 4, '2026-11-15 14:57:32.923751+00', false),
	(1, 'gift-10', true, 5, '2026-11-15 14:57:32.645656+00', false),
	(5, 'bought', true, 6, '2026-11-15 14:57:35.240954+00', false),
	(6, 'bought-too-many', true, 7, '2026-11-15 14:57:35.783318+00', false),
	(7, 'refused-by-the-supplier', true, 8, '2026-11-15 14:57:36.205058+00', false),
	(8, 'asked-about', true, 9, '2026-11-15 14:57:36.547764+00', false),
	(9, 'of-unknown-end', true, 10, '2026-11-15 14:57:36.995921+00', false),
	(10, 'later-10', true, 11, '2026-11-15 14:57:37.47345+00', false);


INSERT INTO voucherd_release.product_change OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-15 14:57:32.654705+00', 1, 1, 'activation', true, false),
	(2, '2026-11-15 14:57:32.857786+00', 2, 2, 'activation', true, false),
	(3, '2026-11-15 14:57:32.896743+00', 3, 3, 'activation', true, false),
	(4, '2026-11-15 14:57:32.96681+00', 1, 5, 'content', true, false),
	(5, '2026-11-15 14:57:35.247004+00', 5, 6, 'activation', true, false),
	(6, '2026-11-15 14:57:35.787892+00', 6, 7, 'activation', true, false),
	(7, '2026-11-15 14:57:36.210002+00', 7, 8, 'activation', true, false),
	(8, '2026-11-15 14:57:36.552357+00', 8, 9, 'activation', true, false),
	(9, '2026-11-15 14:57:36.997589+00', 9, 10, 'activation', true, false),
	(10, '2026-11-15 14:57:37.492451+00', 10, 11, 'activation', true, false),
	(11, '2026-11-15 14:57:39.551781+00', 1, 5, 'stock', true, true),
	(12, '2026-11-15 14:57:39.551919+00', 5, 6, 'stock', true, true),
	(13, '2026-11-15 14:57:39.551944+00', 6, 7, 'stock', true, true),
	(14, '2026-11-15 14:57:39.551965+00', 7, 8, 'stock', true, true),
	(15, '2026-11-15 14:57:39.551996+00', 8, 9, 'stock', true, true),
	(16, '2026-11-15 14:57:39.552017+00', 9, 10, 'stock', true, true),
	(17, '2026-11-15 14:57:39.552038+00', 10, 11, 'stock', true, true);


INSERT INTO voucherd_release.product_count VALUES
	('category', 'gifts', 9),
	('brand', 'testbrand', 9),
	('all', '', 9);


INSERT INTO voucherd_release.product_listing VALUES
	(2, 2, 'slow-20', 'testbrand', 'giftcard', 'gifts', 'currency', 'ww', false, 'EUR', 2000, 2000, 'EUR', 1900, 'slow 20', 'testbrand', '''20'' ''slow'' ''testbrand''', false, '2026-11-15 14:57:32.857786+00'),
	(3, 3, 'any-value', 'testbrand', 'giftcard', 'gifts', 'currency', 'ww', true, 'EUR', 500, 5000, 'EUR', 520, 'any value', 'testbrand', '''any'' ''testbrand'' ''value''', false, '2026-11-15 14:57:32.896743+00'),
	(1, 5, 'gift-10', 'testbrand', 'giftcard', 'gifts', 'currency', 'ww', false, 'EUR', 1000, 1000, 'EUR', 950, 'gift card of 10 euro', 'testbrand', '''10'' ''card'' ''euro'' ''gift'' ''of'' ''testbrand''', true, '2026-11-15 14:57:39.551781+00'),
	(5, 6, 'bought', 'testbrand', 'giftcard', 'gifts', 'currency', 'ww', false, 'EUR', 1000, 1000, 'EUR', 950, 'bought', 'testbrand', '''bought'' ''testbrand''', true, '2026-11-15 14:57:39.551919+00'),
	(6, 7, 'bought-too-many', 'testbrand', 'giftcard', 'gifts', 'currency', 'ww', false, 'EUR', 1000, 1000, 'EUR', 950, 'bought too many', 'testbrand', '''bought'' ''many'' ''testbrand'' ''too''', true, '2026-11-15 14:57:39.551944+00'),
	(7, 8, 'refused-by-the-supplier', 'testbrand', 'giftcard', 'gifts', 'currency', 'ww', false, 'EUR', 1000, 1000, 'EUR', 950, 'refused by the supplier', 'testbrand', '''by'' ''refused'' ''supplier'' ''testbrand'' ''the''', true, '2026-11-15 14:57:39.551965+00'),
	(8, 9, 'asked-about', 'testbrand', 'giftcard', 'gifts', 'currency', 'ww', false, 'EUR', 1000, 1000, 'EUR', 950, 'asked about', 'testbrand', '''about'' ''asked'' ''testbrand''', true, '2026-11-15 14:57:39.551996+00'),
	(9, 10, 'of-unknown-end', 'testbrand', 'giftcard', 'gifts', 'currency', 'ww', false, 'EUR', 1000, 1000, 'EUR', 950, 'of unknown end', 'testbrand', '''end'' ''of'' ''testbrand'' ''unknown''', true, '2026-11-15 14:57:39.552017+00'),
	(10, 11, 'later-10', 'testbrand', 'giftcard', 'gifts', 'currency', 'ww', false, 'EUR', 1000, 1000, 'EUR', 950, 'later 10', 'testbrand', '''10'' ''later'' ''testbrand''', true, '2026-11-15 14:57:39.552038+00');


INSERT INTO voucherd_release.product_version OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1, 'Gift 10', 'giftcard', 'gifts', 'currency', 'ww', 'single_purpose', false, false, 'EUR', 1000, NULL, NULL, 950, 'EUR', NULL, NULL, '2026-11-15 14:57:32.645656+00', 'Type it in.', 'No refunds.', NULL),
	(2, 2, 1, 'Slow 20', 'giftcard', 'gifts', 'currency', 'ww', 'multi_purpose', true, false, 'EUR', 2000, NULL, NULL, 1900, 'EUR', NULL, NULL, '2026-11-15 14:57:32.85269+00', NULL, NULL, NULL),
	(3, 3, 1, 'Any Value', 'giftcard', 'gifts', 'currency', 'ww', 'multi_purpose', false, false, 'EUR', NULL, 500, 5000, NULL, NULL, 102000000, 10, '2026-11-15 14:57:32.885804+00', NULL, NULL, NULL),
	(4, 4, 1, 'Gone 10', 'giftcard', 'gifts', 'currency', 'ww', 'multi_purpose', false, false, 'EUR', 1000, NULL, NULL, 950, 'EUR', NULL, NULL, '2026-11-15 14:57:32.923751+00', NULL, NULL, NULL),
	(5, 1, 1, 'Gift card of 10 euro', 'giftcard', 'gifts', 'currency', 'ww', 'single_purpose', false, false, 'EUR', 1000, NULL, NULL, 950, 'EUR', NULL, NULL, '2026-11-15 14:57:32.939781+00', 'Type it in.', 'No refunds.', NULL),
	(6, 5, 1, 'Bought', 'giftcard', 'gifts', 'currency', 'ww', 'multi_purpose', true, false, 'EUR', 1000, NULL, NULL, 950, 'EUR', NULL, NULL, '2026-11-15 14:57:35.240954+00', NULL, NULL, NULL),
	(7, 6, 1, 'Bought Too Many', 'giftcard', 'gifts', 'currency', 'ww', 'multi_purpose', true, false, 'EUR', 1000, NULL, NULL, 950, 'EUR', NULL, NULL, '2026-11-15 14:57:35.783318+00', NULL, NULL, NULL),
	(8, 7, 1, 'Refused By The Supplier', 'giftcard', 'gifts', 'currency', 'ww', 'multi_purpose', true, false, 'EUR', 1000, NULL, NULL, 950, 'EUR', NULL, NULL, '2026-11-15 14:57:36.205058+00', NULL, NULL, NULL),
	(9, 8, 1, 'Asked About', 'giftcard', 'gifts', 'currency', 'ww', 'multi_purpose', true, false, 'EUR', 1000, NULL, NULL, 950, 'EUR', NULL, NULL, '2026-11-15 14:57:36.547764+00', NULL, NULL, NULL),
	(10, 9, 1, 'Of Unknown End', 'giftcard', 'gifts', 'currency', 'ww', 'multi_purpose', true, false, 'EUR', 1000, NULL, NULL, 950, 'EUR', NULL, NULL, '2026-11-15 14:57:36.995921+00', NULL, NULL, NULL),
	(11, 10, 1, 'Later 10', 'giftcard', 'gifts', 'currency', 'ww', 'multi_purpose', true, false, 'EUR', 1000, NULL, NULL, 950, 'EUR', NULL, NULL, '2026-11-15 14:57:37.47345+00', NULL, NULL, NULL);


INSERT INTO voucherd_release.quarantined_code VALUES
	('b1152e1f-7ac9-4138-81bb-7f571956e9f5', 0, '\x00df41b67f5a2fa4c9f07a684c8aa2afa026d807d3af6b4bda85e5fb591208c5904b4c4bf3a50358f7192a833eb577832524', '\x0922b83c17e23277a17e52a7cb1f1028', 'known', '2026-11-15 14:57:37.352093+00'),
	('b1152e1f-7ac9-4138-81bb-7f571956e9f5', 1, '\x91d57565fff1b35291434520018c2dba883ea769144d5209c7663822d84146e3fb813eab150c40554f3684f32ee7ba70fdae', '\xe115bbabd2d9e2efa5fd19af44434a6c', 'known', '2026-11-15 14:57:37.352093+00');


INSERT INTO voucherd_release.quote VALUES
	(2, 1, 0, 5, 1000, 900, NULL, NULL, 'EUR', 100000000, '2026-11-15 14:57:35.324651+00'),
	(4, 2, 0, 6, 1000, 900, NULL, NULL, 'EUR', 100000000, '2026-11-15 14:57:35.877943+00'),
	(6, 3, 0, 7, 1000, 900, NULL, NULL, 'EUR', 100000000, '2026-11-15 14:57:36.296454+00'),
	(8, 4, 0, 8, 1000, 900, NULL, NULL, 'EUR', 100000000, '2026-11-15 14:57:36.632827+00'),
	(10, 5, 0, 9, 1000, 900, NULL, NULL, 'EUR', 100000000, '2026-11-15 14:57:37.097048+00'),
	(12, 6, 0, 10, 1000, 900, NULL, NULL, 'EUR', 100000000, '2026-11-15 14:57:37.619169+00');


INSERT INTO voucherd_release.recovery_code VALUES
	(1, '\x2219ca4d40c9de3c572a4582512989e26856d24fe29a78d2fe01f4cbbac13b1b', NULL),
	(1, '\x81b614752d97722450f81d52a43a92050fdf8a00d9d2996ca7449f40fe81eccb', NULL),
	(1, '\xb33623d1276313441685842c9bf58149065d3c1e44bebc5d14b2488fbfa8048f', NULL),
	(1, '\x3d7d105e06a6651616246f821706086fd15a222f3638070938ae26107978b7d1', NULL),
	(1, '\x1376c2b943d1da589ab896d4df7224dd3d7bbdbea2d526fa3fe49b476599cdd6', NULL),
	(1, '\xa9ea5af7bb379a3bb9c565d7ea4c40f00d61b5fe1b2dd142207b8101dfff7e24', NULL),
	(1, '\xf48662ef7dbddd253d6b9c6f8f1b79b992ea9b057ba4243f81bb490dd9f76dc1', NULL),
	(1, '\x7c92faf63225e34370337d5f25778c7a152c3ec02501aea9a3b1e51636ae8cb1', NULL),
	(1, '\x08b4b1b1b6a283e272760bae43323e75efde2e6ebb26f8f64de85c2a2c6263e9', NULL),
	(1, '\x2d5aead183ead72e63f44bf0616a7a8e403802e9e4a6b46b8dd24f14db9bce5f', NULL);




INSERT INTO voucherd_release.reveal OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-15 14:57:33.2994+00', 2056, 1, 0, 3, 0, 2, 1, '127.0.0.1', DEFAULT),
	(2, '2026-11-15 14:57:33.400822+00', 2056, 1, 0, 3, 5, 2, 1, '127.0.0.1', DEFAULT),
	(3, '2026-11-15 14:57:33.747056+00', 2062, 1, 0, 1, 8, 2, 1, '127.0.0.1', DEFAULT),
	(4, '2026-11-15 14:57:33.906967+00', 2064, 1, 0, 1, 0, 2, 1, '127.0.0.1', DEFAULT),
	(5, '2026-11-15 14:57:33.983774+00', 2069, 1, 0, 2, 0, 2, 2, '127.0.0.1', DEFAULT),
	(6, '2026-11-15 14:57:34.886122+00', 2056, 1, 0, 3, 2, 2, 1, '127.0.0.1', DEFAULT),
	(7, '2026-11-15 14:57:35.150545+00', 2056, 1, 0, 1, 7, 5, NULL, '127.0.0.1', DEFAULT),
	(8, '2026-11-15 14:57:37.425289+00', 2078, 1, 0, 2, 2, 2, 1, '127.0.0.1', DEFAULT),
	(9, '2026-11-15 14:57:37.468748+00', 2080, 1, 0, 2, 2, 2, 1, '127.0.0.1', DEFAULT),
	(10, '2026-11-15 14:57:38.724492+00', 2096, 1, 0, 1, 0, 2, 3, '127.0.0.1', DEFAULT),
	(11, '2026-11-15 14:57:38.893522+00', 2098, 1, 0, 1, 0, 2, 1, '127.0.0.1', DEFAULT);




INSERT INTO voucherd_release.schema_migration VALUES
	(1, 'companies_keys', 'd5f662241e9c6bb6ea4766a568de9f2541764d86f436e13681cdc80286980ddd', '2026-11-15 14:57:29.890832+00'),
	(2, 'people', '7ab3e531526dc8196b85a3445a8696be2c348537c3873a0b333df626cc18fb9c', '2026-11-15 14:57:30.037735+00'),
	(3, 'catalogue', '872f4ead0eecdb1bcf49766426c04ab5fb78cd105c9488b6d33526c5a9ab0e38', '2026-11-15 14:57:30.18071+00'),
	(4, 'prices', '327a9e2a9ee34e04f3df5bed9d9570af87340f692ca0b94a31af66f34881dc9f', '2026-11-15 14:57:30.308816+00'),
	(5, 'wallet', '166739ae08166e84ec6666cfe39a865ce5c6d93f98dbe29b642b64eac8d39793', '2026-11-15 14:57:30.405932+00'),
	(6, 'purchasing', '6ec358f444180b4495d7ca983e3c4a8ec8359065a065bf05c3c82ad7675db142', '2026-11-15 14:57:30.464739+00'),
	(7, 'vault', '3126406b5ccf91ec6e3a403ef81442382e5042aed479ff9bae142437944cac36', '2026-11-15 14:57:30.70478+00'),
	(8, 'orders', '440e0257796a1a995d0ace2e027fa9f4dda040a909b7d7591c6c18ec943b6afb', '2026-11-15 14:57:30.895976+00'),
	(9, 'events_webhooks_mail', '1e43f8d4a137b0dd0e7207a2ac7ac0c3afb7ce63e8968ddb8e2a47278fd8a5dd', '2026-11-15 14:57:31.122977+00'),
	(10, 'trail', '4c12759438efc7fbce4c31eb07cd3214f8f10e44da22b16319599e35c3a23431', '2026-11-15 14:57:31.272546+00'),
	(11, 'operation', '883d78557554d7a09efe5a9d1ea338e0652d30e81442eaf08a875783bf104321', '2026-11-15 14:57:31.346199+00');


INSERT INTO voucherd_release.session VALUES
	('\x491eeb7b3b34b0be3319d65758fdafb94e17859de39c523b62e8df23c7420112', 2, 0, '\x7871464ae6a6a8fd1aed3a264709367da2b3616ded6b32c954a71b8911edd6c8', false, '2026-11-15 14:57:34.097405+00', 'Done: 250.00 EUR for Company 1.', 'good', '127.0.0.1', 'tests', '2026-11-15 14:57:34.097405+00', '2026-11-15 14:57:34.097405+00', '2026-11-29 14:57:34.097405+00'),
	('\x6341595c0cfcae6b781df1ebdb5a61b900eea29401ac35204d9222cfddd4c331', 1, 0, '\xbd3a01c65884db786990e32ea5332fb378ae57ab1c2a27ebb79d48d135e64cb5', false, '2026-11-15 14:57:34.078501+00', 'It is proposed. It moves when a second person agrees.', 'good', '127.0.0.1', 'tests', '2026-11-15 14:57:34.078501+00', '2026-11-15 14:57:34.078501+00', '2026-11-29 14:57:34.078501+00'),
	('\x9d5c68ea5267f0dd71cf4509a9910832a795402cfd15f195e3d076c2ad9bea98', 3, 0, '\x5b820a9e59b2b9236f3fa4f46c5b61f1a9b8bbd40814e3c55c68ba6cf059d996', false, NULL, 'You will see an alert when there is less than 100.00 EUR.', 'good', '127.0.0.1', 'tests', '2026-11-15 14:57:34.304663+00', '2026-11-15 14:57:34.304663+00', '2026-11-29 14:57:34.304663+00'),
	('\xa8ae1dac1657a90f316357eb7360b02e83b7223f7184c68c9b26bbe7062f3a96', 4, 0, '\xfb7700ac5340d8f6a1ffab7a95c95f8980d53c82765af2f1349f7a4e58128425', false, NULL, '1 × Any Value is in your cart.', 'good', '127.0.0.1', 'tests', '2026-11-15 14:57:34.318024+00', '2026-11-15 14:57:34.318024+00', '2026-11-29 14:57:34.318024+00');


INSERT INTO voucherd_release.spend VALUES
	(1, 3, 0, '2026-11-15', 1139);


INSERT INTO voucherd_release.supplier OVERRIDING SYSTEM VALUE VALUES
	(1, 'bought', 'http', 0, true, '{"buy": {"body": {"sku": "{sku}", "quantity": "{count}", "max_price": "{price_max}", "reference": "{reference}"}, "path": "/orders", "errors": [{"code": "NO_STOCK", "http": 409, "means": "out_of_stock"}, {"code": "UNKNOWN_SKU", "http": 404, "means": "rejected"}, {"code": "PRICE_ABOVE_LIMIT", "http": 422, "means": "price"}, {"http": 402, "means": "funds"}, {"http": [400, 401, 403], "means": "rejected"}], "method": "POST", "headers": {"Idempotency-Key": "{reference}"}}, "auth": {"type": "bearer"}, "guard": "quote", "quote": {"path": "/products/{sku}", "errors": [{"code": "UNKNOWN_SKU", "http": 404, "means": "not_found"}], "fields": {"error": "error.code", "price": "price.amount", "stock": "stock", "price_currency": "price.currency"}}, "answer": {"fields": {"codes": "items[].pin", "error": "error.code", "price": "unit_price.amount", "status": "status", "expires": "items[].valid_until", "serials": "items[].serial", "reference": "reference", "external_id": "id", "price_currency": "unit_price.currency"}, "statuses": {"done": "bought", "failed": "rejected", "cancelled": "cancelled", "processing": "under_way"}}, "cancel": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}], "method": "DELETE"}, "look_up": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}]}, "base_url": "http://127.0.0.1:1", "bulk_max": 100, "code_pattern": "[0-9A-F]{4}(-[0-9A-F]{4}){3}"}', '\x3342025cf06a40f7878f1e47e8cd49c91a42bc2a6f210d7d34cd2805c35ecc7a65532ae54d7011', 1, 3600, 300, 8, 100, 'wait', '2026-11-15 14:57:35.269905+00'),
	(2, 'bought-too-many', 'http', 0, true, '{"buy": {"body": {"sku": "{sku}", "quantity": "{count}", "max_price": "{price_max}", "reference": "{reference}"}, "path": "/orders", "errors": [{"code": "NO_STOCK", "http": 409, "means": "out_of_stock"}, {"code": "UNKNOWN_SKU", "http": 404, "means": "rejected"}, {"code": "PRICE_ABOVE_LIMIT", "http": 422, "means": "price"}, {"http": 402, "means": "funds"}, {"http": [400, 401, 403], "means": "rejected"}], "method": "POST", "headers": {"Idempotency-Key": "{reference}"}}, "auth": {"type": "bearer"}, "guard": "quote", "quote": {"path": "/products/{sku}", "errors": [{"code": "UNKNOWN_SKU", "http": 404, "means": "not_found"}], "fields": {"error": "error.code", "price": "price.amount", "stock": "stock", "price_currency": "price.currency"}}, "answer": {"fields": {"codes": "items[].pin", "error": "error.code", "price": "unit_price.amount", "status": "status", "expires": "items[].valid_until", "serials": "items[].serial", "reference": "reference", "external_id": "id", "price_currency": "unit_price.currency"}, "statuses": {"done": "bought", "failed": "rejected", "cancelled": "cancelled", "processing": "under_way"}}, "cancel": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}], "method": "DELETE"}, "look_up": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}]}, "base_url": "http://127.0.0.1:1", "bulk_max": 100, "code_pattern": "[0-9A-F]{4}(-[0-9A-F]{4}){3}"}', '\xb0694b97aec2cfa364ad4651c763f393605f4107aca5979425ba4c638e32e2be1bd731026452d8', 1, 3600, 300, 8, 100, 'wait', '2026-11-15 14:57:35.839894+00'),
	(3, 'refused-by-the-supplier', 'http', 0, true, '{"buy": {"body": {"sku": "{sku}", "quantity": "{count}", "max_price": "{price_max}", "reference": "{reference}"}, "path": "/orders", "errors": [{"code": "NO_STOCK", "http": 409, "means": "out_of_stock"}, {"code": "UNKNOWN_SKU", "http": 404, "means": "rejected"}, {"code": "PRICE_ABOVE_LIMIT", "http": 422, "means": "price"}, {"http": 402, "means": "funds"}, {"http": [400, 401, 403], "means": "rejected"}], "method": "POST", "headers": {"Idempotency-Key": "{reference}"}}, "auth": {"type": "bearer"}, "guard": "quote", "quote": {"path": "/products/{sku}", "errors": [{"code": "UNKNOWN_SKU", "http": 404, "means": "not_found"}], "fields": {"error": "error.code", "price": "price.amount", "stock": "stock", "price_currency": "price.currency"}}, "answer": {"fields": {"codes": "items[].pin", "error": "error.code", "price": "unit_price.amount", "status": "status", "expires": "items[].valid_until", "serials": "items[].serial", "reference": "reference", "external_id": "id", "price_currency": "unit_price.currency"}, "statuses": {"done": "bought", "failed": "rejected", "cancelled": "cancelled", "processing": "under_way"}}, "cancel": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}], "method": "DELETE"}, "look_up": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}]}, "base_url": "http://127.0.0.1:1", "bulk_max": 100, "code_pattern": "[0-9A-F]{4}(-[0-9A-F]{4}){3}"}', '\x57cd8f39b52d46862fb882a97125a62de93e6cc9b40d3e17e296cd8bef747f437b5dea815005e6', 1, 3600, 300, 8, 100, 'wait', '2026-11-15 14:57:36.220204+00'),
	(4, 'asked-about', 'http', 0, true, '{"buy": {"body": {"sku": "{sku}", "quantity": "{count}", "max_price": "{price_max}", "reference": "{reference}"}, "path": "/orders", "errors": [{"code": "NO_STOCK", "http": 409, "means": "out_of_stock"}, {"code": "UNKNOWN_SKU", "http": 404, "means": "rejected"}, {"code": "PRICE_ABOVE_LIMIT", "http": 422, "means": "price"}, {"http": 402, "means": "funds"}, {"http": [400, 401, 403], "means": "rejected"}], "method": "POST", "headers": {"Idempotency-Key": "{reference}"}}, "auth": {"type": "bearer"}, "guard": "quote", "quote": {"path": "/products/{sku}", "errors": [{"code": "UNKNOWN_SKU", "http": 404, "means": "not_found"}], "fields": {"error": "error.code", "price": "price.amount", "stock": "stock", "price_currency": "price.currency"}}, "answer": {"fields": {"codes": "items[].pin", "error": "error.code", "price": "unit_price.amount", "status": "status", "expires": "items[].valid_until", "serials": "items[].serial", "reference": "reference", "external_id": "id", "price_currency": "unit_price.currency"}, "statuses": {"done": "bought", "failed": "rejected", "cancelled": "cancelled", "processing": "under_way"}}, "cancel": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}], "method": "DELETE"}, "look_up": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}]}, "base_url": "http://127.0.0.1:1", "bulk_max": 100, "code_pattern": "[0-9A-F]{4}(-[0-9A-F]{4}){3}"}', '\xf549e71fc9c6396b3f8f8d5af46a45579bdc01a170cf321522e6ac3c2c92d62a19b8ad2d78dd27', 1, 3600, 300, 8, 100, 'wait', '2026-11-15 14:57:36.567234+00'),
	(5, 'of-unknown-end', 'http', 0, true, '{"buy": {"body": {"sku": "{sku}", "quantity": "{count}", "max_price": "{price_max}", "reference": "{reference}"}, "path": "/orders", "errors": [{"code": "NO_STOCK", "http": 409, "means": "out_of_stock"}, {"code": "UNKNOWN_SKU", "http": 404, "means": "rejected"}, {"code": "PRICE_ABOVE_LIMIT", "http": 422, "means": "price"}, {"http": 402, "means": "funds"}, {"http": [400, 401, 403], "means": "rejected"}], "method": "POST", "headers": {"Idempotency-Key": "{reference}"}}, "auth": {"type": "bearer"}, "guard": "quote", "quote": {"path": "/products/{sku}", "errors": [{"code": "UNKNOWN_SKU", "http": 404, "means": "not_found"}], "fields": {"error": "error.code", "price": "price.amount", "stock": "stock", "price_currency": "price.currency"}}, "answer": {"fields": {"codes": "items[].pin", "error": "error.code", "price": "unit_price.amount", "status": "status", "expires": "items[].valid_until", "serials": "items[].serial", "reference": "reference", "external_id": "id", "price_currency": "unit_price.currency"}, "statuses": {"done": "bought", "failed": "rejected", "cancelled": "cancelled", "processing": "under_way"}}, "cancel": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}], "method": "DELETE"}, "look_up": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}]}, "base_url": "http://127.0.0.1:1", "bulk_max": 100, "code_pattern": "[0-9A-F]{4}(-[0-9A-F]{4}){3}"}', '\xae4e9f1260d944b7748b631e2386a8e375be270045013dc438e15b587be3b5b21ad7a70f72f88e', 1, 3600, 300, 8, 100, 'wait', '2026-11-15 14:57:37.008027+00'),
	(6, 'later-10', 'http', 0, true, '{"buy": {"body": {"sku": "{sku}", "quantity": "{count}", "max_price": "{price_max}", "reference": "{reference}"}, "path": "/orders", "errors": [{"code": "NO_STOCK", "http": 409, "means": "out_of_stock"}, {"code": "UNKNOWN_SKU", "http": 404, "means": "rejected"}, {"code": "PRICE_ABOVE_LIMIT", "http": 422, "means": "price"}, {"http": 402, "means": "funds"}, {"http": [400, 401, 403], "means": "rejected"}], "method": "POST", "headers": {"Idempotency-Key": "{reference}"}}, "auth": {"type": "bearer"}, "guard": "quote", "quote": {"path": "/products/{sku}", "errors": [{"code": "UNKNOWN_SKU", "http": 404, "means": "not_found"}], "fields": {"error": "error.code", "price": "price.amount", "stock": "stock", "price_currency": "price.currency"}}, "answer": {"fields": {"codes": "items[].pin", "error": "error.code", "price": "unit_price.amount", "status": "status", "expires": "items[].valid_until", "serials": "items[].serial", "reference": "reference", "external_id": "id", "price_currency": "unit_price.currency"}, "statuses": {"done": "bought", "failed": "rejected", "cancelled": "cancelled", "processing": "under_way"}}, "cancel": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}], "method": "DELETE"}, "look_up": {"path": "/orders/{reference}", "errors": [{"code": "UNKNOWN_REFERENCE", "http": 404, "means": "not_found"}]}, "base_url": "http://127.0.0.1:1", "bulk_max": 100, "code_pattern": "[0-9A-F]{4}(-[0-9A-F]{4}){3}"}', '\x0006a508363c32c3506c3ad4590853520c87361430d82524ba73bbe8e98211ddcfbb94132de05b', 120, 0, 300, 8, 100, 'wait', '2026-11-15 14:57:37.52377+00');


INSERT INTO voucherd_release.supplier_health VALUES
	(1, 0, NULL, '2026-11-15 14:57:37.558912+00', NULL),
	(3, 0, NULL, '2026-11-15 14:57:37.558871+00', NULL),
	(5, 0, NULL, '2026-11-15 14:57:37.548305+00', NULL),
	(4, 0, NULL, '2026-11-15 14:57:37.558075+00', NULL),
	(2, 0, NULL, '2026-11-15 14:57:37.556247+00', NULL),
	(6, 0, NULL, '2026-11-15 14:57:37.619169+00', NULL);


INSERT INTO voucherd_release.sweep VALUES
	('expired', '2026-11-14 14:47:39.678054+00');




INSERT INTO voucherd_release.totp VALUES
	(1, '\x6a7dc68422f122ebcdd2dbaabd8cfb3d1dafd7437b333f8dc84cba5af890ac1b5c02152605bad92a663243a6dfdee09a', '2026-11-15 14:57:34.271891+00', 59825155);


INSERT INTO voucherd_release.trail OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-15 14:57:33.339731+00', 2, 1, 'key 1 of Company 1', 'order.protect', 'order TRX11V0QA3Y8014BNYJ1A8DG8XBMK', 1, 0, '127.0.0.1', 'req_cbd6ea4f732600000008', NULL),
	(2, '2026-11-15 14:57:33.804854+00', 2, 1, 'key 1 of Company 1', 'webhook.add', 'webhook 1', 1, 0, '127.0.0.1', 'req_cbd6ea4f732600000012', '{"host": null}'),
	(3, '2026-11-15 14:57:34.119756+00', 0, 1, 'finance1@people.example', 'money.propose', 'payment 1', 1, 0, '127.0.0.1', 'req_cbd6ea4f73260000001c', '{"kind": "top-up", "amount": "250.00 EUR", "reference": "transfer 1"}'),
	(4, '2026-11-15 14:57:34.163354+00', 0, 2, 'admin2@people.example', 'money.approve', 'payment 1', 1, 0, '127.0.0.1', 'req_cbd6ea4f73260000001d', '{"kind": "top-up", "amount": "250.00 EUR", "reference": "transfer 1"}'),
	(5, '2026-11-15 14:57:34.20973+00', 0, 1, 'finance1@people.example', 'money.propose', 'payment 2', 1, 0, '127.0.0.1', 'req_cbd6ea4f73260000001e', '{"kind": "top-up", "amount": "250.00 EUR", "reference": "transfer 2"}'),
	(6, '2026-11-15 14:57:34.345913+00', 1, 3, 'owner3@people.example', 'alert.set', 'balance in EUR', 1, 0, '127.0.0.1', 'req_cbd6ea4f73260000001f', '{"below": "100.00 EUR"}'),
	(7, '2026-11-15 14:57:34.675782+00', 1, 4, 'buyer4@people.example', 'order.confirm', 'order TRX3B7Q1BY3GAH1ZB52210BWZW6P6', 1, 0, '127.0.0.1', 'req_cbd6ea4f732600000024', NULL),
	(8, '2026-11-15 14:57:34.748215+00', 1, 4, 'buyer4@people.example', 'order.confirm', 'order TRX6RHSV50CP6CERJR95JNZXQ94V0', 1, 0, '127.0.0.1', 'req_cbd6ea4f732600000025', NULL),
	(9, '2026-11-15 14:57:38.610112+00', 2, 1, 'key 1 of Company 1', 'key.add', 'key 3', 1, 0, '127.0.0.1', 'req_cbd6ea4f732600000042', '{"scopes": ["catalogue:read", "codes:read", "events:read", "orders:read", "orders:write", "wallet:read", "webhooks:write"], "allowIps": [], "rateLimit": 600, "dateExpires": null, "description": "till", "spendDayEurMinor": 50000, "spendOrderEurMinor": null}'),
	(10, '2026-11-15 14:57:38.777625+00', 2, 1, 'key 1 of Company 1', 'key.rotate', 'key 3', 1, 0, '127.0.0.1', 'req_cbd6ea4f732600000045', '{"replacedBy": 4, "overlapSeconds": 86400}'),
	(11, '2026-11-15 14:57:38.819753+00', 2, 1, 'key 1 of Company 1', 'webhook.add', 'webhook 2', 1, 0, '127.0.0.1', 'req_cbd6ea4f732600000046', '{"host": "127.0.0.1"}'),
	(12, '2026-11-15 14:57:38.853557+00', 2, 1, 'key 1 of Company 1', 'webhook.add', 'webhook 3', 1, 0, '127.0.0.1', 'req_cbd6ea4f732600000047', '{"host": "127.0.0.1"}');


INSERT INTO voucherd_release.trail_seal VALUES
	('trail', 1, 1, 12, 12, '\x0000000000000000000000000000000000000000000000000000000000000000', '\x3ee2c32a07fa5e7682d0d57694921e1d83988e8723f21075f0ca31f03814623d', '2026-11-15 14:57:39.571766+00'),
	('reveal', 1, 1, 11, 11, '\x0000000000000000000000000000000000000000000000000000000000000000', '\x4e7e776e5569affe155db496ea3a490a11e80c08fc0cc14df87d6448f146e9ee', '2026-11-15 14:57:39.607888+00');




INSERT INTO voucherd_release.vat_rate VALUES
	('AT', '2020-01-01', 2000),
	('BE', '2020-01-01', 2100),
	('BG', '2020-01-01', 2000),
	('CY', '2020-01-01', 1900),
	('CZ', '2020-01-01', 2100),
	('DE', '2020-01-01', 1900),
	('DE', '2020-07-01', 1600),
	('DE', '2021-01-01', 1900),
	('DK', '2020-01-01', 2500),
	('EE', '2020-01-01', 2000),
	('EE', '2024-01-01', 2200),
	('EE', '2025-07-01', 2400),
	('ES', '2020-01-01', 2100),
	('FI', '2020-01-01', 2400),
	('FI', '2024-09-01', 2550),
	('FR', '2020-01-01', 2000),
	('GR', '2020-01-01', 2400),
	('HR', '2020-01-01', 2500),
	('HU', '2020-01-01', 2700),
	('IE', '2020-01-01', 2300),
	('IE', '2020-09-01', 2100),
	('IE', '2021-03-01', 2300),
	('IT', '2020-01-01', 2200),
	('LT', '2020-01-01', 2100),
	('LU', '2020-01-01', 1700),
	('LU', '2023-01-01', 1600),
	('LU', '2024-01-01', 1700),
	('LV', '2020-01-01', 2100),
	('MT', '2020-01-01', 1800),
	('NL', '2020-01-01', 2100),
	('PL', '2020-01-01', 2300),
	('PT', '2020-01-01', 2300),
	('RO', '2020-01-01', 1900),
	('RO', '2025-08-01', 2100),
	('SE', '2020-01-01', 2500),
	('SI', '2020-01-01', 2200),
	('SK', '2020-01-01', 2000),
	('SK', '2025-01-01', 2300);


INSERT INTO voucherd_release.vault_key VALUES
	(1, '\x73482cdfeb7326ccf460006e58352ffcd3a0e4eebb7d3a891f9410a6382f37a3', '2026-11-15 14:57:31.623886+00', NULL, '2026-11-15 14:57:31.623886+00', NULL);


INSERT INTO voucherd_release.vault_master VALUES
	(true, 1, '\xe90dd72897b1a8740a54b3431053a8c5612e37ef77517f9efd66b854df08da34', '\x409673f6e5ad41bd4e2f7ad0c0c2f3c1517857d7c790cfbf8d6081a1b6e67489e4ee9d3de0922ae2e95a217de1e18d7568842e90b8ac602a432609de', '2026-11-15 14:57:31.630302+00');


INSERT INTO voucherd_release.waiting VALUES
	(0, 2, 2000, 1, 2058, 0, 2, '2026-11-15 14:57:33.654362+00', '2026-11-18 14:57:33.654362+00', false, NULL, NULL, NULL, '{}', 0),
	(1, 1, 1000, 1, 2073, 0, 2, '2026-11-15 15:57:34.050655+00', '2026-11-18 14:57:34.050655+00', false, NULL, NULL, NULL, '{}', 0),
	(0, 8, 1000, 1, 2084, 0, 2, '2026-11-15 14:57:36.679359+00', '2026-11-18 14:57:36.679359+00', false, NULL, '09111184-c103-47bf-944c-fba233714d3c', NULL, '{}', 0),
	(0, 9, 1000, 1, 2086, 0, 2, '2026-11-15 14:57:37.136045+00', '2026-11-18 14:57:37.136045+00', false, NULL, '597ab83b-0b67-43e5-9fc6-6446323651f0', NULL, '{}', 0),
	(0, 10, 1000, 1, 2090, 0, 1, '2026-11-15 14:57:37.759747+00', '2026-11-18 14:57:37.759747+00', false, NULL, '3b42fd74-5af2-455d-b173-3555bdecffe2', NULL, '{}', 0),
	(0, 10, 1000, 1, 2092, 0, 1, '2026-11-15 14:57:38.069071+00', '2026-11-18 14:57:38.069071+00', false, NULL, '2142915c-3f5b-4e39-9dd5-aaf2b1104f72', NULL, '{}', 0),
	(0, 10, 1000, 1, 2094, 0, 1, '2026-11-15 14:57:38.381798+00', '2026-11-15 14:59:38.381798+00', true, NULL, '0db6e066-794c-4ce5-b0f4-01360fe0f911', NULL, '{}', 0);


INSERT INTO voucherd_release.wallet VALUES
	(5, 1, 'EUR', 1, 95400, 0, 3),
	(2, 1, 'EUR', 0, 97983, 950, 21);


INSERT INTO voucherd_release.wallet_alert VALUES
	(2, 10000, false);


INSERT INTO voucherd_release.webhook VALUES
	(1, 1, 0, 1, NULL, '', '{}', true, NULL, '\xc6ca2c069a1ce7def7bdf8e2aec05721fd9ad8efdaec7ed4298b143328ab9778d1d1dbe84ba6c73a08d4d639b7296190c6a5881feab5fec2dccf76cde3eba2367644b3fd5fa53451afe7a3be8802', NULL, NULL, NULL, '{}', '2026-11-15 14:57:33.804854+00', '2026-11-15 14:57:33.804854+00'),
	(2, 1, 0, 2, 'http://127.0.0.1:42951/hook', '', '{}', true, NULL, '\x3dee663fd0718da5376eb95262ef3d2762354a6e0882552cc763bc045aeff00900c9cd7d6a40a45c4749f97ca893cfa714a5d059f8dd3405fd6a1c0f3b8fcd6897c97a58704900b52418f7e06954', NULL, NULL, NULL, '{}', '2026-11-15 14:57:38.819753+00', '2026-11-15 14:57:38.819753+00'),
	(3, 1, 0, 3, 'http://127.0.0.1:9/closed', '', '{}', true, NULL, '\x98a22a7f85f64b311e40a843864c6779900c554fbf23895d94893234224a6dca4adbebbe1826cf86ab66181918059caf35aed380452d4fb7ecd2aff2723845566d9c4f1f8c6bf434c4b0624d54aa', NULL, NULL, NULL, '{}', '2026-11-15 14:57:38.853557+00', '2026-11-15 14:57:38.853557+00');


INSERT INTO voucherd_release.webhook_attempt VALUES
	(1, 17, 1, '2026-11-15 14:57:39.038392+00', 255, 'http://127.0.0.1:9/orders/7', NULL, 'no connection', '', ''),
	(1, 18, 1, '2026-11-15 14:57:39.25143+00', 42, 'http://127.0.0.1:9/orders/7', NULL, 'no connection', '', ''),
	(3, 1, 1, '2026-11-15 14:57:39.277855+00', 16, 'http://127.0.0.1:9/closed', NULL, 'no connection', '', ''),
	(3, 2, 1, '2026-11-15 14:57:39.278202+00', 16, 'http://127.0.0.1:9/closed', NULL, 'no connection', '', ''),
	(3, 3, 1, '2026-11-15 14:57:39.278467+00', 16, 'http://127.0.0.1:9/closed', NULL, 'no connection', '', ''),
	(3, 4, 1, '2026-11-15 14:57:39.278735+00', 15, 'http://127.0.0.1:9/closed', NULL, 'no connection', '', ''),
	(3, 5, 1, '2026-11-15 14:57:39.278986+00', 15, 'http://127.0.0.1:9/closed', NULL, 'no connection', '', ''),
	(3, 6, 1, '2026-11-15 14:57:39.279244+00', 15, 'http://127.0.0.1:9/closed', NULL, 'no connection', '', ''),
	(3, 7, 1, '2026-11-15 14:57:39.279543+00', 15, 'http://127.0.0.1:9/closed', NULL, 'no connection', '', ''),
	(3, 8, 1, '2026-11-15 14:57:39.29207+00', 2, 'http://127.0.0.1:9/closed', NULL, 'no connection', '', ''),
	(2, 1, 1, '2026-11-15 14:57:39.266385+00', 35, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 2, 1, '2026-11-15 14:57:39.266996+00', 35, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 3, 1, '2026-11-15 14:57:39.267359+00', 35, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 4, 1, '2026-11-15 14:57:39.267667+00', 27, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 5, 1, '2026-11-15 14:57:39.276402+00', 26, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 6, 1, '2026-11-15 14:57:39.276749+00', 26, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 7, 1, '2026-11-15 14:57:39.27708+00', 26, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 8, 1, '2026-11-15 14:57:39.277564+00', 26, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 9, 1, '2026-11-15 14:57:39.301975+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 10, 1, '2026-11-15 14:57:39.302265+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 11, 1, '2026-11-15 14:57:39.302445+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 12, 1, '2026-11-15 14:57:39.302604+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 13, 1, '2026-11-15 14:57:39.302758+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 14, 1, '2026-11-15 14:57:39.302912+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 15, 1, '2026-11-15 14:57:39.303069+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 16, 1, '2026-11-15 14:57:39.303215+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 17, 1, '2026-11-15 14:57:39.311195+00', 17, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 18, 1, '2026-11-15 14:57:39.311502+00', 17, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 26, 1, '2026-11-15 14:57:39.311663+00', 17, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 27, 1, '2026-11-15 14:57:39.311865+00', 17, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 28, 1, '2026-11-15 14:57:39.31202+00', 17, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 29, 1, '2026-11-15 14:57:39.312166+00', 17, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 30, 1, '2026-11-15 14:57:39.312307+00', 17, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 31, 1, '2026-11-15 14:57:39.312448+00', 17, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 32, 1, '2026-11-15 14:57:39.328415+00', 2, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 33, 1, '2026-11-15 14:57:39.328963+00', 2, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 34, 1, '2026-11-15 14:57:39.329172+00', 2, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 35, 1, '2026-11-15 14:57:39.32933+00', 2, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 36, 1, '2026-11-15 14:57:39.329511+00', 2, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 37, 1, '2026-11-15 14:57:39.32969+00', 2, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 38, 1, '2026-11-15 14:57:39.329854+00', 2, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 39, 1, '2026-11-15 14:57:39.330029+00', 8, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 40, 1, '2026-11-15 14:57:39.33067+00', 8, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 41, 1, '2026-11-15 14:57:39.330854+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 42, 1, '2026-11-15 14:57:39.331012+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 43, 1, '2026-11-15 14:57:39.331177+00', 15, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 44, 1, '2026-11-15 14:57:39.331325+00', 15, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 45, 1, '2026-11-15 14:57:39.331462+00', 15, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 46, 1, '2026-11-15 14:57:39.331599+00', 15, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 47, 1, '2026-11-15 14:57:39.338123+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 48, 1, '2026-11-15 14:57:39.339236+00', 8, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 49, 1, '2026-11-15 14:57:39.339486+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 50, 1, '2026-11-15 14:57:39.339661+00', 10, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 51, 1, '2026-11-15 14:57:39.34622+00', 10, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 52, 1, '2026-11-15 14:57:39.346429+00', 10, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 53, 1, '2026-11-15 14:57:39.346597+00', 10, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 54, 1, '2026-11-15 14:57:39.346771+00', 10, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 55, 1, '2026-11-15 14:57:39.346927+00', 9, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 56, 1, '2026-11-15 14:57:39.347646+00', 8, 'http://127.0.0.1:42951/hook', 204, NULL, '', ''),
	(2, 57, 1, '2026-11-15 14:57:39.349021+00', 1, 'http://127.0.0.1:42951/hook', 204, NULL, '', '');


INSERT INTO voucherd_release.webhook_cursor VALUES
	(true, 57);


INSERT INTO voucherd_release.webhook_delivery VALUES
	(3, 9, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 10, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 11, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 12, 'order.line_finished', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 13, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 14, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 15, 'order.cancelled', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 16, 'order.cancelled', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 17, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 18, 'order.finished', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 26, 'wallet.topped_up', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 27, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 28, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 29, 'order.finished', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 30, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 31, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 32, 'order.finished', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 33, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 34, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 35, 'order.finished', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(1, 17, 'order.created', 'http://127.0.0.1:9/orders/7', 0, 1, 1, '2026-11-15 14:57:44.380228+00', '2026-11-15 14:57:38.938404+00'),
	(1, 18, 'order.finished', 'http://127.0.0.1:9/orders/7', 0, 1, 1, '2026-11-15 14:57:44.502295+00', '2026-11-15 14:57:38.938404+00'),
	(3, 1, 'order.created', NULL, 0, 1, 1, '2026-11-15 14:57:44.452859+00', '2026-11-15 14:57:38.938404+00'),
	(3, 2, 'order.created', NULL, 0, 1, 1, '2026-11-15 14:57:44.797662+00', '2026-11-15 14:57:38.938404+00'),
	(3, 3, 'order.created', NULL, 0, 1, 1, '2026-11-15 14:57:44.584372+00', '2026-11-15 14:57:38.938404+00'),
	(3, 4, 'order.created', NULL, 0, 1, 1, '2026-11-15 14:57:44.577503+00', '2026-11-15 14:57:38.938404+00'),
	(3, 5, 'order.created', NULL, 0, 1, 1, '2026-11-15 14:57:44.34953+00', '2026-11-15 14:57:38.938404+00'),
	(3, 6, 'order.deleted', NULL, 0, 1, 1, '2026-11-15 14:57:44.429484+00', '2026-11-15 14:57:38.938404+00'),
	(3, 7, 'order.finished', NULL, 0, 1, 1, '2026-11-15 14:57:44.761297+00', '2026-11-15 14:57:38.938404+00'),
	(3, 8, 'order.created', NULL, 0, 1, 1, '2026-11-15 14:57:44.731463+00', '2026-11-15 14:57:38.938404+00'),
	(2, 1, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 2, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 3, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 4, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 5, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 6, 'order.deleted', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 7, 'order.finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 8, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 9, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 10, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 11, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 12, 'order.line_finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 13, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 14, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 15, 'order.cancelled', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 16, 'order.cancelled', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 17, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 18, 'order.finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 26, 'wallet.topped_up', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 27, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 28, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 29, 'order.finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 30, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 31, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 32, 'order.finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 33, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 34, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 35, 'order.finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 36, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(3, 36, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 37, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 38, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 39, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 40, 'order.finished', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 41, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 42, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 43, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 44, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 45, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 46, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 47, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 48, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 49, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 50, 'order.finished', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 51, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 52, 'order.pending', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 53, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 54, 'order.finished', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 55, 'key.rotated', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 56, 'order.created', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(3, 57, 'order.finished', NULL, 0, 0, 0, '2026-11-15 14:57:38.938404+00', '2026-11-15 14:57:38.938404+00'),
	(2, 37, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 38, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 39, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 40, 'order.finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 41, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 42, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 43, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 44, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 45, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 46, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 47, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 48, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 49, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 50, 'order.finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 51, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 52, 'order.pending', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 53, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 54, 'order.finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 55, 'key.rotated', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00');
INSERT INTO voucherd_release.webhook_delivery VALUES
	(2, 56, 'order.created', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00'),
	(2, 57, 'order.finished', NULL, 1, 1, 1, NULL, '2026-11-15 14:57:38.938404+00');


INSERT INTO voucherd_release.webhook_queue VALUES
	(1, '2026-11-15 14:57:44.380228+00', false, 1, false, 0, NULL),
	(3, '2026-11-15 14:57:47.307489+00', false, 1, true, 8, '2026-11-15 14:57:39.307489+00'),
	(2, NULL, false, 1, false, 0, NULL);




SELECT pg_catalog.setval('voucherd_release.api_key_id_seq', 4, true);


SELECT pg_catalog.setval('voucherd_release.app_user_id_seq', 4, true);


SELECT pg_catalog.setval('voucherd_release.approval_id_seq', 3, true);


SELECT pg_catalog.setval('voucherd_release.backup_id_seq', 1, false);


SELECT pg_catalog.setval('voucherd_release.brand_id_seq', 11, true);


SELECT pg_catalog.setval('voucherd_release.company_id_seq', 1, true);


SELECT pg_catalog.setval('voucherd_release.event_id_seq', 65, true);


SELECT pg_catalog.setval('voucherd_release.lot_number', 7, true);


SELECT pg_catalog.setval('voucherd_release.mail_id_seq', 1, true);


SELECT pg_catalog.setval('voucherd_release.order_block', 1, true);


SELECT pg_catalog.setval('voucherd_release.passkey_id_seq', 1, false);


SELECT pg_catalog.setval('voucherd_release.price_entry_id_seq', 2, true);


SELECT pg_catalog.setval('voucherd_release.price_list_id_seq', 1, true);


SELECT pg_catalog.setval('voucherd_release.product_change_id_seq', 17, true);


SELECT pg_catalog.setval('voucherd_release.product_id_seq', 10, true);


SELECT pg_catalog.setval('voucherd_release.product_version_id_seq', 11, true);


SELECT pg_catalog.setval('voucherd_release.quote_number', 6, true);


SELECT pg_catalog.setval('voucherd_release.reset_request_id_seq', 1, false);


SELECT pg_catalog.setval('voucherd_release.reveal_id_seq', 11, true);


SELECT pg_catalog.setval('voucherd_release.sandbox_purchase_number', 1, false);


SELECT pg_catalog.setval('voucherd_release.supplier_id_seq', 6, true);


SELECT pg_catalog.setval('voucherd_release.trail_id_seq', 12, true);


SELECT pg_catalog.setval('voucherd_release.wallet_number', 2, true);


SELECT pg_catalog.setval('voucherd_release.webhook_number', 3, true);


ALTER TABLE ONLY voucherd_release.access_epoch
    ADD CONSTRAINT access_epoch_pkey PRIMARY KEY (only_row);


ALTER TABLE ONLY voucherd_release.account_link
    ADD CONSTRAINT account_link_pkey PRIMARY KEY (hash);


ALTER TABLE ONLY voucherd_release.api_key
    ADD CONSTRAINT api_key_hash_key UNIQUE (hash);


ALTER TABLE ONLY voucherd_release.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.app_user
    ADD CONSTRAINT app_user_email_key UNIQUE (email);


ALTER TABLE ONLY voucherd_release.app_user
    ADD CONSTRAINT app_user_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.approval
    ADD CONSTRAINT approval_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.attempt_line
    ADD CONSTRAINT attempt_line_pkey PRIMARY KEY (attempt_id, order_id, line_from);


ALTER TABLE ONLY voucherd_release.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.backup
    ADD CONSTRAINT backup_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.brand_logo
    ADD CONSTRAINT brand_logo_pkey PRIMARY KEY (brand_id);


ALTER TABLE ONLY voucherd_release.brand
    ADD CONSTRAINT brand_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.brand
    ADD CONSTRAINT brand_slug_key UNIQUE (slug);


ALTER TABLE ONLY voucherd_release.cart_item
    ADD CONSTRAINT cart_item_pkey PRIMARY KEY (user_id, state, product_id, face_minor);


ALTER TABLE ONLY voucherd_release.cart
    ADD CONSTRAINT cart_pkey PRIMARY KEY (user_id, state);


ALTER TABLE ONLY voucherd_release.code
    ADD CONSTRAINT code_pkey PRIMARY KEY (lot_id, seq);


ALTER TABLE ONLY voucherd_release.company
    ADD CONSTRAINT company_name_key UNIQUE (name);


ALTER TABLE ONLY voucherd_release.company
    ADD CONSTRAINT company_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (wallet_id, seq);


ALTER TABLE ONLY voucherd_release.event_mark
    ADD CONSTRAINT event_mark_pkey PRIMARY KEY (only_row);


ALTER TABLE ONLY voucherd_release.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.fx_feed
    ADD CONSTRAINT fx_feed_pkey PRIMARY KEY (only_row);


ALTER TABLE ONLY voucherd_release.fx_margin
    ADD CONSTRAINT fx_margin_pkey PRIMARY KEY (from_currency, to_currency);


ALTER TABLE ONLY voucherd_release.fx_rate
    ADD CONSTRAINT fx_rate_pkey PRIMARY KEY (currency, day);


ALTER TABLE ONLY voucherd_release.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (company_id, state, key);


ALTER TABLE ONLY voucherd_release.line_view
    ADD CONSTRAINT line_view_pkey PRIMARY KEY (order_id, line);


ALTER TABLE ONLY voucherd_release.lot
    ADD CONSTRAINT lot_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.mail
    ADD CONSTRAINT mail_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.offer_epoch
    ADD CONSTRAINT offer_epoch_pkey PRIMARY KEY (only_row);


ALTER TABLE ONLY voucherd_release.offer
    ADD CONSTRAINT offer_pkey PRIMARY KEY (supplier_id, product_id, face_minor);


ALTER TABLE ONLY voucherd_release.order_item
    ADD CONSTRAINT order_item_pkey PRIMARY KEY (order_id, item_no);


ALTER TABLE ONLY voucherd_release.order_pin
    ADD CONSTRAINT order_pin_pkey PRIMARY KEY (order_id);


ALTER TABLE ONLY voucherd_release.order_webhook
    ADD CONSTRAINT order_webhook_pkey PRIMARY KEY (order_id);


ALTER TABLE ONLY voucherd_release.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.outcome
    ADD CONSTRAINT outcome_pkey PRIMARY KEY (order_id, line_from);


ALTER TABLE ONLY voucherd_release.passkey_challenge
    ADD CONSTRAINT passkey_challenge_pkey PRIMARY KEY (hash);


ALTER TABLE ONLY voucherd_release.passkey
    ADD CONSTRAINT passkey_credential_key UNIQUE (credential);


ALTER TABLE ONLY voucherd_release.passkey
    ADD CONSTRAINT passkey_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.pin_try
    ADD CONSTRAINT pin_try_pkey PRIMARY KEY (order_id, line);


ALTER TABLE ONLY voucherd_release.price_entry
    ADD CONSTRAINT price_entry_once UNIQUE NULLS NOT DISTINCT (list_id, product_id, brand_id, valid_from);


ALTER TABLE ONLY voucherd_release.price_entry
    ADD CONSTRAINT price_entry_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.price_epoch
    ADD CONSTRAINT price_epoch_pkey PRIMARY KEY (only_row);


ALTER TABLE ONLY voucherd_release.price_list_company
    ADD CONSTRAINT price_list_company_pkey PRIMARY KEY (company_id);


ALTER TABLE ONLY voucherd_release.price_list
    ADD CONSTRAINT price_list_name_key UNIQUE (name);


ALTER TABLE ONLY voucherd_release.price_list
    ADD CONSTRAINT price_list_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.product_change
    ADD CONSTRAINT product_change_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.product_count
    ADD CONSTRAINT product_count_pkey PRIMARY KEY (kind, slug);


ALTER TABLE ONLY voucherd_release.product_listing
    ADD CONSTRAINT product_listing_pkey PRIMARY KEY (product_id);


ALTER TABLE ONLY voucherd_release.product_listing
    ADD CONSTRAINT product_listing_slug_key UNIQUE (slug);


ALTER TABLE ONLY voucherd_release.product
    ADD CONSTRAINT product_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.product
    ADD CONSTRAINT product_slug_key UNIQUE (slug);


ALTER TABLE ONLY voucherd_release.product_version
    ADD CONSTRAINT product_version_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.product_version
    ADD CONSTRAINT product_version_product_id_id_key UNIQUE (product_id, id);


ALTER TABLE ONLY voucherd_release.quarantined_code
    ADD CONSTRAINT quarantined_code_attempt_id_blind_key UNIQUE (attempt_id, blind);


ALTER TABLE ONLY voucherd_release.quarantined_code
    ADD CONSTRAINT quarantined_code_pkey PRIMARY KEY (attempt_id, place);


ALTER TABLE ONLY voucherd_release.quote
    ADD CONSTRAINT quote_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.rate_window
    ADD CONSTRAINT rate_window_pkey PRIMARY KEY (key_id);


ALTER TABLE ONLY voucherd_release.recovery_code
    ADD CONSTRAINT recovery_code_pkey PRIMARY KEY (user_id, hash);


ALTER TABLE ONLY voucherd_release.reset_request
    ADD CONSTRAINT reset_request_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.reveal
    ADD CONSTRAINT reveal_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.sandbox_purchase
    ADD CONSTRAINT sandbox_purchase_pkey PRIMARY KEY (supplier, reference);


ALTER TABLE ONLY voucherd_release.schema_migration
    ADD CONSTRAINT schema_migration_pkey PRIMARY KEY (version);


ALTER TABLE ONLY voucherd_release.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (key);


ALTER TABLE ONLY voucherd_release.spend
    ADD CONSTRAINT spend_pkey PRIMARY KEY (company_id, key_id, state, day);


ALTER TABLE ONLY voucherd_release.supplier_health
    ADD CONSTRAINT supplier_health_pkey PRIMARY KEY (supplier_id);


ALTER TABLE ONLY voucherd_release.supplier
    ADD CONSTRAINT supplier_id_state_key UNIQUE (id, state);


ALTER TABLE ONLY voucherd_release.supplier
    ADD CONSTRAINT supplier_name_key UNIQUE (name);


ALTER TABLE ONLY voucherd_release.supplier
    ADD CONSTRAINT supplier_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.sweep
    ADD CONSTRAINT sweep_pkey PRIMARY KEY (name);


ALTER TABLE ONLY voucherd_release.throttle
    ADD CONSTRAINT throttle_pkey PRIMARY KEY (key);


ALTER TABLE ONLY voucherd_release.totp
    ADD CONSTRAINT totp_pkey PRIMARY KEY (user_id);


ALTER TABLE ONLY voucherd_release.trail
    ADD CONSTRAINT trail_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.trail_seal
    ADD CONSTRAINT trail_seal_pkey PRIMARY KEY (book, block);


ALTER TABLE ONLY voucherd_release.upload
    ADD CONSTRAINT upload_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.vat_rate
    ADD CONSTRAINT vat_rate_pkey PRIMARY KEY (country, valid_from);


ALTER TABLE ONLY voucherd_release.vault_key
    ADD CONSTRAINT vault_key_pkey PRIMARY KEY (version);


ALTER TABLE ONLY voucherd_release.vault_master
    ADD CONSTRAINT vault_master_pkey PRIMARY KEY (only_row);


ALTER TABLE ONLY voucherd_release.waiting
    ADD CONSTRAINT waiting_pkey PRIMARY KEY (state, product_id, face_minor, company_id, order_id, line_from);


ALTER TABLE ONLY voucherd_release.wallet_alert
    ADD CONSTRAINT wallet_alert_pkey PRIMARY KEY (wallet_id);


ALTER TABLE ONLY voucherd_release.wallet
    ADD CONSTRAINT wallet_company_id_currency_state_key UNIQUE (company_id, currency, state);


ALTER TABLE ONLY voucherd_release.wallet
    ADD CONSTRAINT wallet_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.webhook_attempt
    ADD CONSTRAINT webhook_attempt_pkey PRIMARY KEY (webhook_id, event_id, number);


ALTER TABLE ONLY voucherd_release.webhook
    ADD CONSTRAINT webhook_company_id_state_slot_key UNIQUE (company_id, state, slot);


ALTER TABLE ONLY voucherd_release.webhook_cursor
    ADD CONSTRAINT webhook_cursor_pkey PRIMARY KEY (only_row);


ALTER TABLE ONLY voucherd_release.webhook_delivery
    ADD CONSTRAINT webhook_delivery_pkey PRIMARY KEY (webhook_id, event_id);


ALTER TABLE ONLY voucherd_release.webhook
    ADD CONSTRAINT webhook_pkey PRIMARY KEY (id);


ALTER TABLE ONLY voucherd_release.webhook_queue
    ADD CONSTRAINT webhook_queue_pkey PRIMARY KEY (webhook_id);


ALTER TABLE ONLY voucherd_release.worker_seen
    ADD CONSTRAINT worker_seen_pkey PRIMARY KEY (id);


CREATE INDEX account_link_age ON voucherd_release.account_link USING btree (ends_at);


CREATE INDEX account_link_user ON voucherd_release.account_link USING btree (user_id);


CREATE INDEX api_key_company ON voucherd_release.api_key USING btree (company_id);


CREATE INDEX approval_newest ON voucherd_release.approval USING btree (company_id, state, id DESC);


CREATE UNIQUE INDEX approval_open_money ON voucherd_release.approval USING btree (company_id, state, currency, reference) WHERE ((status = 0) AND (kind <> 1));


CREATE UNIQUE INDEX approval_open_order ON voucherd_release.approval USING btree (order_id) WHERE (status = 0);


CREATE INDEX approval_order ON voucherd_release.approval USING btree (order_id);


CREATE INDEX attempt_asking ON voucherd_release.attempt USING btree (ask_at) WHERE (status = 1);


CREATE INDEX attempt_by_hand ON voucherd_release.attempt USING btree (placed_at) WHERE (status = 2);


CREATE INDEX attempt_calling ON voucherd_release.attempt USING btree (supplier_id, lease_until) WHERE (status = 0);


CREATE INDEX attempt_external ON voucherd_release.attempt USING btree (supplier_id, external_id) WHERE (external_id IS NOT NULL);


COMMENT ON INDEX voucherd_release.attempt_external IS 'The statement of a supplier names its own ids more often than ours.';


CREATE INDEX attempt_failed ON voucherd_release.attempt USING btree (placed_at, id) WHERE (status = 4);


CREATE INDEX attempt_line_order ON voucherd_release.attempt_line USING btree (order_id);


CREATE INDEX attempt_placed ON voucherd_release.attempt USING btree (supplier_id, placed_at);


CREATE INDEX attempt_problem ON voucherd_release.attempt USING btree (placed_at, id) WHERE ((status = 2) OR (spare > 0) OR (quarantined > 0) OR (codes > count) OR ((status = 3) AND (codes < count)));


COMMENT ON INDEX voucherd_release.attempt_problem IS 'Purchases that a person may want to look at, newest first.';


CREATE INDEX brand_logo_name ON voucherd_release.brand_logo USING btree (name);


COMMENT ON INDEX voucherd_release.brand_logo_name IS 'Not unique: two brands may share a picture.';


CREATE INDEX cart_item_product ON voucherd_release.cart_item USING btree (product_id);


CREATE UNIQUE INDEX code_blind ON voucherd_release.code USING btree (blind);


CREATE INDEX entry_kind ON voucherd_release.entry USING btree (wallet_id, kind, seq) WHERE (kind = ANY (ARRAY[1, 3, 6]));


COMMENT ON INDEX voucherd_release.entry_kind IS 'Top-ups, refunds and corrections are few among orders and holds, and people look for them. No order and no hold is in it, so Confirm and Resolve do not pay for it.';


CREATE INDEX entry_order ON voucherd_release.entry USING btree (order_id) WHERE (order_id IS NOT NULL);


CREATE UNIQUE INDEX entry_top_up_once ON voucherd_release.entry USING btree (wallet_id, reference) WHERE (kind = 1);


COMMENT ON INDEX voucherd_release.entry_top_up_once IS 'The reference of a top-up makes it happen once.';


CREATE INDEX event_attempt ON voucherd_release.event USING btree (((data ->> 'attempt'::text)), id) WHERE (type = ANY (ARRAY['attempt.settled'::text, 'attempt.retried'::text, 'attempt.revealed'::text]));


COMMENT ON INDEX voucherd_release.event_attempt IS 'What people did about a purchase.';


CREATE INDEX event_company ON voucherd_release.event USING btree (company_id, state, id);


COMMENT ON INDEX voucherd_release.event_company IS 'The events of a company, from any place on. It costs each insert some microseconds; without it the page of a small company would read through the events of all (docs/decisions/0020).';


CREATE INDEX event_order ON voucherd_release.event USING btree (order_id, seq) WHERE (order_id IS NOT NULL);


CREATE INDEX idempotency_age ON voucherd_release.idempotency USING btree (began_at);


CREATE INDEX lot_attempt ON voucherd_release.lot USING btree (attempt_id) WHERE (attempt_id IS NOT NULL);


CREATE INDEX lot_expiring ON voucherd_release.lot USING btree (state, COALESCE(expires_at, 'infinity'::timestamp with time zone), id) WHERE (NOT exhausted);


CREATE INDEX lot_on_shelf ON voucherd_release.lot USING btree (product_id, face_minor, state) WHERE (NOT exhausted);


CREATE INDEX lot_product ON voucherd_release.lot USING btree (product_id);


CREATE INDEX mail_due ON voucherd_release.mail USING btree (next_at, id) WHERE (next_at IS NOT NULL);


CREATE INDEX offer_product ON voucherd_release.offer USING btree (product_id, state);


CREATE INDEX orders_company ON voucherd_release.orders USING btree (company_id, ((id & (1)::bigint)), created_at, id);


CREATE INDEX orders_created ON voucherd_release.orders USING brin (created_at) WITH (autosummarize='on', pages_per_range='32');


CREATE INDEX orders_reference ON voucherd_release.orders USING btree (company_id, hashtextextended(reference, (0)::bigint)) WHERE (reference IS NOT NULL);


CREATE UNIQUE INDEX outcome_lot ON voucherd_release.outcome USING btree (lot_id, seq_from) WHERE (lot_id IS NOT NULL);


CREATE INDEX passkey_challenge_age ON voucherd_release.passkey_challenge USING btree (ends_at);


CREATE INDEX passkey_challenge_network ON voucherd_release.passkey_challenge USING btree (network, ends_at);


CREATE INDEX passkey_user ON voucherd_release.passkey USING btree (user_id);


CREATE INDEX price_list_company_list ON voucherd_release.price_list_company USING btree (list_id);


CREATE INDEX product_change_but_stock ON voucherd_release.product_change USING btree (id) WHERE (kind <> 'stock'::text);


COMMENT ON INDEX voucherd_release.product_change_but_stock IS 'Stock is live; a reader with a sandbox key passes over it.';


CREATE INDEX product_listing_brand ON voucherd_release.product_listing USING btree (brand_slug, name_key, product_id);


CREATE INDEX product_listing_brand_name ON voucherd_release.product_listing USING btree (brand_key, name_key, product_id);


CREATE INDEX product_listing_category ON voucherd_release.product_listing USING btree (category, name_key, product_id);


CREATE INDEX product_listing_face ON voucherd_release.product_listing USING btree (face_currency, face_low, product_id);


CREATE INDEX product_listing_name ON voucherd_release.product_listing USING btree (name_key, product_id);


CREATE INDEX product_listing_price ON voucherd_release.product_listing USING btree (price_currency, price_minor, product_id);


CREATE INDEX product_listing_stocked ON voucherd_release.product_listing USING btree (stocked, name_key, product_id);


CREATE INDEX product_listing_words ON voucherd_release.product_listing USING gin (words);


CREATE INDEX reveal_order ON voucherd_release.reveal USING btree (order_id);


CREATE INDEX session_expiry ON voucherd_release.session USING btree (expires_at);


CREATE INDEX session_of_user ON voucherd_release.session USING btree (user_id);


CREATE INDEX throttle_age ON voucherd_release.throttle USING btree (last_at);


CREATE INDEX trail_company ON voucherd_release.trail USING btree (company_id, id) WHERE (company_id IS NOT NULL);


CREATE INDEX upload_age ON voucherd_release.upload USING btree (created_at);


CREATE INDEX waiting_attempt ON voucherd_release.waiting USING btree (attempt_id) WHERE (attempt_id IS NOT NULL);


CREATE INDEX waiting_company ON voucherd_release.waiting USING btree (state, company_id, not_before);


COMMENT ON INDEX voucherd_release.waiting_company IS 'For the console: who waits, and since when.';


CREATE INDEX waiting_deadline ON voucherd_release.waiting USING btree (deadline_at);


CREATE INDEX waiting_for_shelf ON voucherd_release.waiting USING btree (state, product_id, face_minor) WHERE ((supplier_id IS NULL) AND (attempt_id IS NULL) AND (ask_at IS NULL));


CREATE UNIQUE INDEX waiting_order ON voucherd_release.waiting USING btree (order_id, line_from);


CREATE INDEX waiting_pausing ON voucherd_release.waiting USING btree (ask_at) WHERE (ask_at IS NOT NULL);


CREATE INDEX waiting_pausing_for ON voucherd_release.waiting USING btree (state, product_id, face_minor, ask_at) WHERE (ask_at IS NOT NULL);


CREATE INDEX waiting_to_ask ON voucherd_release.waiting USING btree (supplier_id, urgent, company_id, order_id, line_from) WHERE (supplier_id IS NOT NULL);


CREATE INDEX webhook_delivery_age ON voucherd_release.webhook_delivery USING btree (created_at);


CREATE INDEX webhook_delivery_due ON voucherd_release.webhook_delivery USING btree (webhook_id, next_at, event_id) WHERE (status = 0);


CREATE INDEX webhook_delivery_event ON voucherd_release.webhook_delivery USING btree (event_id);


CREATE UNIQUE INDEX webhook_per_order ON voucherd_release.webhook USING btree (company_id, state) WHERE (url IS NULL);


CREATE INDEX webhook_queue_due ON voucherd_release.webhook_queue USING btree (slow, next_at) WHERE (next_at IS NOT NULL);


CREATE TRIGGER api_key_epoch AFTER DELETE OR UPDATE OF company_id, state, scopes, allow_ips, rate_limit, expires_at, revoked_at, hash, spend_order_eur_minor, spend_day_eur_minor ON voucherd_release.api_key FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.bump_access_epoch();


COMMENT ON TRIGGER api_key_epoch ON voucherd_release.api_key IS 'Not on last_used_at, which changes all the time and decides nothing.';


CREATE TRIGGER approval_decided_once BEFORE UPDATE ON voucherd_release.approval FOR EACH ROW WHEN (((old.status <> 0) OR (new.kind <> old.kind) OR (new.company_id <> old.company_id) OR (new.state <> old.state) OR (new.amount_minor <> old.amount_minor) OR (new.currency <> old.currency) OR (new.requested_by <> old.requested_by))) EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER approval_decided_once ON voucherd_release.approval IS 'A decision stays, and nobody turns a request into another one.';


CREATE TRIGGER attempt_forwards BEFORE UPDATE ON voucherd_release.attempt FOR EACH ROW WHEN (((new.fence < old.fence) OR (new.codes < old.codes) OR ((old.status = 3) AND (new.status <> 3)) OR ((old.status = 4) AND (new.status <> ALL (ARRAY[3, 4]))) OR ((old.status <> 0) AND (new.status = 0)))) EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER attempt_forwards ON voucherd_release.attempt IS 'A purchase that succeeded stays so, and an owner that was replaced stays replaced.';


CREATE TRIGGER attempt_line_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.attempt_line FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER attempt_unchanging BEFORE DELETE OR UPDATE OF id, supplier_id, state, product_id, face_minor, sku, quote_id, price_minor, price_max_minor, count, urgent, placed_at OR TRUNCATE ON voucherd_release.attempt FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER backup_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.backup FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER code_append_only BEFORE DELETE OR UPDATE OF lot_id, seq, blind OR TRUNCATE ON voucherd_release.code FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER code_append_only ON voucherd_release.code IS 'Only a rotation of the vault keys seals it anew.';


CREATE TRIGGER code_has_lot AFTER INSERT ON voucherd_release.code REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.guard_codes();


CREATE TRIGGER company_epoch AFTER DELETE OR UPDATE ON voucherd_release.company FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.bump_access_epoch();


CREATE TRIGGER entry_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.entry FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER entry_carry AFTER INSERT ON voucherd_release.entry REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.carry_entries();


CREATE TRIGGER event_append_only BEFORE UPDATE OR TRUNCATE ON voucherd_release.event FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER event_mark_forwards BEFORE UPDATE ON voucherd_release.event_mark FOR EACH ROW WHEN (((new.settled < old.settled) OR (new.removed < old.removed))) EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER fx_margin_epoch_moves AFTER INSERT OR DELETE OR UPDATE ON voucherd_release.fx_margin FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.bump_price_epoch();


CREATE TRIGGER idempotency_answered_once BEFORE UPDATE ON voucherd_release.idempotency FOR EACH ROW WHEN ((((old.answer IS NOT NULL) AND ((current_setting('voucherd.resealing'::text, true) IS DISTINCT FROM 'on'::text) OR (new.answer IS NULL) OR (new.order_id IS DISTINCT FROM old.order_id) OR ((new.request <> old.request) OR (new.began_at <> old.began_at) OR (new.running_until <> old.running_until)))) OR ((old.order_id IS NOT NULL) AND (new.order_id IS DISTINCT FROM old.order_id)))) EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER idempotency_answered_once ON voucherd_release.idempotency IS 'The first answer is the answer for good. A rotation of the vault keys may seal it anew.';


CREATE TRIGGER line_view_has_code AFTER INSERT ON voucherd_release.line_view REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.guard_views();


CREATE TRIGGER line_view_once BEFORE UPDATE ON voucherd_release.line_view FOR EACH ROW WHEN (((new.order_id <> old.order_id) OR (new.line <> old.line) OR (new.link_viewed_at <> old.link_viewed_at) OR ((old.voucher_viewed_at IS NOT NULL) AND (new.voucher_viewed_at IS DISTINCT FROM old.voucher_viewed_at)))) EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER line_view_returned_once BEFORE UPDATE ON voucherd_release.line_view FOR EACH ROW WHEN ((((old.returned_at IS NOT NULL) AND (new.returned_at IS DISTINCT FROM old.returned_at)) OR ((old.link_viewed_at IS NOT NULL) AND (new.link_viewed_at IS NULL)))) EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER line_view_stays BEFORE DELETE OR TRUNCATE ON voucherd_release.line_view FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER lot_bought_once BEFORE UPDATE OF attempt_id, external_id, spare ON voucherd_release.lot FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER lot_forwards BEFORE UPDATE OF cursor ON voucherd_release.lot FOR EACH ROW WHEN ((new.cursor < old.cursor)) EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER lot_forwards ON voucherd_release.lot IS 'A code that was sold is never sold again.';


CREATE TRIGGER lot_key_is_kept AFTER INSERT ON voucherd_release.lot FOR EACH ROW EXECUTE FUNCTION voucherd_release.refuse_retired_key();


CREATE TRIGGER lot_unchanging BEFORE DELETE OR UPDATE OF id, product_id, face_minor, state, generated, supplier, purchase_minor, purchase_currency, purchase_fx_e8, expires_at OR TRUNCATE ON voucherd_release.lot FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER lot_unchanging ON voucherd_release.lot IS 'Processes keep a lot in memory.';


CREATE TRIGGER offer_epoch_moves AFTER INSERT OR DELETE OR UPDATE OF active ON voucherd_release.offer FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.bump_offer_epoch();


CREATE TRIGGER order_webhook_unchanging BEFORE UPDATE OR TRUNCATE ON voucherd_release.order_webhook FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER orders_downloaded_stays BEFORE UPDATE OF downloaded ON voucherd_release.orders FOR EACH ROW WHEN ((old.downloaded AND (NOT new.downloaded))) EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER orders_kept BEFORE DELETE ON voucherd_release.orders FOR EACH ROW WHEN ((old.status <> 0)) EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER orders_kept ON voucherd_release.orders IS 'Only an order that was never confirmed may be removed (OP-40).';


CREATE TRIGGER outcome_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.outcome FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER outcome_guard AFTER INSERT ON voucherd_release.outcome REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.guard_outcomes();


CREATE TRIGGER price_list_company_epoch_moves AFTER INSERT OR DELETE OR UPDATE ON voucherd_release.price_list_company FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.bump_price_epoch();


CREATE TRIGGER product_added AFTER INSERT ON voucherd_release.product REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.relist_products();


CREATE TRIGGER product_change_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.product_change FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER product_changed AFTER UPDATE ON voucherd_release.product REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.relist_products();


CREATE TRIGGER product_version_added AFTER INSERT ON voucherd_release.product_version REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.relist_versions();


CREATE TRIGGER product_version_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.product_version FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER quarantined_code_append_only BEFORE DELETE OR UPDATE OF attempt_id, place, blind, reason, at OR TRUNCATE ON voucherd_release.quarantined_code FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER quarantined_code_append_only ON voucherd_release.quarantined_code IS 'Only a rotation of the vault keys seals it anew.';


CREATE TRIGGER quote_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.quote FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER recovery_code_once BEFORE UPDATE ON voucherd_release.recovery_code FOR EACH ROW WHEN ((old.used_at IS NOT NULL)) EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER reveal_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.reveal FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER spend_forwards BEFORE UPDATE ON voucherd_release.spend FOR EACH ROW WHEN ((new.spent_eur_minor < old.spent_eur_minor)) EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER spend_forwards ON voucherd_release.spend IS 'A refund gives no room back.';


CREATE TRIGGER supplier_epoch_moves AFTER UPDATE OF active ON voucherd_release.supplier FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.bump_offer_epoch();


CREATE TRIGGER totp_forwards BEFORE UPDATE ON voucherd_release.totp FOR EACH ROW WHEN (((new.secret = old.secret) AND (new.last_step < old.last_step))) EXECUTE FUNCTION voucherd_release.refuse_change();


COMMENT ON TRIGGER totp_forwards ON voucherd_release.totp IS 'A code that was used, or an older one, never counts again.';


CREATE TRIGGER trail_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.trail FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER trail_seal_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voucherd_release.trail_seal FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER vault_key_forwards BEFORE UPDATE ON voucherd_release.vault_key FOR EACH ROW WHEN ((((old.active_at IS NOT NULL) AND (new.active_at IS DISTINCT FROM old.active_at)) OR ((old.retired_at IS NOT NULL) AND (new.retired_at IS DISTINCT FROM old.retired_at)))) EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER vault_key_kept BEFORE DELETE OR UPDATE OF version, fingerprint OR TRUNCATE ON voucherd_release.vault_key FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER vault_key_seals_nothing AFTER UPDATE OF retired_at ON voucherd_release.vault_key FOR EACH ROW WHEN (((old.retired_at IS NULL) AND (new.retired_at IS NOT NULL))) EXECUTE FUNCTION voucherd_release.refuse_lost_key();


CREATE TRIGGER vault_master_kept BEFORE DELETE OR TRUNCATE ON voucherd_release.vault_master FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER waiting_once AFTER INSERT ON voucherd_release.waiting REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.guard_waits();


CREATE TRIGGER waiting_one_attempt BEFORE UPDATE OF attempt_id ON voucherd_release.waiting FOR EACH ROW WHEN (((old.attempt_id IS NOT NULL) AND (new.attempt_id IS DISTINCT FROM old.attempt_id))) EXECUTE FUNCTION voucherd_release.guard_attempt_ends();


CREATE TRIGGER wallet_starts_empty BEFORE INSERT ON voucherd_release.wallet FOR EACH ROW WHEN (((new.balance_minor <> 0) OR (new.held_minor <> 0) OR (new.seq <> 0))) EXECUTE FUNCTION voucherd_release.refuse_direct_balance();


CREATE TRIGGER wallet_through_entries BEFORE UPDATE ON voucherd_release.wallet FOR EACH ROW WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION voucherd_release.refuse_direct_balance();


CREATE TRIGGER webhook_attempt_append_only BEFORE UPDATE OR TRUNCATE ON voucherd_release.webhook_attempt FOR EACH STATEMENT EXECUTE FUNCTION voucherd_release.refuse_change();


CREATE TRIGGER webhook_cursor_forwards BEFORE UPDATE ON voucherd_release.webhook_cursor FOR EACH ROW WHEN ((new.upto < old.upto)) EXECUTE FUNCTION voucherd_release.refuse_change();


ALTER TABLE ONLY voucherd_release.account_link
    ADD CONSTRAINT account_link_user_id_fkey FOREIGN KEY (user_id) REFERENCES voucherd_release.app_user(id);


ALTER TABLE ONLY voucherd_release.api_key
    ADD CONSTRAINT api_key_company_id_fkey FOREIGN KEY (company_id) REFERENCES voucherd_release.company(id);


ALTER TABLE ONLY voucherd_release.api_key
    ADD CONSTRAINT api_key_replaced_by_fkey FOREIGN KEY (replaced_by) REFERENCES voucherd_release.api_key(id);


ALTER TABLE ONLY voucherd_release.app_user
    ADD CONSTRAINT app_user_company_id_fkey FOREIGN KEY (company_id) REFERENCES voucherd_release.company(id);


ALTER TABLE ONLY voucherd_release.approval
    ADD CONSTRAINT approval_company_id_fkey FOREIGN KEY (company_id) REFERENCES voucherd_release.company(id);


ALTER TABLE ONLY voucherd_release.approval
    ADD CONSTRAINT approval_decided_by_fkey FOREIGN KEY (decided_by) REFERENCES voucherd_release.app_user(id);


ALTER TABLE ONLY voucherd_release.approval
    ADD CONSTRAINT approval_order_id_fkey FOREIGN KEY (order_id) REFERENCES voucherd_release.orders(id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.approval
    ADD CONSTRAINT approval_requested_by_fkey FOREIGN KEY (requested_by) REFERENCES voucherd_release.app_user(id);


ALTER TABLE ONLY voucherd_release.attempt_line
    ADD CONSTRAINT attempt_line_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES voucherd_release.attempt(id);


ALTER TABLE ONLY voucherd_release.attempt_line
    ADD CONSTRAINT attempt_line_order_id_fkey FOREIGN KEY (order_id) REFERENCES voucherd_release.orders(id);


ALTER TABLE ONLY voucherd_release.attempt
    ADD CONSTRAINT attempt_product_id_fkey FOREIGN KEY (product_id) REFERENCES voucherd_release.product(id);


ALTER TABLE ONLY voucherd_release.attempt
    ADD CONSTRAINT attempt_quote_id_fkey FOREIGN KEY (quote_id) REFERENCES voucherd_release.quote(id);


ALTER TABLE ONLY voucherd_release.attempt
    ADD CONSTRAINT attempt_supplier_id_state_fkey FOREIGN KEY (supplier_id, state) REFERENCES voucherd_release.supplier(id, state);


ALTER TABLE ONLY voucherd_release.brand_logo
    ADD CONSTRAINT brand_logo_brand_id_fkey FOREIGN KEY (brand_id) REFERENCES voucherd_release.brand(id);


ALTER TABLE ONLY voucherd_release.cart_item
    ADD CONSTRAINT cart_item_product_id_fkey FOREIGN KEY (product_id) REFERENCES voucherd_release.product(id);


ALTER TABLE ONLY voucherd_release.cart_item
    ADD CONSTRAINT cart_item_user_id_state_fkey FOREIGN KEY (user_id, state) REFERENCES voucherd_release.cart(user_id, state) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.cart
    ADD CONSTRAINT cart_user_id_fkey FOREIGN KEY (user_id) REFERENCES voucherd_release.app_user(id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.entry
    ADD CONSTRAINT entry_wallet_id_fkey FOREIGN KEY (wallet_id) REFERENCES voucherd_release.wallet(id);


ALTER TABLE ONLY voucherd_release.idempotency
    ADD CONSTRAINT idempotency_company_id_fkey FOREIGN KEY (company_id) REFERENCES voucherd_release.company(id);


ALTER TABLE ONLY voucherd_release.line_view
    ADD CONSTRAINT line_view_order_id_fkey FOREIGN KEY (order_id) REFERENCES voucherd_release.orders(id);


ALTER TABLE ONLY voucherd_release.lot
    ADD CONSTRAINT lot_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES voucherd_release.attempt(id);


ALTER TABLE ONLY voucherd_release.lot
    ADD CONSTRAINT lot_product_id_fkey FOREIGN KEY (product_id) REFERENCES voucherd_release.product(id);


ALTER TABLE ONLY voucherd_release.offer
    ADD CONSTRAINT offer_product_id_fkey FOREIGN KEY (product_id) REFERENCES voucherd_release.product(id);


ALTER TABLE ONLY voucherd_release.offer
    ADD CONSTRAINT offer_quote_id_fkey FOREIGN KEY (quote_id) REFERENCES voucherd_release.quote(id);


ALTER TABLE ONLY voucherd_release.offer
    ADD CONSTRAINT offer_supplier_id_state_fkey FOREIGN KEY (supplier_id, state) REFERENCES voucherd_release.supplier(id, state);


ALTER TABLE ONLY voucherd_release.order_item
    ADD CONSTRAINT order_item_order_id_fkey FOREIGN KEY (order_id) REFERENCES voucherd_release.orders(id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.order_item
    ADD CONSTRAINT order_item_version_id_fkey FOREIGN KEY (version_id) REFERENCES voucherd_release.product_version(id);


ALTER TABLE ONLY voucherd_release.order_pin
    ADD CONSTRAINT order_pin_order_id_fkey FOREIGN KEY (order_id) REFERENCES voucherd_release.orders(id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.order_webhook
    ADD CONSTRAINT order_webhook_order_id_fkey FOREIGN KEY (order_id) REFERENCES voucherd_release.orders(id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.orders
    ADD CONSTRAINT orders_company_id_fkey FOREIGN KEY (company_id) REFERENCES voucherd_release.company(id);


ALTER TABLE ONLY voucherd_release.passkey_challenge
    ADD CONSTRAINT passkey_challenge_user_id_fkey FOREIGN KEY (user_id) REFERENCES voucherd_release.app_user(id);


ALTER TABLE ONLY voucherd_release.passkey
    ADD CONSTRAINT passkey_user_id_fkey FOREIGN KEY (user_id) REFERENCES voucherd_release.app_user(id);


ALTER TABLE ONLY voucherd_release.pin_try
    ADD CONSTRAINT pin_try_order_id_fkey FOREIGN KEY (order_id) REFERENCES voucherd_release.order_pin(order_id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.price_entry
    ADD CONSTRAINT price_entry_brand_id_fkey FOREIGN KEY (brand_id) REFERENCES voucherd_release.brand(id);


ALTER TABLE ONLY voucherd_release.price_entry
    ADD CONSTRAINT price_entry_list_id_fkey FOREIGN KEY (list_id) REFERENCES voucherd_release.price_list(id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.price_entry
    ADD CONSTRAINT price_entry_product_id_fkey FOREIGN KEY (product_id) REFERENCES voucherd_release.product(id);


ALTER TABLE ONLY voucherd_release.price_list_company
    ADD CONSTRAINT price_list_company_company_id_fkey FOREIGN KEY (company_id) REFERENCES voucherd_release.company(id);


ALTER TABLE ONLY voucherd_release.price_list_company
    ADD CONSTRAINT price_list_company_list_id_fkey FOREIGN KEY (list_id) REFERENCES voucherd_release.price_list(id);


ALTER TABLE ONLY voucherd_release.product_change
    ADD CONSTRAINT product_change_product_id_version_id_fkey FOREIGN KEY (product_id, version_id) REFERENCES voucherd_release.product_version(product_id, id);


ALTER TABLE ONLY voucherd_release.product
    ADD CONSTRAINT product_id_version_id_fkey FOREIGN KEY (id, version_id) REFERENCES voucherd_release.product_version(product_id, id) DEFERRABLE INITIALLY DEFERRED;


ALTER TABLE ONLY voucherd_release.product_listing
    ADD CONSTRAINT product_listing_product_id_fkey FOREIGN KEY (product_id) REFERENCES voucherd_release.product(id);


ALTER TABLE ONLY voucherd_release.product_listing
    ADD CONSTRAINT product_listing_product_id_version_id_fkey FOREIGN KEY (product_id, version_id) REFERENCES voucherd_release.product_version(product_id, id);


ALTER TABLE ONLY voucherd_release.product_version
    ADD CONSTRAINT product_version_brand_id_fkey FOREIGN KEY (brand_id) REFERENCES voucherd_release.brand(id);


ALTER TABLE ONLY voucherd_release.product_version
    ADD CONSTRAINT product_version_product_id_fkey FOREIGN KEY (product_id) REFERENCES voucherd_release.product(id) DEFERRABLE INITIALLY DEFERRED;


ALTER TABLE ONLY voucherd_release.quarantined_code
    ADD CONSTRAINT quarantined_code_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES voucherd_release.attempt(id);


ALTER TABLE ONLY voucherd_release.quote
    ADD CONSTRAINT quote_product_id_fkey FOREIGN KEY (product_id) REFERENCES voucherd_release.product(id);


ALTER TABLE ONLY voucherd_release.quote
    ADD CONSTRAINT quote_supplier_id_state_fkey FOREIGN KEY (supplier_id, state) REFERENCES voucherd_release.supplier(id, state);


ALTER TABLE ONLY voucherd_release.recovery_code
    ADD CONSTRAINT recovery_code_user_id_fkey FOREIGN KEY (user_id) REFERENCES voucherd_release.app_user(id);


ALTER TABLE ONLY voucherd_release.session
    ADD CONSTRAINT session_user_id_fkey FOREIGN KEY (user_id) REFERENCES voucherd_release.app_user(id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.spend
    ADD CONSTRAINT spend_company_id_fkey FOREIGN KEY (company_id) REFERENCES voucherd_release.company(id);


ALTER TABLE ONLY voucherd_release.supplier_health
    ADD CONSTRAINT supplier_health_supplier_id_fkey FOREIGN KEY (supplier_id) REFERENCES voucherd_release.supplier(id);


ALTER TABLE ONLY voucherd_release.totp
    ADD CONSTRAINT totp_user_id_fkey FOREIGN KEY (user_id) REFERENCES voucherd_release.app_user(id);


ALTER TABLE ONLY voucherd_release.upload
    ADD CONSTRAINT upload_user_id_fkey FOREIGN KEY (user_id) REFERENCES voucherd_release.app_user(id);


ALTER TABLE ONLY voucherd_release.waiting
    ADD CONSTRAINT waiting_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES voucherd_release.attempt(id);


ALTER TABLE ONLY voucherd_release.waiting
    ADD CONSTRAINT waiting_order_id_fkey FOREIGN KEY (order_id) REFERENCES voucherd_release.orders(id);


ALTER TABLE ONLY voucherd_release.waiting
    ADD CONSTRAINT waiting_supplier_id_fkey FOREIGN KEY (supplier_id) REFERENCES voucherd_release.supplier(id);


ALTER TABLE ONLY voucherd_release.wallet_alert
    ADD CONSTRAINT wallet_alert_wallet_id_fkey FOREIGN KEY (wallet_id) REFERENCES voucherd_release.wallet(id);


ALTER TABLE ONLY voucherd_release.wallet
    ADD CONSTRAINT wallet_company_id_fkey FOREIGN KEY (company_id) REFERENCES voucherd_release.company(id);


ALTER TABLE ONLY voucherd_release.webhook_attempt
    ADD CONSTRAINT webhook_attempt_webhook_id_event_id_fkey FOREIGN KEY (webhook_id, event_id) REFERENCES voucherd_release.webhook_delivery(webhook_id, event_id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.webhook
    ADD CONSTRAINT webhook_company_id_fkey FOREIGN KEY (company_id) REFERENCES voucherd_release.company(id);


ALTER TABLE ONLY voucherd_release.webhook_delivery
    ADD CONSTRAINT webhook_delivery_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES voucherd_release.webhook(id) ON DELETE CASCADE;


ALTER TABLE ONLY voucherd_release.webhook_queue
    ADD CONSTRAINT webhook_queue_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES voucherd_release.webhook(id) ON DELETE CASCADE;


ALTER TABLE voucherd_release.api_key ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.app_user ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.approval ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.attempt_line ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.company ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.entry ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.event ENABLE ROW LEVEL SECURITY;

CREATE POLICY everybody ON voucherd_release.api_key USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.app_user USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.approval USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.attempt_line USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.company USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.entry USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.event USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.idempotency USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.line_view USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.order_item USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.order_pin USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.order_webhook USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.orders USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.outcome USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.pin_try USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.price_list_company USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.reveal USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.spend USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.trail USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.waiting USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.wallet USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.wallet_alert USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.webhook USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.webhook_attempt USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.webhook_delivery USING (true) WITH CHECK (true);


CREATE POLICY everybody ON voucherd_release.webhook_queue USING (true) WITH CHECK (true);


ALTER TABLE voucherd_release.idempotency ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.line_view ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.order_item ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.order_pin ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.order_webhook ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.orders ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.outcome ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.pin_try ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.price_list_company ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.reveal ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.spend ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON voucherd_release.api_key AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.app_user AS RESTRICTIVE TO voucherd_tenant USING ((company_id = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.approval AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.attempt_line AS RESTRICTIVE TO voucherd_tenant USING ((( SELECT o.company_id
   FROM voucherd_release.orders o
  WHERE (o.id = attempt_line.order_id)) = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.company AS RESTRICTIVE TO voucherd_tenant USING ((id = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.entry AS RESTRICTIVE TO voucherd_tenant USING ((wallet_id IN ( SELECT w.id
   FROM voucherd_release.wallet w)));


CREATE POLICY tenant ON voucherd_release.event AS RESTRICTIVE TO voucherd_tenant USING (
CASE
    WHEN (company_id IS NULL) THEN ((type = 'product.updated'::text) AND COALESCE((state = voucherd_release.tenant_state()), true))
    ELSE ((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state()))
END);


CREATE POLICY tenant ON voucherd_release.idempotency AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.line_view AS RESTRICTIVE TO voucherd_tenant USING ((( SELECT o.company_id
   FROM voucherd_release.orders o
  WHERE (o.id = line_view.order_id)) = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.order_item AS RESTRICTIVE TO voucherd_tenant USING ((( SELECT o.company_id
   FROM voucherd_release.orders o
  WHERE (o.id = order_item.order_id)) = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.order_pin AS RESTRICTIVE TO voucherd_tenant USING ((( SELECT o.company_id
   FROM voucherd_release.orders o
  WHERE (o.id = order_pin.order_id)) = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.order_webhook AS RESTRICTIVE TO voucherd_tenant USING ((( SELECT o.company_id
   FROM voucherd_release.orders o
  WHERE (o.id = order_webhook.order_id)) = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.orders AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND ((id & (1)::bigint) = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.outcome AS RESTRICTIVE TO voucherd_tenant USING ((( SELECT o.company_id
   FROM voucherd_release.orders o
  WHERE (o.id = outcome.order_id)) = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.pin_try AS RESTRICTIVE TO voucherd_tenant USING ((( SELECT o.company_id
   FROM voucherd_release.orders o
  WHERE (o.id = pin_try.order_id)) = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.price_list_company AS RESTRICTIVE TO voucherd_tenant USING ((company_id = voucherd_release.tenant_company()));


CREATE POLICY tenant ON voucherd_release.reveal AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.spend AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.trail AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.waiting AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.wallet AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.wallet_alert AS RESTRICTIVE TO voucherd_tenant USING ((wallet_id IN ( SELECT w.id
   FROM voucherd_release.wallet w)));


CREATE POLICY tenant ON voucherd_release.webhook AS RESTRICTIVE TO voucherd_tenant USING (((company_id = voucherd_release.tenant_company()) AND (state = voucherd_release.tenant_state())));


CREATE POLICY tenant ON voucherd_release.webhook_attempt AS RESTRICTIVE TO voucherd_tenant USING ((webhook_id IN ( SELECT w.id
   FROM voucherd_release.webhook w)));


CREATE POLICY tenant ON voucherd_release.webhook_delivery AS RESTRICTIVE TO voucherd_tenant USING ((webhook_id IN ( SELECT w.id
   FROM voucherd_release.webhook w)));


CREATE POLICY tenant ON voucherd_release.webhook_queue AS RESTRICTIVE TO voucherd_tenant USING ((webhook_id IN ( SELECT w.id
   FROM voucherd_release.webhook w)));


ALTER TABLE voucherd_release.trail ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.waiting ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.wallet ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.wallet_alert ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.webhook ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.webhook_attempt ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.webhook_delivery ENABLE ROW LEVEL SECURITY;

ALTER TABLE voucherd_release.webhook_queue ENABLE ROW LEVEL SECURITY;


