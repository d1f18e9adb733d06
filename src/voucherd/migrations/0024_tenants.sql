-- Row-level security, as the second lock. Reads that serve one company take the role voucherd_tenant for one transaction
-- and say which company and state they serve. Under it a query that forgot its condition finds its own rows all the same,
-- and nothing else; and it can change nothing. Everybody else, the service's own user included, is as before.

CREATE FUNCTION tenant_company() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('voucherd.company', true), '')::integer;
CREATE FUNCTION tenant_state() RETURNS smallint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('voucherd.state', true), '')::smallint;

-- The role to take; 'none' where there is none to be had, as on a server that lets this user make no role.
CREATE FUNCTION tenant_role() RETURNS text LANGUAGE sql STABLE
    RETURN CASE WHEN pg_has_role(to_regrole('voucherd_tenant'), 'MEMBER') THEN 'voucherd_tenant' ELSE 'none' END;

-- What a tenant sees of each table that has a company, or belongs to a row that has one. A look at another table is under
-- the policy of that one. An order is found by its key, row by row, because a company may have millions; of wallets and
-- endpoints it has few, so they are looked up once.
CREATE FUNCTION tenant_rules() RETURNS TABLE (relation regclass, rule text) LANGUAGE sql STABLE AS $$
    WITH special (name, rule) AS (VALUES
        ('company', 'id = tenant_company()'),
        ('orders', 'company_id = tenant_company() AND (id & 1) = tenant_state()'),
        -- What is for all has no company; what else has none is the operator's own.
        ('event', 'company_id = tenant_company() AND state = tenant_state()'
                  ' OR company_id IS NULL AND type = ''product.updated'' AND coalesce(state = tenant_state(), true)')
    ), owner (place, name, rule) AS (VALUES
        (1, 'company_id', 'company_id = tenant_company()'),
        (2, 'order_id', '(SELECT o.company_id FROM orders o WHERE o.id = order_id) = tenant_company()'),
        (3, 'wallet_id', 'wallet_id IN (SELECT w.id FROM wallet w)'),
        (4, 'webhook_id', 'webhook_id IN (SELECT w.id FROM webhook w)')
    ), owned AS (
        SELECT c.oid, c.relname, o.place, o.rule,
               bool_or(a.attname = 'state' AND a.atttypid = 'smallint'::regtype) OVER (PARTITION BY c.oid) AS has_state
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        -- An order that need not be there, as of an entry, owns nothing.
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

-- Makes the role if it may, and whatever policies are missing; whether it could. It runs after every migration, so that a
-- table with a company can't be forgotten.
CREATE FUNCTION arrange_tenants() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    one record;
    -- What no company reads for itself: hashes, answers, and the operator's own purchases. Its policy is there all the same.
    hidden text[] := '{app_user,attempt_line,idempotency,order_pin,pin_try}';
    -- What it may read besides: what is for sale, and where the feed of events stands.
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

-- When the last backup was taken, for whoever asks.
CREATE TABLE backup (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now(),
    bytes   bigint NOT NULL CHECK (bytes > 0),
    seconds double precision NOT NULL CHECK (seconds >= 0)
);
CREATE TRIGGER backup_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON backup
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
