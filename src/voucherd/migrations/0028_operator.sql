-- The operator: a link to set the shop up by, settings that change while it runs, and a first person who is alone.

CREATE TABLE setup_link (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    nonce    bytea NOT NULL CHECK (length(nonce) = 32),
    ends_at  timestamptz NOT NULL
);
COMMENT ON TABLE setup_link IS
    'The only row is the link by which the first person of the operator comes in; its use removes it (OP-150).';
COMMENT ON COLUMN setup_link.nonce IS
    'The token of the link is made of it with the root of the vault, so what is read here opens nothing.';

CREATE TABLE setting (
    name       text PRIMARY KEY CHECK (name ~ '^[a-z][a-z_]{0,59}$'),
    value      text NOT NULL CHECK (length(value) <= 2000),
    changed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE setting IS
    'One row is a setting that the operator has chosen in the console, in place of the one that the program was started '
    'with, or something to remember of setting the shop up. Every process reads all of them each second (OP-152).';
COMMENT ON COLUMN setting.value IS 'As the environment would write it; empty: none, where there may be none.';

CREATE TABLE operator_logo (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    name     text NOT NULL CHECK (name ~ '^[0-9a-f]{32}\.(png|jpg|webp)$'),
    content  bytea NOT NULL CHECK (length(content) BETWEEN 1 AND 102400)
);
COMMENT ON TABLE operator_logo IS 'The only row is the picture that stands for the shop on its pages.';
COMMENT ON COLUMN operator_logo.name IS 'A hash of the picture and its kind, for the address that it is shown at.';

-- Whoever is the operator alone has nobody to agree with, and tops up as a command does.

CREATE OR REPLACE FUNCTION tie_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    owner record;
    deed record;
    agreed bigint;
    alone boolean;
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
    ELSIF deed.actor_kind = 0 THEN
        -- Rows of people stay when they leave, so who has invited a colleague is never alone again.
        alone := EXISTS (SELECT FROM app_user WHERE id = deed.actor_id AND company_id IS NULL)
             AND NOT EXISTS (SELECT FROM app_user WHERE company_id IS NULL AND id <> deed.actor_id);
    END IF;
    IF agreed IS NULL AND (NEW.kind = 6 OR deed.action = 'money.approve'
                           OR (owner.state = 0 AND deed.actor_kind NOT IN (3, 4) AND alone IS NOT TRUE)) THEN
        RAISE EXCEPTION 'this payment needs an approval' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    INSERT INTO payment_deed (wallet_id, seq, trail_id, approval_id) VALUES (NEW.wallet_id, NEW.seq, deed.id, agreed);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION tie_payment IS
    'Ties a top-up or a correction to the row of the trail that tells of it, when the transaction commits. Commands and '
    'the program itself top up by themselves, anybody tops up play money in the sandbox, and the operator''s only person '
    'tops up alone (OP-151); everything else takes an approval of the same payment.';
