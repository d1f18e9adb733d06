-- Orders: PINs that are counted for the whole order.

ALTER TABLE order_pin ADD COLUMN digits smallint NOT NULL DEFAULT 4;
ALTER TABLE order_pin ADD CONSTRAINT order_pin_digits_check CHECK (digits BETWEEN 4 AND 12) NOT VALID;
COMMENT ON COLUMN order_pin.digits IS
    'How long the PIN is: the pauses after wrong ones are longer for a short one. The program before does not say it, so '
    'its PINs count as the shortest.';
COMMENT ON TABLE pin_try IS
    'One row counts the wrong PINs at one link since the last right one there. Those of all links of an order count '
    'together, and while one of them is blocked no link of the order opens.';

-- Mail: links whose tokens are not stored.

ALTER TABLE mail ADD COLUMN link bytea;
ALTER TABLE mail ADD CONSTRAINT mail_link_check CHECK (link IS NULL OR (length(link) = 32 AND secret AND ends_at IS NOT NULL)) NOT VALID;
COMMENT ON COLUMN mail.link IS
    'The hash of the account_link that the letter carries. Its token is made when the letter is sent, and stored nowhere.';
COMMENT ON COLUMN mail.secret IS 'The letter opens something; the program before 0.2.0 stored that in its text.';

-- The audit trail: blocks that are keyed.

ALTER TABLE trail_seal ADD COLUMN version smallint NOT NULL DEFAULT 1;
ALTER TABLE trail_seal ADD CONSTRAINT trail_seal_version_check CHECK (version IN (1, 2)) NOT VALID;
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
