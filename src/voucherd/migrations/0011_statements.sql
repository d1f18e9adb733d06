-- What integrators ask for after an order: statements of any length, and the codes of an order as a file.

-- Top-ups, refunds and corrections are few among a wallet's orders and holds, and are what people look for. No order
-- and no hold is in here, so Confirm and Resolve don't pay for it.
CREATE INDEX entry_kind ON entry (wallet_id, kind, seq) WHERE kind IN (1, 3, 6);

-- Codes that were handed out as a file stay handed out, and an order without codes has none to hand out (OP-56).
ALTER TABLE orders ADD CONSTRAINT orders_downloaded_has_codes CHECK (NOT downloaded OR lines_finished > 0);
CREATE TRIGGER orders_downloaded_stays BEFORE UPDATE OF downloaded ON orders
    FOR EACH ROW WHEN (OLD.downloaded AND NOT NEW.downloaded) EXECUTE FUNCTION refuse_change();
