-- Operation: how far the audit has come, so that its next run may look at what changed since then.

CREATE TABLE audit_mark (
    name     text PRIMARY KEY,
    at       timestamptz NOT NULL,
    event_id bigint NOT NULL,
    trail_id bigint NOT NULL
);
COMMENT ON TABLE audit_mark IS
    'One row is a check of the audit that found nothing wrong, and how far it had looked. A run of the audit writes all '
    'of them together, and a row of the trail with their hash: marks that somebody moved are not believed.';
COMMENT ON COLUMN audit_mark.at IS 'When the snapshot was taken in which all was well.';
COMMENT ON COLUMN audit_mark.event_id IS 'Every event up to this one was in that snapshot.';
COMMENT ON COLUMN audit_mark.trail_id IS 'The row of the trail that vouches for the marks.';

CREATE TABLE audit_wallet (
    id            bigint PRIMARY KEY,
    seq           bigint NOT NULL,
    balance_minor bigint NOT NULL,
    held_minor    bigint NOT NULL
) WITH (fillfactor = 70);
COMMENT ON TABLE audit_wallet IS
    'One row is a wallet as the last run of the audit that marks found it. The next run adds the entries since, and must '
    'come to what the wallet says.';
COMMENT ON COLUMN audit_wallet.id IS 'Of the wallet.';
