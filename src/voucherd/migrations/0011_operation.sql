-- Operation: the second lock between companies, and what the operator sees of the running service.
--
-- Row-level security is the second lock. Reads that serve one company take the role voucherd_tenant for one transaction
-- and say which company and state they serve. Under it a query that forgot its condition finds only the rows of that
-- company, and can change nothing. The user of the service itself is not restricted (docs/decisions/0024).

CREATE FUNCTION tenant_company() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('voucherd.company', true), '')::integer;
CREATE FUNCTION tenant_state() RETURNS smallint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('voucherd.state', true), '')::smallint;
CREATE FUNCTION tenant_role() RETURNS text LANGUAGE sql STABLE
    RETURN CASE WHEN pg_has_role(to_regrole('voucherd_tenant'), 'MEMBER') THEN 'voucherd_tenant' ELSE 'none' END;
COMMENT ON FUNCTION tenant_company IS 'The company that the transaction serves.';
COMMENT ON FUNCTION tenant_state IS 'The state that the transaction serves.';
COMMENT ON FUNCTION tenant_role IS
    'The role to take; `none` where there is none, as on a server that lets this user make no role.';

CREATE FUNCTION tenant_rules() RETURNS TABLE (relation regclass, rule text) LANGUAGE sql STABLE AS $$
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
COMMENT ON FUNCTION tenant_rules IS
    'The condition under which a company sees a row, for each table that has a company or belongs to a row that has one. '
    'A condition that reads another table is under the policy of that one. An order is found by its key, row by row, '
    'because a company may have millions; of wallets and endpoints it has few, so they are looked up once.';

CREATE FUNCTION arrange_tenants() RETURNS boolean LANGUAGE plpgsql AS $$
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
COMMENT ON FUNCTION arrange_tenants IS
    'Makes the role if this user may, and the policies and rights that are missing; returns whether it could. It runs '
    'after every migration, so that a table with a company can not be forgotten.';

CREATE TABLE sweep (
    name text PRIMARY KEY,
    upto timestamptz NOT NULL
);
COMMENT ON TABLE sweep IS 'One row says how far a periodic task of the worker has come.';

CREATE TABLE worker_seen (
    id         uuid PRIMARY KEY,
    host       text NOT NULL CHECK (length(host) BETWEEN 1 AND 200),
    pid        integer NOT NULL CHECK (pid > 0),
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE worker_seen IS
    'One row is a worker that says every few seconds that it runs. The others remove a row that is a day old.';

CREATE TABLE backup (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now(),
    bytes   bigint NOT NULL CHECK (bytes > 0),
    seconds double precision NOT NULL CHECK (seconds >= 0)
);
CREATE TRIGGER backup_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON backup
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE backup IS 'One row is a backup that was taken.';

-- The program makes this table before the first migration, and writes a row with each.
COMMENT ON TABLE schema_migration IS 'One row is a migration that ran; a file that changed afterwards is refused.';
