-- Payments that people proposed: found by their age, however many orders waited for approval since.

CREATE INDEX CONCURRENTLY IF NOT EXISTS approval_payments ON approval (id DESC) WHERE kind <> 1;
