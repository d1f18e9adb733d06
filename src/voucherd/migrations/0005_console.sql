-- What the operator looks at. Each index is for a list or a figure whose cost must not grow with the business.

-- Purchases that a person may want to do something about, newest first.
CREATE INDEX attempt_problem ON attempt (placed_at, id)
    WHERE status = 2 OR spare > 0 OR quarantined > 0 OR codes > count OR (status = 3 AND codes < count);
CREATE INDEX attempt_failed ON attempt (placed_at, id) WHERE status = 4;

-- A supplier's statement names its own ids more often than ours.
CREATE INDEX attempt_external ON attempt (supplier_id, external_id) WHERE external_id IS NOT NULL;

-- What people did about a purchase.
CREATE INDEX event_attempt ON event ((data ->> 'attempt'), id)
    WHERE type IN ('attempt.settled', 'attempt.retried', 'attempt.revealed');

-- Who waits, and since when.
CREATE INDEX waiting_company ON waiting (state, company_id, not_before);
