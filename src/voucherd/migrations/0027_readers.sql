-- People: the language and the time zone that somebody chose. Whoever chose none gets those of the browser.

ALTER TABLE app_user
    ADD COLUMN language  text CHECK (language ~ '^[a-z]{2}$'),
    ADD COLUMN time_zone text CHECK (length(time_zone) BETWEEN 1 AND 64);
COMMENT ON COLUMN app_user.language IS 'NULL: the language that the browser asks for.';
COMMENT ON COLUMN app_user.time_zone IS 'A name such as Europe/Amsterdam. NULL: the zone that the browser is in.';
COMMENT ON COLUMN session.state IS
    'Of a program that is older: what a page shows is part of its address now.';
