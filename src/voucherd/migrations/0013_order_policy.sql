-- Operation: a company's order is looked up by its key, whatever the server knows of the table.

CREATE OR REPLACE FUNCTION tenant_rules() RETURNS TABLE (relation regclass, rule text) LANGUAGE sql STABLE AS $$
    WITH special (name, rule) AS (VALUES
        ('company', 'id = tenant_company()'),
        -- In words that no index knows: an order is looked up by its key. With the company or the state at hand the server
        -- may take the index of companies, which ends in the id, and walk all orders that the company ever made.
        ('orders', 'company_id + 0 = tenant_company() AND id % 2 = tenant_state()'),
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


-- Where there is no role yet there is no policy either: arrange_tenants makes it by the rule above.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_policy WHERE polrelid = 'orders'::regclass AND polname = 'tenant') THEN
        ALTER POLICY tenant ON orders USING (company_id + 0 = tenant_company() AND id % 2 = tenant_state());
    END IF;
END $$;
