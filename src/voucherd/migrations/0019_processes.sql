-- Operation: every process says that it is there, and a request that may be sent again names the one that works on it.

CREATE TABLE process_seen (
    id         uuid PRIMARY KEY,
    host       text NOT NULL CHECK (length(host) BETWEEN 1 AND 200),
    pid        integer NOT NULL CHECK (pid > 0),
    place      text CHECK (length(place) BETWEEN 1 AND 200),
    works      boolean NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
COMMENT ON TABLE process_seen IS
    'One row is a process, of the API or a worker, that says every second that it runs. It takes its row along when it '
    'ends; one that can not is found out by its neighbours on the machine, or by its silence.';
COMMENT ON COLUMN process_seen.place IS
    'Where its number means something: this start of the machine, and the namespace of its processes. NULL: not known.';
COMMENT ON COLUMN process_seen.works IS 'Whether it does the background work.';
COMMENT ON TABLE worker_seen IS
    'One row is a worker of a program before 0.2.0, which says every few seconds that it runs; process_seen took its place.';

ALTER TABLE idempotency
    ADD COLUMN held_by uuid,
    ADD COLUMN fence integer NOT NULL DEFAULT 1;
COMMENT ON COLUMN idempotency.held_by IS
    'The process that works on it: when that one is gone, a repeated call takes over at once. NULL: a program before '
    '0.2.0, which is waited for until running_until.';
COMMENT ON COLUMN idempotency.fence IS
    'How often it was claimed. Who claimed it before changes nothing any more: neither the order, nor the answer.';
COMMENT ON COLUMN idempotency.running_until IS
    'The call that holds it has until then, and moves it on while it works; afterwards a repeated call takes over.';
