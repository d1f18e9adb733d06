-- Events, and who is told of them: an endpoint chooses the format of its messages.

ALTER TABLE webhook ADD COLUMN format text NOT NULL DEFAULT 'standard' CHECK (format IN ('standard', 'classic'));
COMMENT ON COLUMN webhook.format IS 'How an event is written to it (OP-137).';
