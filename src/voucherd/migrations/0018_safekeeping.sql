-- The audit trail: a chain that is keyed, and payments that are tied to it. Beside it, PINs and links that are kept better.

-- PINs that are counted for the whole order.

ALTER TABLE order_pin ADD COLUMN digits smallint NOT NULL DEFAULT 4 CHECK (digits BETWEEN 4 AND 12);
COMMENT ON COLUMN order_pin.digits IS
    'How long the PIN is: the pauses after wrong ones are longer for a short one. The program before does not say it, so '
    'its PINs count as the shortest.';
COMMENT ON TABLE pin_try IS
    'One row counts the wrong PINs at one link since the last right one there. Those of all links of an order count '
    'together, and while one of them is blocked no link of the order opens.';

-- Links whose tokens are not stored.

ALTER TABLE mail ADD COLUMN link bytea CHECK (length(link) = 32);
COMMENT ON COLUMN mail.link IS
    'The hash of the account_link that the letter carries. Its token is made when the letter is sent, and stored nowhere.';
COMMENT ON COLUMN mail.secret IS 'The letter opens something; the program before 0.2.0 stored that in its text.';

-- Blocks that are keyed.

ALTER TABLE trail_seal ADD COLUMN version smallint NOT NULL DEFAULT 1 CHECK (version IN (1, 2));
COMMENT ON COLUMN trail_seal.version IS
    '1: its hash is a plain one, of a program before 0.2.0; 2: keyed with the key of the vault, so that somebody with the '
    'database alone can not make it.';
CREATE FUNCTION guard_seals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM trail_seal WHERE book = NEW.book AND block = NEW.block - 1 AND version > NEW.version) THEN
        RAISE EXCEPTION 'a block without a key can not follow one with a key' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER trail_seal_stays_keyed BEFORE INSERT ON trail_seal FOR EACH ROW EXECUTE FUNCTION guard_seals();
COMMENT ON FUNCTION guard_seals IS
    'Refuses a block that the program before makes behind a keyed one: its worker leaves the sealing to a newer one.';

-- Payments that are tied to what was written down about them.

CREATE TABLE payment_deed (
    wallet_id   bigint NOT NULL,
    seq         bigint NOT NULL,
    trail_id    bigint UNIQUE REFERENCES trail,
    approval_id bigint UNIQUE REFERENCES approval,
    PRIMARY KEY (wallet_id, seq),
    FOREIGN KEY (wallet_id, seq) REFERENCES entry
);
CREATE TRIGGER payment_deed_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON payment_deed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE payment_deed IS
    'One row ties a top-up or a correction to its row of the trail and, where a second person had to agree, to the '
    'approval. The database writes it when the payment commits, and refuses a payment that has neither.';
COMMENT ON COLUMN payment_deed.trail_id IS 'NULL for payments from before this table was there.';

CREATE FUNCTION tie_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    owner record;
    deed record;
    agreed bigint;
BEGIN
    SELECT * INTO owner FROM wallet WHERE id = NEW.wallet_id;
    -- Written in this transaction, and not used for another payment of it.
    SELECT * INTO deed FROM trail t
    WHERE t.company_id = owner.company_id AND t.state = owner.state AND t.at = now()
      AND t.action IN ('wallet.top-up', 'money.approve') AND t.detail ->> 'reference' = NEW.reference
      AND split_part(t.detail ->> 'amount', ' ', 2) = owner.currency
      AND regexp_replace(replace(split_part(t.detail ->> 'amount', ' ', 1), '.', ''), '^(-?)0+(?=[0-9])', '\1')
          = NEW.amount_minor::text
      AND NOT EXISTS (SELECT FROM payment_deed used WHERE used.trail_id = t.id)
    ORDER BY t.company_id DESC, t.id DESC LIMIT 1;
    IF deed.id IS NULL THEN
        RAISE EXCEPTION 'a payment needs its row of the trail' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF deed.action = 'money.approve' THEN
        SELECT a.id INTO agreed FROM approval a
        WHERE a.id = substring(deed.subject FROM '^payment ([0-9]{1,18})$')::bigint AND a.status = 1
          AND a.kind = CASE NEW.kind WHEN 1 THEN 2 ELSE 3 END AND a.company_id = owner.company_id AND a.state = owner.state
          AND a.currency = owner.currency AND a.amount_minor = NEW.amount_minor AND a.reference = NEW.reference;
    END IF;
    IF agreed IS NULL AND (NEW.kind = 6 OR deed.action = 'money.approve' OR deed.actor_kind NOT IN (3, 4)) THEN
        RAISE EXCEPTION 'this payment needs an approval' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    INSERT INTO payment_deed (wallet_id, seq, trail_id, approval_id) VALUES (NEW.wallet_id, NEW.seq, deed.id, agreed);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER entry_payment_tied AFTER INSERT ON entry DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.kind IN (1, 6)) EXECUTE FUNCTION tie_payment();
COMMENT ON FUNCTION tie_payment IS
    'Ties a top-up or a correction to the row of the trail that tells of it, when the transaction commits. Commands and '
    'the program itself top up by themselves; everything else takes an approval of the same payment.';

-- The trigger has locked the table, so no payment comes between.
INSERT INTO payment_deed (wallet_id, seq) SELECT wallet_id, seq FROM entry WHERE kind IN (1, 6);
CREATE TRIGGER payment_deed_told BEFORE INSERT ON payment_deed
    FOR EACH ROW WHEN (NEW.trail_id IS NULL) EXECUTE FUNCTION refuse_change();

-- The role of the service, which owns nothing.

CREATE FUNCTION arrange_service() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF to_regrole('voucherd_service') IS NULL OR pg_has_role('voucherd_service', current_user, 'MEMBER') THEN
        RETURN false;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO voucherd_service', current_schema());
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO voucherd_service', current_schema());
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO voucherd_service', current_schema());
    REVOKE INSERT, UPDATE, DELETE ON schema_migration FROM voucherd_service;
    RETURN true;
END $$;
COMMENT ON FUNCTION arrange_service IS
    'Lets the role voucherd_service read and write rows, where there is one; it can alter no table and switch off no '
    'guard. It runs after every migration, so that a new table can not be forgotten.';
