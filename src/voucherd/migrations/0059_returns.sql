-- A code that was taken back: the operator says so, its line tells when, and its link shows it no more. What is paid back
-- for it is another matter, and a movement of its own.
ALTER TABLE line_view ALTER COLUMN link_viewed_at DROP NOT NULL;
ALTER TABLE line_view ADD COLUMN returned_at timestamptz;
ALTER TABLE line_view ADD CONSTRAINT line_view_says_something CHECK (num_nonnulls(link_viewed_at, returned_at) > 0);
ALTER TABLE line_view ADD CONSTRAINT line_view_opened_first CHECK (voucher_viewed_at IS NULL OR link_viewed_at IS NOT NULL);

CREATE TRIGGER line_view_returned_once BEFORE UPDATE ON line_view
    FOR EACH ROW WHEN ((OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at)
                       OR (OLD.link_viewed_at IS NOT NULL AND NEW.link_viewed_at IS NULL))
    EXECUTE FUNCTION refuse_change();
