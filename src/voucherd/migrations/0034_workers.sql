-- Workers that say that they are at work, every few seconds. A row that is a day old is removed by the others.
CREATE TABLE worker_seen (
    id         uuid PRIMARY KEY,
    host       text NOT NULL CHECK (length(host) BETWEEN 1 AND 200),
    pid        integer NOT NULL CHECK (pid > 0),
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
);
