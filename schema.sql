-- The whole schema, for reading: what src/voucherd/migrations/ makes, without the rows that they put in. `make schema`
-- writes this file from a migrated database; tests prove that it is current and that it makes the same schema.
--
-- Money is a bigint of minor units beside its currency, a rate is a bigint of 1e-8 (`…_e8`), a share is an integer of
-- basis points (`…_bp`). `state` is 0 for live and 1 for the sandbox, and the lowest bit of every id of an order, a
-- wallet, a lot and a quote. "Companies read" names the row-level security under which reads for one company run.


-- ── Migrations ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is a migration that ran; a file that changed afterwards is refused.
CREATE TABLE schema_migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);


-- ── Companies and their API keys ─────────────────────────────────────────────────────────────────────────────────────

-- The one guard of append-only tables: each trigger names the changes that it refuses.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

-- One row is a customer: it holds wallets, keys and people, and everything it buys is its own.
-- Companies read: id = tenant_company().
CREATE TABLE company (
    id                     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name                   text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
    country                text NOT NULL CHECK (country ~ '^[A-Z]{2}$'),
    vat_number             text CHECK (length(vat_number) BETWEEN 4 AND 20),
    -- False: nobody of it can sign in, and no key of it can order.
    active                 boolean NOT NULL DEFAULT true,
    -- The operator has checked who it is; until then Confirm and Resolve are refused.
    verified               boolean NOT NULL DEFAULT false,
    expose_costs           boolean NOT NULL DEFAULT true,  -- Its orders show the purchase prices of their offers.
    created_at             timestamptz NOT NULL DEFAULT now(),
    -- The most that one order may cost, at the rate that Create fixed.
    spend_order_eur_minor  bigint CHECK (spend_order_eur_minor > 0),
    -- The most that all orders of one day (UTC) may cost together.
    spend_day_eur_minor    bigint CHECK (spend_day_eur_minor > 0),
    second_factor          boolean NOT NULL DEFAULT false,  -- Its people must sign in with a second factor.
    -- Orders of the portal from this worth on need a second person.
    approve_from_eur_minor bigint CHECK (approve_from_eur_minor > 0)
);
-- Orders name companies.
CREATE TRIGGER company_stays BEFORE DELETE OR UPDATE OF id OR TRUNCATE ON company
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is a bearer key of a company for one state. Only its hash is kept.
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE api_key (
    id                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id            integer NOT NULL REFERENCES company(id),
    state                 smallint NOT NULL CHECK (state IN (0, 1)),
    prefix                text NOT NULL,  -- The first characters of the key, for people to tell keys apart.
    hash                  bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    description           text NOT NULL DEFAULT '' CHECK (length(description) <= 200),
    scopes                text[] NOT NULL,
    allow_ips             cidr[] NOT NULL DEFAULT '{}'::cidr[],  -- The networks that may use it. Empty: all.
    rate_limit            integer NOT NULL DEFAULT 600 CHECK (rate_limit > 0),  -- Requests per minute.
    expires_at            timestamptz,
    revoked_at            timestamptz,
    replaced_by           bigint REFERENCES api_key(id),  -- The key that a rotation made in its place.
    created_at            timestamptz NOT NULL DEFAULT now(),
    last_used_at          timestamptz,
    spend_order_eur_minor bigint CHECK (spend_order_eur_minor > 0),  -- As of the company; the lower of both holds.
    spend_day_eur_minor   bigint CHECK (spend_day_eur_minor > 0),
    -- The person who answers for it: it reaches no further than this person does now. NULL: the operator does, and for keys
    -- that are older than this column.
    made_by               bigint,
    -- The role that this person has now, empty for one who is not active; kept in step by triggers, so that a key is judged
    -- by its own row alone.
    maker_role            text,
    parent_id             bigint REFERENCES api_key(id),  -- The key that it was made with; it ends when that one ends.
    -- The first of the keys that rotations made of one another; NULL for that one itself. All of them share one counter of
    -- the spending of a day.
    first_id              bigint,
    -- The rule of the company about a second person does not bind it.
    confirms_alone        boolean NOT NULL DEFAULT false
);
CREATE INDEX api_key_company ON api_key (company_id);

-- The only row is a counter that grows with every change of who may do what. Every process keeps keys in memory and
-- reads this row to learn that they changed.
CREATE TABLE access_epoch (
    only_row boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    epoch    bigint NOT NULL
);

-- Tells every process that the keys and companies it remembers are old.
CREATE FUNCTION bump_access_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE access_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER company_epoch AFTER DELETE OR UPDATE ON company
    FOR EACH STATEMENT EXECUTE FUNCTION bump_access_epoch();
-- Not on last_used_at, which changes all the time and decides nothing.
CREATE TRIGGER api_key_epoch AFTER DELETE OR UPDATE OF company_id, state, scopes, allow_ips, rate_limit,
    expires_at, revoked_at, hash, spend_order_eur_minor, spend_day_eur_minor, made_by, parent_id, first_id,
    confirms_alone ON api_key
    FOR EACH STATEMENT EXECUTE FUNCTION bump_access_epoch();

-- One row says how many requests of a key are lent to processes in the present minute of the key (OP-27). A process
-- borrows some requests at a time and counts them down in memory, so a request writes nothing. All loans together never
-- exceed the quota. Unlogged: after a crash of the database every key begins a new minute.
CREATE UNLOGGED TABLE rate_window (
    key_id bigint PRIMARY KEY,  -- No foreign key: it would lock the row of the key and make the write a logged one.
    number bigint NOT NULL DEFAULT 0,  -- Which minute since 1970, shifted per key so that not all keys turn at once.
    lent   integer NOT NULL DEFAULT 0,  -- In that minute.
    before integer NOT NULL DEFAULT 0,  -- In the minute before it.
    CONSTRAINT rate_window_counts CHECK (lent >= 0 AND before >= 0)
) WITH (fillfactor=50);

-- Lends each key as many requests as it wants and may have, and takes back those that were not used in the minute
-- `back_numbers`. The window slides: the minute before counts for the part of it that lies within the last sixty
-- seconds. When little is left, an eighth of it is lent at a time, so that no process keeps what others need. The clock
-- is that of the database; `moment` is for tests.
CREATE FUNCTION lend_requests(keys bigint[], quotas integer[], wanted integer[], back integer[], back_numbers
    bigint[], moment timestamptz DEFAULT NULL::timestamptz) RETURNS TABLE(key_id bigint, number bigint, given
    integer, lent integer, before integer, left_ms bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now_ms bigint;
BEGIN
    INSERT INTO rate_window (key_id) SELECT k FROM unnest(keys) AS k ORDER BY k ON CONFLICT DO NOTHING;
    -- In the order of their keys, so that two processes never wait for each other.
    PERFORM FROM rate_window r WHERE r.key_id = ANY (keys) ORDER BY r.key_id FOR UPDATE;
    now_ms := floor(extract(epoch FROM coalesce(moment, clock_timestamp())) * 1000);
    RETURN QUERY
    WITH asked AS (
        SELECT r.key_id, a.quota, a.want, a.back, a.back_number, r.lent, r.before, r.number AS old_number,
               -- A clock that is set back does not lend a minute twice.
               greatest(r.number, (now_ms + a.key_id * 7919 % 60000) / 60000) AS number,
               now_ms + a.key_id * 7919 % 60000 AS own_ms
        FROM unnest(keys, quotas, wanted, back, back_numbers) AS a (key_id, quota, want, back, back_number)
        JOIN rate_window r ON r.key_id = a.key_id
    ), turned AS (
        SELECT a.key_id, a.quota, a.want, a.number, (a.number + 1) * 60000 - a.own_ms AS left_ms,
               CASE WHEN a.number > a.old_number THEN 0
                    ELSE greatest(0, a.lent - CASE WHEN a.back_number = a.number THEN a.back ELSE 0 END) END AS lent,
               greatest(0, CASE a.number - a.old_number WHEN 0 THEN a.before WHEN 1 THEN a.lent ELSE 0 END
                           - CASE WHEN a.back_number = a.number - 1 THEN a.back ELSE 0 END) AS before
        FROM asked a
    ), free AS (
        SELECT t.*, t.quota - t.lent - (t.before * least(t.left_ms, 60000) / 60000)::integer AS free FROM turned t
    ), loans AS (
        SELECT f.*, greatest(0, least(f.want, f.free, greatest(1, f.free / 8))) AS given FROM free f
    )
    UPDATE rate_window r SET number = l.number, lent = l.lent + l.given, before = l.before
    FROM loans l WHERE r.key_id = l.key_id
    RETURNING l.key_id, l.number, l.given, r.lent, r.before, l.left_ms;
END $$;

-- One row is what a company or a key has spent in one day (UTC); only those with a daily limit have rows. An order
-- counts when it is finalised, whatever becomes of it: a stolen key that cancels and buys again must not get round the
-- limit. Locked after wallets and before lots.
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE spend (
    company_id      integer NOT NULL REFERENCES company(id),
    key_id          bigint NOT NULL CHECK (key_id >= 0),  -- 0: the company as a whole.
    state           smallint NOT NULL CHECK (state IN (0, 1)),
    day             date NOT NULL,
    spent_eur_minor bigint NOT NULL DEFAULT 0 CHECK (spent_eur_minor >= 0),
    PRIMARY KEY (company_id, key_id, state, day)
) WITH (fillfactor=50);
-- A refund gives no room back.
CREATE TRIGGER spend_forwards BEFORE UPDATE ON spend
    FOR EACH ROW WHEN (new.spent_eur_minor < old.spent_eur_minor) EXECUTE FUNCTION refuse_change();

-- One row is a request that carried an Idempotency-Key, kept for 30 days (OP-28).
-- Companies read none of it.
CREATE TABLE idempotency (
    company_id    integer NOT NULL REFERENCES company(id),
    state         smallint NOT NULL CHECK (state IN (0, 1)),
    key           bytea NOT NULL CHECK (length(key) = 32),  -- A hash of the header.
    -- A hash of the request: the same key with another request is refused.
    request       bytea NOT NULL CHECK (length(request) = 32),
    began_at      timestamptz NOT NULL DEFAULT now(),
    -- The call that holds it has until then, and moves it on while it works; afterwards a repeated call takes over.
    running_until timestamptz NOT NULL,
    -- The order that the request changed, written in the transaction that changed it: a row without an answer tells by this
    -- whether something happened.
    order_id      bigint,
    answer        bytea,  -- Sealed. A voucher code is never in it: codes are read from the vault again.
    -- The API key that asked, or the first of those that rotations made of one another: another key that sends the same
    -- header has a row of its own. NULL: from before this was kept.
    asked_by      bigint,
    -- The process that works on it: when that one is gone, a repeated call takes over at once. NULL: a program before
    -- 0.2.0, which is waited for until running_until.
    held_by       uuid,
    -- How often it was claimed. Who claimed it before changes nothing any more: neither the order, nor the answer.
    fence         integer NOT NULL DEFAULT 1,
    PRIMARY KEY (company_id, state, key),
    CONSTRAINT idempotency_same_state CHECK ((order_id & 1) = state)
) WITH (fillfactor=60);
CREATE INDEX idempotency_age ON idempotency (began_at);
-- The first answer is the answer for good. A rotation of the vault keys may seal it anew.
CREATE TRIGGER idempotency_answered_once BEFORE UPDATE ON idempotency
    FOR EACH ROW WHEN (old.answer IS NOT NULL AND (current_setting('voucherd.resealing', true) IS DISTINCT FROM
        'on' OR new.answer IS NULL OR new.order_id IS DISTINCT FROM old.order_id OR new.request <> old.request OR
        new.began_at <> old.began_at OR new.running_until <> old.running_until) OR old.order_id IS NOT NULL AND
        new.order_id IS DISTINCT FROM old.order_id) EXECUTE FUNCTION refuse_change();


-- ── People ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is a person who signs in: to the portal of a company, or to the console.
-- Companies read none of it.
CREATE TABLE app_user (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text NOT NULL UNIQUE CHECK (email = lower(email) AND length(email) <= 254),
    company_id    integer REFERENCES company(id),  -- NULL: one of the people of the operator.
    role          text NOT NULL,
    password_hash text,  -- NULL: was invited and has chosen no password yet.
    created_at    timestamptz NOT NULL DEFAULT now(),
    active        boolean NOT NULL DEFAULT true,
    name          text NOT NULL DEFAULT '' CHECK (length(name) <= 200),
    -- Until then the person approves nothing, and whoever let it in does not approve what it asks for.
    rests_until   timestamptz NOT NULL DEFAULT now() + '24:00:00'::interval,
    rests_by      bigint REFERENCES app_user(id),  -- The person who let this one in; NULL: the command line.
    -- An address that has an account elsewhere was invited: the row keeps its place, and nobody ever signs in by it.
    invited_as    text CHECK (invited_as = lower(invited_as) AND length(invited_as) <= 254),
    language      text CHECK (language ~ '^[a-z]{2}$'),  -- NULL: the language that the browser asks for.
    -- A name such as Europe/Amsterdam. NULL: the zone that the browser is in.
    time_zone     text CHECK (length(time_zone) BETWEEN 1 AND 64),
    CHECK (role = ANY (CASE
        WHEN company_id IS NULL THEN ARRAY['admin', 'support', 'stock', 'finance']
        ELSE ARRAY['owner', 'buyer', 'finance', 'viewer', 'developer']
    END))
);
ALTER TABLE api_key ADD FOREIGN KEY (made_by) REFERENCES app_user(id);

-- One row is a browser in which a person is signed in.
CREATE TABLE session (
    key        bytea PRIMARY KEY CHECK (length(key) = 32),  -- The hash of a token that only the browser has.
    user_id    bigint NOT NULL REFERENCES app_user(id) ON DELETE CASCADE,
    -- Of a program that is older: what a page shows is part of its address now.
    state      smallint NOT NULL DEFAULT 0 CHECK (state IN (0, 1)),
    csrf       bytea NOT NULL CHECK (length(csrf) = 32),  -- Every form of the session must send it back.
    pending    boolean NOT NULL DEFAULT false,  -- The password was right, the second factor is still wanted.
    strong_at  timestamptz,  -- When a second factor was given last.
    flash      text CHECK (length(flash) <= 500),  -- A sentence that the next page shows once.
    flash_kind text CHECK (flash_kind IN ('good', 'bad', 'note')),
    address    text NOT NULL CHECK (length(address) <= 100),
    agent      text NOT NULL CHECK (length(agent) <= 300),
    created_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    CONSTRAINT session_flash_has_kind CHECK ((flash IS NULL) = (flash_kind IS NULL)),
    CONSTRAINT session_lasts CHECK (expires_at > created_at),
    CONSTRAINT session_pending_is_weak CHECK (NOT pending OR strong_at IS NULL)
);
CREATE INDEX session_expiry ON session (expires_at);
CREATE INDEX session_of_user ON session (user_id);

-- One row is the authenticator app of a person: the second factor by six digits.
CREATE TABLE totp (
    user_id      bigint PRIMARY KEY REFERENCES app_user(id),
    secret       bytea NOT NULL,  -- Sealed.
    confirmed_at timestamptz,  -- It counts from the first right code on.
    last_step    bigint NOT NULL DEFAULT 0 CHECK (last_step >= 0)  -- The time step of the last code that was used.
);
-- A code that was used, or an older one, never counts again.
CREATE TRIGGER totp_forwards BEFORE UPDATE ON totp
    FOR EACH ROW WHEN (new.secret = old.secret AND new.last_step < old.last_step) EXECUTE FUNCTION refuse_change();

-- One row is a code on paper that replaces the second factor once.
CREATE TABLE recovery_code (
    user_id bigint NOT NULL REFERENCES app_user(id),
    hash    bytea NOT NULL CHECK (length(hash) = 32),
    used_at timestamptz,
    PRIMARY KEY (user_id, hash)
);
CREATE TRIGGER recovery_code_once BEFORE UPDATE ON recovery_code
    FOR EACH ROW WHEN (old.used_at IS NOT NULL) EXECUTE FUNCTION refuse_change();

-- One row is a passkey (WebAuthn) of a person.
CREATE TABLE passkey (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id    bigint NOT NULL REFERENCES app_user(id),
    credential bytea NOT NULL UNIQUE CHECK (length(credential) BETWEEN 1 AND 1023),
    public_key bytea NOT NULL CHECK (length(public_key) BETWEEN 1 AND 2000),
    sign_count bigint NOT NULL CHECK (sign_count >= 0),  -- As the device counts; a lower count tells of a copy.
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
    created_at timestamptz NOT NULL DEFAULT now(),
    used_at    timestamptz
);
CREATE INDEX passkey_user ON passkey (user_id);

-- One row is a challenge that a passkey is to sign; the answer removes it.
CREATE TABLE passkey_challenge (
    hash    bytea PRIMARY KEY CHECK (length(hash) = 32),
    user_id bigint REFERENCES app_user(id),  -- NULL: for a sign-in, when the person is not known yet.
    -- Where it was asked for: one network can have so many open at a time.
    network text NOT NULL CHECK (length(network) BETWEEN 1 AND 50),
    ends_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenge_age ON passkey_challenge (ends_at);
CREATE INDEX passkey_challenge_network ON passkey_challenge (network, ends_at);

-- One row is a link for one use that was mailed to a person; its use removes it.
CREATE TABLE account_link (
    hash    bytea PRIMARY KEY CHECK (length(hash) = 32),
    user_id bigint NOT NULL REFERENCES app_user(id),
    kind    text NOT NULL CHECK (kind IN ('reset', 'invitation')),
    ends_at timestamptz NOT NULL
);
CREATE INDEX account_link_age ON account_link (ends_at);
CREATE INDEX account_link_user ON account_link (user_id);

-- One row is an address for which somebody wants a new password. The worker looks up later whose it is, so that the
-- answer takes equally long for an address that nobody has.
CREATE TABLE reset_request (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email text NOT NULL CHECK (length(email) BETWEEN 1 AND 254)
);

-- One row counts how often something was tried in vain, such as a password from one network.
CREATE TABLE throttle (
    key      bytea PRIMARY KEY CHECK (length(key) = 32),  -- A hash of who tried and from where.
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    last_at  timestamptz NOT NULL DEFAULT now(),
    until    timestamptz NOT NULL DEFAULT now()  -- Every try before this is refused unseen.
) WITH (fillfactor=70);
CREATE INDEX throttle_age ON throttle (last_at);

-- One row is a looser rule about second persons that a company waits for; the worker puts it into force.
-- Companies read: company_id = tenant_company().
CREATE TABLE rule_change (
    company_id             integer PRIMARY KEY REFERENCES company(id),
    approve_from_eur_minor bigint CHECK (approve_from_eur_minor > 0),  -- NULL: no order needs a second person then.
    asked_by               bigint NOT NULL REFERENCES app_user(id),
    asked_at               timestamptz NOT NULL DEFAULT now(),
    holds_from             timestamptz NOT NULL DEFAULT now() + '24:00:00'::interval,
    CONSTRAINT rule_change_rests CHECK (holds_from >= (asked_at + '24:00:00'::interval))
);

-- Refuses a yes by, or to, a person who is not known for a day.
CREATE FUNCTION refuse_resting_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM app_user u WHERE u.rests_until > now()
               AND (u.id = NEW.decided_by OR u.id = NEW.requested_by AND u.rests_by = NEW.decided_by)) THEN
        RAISE EXCEPTION 'somebody who rests is no second person' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;


-- ── The catalogue ────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is the maker of some products.
-- Companies read all of it.
CREATE TABLE brand (
    id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(slug) <= 100),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200)
);

-- One row is the logo of a brand, small enough to be kept here: pages show no picture of another host.
CREATE TABLE brand_logo (
    brand_id integer PRIMARY KEY REFERENCES brand(id),
    name     text NOT NULL CHECK (name ~ '^[0-9a-f]{32}\.(png|jpg|webp)$'),  -- A hash of the content, and its kind.
    content  bytea NOT NULL CHECK (length(content) BETWEEN 1 AND 102400),
    set_at   timestamptz NOT NULL DEFAULT now()
);
-- Not unique: two brands may share a picture.
CREATE INDEX brand_logo_name ON brand_logo (name);

-- One row is a product: a name for its newest version.
-- Companies read all of it.
CREATE TABLE product (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug       text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(slug) <= 100),
    active     boolean NOT NULL DEFAULT true,  -- It is for sale.
    version_id integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    allow_loss boolean NOT NULL DEFAULT false  -- It may be sold below its purchase price.
);
-- They are few, and the operator sees them among the others.
CREATE INDEX product_not_for_sale ON product (slug) WHERE NOT active;

-- One row is a product as it was from some moment on. It never changes, so an order can point at the one that it was
-- priced with, and a process can keep it in memory for ever.
-- Companies read all of it.
CREATE TABLE product_version (
    id                  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id          integer NOT NULL REFERENCES product(id) DEFERRABLE INITIALLY DEFERRED,
    brand_id            integer NOT NULL REFERENCES brand(id),
    name                text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    product_type        text NOT NULL CHECK (product_type IN ('giftcard', 'gamecard', 'topup', 'paymentcard',
                       'subscription')),
    category            text NOT NULL CHECK (category ~ '^[a-z0-9]+(-[a-z0-9]+)*$'),
    redeem_type         text NOT NULL CHECK (redeem_type IN ('currency', 'product', 'subscription')),
    region              text NOT NULL CHECK (length(region) BETWEEN 2 AND 20),
    vat_category        text NOT NULL CHECK (vat_category IN ('single_purpose', 'multi_purpose', 'exempt')),
    async_delivery      boolean NOT NULL,  -- An order may wait for it after Confirm has answered.
    incentive           boolean NOT NULL DEFAULT false,
    face_currency       text NOT NULL CHECK (face_currency ~ '^[A-Z]{3}$'),
    -- A fixed face value; NULL: any from face_min_minor to face_max_minor.
    face_minor          bigint CHECK (face_minor > 0),
    face_min_minor      bigint CHECK (face_min_minor > 0),
    face_max_minor      bigint,
    -- A fixed price; NULL: the face value times fee_variable_e8 plus fee_fixed_minor.
    price_minor         bigint CHECK (price_minor > 0),
    price_currency      text CHECK (price_currency ~ '^[A-Z]{3}$'),
    fee_variable_e8     bigint CHECK (fee_variable_e8 > 0),
    fee_fixed_minor     bigint CHECK (fee_fixed_minor >= 0),
    created_at          timestamptz NOT NULL DEFAULT now(),
    redeem_instructions text CHECK (length(redeem_instructions) BETWEEN 1 AND 4000),
    terms               text CHECK (length(terms) BETWEEN 1 AND 20000),
    image_url           text CHECK (image_url ~ '^https://' AND length(image_url) <= 500),
    UNIQUE (product_id, id),
    CHECK (face_max_minor >= face_min_minor),
    -- A fixed face value, or a range (OP-51).
    CHECK (((num_nonnulls(face_minor) + num_nonnulls(face_min_minor, face_max_minor)) IN (1, 2)) AND (face_minor IS
        NULL) = (face_min_minor IS NOT NULL) AND (face_min_minor IS NULL) = (face_max_minor IS NULL)),
    -- A fixed price, or a fee; a product with a range always has the fee (OP-51).
    CHECK ((price_minor IS NULL) = (price_currency IS NULL) AND (fee_variable_e8 IS NULL) = (fee_fixed_minor IS NULL)
        AND (price_minor IS NULL) <> (fee_variable_e8 IS NULL) AND (face_minor IS NOT NULL OR fee_variable_e8 IS NOT
        NULL))
);
CREATE TRIGGER product_version_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON product_version
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE product ADD FOREIGN KEY (id, version_id) REFERENCES product_version(product_id, id) DEFERRABLE
INITIALLY DEFERRED;

-- The text without accents and in lower case: names are compared and searched in this form, the same on every server.
CREATE FUNCTION folded(words text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN lower(regexp_replace(NORMALIZE(words, NFKD), '[\u0300-\u036f]+'::text, ''::text, 'g'::text));

-- The folded words of a text, as the search compares them.
CREATE FUNCTION words_of(text text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN array_to_tsvector(array_remove(regexp_split_to_array(folded(text), '[\u0001-/:-@\[-`{-\u007f]+'::text), ''::text));

-- One row is a product that is for sale, with everything that it is found and sorted by. Prices are compared by their
-- worth in EUR without a column for it, which every new exchange rate would rewrite: the index has the prices of each
-- currency in order, and a page merges the currencies (docs/decisions/0014).
-- Companies read all of it.
CREATE TABLE product_listing (
    product_id     integer PRIMARY KEY REFERENCES product(id),
    version_id     integer NOT NULL,
    slug           text NOT NULL UNIQUE,
    brand_slug     text NOT NULL,
    product_type   text NOT NULL,
    category       text NOT NULL,
    redeem_type    text NOT NULL,
    region         text NOT NULL,
    variable       boolean NOT NULL,
    face_currency  text NOT NULL,
    face_low       bigint NOT NULL,
    face_high      bigint NOT NULL,
    price_currency text NOT NULL,
    price_minor    bigint NOT NULL,  -- Of the smallest face value.
    name_key       text COLLATE "C" NOT NULL,  -- The folded name, in the order of its bytes.
    brand_key      text COLLATE "C" NOT NULL,
    words          tsvector NOT NULL,
    stocked        boolean NOT NULL DEFAULT false,  -- Whether live stock was there when it was last announced.
    updated_at     timestamptz NOT NULL,
    FOREIGN KEY (product_id, version_id) REFERENCES product_version(product_id, id)
);
CREATE INDEX product_listing_brand ON product_listing (brand_slug, name_key, product_id);
CREATE INDEX product_listing_brand_name ON product_listing (brand_key, name_key, product_id);
CREATE INDEX product_listing_category ON product_listing (category, name_key, product_id);
CREATE INDEX product_listing_face ON product_listing (face_currency, face_low, product_id);
CREATE INDEX product_listing_name ON product_listing (name_key, product_id);
CREATE INDEX product_listing_price ON product_listing (price_currency, price_minor, product_id);
CREATE INDEX product_listing_stocked ON product_listing (stocked, name_key, product_id);
CREATE INDEX product_listing_words ON product_listing USING gin (words);

-- One row is the number of products for sale: in all, of a brand, or of a category.
-- Companies read all of it.
CREATE TABLE product_count (
    kind  text NOT NULL CHECK (kind IN ('all', 'brand', 'category')),
    slug  text NOT NULL,
    count integer NOT NULL CHECK (count >= 0),
    PRIMARY KEY (kind, slug)
);

-- One row is a change of a product that is for sale, or was until then. A writer holds the lock of the table to the end
-- of its transaction, so ids become visible in their order and a reader who goes on from one misses nothing.
-- Companies read all of it.
CREATE TABLE product_change (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    product_id integer NOT NULL,
    version_id integer NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('activation', 'price', 'content', 'stock')),
    active     boolean NOT NULL,
    stocked    boolean NOT NULL,
    FOREIGN KEY (product_id, version_id) REFERENCES product_version(product_id, id),
    CHECK (active OR kind = 'activation')  -- Of a product that is not for sale clients learn only that it is not.
);
-- Stock is live; a reader with a sandbox key passes over it.
CREATE INDEX product_change_but_stock ON product_change (id) WHERE kind <> 'stock';
CREATE TRIGGER product_change_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON product_change
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Counts the listings of these products in (step 1), or out (step -1).
CREATE FUNCTION count_products(ids integer[], step integer) RETURNS void LANGUAGE sql
BEGIN ATOMIC
 INSERT INTO product_count AS c (kind, slug, count)  SELECT one.kind,
             one.slug,
             count(*) AS count
            FROM ((unnest(count_products.ids) wanted(id)
              JOIN product_listing l ON ((l.product_id = wanted.id)))
              CROSS JOIN LATERAL ( VALUES ('all'::text,''::text), ('brand'::text,l.brand_slug), ('category'::text,l.category)) one(kind, slug))
           GROUP BY one.kind, one.slug ON CONFLICT(kind, slug) DO UPDATE SET count = (c.count + (count_products.step * excluded.count));
END;

-- Brings the listings of these products up to date and writes a row for each change. A second call changes nothing.
CREATE FUNCTION list_products(ids integer[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
BEGIN
    LOCK TABLE product_change IN SHARE ROW EXCLUSIVE MODE;
    moment := clock_timestamp();
    INSERT INTO product_change (at, product_id, version_id, kind, active, stocked)
    SELECT moment, p.id, p.version_id, change.kind, p.active, coalesce(l.stocked, false)
    FROM unnest(ids) AS wanted (id)
    JOIN product p ON p.id = wanted.id
    JOIN product_version v ON v.id = p.version_id
    LEFT JOIN product_listing l ON l.product_id = p.id
    LEFT JOIN product_version w ON w.id = l.version_id AND w.id <> v.id
    CROSS JOIN LATERAL (VALUES
        (1, 'activation', p.active = (l.product_id IS NULL)),
        (2, 'price', p.active AND w.id IS NOT NULL
            AND ((v.price_minor, v.price_currency, v.fee_variable_e8, v.fee_fixed_minor, v.vat_category)
                 IS DISTINCT FROM (w.price_minor, w.price_currency, w.fee_variable_e8, w.fee_fixed_minor, w.vat_category)
              OR (v.price_minor IS NULL AND (v.face_currency, v.face_minor, v.face_min_minor, v.face_max_minor)
                  IS DISTINCT FROM (w.face_currency, w.face_minor, w.face_min_minor, w.face_max_minor)))),
        (3, 'content', p.active AND w.id IS NOT NULL
            AND (v.name, v.brand_id, v.product_type, v.category, v.redeem_type, v.region, v.async_delivery, v.incentive,
                 v.face_currency, v.face_minor, v.face_min_minor, v.face_max_minor,
                 v.redeem_instructions, v.terms, v.image_url)
             IS DISTINCT FROM
                (w.name, w.brand_id, w.product_type, w.category, w.redeem_type, w.region, w.async_delivery, w.incentive,
                 w.face_currency, w.face_minor, w.face_min_minor, w.face_max_minor,
                 w.redeem_instructions, w.terms, w.image_url))) AS change (place, kind, happened)
    WHERE change.happened
    ORDER BY p.id, change.place;

    PERFORM count_products(ids, -1);
    DELETE FROM product_listing l USING unnest(ids) AS wanted (id) JOIN product p ON p.id = wanted.id
    WHERE l.product_id = p.id AND NOT p.active;

    INSERT INTO product_listing AS l (product_id, version_id, slug, brand_slug, product_type, category, redeem_type,
        region, variable, face_currency, face_low, face_high, price_currency, price_minor, name_key, brand_key, words,
        updated_at)
    SELECT p.id, v.id, p.slug, b.slug, v.product_type, v.category, v.redeem_type, v.region, v.face_minor IS NULL,
           v.face_currency, coalesce(v.face_minor, v.face_min_minor), coalesce(v.face_minor, v.face_max_minor),
           coalesce(v.price_currency, v.face_currency),
           -- Rounded half up, as price_with_fee does.
           coalesce(v.price_minor, div(2 * coalesce(v.face_minor, v.face_min_minor)::numeric * v.fee_variable_e8 + 100000000,
                                       200000000)::bigint + v.fee_fixed_minor),
           folded(v.name), folded(b.name), words_of(v.name || ' ' || b.name || ' ' || p.slug || ' ' || b.slug), moment
    FROM unnest(ids) AS wanted (id)
    JOIN product p ON p.id = wanted.id JOIN product_version v ON v.id = p.version_id JOIN brand b ON b.id = v.brand_id
    WHERE p.active
    ON CONFLICT (product_id) DO UPDATE SET
        version_id = excluded.version_id, brand_slug = excluded.brand_slug, product_type = excluded.product_type,
        category = excluded.category, redeem_type = excluded.redeem_type, region = excluded.region,
        variable = excluded.variable, face_currency = excluded.face_currency, face_low = excluded.face_low,
        face_high = excluded.face_high, price_currency = excluded.price_currency, price_minor = excluded.price_minor,
        name_key = excluded.name_key, brand_key = excluded.brand_key, words = excluded.words,
        updated_at = excluded.updated_at
    WHERE l.version_id <> excluded.version_id;
    PERFORM count_products(ids, 1);
END $$;

-- Lists the products that a statement wrote.
CREATE FUNCTION relist_products() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids integer[] := (SELECT array_agg(id) FROM fresh);
BEGIN
    PERFORM list_products(ids) WHERE ids IS NOT NULL;
    PERFORM place_products(ids) WHERE ids IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER product_added AFTER INSERT ON product REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION relist_products();
CREATE TRIGGER product_changed AFTER UPDATE ON product REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION relist_products();

-- Lists the products whose newest version a statement wrote: of a new product either row may come last.
CREATE FUNCTION relist_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids integer[] := (SELECT array_agg(p.id) FROM fresh f JOIN product p ON p.id = f.product_id AND p.version_id = f.id);
BEGIN
    PERFORM list_products(ids) WHERE ids IS NOT NULL;
    PERFORM place_products(ids) WHERE ids IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER product_version_added AFTER INSERT ON product_version REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION relist_versions();


-- ── Prices ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is the exchange rate of a currency on a day.
-- Companies read all of it.
CREATE TABLE fx_rate (
    currency text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    day      date NOT NULL,
    eur_e8   bigint NOT NULL CHECK (eur_e8 > 0),  -- The worth of one unit of the currency in EUR (OP-50).
    source   text NOT NULL,
    set_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (currency, day)
);

-- One row is the share that is added to a price in one currency that is paid in another.
CREATE TABLE fx_margin (
    from_currency text NOT NULL CHECK (from_currency ~ '^[A-Z]{3}$'),
    to_currency   text NOT NULL CHECK (to_currency ~ '^[A-Z]{3}$'),
    margin_bp     integer NOT NULL CHECK (margin_bp BETWEEN 1 AND 5000),
    set_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (from_currency, to_currency),
    CONSTRAINT fx_margin_of_a_pair CHECK (from_currency <> to_currency)
);

-- The only row says how the refresh of rates from an address stands.
CREATE TABLE fx_feed (
    only_row     boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    attempted_at timestamptz,  -- The worker that moves it forward is the one that asks.
    taken_at     timestamptz,
    problem      text CHECK (length(problem) <= 500)  -- Of the last attempt; NULL if it went well.
);

-- The only row is a counter that grows when a product, a rate of exchange or VAT, a margin or the price list of a
-- company changes. Every process remembers those and reads this row to learn that they changed.
CREATE TABLE price_epoch (
    only_row boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    epoch    bigint NOT NULL
);

-- Tells every process that the prices it remembers are old.
CREATE FUNCTION bump_price_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE price_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;
-- Not on an insert, because nobody remembers a product that was not there, nor on whether it is in stock.
CREATE TRIGGER product_epoch_moves AFTER DELETE OR UPDATE OF slug, active, version_id, allow_loss ON product
    FOR EACH STATEMENT EXECUTE FUNCTION bump_price_epoch();
CREATE TRIGGER fx_rate_epoch_moves AFTER INSERT OR DELETE OR UPDATE ON fx_rate
    FOR EACH STATEMENT EXECUTE FUNCTION bump_price_epoch();
CREATE TRIGGER fx_margin_epoch_moves AFTER INSERT OR DELETE OR UPDATE ON fx_margin
    FOR EACH STATEMENT EXECUTE FUNCTION bump_price_epoch();

-- One row is the standard VAT rate of a country from a day on. A new rate is a new row, entered before its day; a past
-- row never changes, so an order can always be explained (OP-52). Regions with a rate of their own (the Azores,
-- Jungholz …) are left out: of a company only the country is known.
-- Companies read all of it.
CREATE TABLE vat_rate (
    country    text NOT NULL CHECK (country ~ '^[A-Z]{2}$'),
    valid_from date NOT NULL,
    rate_bp    integer NOT NULL CHECK (rate_bp BETWEEN 0 AND 10000),  -- 2100 is 21%.
    PRIMARY KEY (country, valid_from)
);
CREATE TRIGGER vat_rate_epoch_moves AFTER INSERT OR DELETE OR UPDATE ON vat_rate
    FOR EACH STATEMENT EXECUTE FUNCTION bump_price_epoch();

-- One row is a list of prices that were agreed with one or more companies.
CREATE TABLE price_list (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 100),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- One row says which list a company has. It has one at most; a list may serve many.
-- Companies read: company_id = tenant_company().
CREATE TABLE price_list_company (
    company_id  integer PRIMARY KEY REFERENCES company(id),
    list_id     integer NOT NULL REFERENCES price_list(id),
    assigned_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX price_list_company_list ON price_list_company (list_id);
CREATE TRIGGER price_list_company_epoch_moves AFTER INSERT OR DELETE OR UPDATE ON price_list_company
    FOR EACH STATEMENT EXECUTE FUNCTION bump_price_epoch();

-- One row is what a list says of a product, of a brand, or (neither) of everything: a discount, a fixed price, or a
-- fee. Of several that are in force for one target the one that began last applies, so a promotion lies over the price
-- that it replaces for a while.
CREATE TABLE price_entry (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    list_id         integer NOT NULL REFERENCES price_list(id) ON DELETE CASCADE,
    product_id      integer REFERENCES product(id),
    brand_id        integer REFERENCES brand(id),
    discount_bp     integer CHECK (discount_bp BETWEEN 1 AND 9999),
    price_minor     bigint CHECK (price_minor > 0),
    price_currency  text CHECK (price_currency ~ '^[A-Z]{3}$'),
    fee_variable_e8 bigint CHECK (fee_variable_e8 > 0),
    fee_fixed_minor bigint CHECK (fee_fixed_minor >= 0),
    -- With face_minor: the face value that a price, or the currency that a fee, was agreed for. For another one it means
    -- nothing.
    face_currency   text CHECK (face_currency ~ '^[A-Z]{3}$'),
    face_minor      bigint CHECK (face_minor > 0),
    valid_from      date,  -- The first day, in UTC; NULL: it has always been in force.
    valid_until     date,  -- The last day; NULL: it does not end.
    set_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT price_entry_once UNIQUE NULLS NOT DISTINCT (list_id, product_id, brand_id, valid_from),
    CONSTRAINT price_entry_agreed_for CHECK ((face_currency IS NULL) = (discount_bp IS NOT NULL) AND (face_minor IS
        NULL) = (price_minor IS NULL)),
    CONSTRAINT price_entry_of_a_product CHECK (discount_bp IS NOT NULL OR product_id IS NOT NULL),
    CONSTRAINT price_entry_one_kind CHECK (num_nonnulls(discount_bp, price_minor, fee_variable_e8) = 1 AND (price_minor
        IS NULL) = (price_currency IS NULL) AND (fee_variable_e8 IS NULL) = (fee_fixed_minor IS NULL)),
    CONSTRAINT price_entry_one_target CHECK (num_nonnulls(product_id, brand_id) <= 1),
    CONSTRAINT price_entry_period CHECK (valid_until >= valid_from)
);


-- ── The wallet ───────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE SEQUENCE wallet_number AS bigint;

-- One row is the balance of a company in one currency and state. Entries alone change it.
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE wallet (
    id            bigint PRIMARY KEY,  -- Twice a number of wallet_number, plus the state.
    company_id    integer NOT NULL REFERENCES company(id),
    currency      text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    state         smallint NOT NULL CHECK (state IN (0, 1)),
    balance_minor bigint NOT NULL DEFAULT 0,
    -- The part of the balance that Resolve has set aside for orders under way.
    held_minor    bigint NOT NULL DEFAULT 0,
    seq           bigint NOT NULL DEFAULT 0,  -- The number of its last entry.
    UNIQUE (company_id, currency, state),
    CHECK ((id & 1) = state),
    CONSTRAINT wallet_not_overdrawn CHECK (held_minor >= 0 AND balance_minor >= held_minor)
) WITH (fillfactor=50);
-- Entries name wallets.
CREATE TRIGGER wallet_stays BEFORE DELETE OR UPDATE OF id OR TRUNCATE ON wallet
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is one whole transfer: amount_minor into the wallet (negative: out of it), the opposite split over the
-- accounts of the operator (vat_minor of it to VAT, the rest to the account that the kind names). A transfer that does
-- not balance can not be written. A hold or a release changes held_minor of the wallet only.
-- Companies read: (wallet_id IN ( SELECT w.id FROM wallet w)).
CREATE TABLE entry (
    -- No foreign key: the trigger that carries the balance refuses an entry without a wallet.
    wallet_id           bigint NOT NULL,
    seq                 bigint NOT NULL CHECK (seq > 0),
    -- 1 top-up, 2 order, 3 refund, 4 hold, 5 release, 6 correction.
    kind                smallint NOT NULL CHECK (kind BETWEEN 1 AND 6),
    amount_minor        bigint NOT NULL,
    vat_minor           bigint NOT NULL DEFAULT 0,
    hold_minor          bigint NOT NULL DEFAULT 0,
    balance_after_minor bigint NOT NULL,
    held_after_minor    bigint NOT NULL,
    order_id            bigint,  -- No foreign key: an order that was never confirmed has no entry, and all others stay.
    reference           text CHECK (length(reference) <= 200),
    at                  timestamptz NOT NULL,
    PRIMARY KEY (wallet_id, seq),
    CONSTRAINT entry_kind_fits CHECK (CASE kind
        WHEN 1 THEN amount_minor > 0 AND vat_minor = 0 AND hold_minor = 0 AND reference IS NOT NULL
        WHEN 2 THEN amount_minor <= 0 AND vat_minor BETWEEN amount_minor AND 0 AND (hold_minor = 0 OR hold_minor = amount_minor) AND order_id IS NOT NULL
        WHEN 3 THEN amount_minor >= 0 AND vat_minor BETWEEN 0 AND amount_minor AND hold_minor = 0 AND order_id IS NOT NULL
        WHEN 4 THEN amount_minor = 0 AND vat_minor = 0 AND hold_minor >= 0 AND order_id IS NOT NULL
        WHEN 5 THEN amount_minor = 0 AND vat_minor = 0 AND hold_minor <= 0 AND order_id IS NOT NULL
        ELSE vat_minor = 0 AND hold_minor = 0 AND reference IS NOT NULL
    END),
    CONSTRAINT entry_not_overdrawn CHECK (held_after_minor >= 0 AND balance_after_minor >= held_after_minor),
    CONSTRAINT entry_same_state CHECK (order_id IS NULL OR (order_id & 1) = (wallet_id & 1))
);
-- Top-ups, refunds and corrections are few among orders and holds, and people look for them. No order and no hold is in
-- it, so Confirm and Resolve do not pay for it.
CREATE INDEX entry_kind ON entry (wallet_id, kind, seq) WHERE kind IN (1, 3, 6);
CREATE INDEX entry_order ON entry (order_id) WHERE order_id IS NOT NULL;
-- The reference of a top-up makes it happen once.
CREATE UNIQUE INDEX entry_top_up_once ON entry (wallet_id, reference) WHERE kind = 1;
CREATE TRIGGER entry_append_only BEFORE UPDATE OR TRUNCATE ON entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Brings the balance up to date with new entries; each must continue the entries of its wallet without a gap.
CREATE FUNCTION carry_entries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wallets_touched integer;
    wallets_moved integer;
BEGIN
    IF EXISTS (
        SELECT FROM (
            SELECT seq, amount_minor, hold_minor, balance_after_minor, held_after_minor,
                   lag(seq) OVER chain AS seq_before,
                   lag(balance_after_minor) OVER chain AS balance_before,
                   lag(held_after_minor) OVER chain AS held_before
            FROM fresh WINDOW chain AS (PARTITION BY wallet_id ORDER BY seq)) link
        WHERE seq_before IS NOT NULL AND (seq <> seq_before + 1
              OR balance_after_minor <> balance_before + amount_minor
              OR held_after_minor <> held_before + hold_minor)) THEN
        RAISE EXCEPTION 'entries do not continue one another' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT count(DISTINCT wallet_id) INTO wallets_touched FROM fresh;
    UPDATE wallet w SET balance_minor = last.balance_after_minor, held_minor = last.held_after_minor, seq = last.seq
    FROM (SELECT DISTINCT ON (wallet_id) wallet_id, seq, balance_after_minor, held_after_minor,
                 min(seq) OVER own AS seq_from, sum(amount_minor) OVER own AS amount_minor, sum(hold_minor) OVER own AS hold_minor
          FROM fresh WINDOW own AS (PARTITION BY wallet_id) ORDER BY wallet_id, seq DESC) last
    WHERE w.id = last.wallet_id AND last.seq_from = w.seq + 1
      AND last.balance_after_minor = w.balance_minor + last.amount_minor
      AND last.held_after_minor = w.held_minor + last.hold_minor;
    GET DIAGNOSTICS wallets_moved = ROW_COUNT;
    IF wallets_moved <> wallets_touched THEN
        RAISE EXCEPTION 'entries do not continue their wallet' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER entry_carry AFTER INSERT ON entry REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION carry_entries();

-- Refuses a balance that changes in any other way than by an entry, which would break the chain unseen.
CREATE FUNCTION refuse_direct_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a balance changes through entries only' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER wallet_starts_empty BEFORE INSERT ON wallet
    FOR EACH ROW WHEN (new.balance_minor <> 0 OR new.held_minor <> 0 OR new.seq <> 0) EXECUTE FUNCTION
        refuse_direct_balance();
CREATE TRIGGER wallet_through_entries BEFORE UPDATE ON wallet
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_direct_balance();

-- One row is the balance below which the company wants to be told.
-- Companies read: (wallet_id IN ( SELECT w.id FROM wallet w)).
CREATE TABLE wallet_alert (
    wallet_id bigint PRIMARY KEY REFERENCES wallet(id),
    low_minor bigint NOT NULL CHECK (low_minor > 0),
    told      boolean NOT NULL DEFAULT false  -- It was told, and the balance was not above again since.
);

-- One row is a leg of an entry, for the accountant: the two or three legs of each sum to zero.
CREATE VIEW ledger_leg AS
 SELECT e.wallet_id,
    e.seq,
    w.currency,
    w.state,
    'wallet'::text AS account,
    e.amount_minor
   FROM entry e
     JOIN wallet w ON w.id = e.wallet_id
UNION ALL
 SELECT e.wallet_id,
    e.seq,
    w.currency,
    w.state,
        CASE e.kind
            WHEN 1 THEN 'funding'::text
            WHEN 6 THEN 'correction'::text
            ELSE 'sales'::text
        END AS account,
    e.vat_minor - e.amount_minor AS amount_minor
   FROM entry e
     JOIN wallet w ON w.id = e.wallet_id
UNION ALL
 SELECT e.wallet_id,
    e.seq,
    w.currency,
    w.state,
    'vat'::text AS account,
    - e.vat_minor AS amount_minor
   FROM entry e
     JOIN wallet w ON w.id = e.wallet_id
  WHERE e.vat_minor <> 0;


-- ── Purchasing ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is a supplier of codes, as the operator described it.
CREATE TABLE supplier (
    id              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(name) <= 60),
    kind            text NOT NULL CHECK (kind IN ('voucherd', 'http', 'sandbox')),
    state           smallint NOT NULL CHECK (state IN (0, 1)),
    active          boolean NOT NULL DEFAULT true,
    config          jsonb NOT NULL,
    secret          bytea,  -- Its credentials, sealed.
    timeout_s       integer NOT NULL DEFAULT 20 CHECK (timeout_s BETWEEN 1 AND 300),  -- How long one call may take.
    -- A purchase may turn up this long after its call.
    settle_s        integer NOT NULL DEFAULT 120 CHECK (settle_s BETWEEN 0 AND 86400),
    -- An older quote no longer counts; at half this age it is asked for again.
    quote_age_s     integer NOT NULL DEFAULT 300 CHECK (quote_age_s BETWEEN 1 AND 86400),
    concurrency_max integer NOT NULL DEFAULT 8 CHECK (concurrency_max BETWEEN 1 AND 1000),
    -- A purchase may be dearer than its quote by no more than this.
    price_slack_bp  integer NOT NULL DEFAULT 100 CHECK (price_slack_bp BETWEEN 0 AND 10000),
    -- After a purchase whose end is unknown: wait for a person, or buy elsewhere.
    on_unknown      text NOT NULL DEFAULT 'wait' CHECK (on_unknown IN ('wait', 'rebuy')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (id, state),
    CHECK (kind <> 'sandbox' OR state = 1)
);

-- One row is how a supplier does. It changes with every call and so stands apart from the words of the operator.
CREATE TABLE supplier_health (
    supplier_id   integer PRIMARY KEY REFERENCES supplier(id),
    -- In a row; from a number of them on the supplier is left alone for a while.
    failures      integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    open_until    timestamptz,  -- Nobody calls before this; then one call tries.
    -- A process asks for prices until then; others need not.
    quoting_until timestamptz NOT NULL DEFAULT '-infinity'::timestamptz,
    quote_error   text CHECK (length(quote_error) <= 300)
) WITH (fillfactor=50);

CREATE SEQUENCE quote_number AS bigint;

-- One row is a price that a supplier asked for a code. It stays as it was: an order shows the quotes that its Create
-- saw. A quote over a range of face values gives the price at both ends; between them it is a straight line.
CREATE TABLE quote (
    id             bigint PRIMARY KEY,  -- Twice a number of quote_number, plus the state.
    supplier_id    integer NOT NULL,
    state          smallint NOT NULL,
    product_id     integer NOT NULL REFERENCES product(id),
    face_minor     bigint NOT NULL CHECK (face_minor > 0),
    price_minor    bigint NOT NULL CHECK (price_minor >= 0),
    face_to_minor  bigint,
    price_to_minor bigint,
    currency       text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    fx_e8          bigint NOT NULL CHECK (fx_e8 > 0),
    at             timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (supplier_id, state) REFERENCES supplier(id, state),
    CHECK (face_to_minor > face_minor),
    CHECK (price_to_minor >= price_minor),
    CHECK ((face_to_minor IS NULL) = (price_to_minor IS NULL)),
    CONSTRAINT quote_same_state CHECK ((id & 1) = state)
);
CREATE TRIGGER quote_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON quote
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row says that a supplier sells one of our products, and under which name.
CREATE TABLE offer (
    supplier_id   integer NOT NULL,
    state         smallint NOT NULL,
    product_id    integer NOT NULL REFERENCES product(id),
    face_minor    bigint NOT NULL CHECK (face_minor > 0),
    face_to_minor bigint,
    sku           text NOT NULL CHECK (length(sku) BETWEEN 1 AND 200),  -- The name that the supplier has for it.
    active        boolean NOT NULL DEFAULT true,
    quote_id      bigint REFERENCES quote(id),
    stock         integer NOT NULL DEFAULT 0 CHECK (stock >= 0),  -- A hint, which may be old.
    quoted_at     timestamptz,
    -- How many the supplier said that it has, when it was last asked; `stock` is less what we have bought since. NULL: a
    -- program before 0.2.0 has asked.
    quoted_stock  integer,
    PRIMARY KEY (supplier_id, product_id, face_minor),
    FOREIGN KEY (supplier_id, state) REFERENCES supplier(id, state),
    CHECK (face_to_minor > face_minor),
    CHECK (quote_id IS NULL OR quoted_at IS NOT NULL),
    CONSTRAINT offer_same_state CHECK ((quote_id & 1) = state)
);
CREATE INDEX offer_product ON offer (product_id, state);

-- The only row is a counter that grows when offers come or go. Every process remembers which products have offers and
-- reads this row to learn that they changed.
CREATE TABLE offer_epoch (
    only_row boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    epoch    bigint NOT NULL
);

-- Tells every process that the offers it remembers are old.
CREATE FUNCTION bump_offer_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE offer_epoch SET epoch = epoch + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER supplier_epoch_moves AFTER UPDATE OF active ON supplier
    FOR EACH STATEMENT EXECUTE FUNCTION bump_offer_epoch();
CREATE TRIGGER offer_epoch_moves AFTER INSERT OR DELETE OR UPDATE OF active ON offer
    FOR EACH STATEMENT EXECUTE FUNCTION bump_offer_epoch();

-- One row is one purchase at a supplier. It is written before the supplier is called, and its id is our reference
-- there. The id is random: a database that was restored from a backup must not use a reference twice.
CREATE TABLE attempt (
    id              uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
    supplier_id     integer NOT NULL,
    state           smallint NOT NULL,
    product_id      integer NOT NULL REFERENCES product(id),
    face_minor      bigint NOT NULL CHECK (face_minor > 0),
    sku             text NOT NULL,
    quote_id        bigint NOT NULL REFERENCES quote(id),
    price_minor     bigint NOT NULL CHECK (price_minor >= 0),  -- Of one code, as it was quoted.
    price_max_minor bigint NOT NULL,  -- Of one code, the most that we pay.
    count           integer NOT NULL CHECK (count BETWEEN 1 AND 10000),
    urgent          boolean NOT NULL,  -- For a Resolve, which never waits behind others.
    -- 0 calling, 1 asking, 2 unknown, 3 bought, 4 failed.
    status          smallint NOT NULL CHECK (status BETWEEN 0 AND 4),
    -- Grows with each owner; a refusal that reaches an earlier owner no longer counts.
    fence           integer NOT NULL DEFAULT 1 CHECK (fence > 0),
    worker          text NOT NULL CHECK (length(worker) BETWEEN 1 AND 100),  -- Its owner, until lease_until.
    lease_until     timestamptz NOT NULL,
    placed_at       timestamptz NOT NULL DEFAULT now(),
    settles_at      timestamptz NOT NULL,  -- From then on "not found" means "never bought".
    ask_at          timestamptz,  -- When the supplier is asked next how the purchase ended.
    look_ups        integer NOT NULL DEFAULT 0,
    ended_at        timestamptz,
    call_ms         integer CHECK (call_ms >= 0),
    external_id     text CHECK (length(external_id) <= 200),  -- The name that the supplier has for the purchase.
    codes           integer NOT NULL DEFAULT 0 CHECK (codes >= 0),
    spare           integer NOT NULL DEFAULT 0,  -- Codes that no line took: they came late, or were too many.
    quarantined     integer NOT NULL DEFAULT 0 CHECK (quarantined >= 0),
    reason          text CHECK (length(reason) <= 300),
    settled_by      text CHECK (length(settled_by) BETWEEN 1 AND 200),  -- The person who decided how it ended.
    FOREIGN KEY (supplier_id, state) REFERENCES supplier(id, state),
    CHECK (price_max_minor >= price_minor),
    CHECK (spare BETWEEN 0 AND codes),
    CONSTRAINT attempt_same_state CHECK ((quote_id & 1) = state),
    CONSTRAINT attempt_status_fits CHECK (CASE status
        WHEN 0 THEN ask_at IS NULL AND ended_at IS NULL
        WHEN 1 THEN ask_at IS NOT NULL AND ended_at IS NULL
        WHEN 2 THEN ask_at IS NULL AND ended_at IS NULL
        WHEN 3 THEN ask_at IS NULL AND ended_at IS NOT NULL
        ELSE ask_at IS NULL AND ended_at IS NOT NULL AND codes = 0
    END)
) WITH (fillfactor=70);
CREATE INDEX attempt_asking ON attempt (ask_at) WHERE status = 1;
CREATE INDEX attempt_by_hand ON attempt (placed_at) WHERE status = 2;
CREATE INDEX attempt_calling ON attempt (supplier_id, lease_until) WHERE status = 0;
-- The statement of a supplier names its own ids more often than ours.
CREATE INDEX attempt_external ON attempt (supplier_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX attempt_failed ON attempt (placed_at, id) WHERE status = 4;
CREATE INDEX attempt_placed ON attempt (supplier_id, placed_at);
-- Purchases that a person may want to look at, newest first.
CREATE INDEX attempt_problem ON attempt (placed_at, id)
    WHERE status = 2 OR spare > 0 OR quarantined > 0 OR codes > count OR status = 3 AND codes < count;
-- A purchase that succeeded stays so, and an owner that was replaced stays replaced.
CREATE TRIGGER attempt_forwards BEFORE UPDATE ON attempt
    FOR EACH ROW WHEN (new.fence < old.fence OR new.codes < old.codes OR old.status = 3 AND new.status <> 3 OR
        old.status = 4 AND (new.status NOT IN (3, 4)) OR old.status <> 0 AND new.status = 0) EXECUTE FUNCTION
        refuse_change();
CREATE TRIGGER attempt_unchanging BEFORE DELETE OR UPDATE OF id, supplier_id, state, product_id, face_minor, sku,
    quote_id, price_minor, price_max_minor, count, urgent, placed_at OR TRUNCATE ON attempt
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is a code that a supplier sold us and that is in the vault already, is malformed or has expired: nobody gets
-- it before a person has looked.
CREATE TABLE quarantined_code (
    attempt_id uuid NOT NULL REFERENCES attempt(id),
    place      integer NOT NULL CHECK (place >= 0),
    sealed     bytea NOT NULL,
    -- A keyed hash of the code, to find it again without opening it.
    blind      bytea NOT NULL CHECK (length(blind) = 16),
    reason     text NOT NULL CHECK (reason IN ('known', 'malformed', 'expired')),
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (attempt_id, place),
    UNIQUE (attempt_id, blind)
);
-- Only a rotation of the vault keys seals it anew.
CREATE TRIGGER quarantined_code_append_only BEFORE DELETE OR UPDATE OF attempt_id, place, blind, reason, at OR
    TRUNCATE ON quarantined_code
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is a purchase that the sandbox supplier "sold", so that it can be looked up from every process and after a
-- restart. Its codes are computed from the row.
CREATE TABLE sandbox_purchase (
    supplier       text NOT NULL CHECK (length(supplier) BETWEEN 1 AND 100),
    reference      text NOT NULL CHECK (length(reference) BETWEEN 1 AND 200),
    outcome        text NOT NULL CHECK (length(outcome) BETWEEN 1 AND 40),
    sku            text NOT NULL CHECK (length(sku) BETWEEN 1 AND 200),
    count          integer NOT NULL CHECK (count BETWEEN 1 AND 10000),
    price_minor    bigint NOT NULL CHECK (price_minor > 0),
    price_currency text NOT NULL CHECK (price_currency ~ '^[A-Z]{3}$'),
    bought_at      timestamptz NOT NULL DEFAULT now(),
    due_at         timestamptz NOT NULL,  -- When its codes are there.
    cancelled      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (supplier, reference),
    CONSTRAINT sandbox_purchase_due_check CHECK (due_at >= bought_at)
);

-- Counts purchases, of which a sandbox supplier can be told to refuse every so many.
CREATE SEQUENCE sandbox_purchase_number AS bigint;

-- One row is a product and face value that a supplier has refused to sell, whatever its prices say (OP-140). It goes
-- when the supplier names another price or stock, and does not count after its time.
CREATE TABLE refused_offer (
    supplier_id   integer NOT NULL REFERENCES supplier(id),
    product_id    integer NOT NULL REFERENCES product(id),
    face_minor    bigint NOT NULL CHECK (face_minor > 0),
    -- So many may still be had there: a quarter of what was refused.
    stock         integer NOT NULL CHECK (stock >= 0),
    refused_until timestamptz NOT NULL,
    PRIMARY KEY (supplier_id, product_id, face_minor)
) WITH (fillfactor=70);


-- ── The vault ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- The only row says which master key fits, so that a wrong key file is noticed at the start and not at the first sale,
-- and keeps the root key that the master key wraps.
CREATE TABLE vault_master (
    only_row    boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    generation  integer NOT NULL DEFAULT 1 CHECK (generation > 0),  -- Grows with every new master key.
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    -- Identifiers, blind indexes and the codes of the sandbox are computed from it. It stays the same in every rotation.
    root        bytea NOT NULL CHECK (length(root) = 60),
    changed_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER vault_master_kept BEFORE DELETE OR TRUNCATE ON vault_master
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is a data key, which seals (OP-95). Version 1 is derived from the root key; later versions are random and
-- wrapped with the master key. Sealed bytes begin with the version that sealed them; those without a mark are of 1.
CREATE TABLE vault_key (
    version     smallint PRIMARY KEY CHECK (version > 0),
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    created_at  timestamptz NOT NULL DEFAULT now(),
    wrapped     bytea CHECK (length(wrapped) = 60),  -- NULL for version 1, and for a key that was destroyed.
    active_at   timestamptz DEFAULT now(),  -- NULL: processes learn the key, none seals with it yet.
    retired_at  timestamptz,  -- When it was destroyed.
    CONSTRAINT vault_key_retired_fits CHECK (retired_at IS NULL OR active_at IS NOT NULL),
    CONSTRAINT vault_key_wrapped_fits CHECK ((wrapped IS NOT NULL) = (version > 1 AND retired_at IS NULL))
);
CREATE TRIGGER vault_key_forwards BEFORE UPDATE ON vault_key
    FOR EACH ROW WHEN (old.active_at IS NOT NULL AND new.active_at IS DISTINCT FROM old.active_at OR old.retired_at
        IS NOT NULL AND new.retired_at IS DISTINCT FROM old.retired_at) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER vault_key_kept BEFORE DELETE OR UPDATE OF version, fingerprint OR TRUNCATE ON vault_key
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE SEQUENCE lot_number AS bigint;

-- One row is a number of codes that were bought together; the API calls it an offer. A sale moves the cursor and
-- touches no row of a code.
CREATE TABLE lot (
    id                bigint PRIMARY KEY,  -- Twice a number of lot_number, plus the state.
    product_id        integer NOT NULL REFERENCES product(id),
    face_minor        bigint NOT NULL CHECK (face_minor > 0),
    state             smallint NOT NULL CHECK (state IN (0, 1)),
    generated         boolean NOT NULL DEFAULT false,  -- A lot of the sandbox without rows of codes: they are computed.
    supplier          text NOT NULL CHECK (length(supplier) BETWEEN 1 AND 100),
    purchase_minor    bigint NOT NULL CHECK (purchase_minor >= 0),
    purchase_currency text NOT NULL CHECK (purchase_currency ~ '^[A-Z]{3}$'),
    purchase_fx_e8    bigint NOT NULL CHECK (purchase_fx_e8 > 0),
    expires_at        timestamptz,
    -- The lowest version of a data key that any of its codes may be sealed with.
    key_version       smallint NOT NULL DEFAULT 1,
    size              integer NOT NULL CHECK (size > 0),
    cursor            integer NOT NULL DEFAULT 0,  -- How many of its codes are sold or put aside, from the first on.
    -- Changes once in the life of a lot. No index holds the cursor itself, so a sale stays a heap-only update.
    exhausted         boolean NOT NULL GENERATED ALWAYS AS (cursor >= size) STORED,
    imported_at       timestamptz NOT NULL DEFAULT now(),
    attempt_id        uuid REFERENCES attempt(id),  -- The purchase that brought it; NULL: a person imported it.
    external_id       text CHECK (length(external_id) <= 200),  -- The name that the supplier has for that purchase.
    spare             integer NOT NULL DEFAULT 0,  -- How many of its codes no line took when it came.
    CHECK (cursor BETWEEN 0 AND size),
    CHECK ((id & 1) = state),
    -- Lots of the sandbox are generated, but those that a sandbox supplier sold have codes like any other.
    CONSTRAINT lot_generated_in_sandbox CHECK (CASE
        WHEN generated THEN state = 1 AND attempt_id IS NULL
        ELSE state = 0 OR attempt_id IS NOT NULL
    END),
    CONSTRAINT lot_spare_fits CHECK (spare BETWEEN 0 AND size AND (spare = 0 OR attempt_id IS NOT NULL))
) WITH (fillfactor=50);
CREATE INDEX lot_attempt ON lot (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX lot_expiring ON lot (state, COALESCE(expires_at, 'infinity'::timestamptz), id) WHERE NOT exhausted;
CREATE INDEX lot_on_shelf ON lot (product_id, face_minor, state) WHERE NOT exhausted;
CREATE INDEX lot_product ON lot (product_id);
CREATE TRIGGER lot_bought_once BEFORE UPDATE OF attempt_id, external_id, spare ON lot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- A code that was sold is never sold again.
CREATE TRIGGER lot_forwards BEFORE UPDATE OF cursor ON lot
    FOR EACH ROW WHEN (new.cursor < old.cursor) EXECUTE FUNCTION refuse_change();
-- Processes keep a lot in memory.
CREATE TRIGGER lot_unchanging BEFORE DELETE OR UPDATE OF id, product_id, face_minor, state, generated, supplier,
    purchase_minor, purchase_currency, purchase_fx_e8, expires_at OR TRUNCATE ON lot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is a code of a lot.
CREATE TABLE code (
    lot_id bigint NOT NULL,
    seq    integer NOT NULL CHECK (seq >= 0),
    sealed bytea NOT NULL,  -- The code and its serial, encrypted and bound to this place.
    -- A keyed hash of the code: the same code can not be imported twice.
    blind  bytea NOT NULL CHECK (length(blind) = 16),
    PRIMARY KEY (lot_id, seq)
);
CREATE UNIQUE INDEX code_blind ON code (blind);
-- Only a rotation of the vault keys, and a release, seal it anew.
CREATE TRIGGER code_append_only BEFORE DELETE OR UPDATE OF blind OR TRUNCATE ON code
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Refuses a code without a lot. A foreign key does the same and doubles the time of an import (measured: 12 µs a row
-- instead of 6).
CREATE FUNCTION guard_codes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM (SELECT DISTINCT lot_id FROM fresh) f LEFT JOIN lot l ON l.id = f.lot_id
               WHERE l.id IS NULL OR l.generated) THEN
        RAISE EXCEPTION 'a code needs a lot that holds codes' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER code_has_lot AFTER INSERT ON code REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_codes();

-- Refuses to destroy a key that still seals a lot.
CREATE FUNCTION refuse_lost_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM lot WHERE key_version = NEW.version AND NOT generated) THEN
        RAISE EXCEPTION 'key % still seals lots', NEW.version USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER vault_key_seals_nothing AFTER UPDATE OF retired_at ON vault_key
    FOR EACH ROW WHEN (old.retired_at IS NULL AND new.retired_at IS NOT NULL) EXECUTE FUNCTION refuse_lost_key();

-- Refuses a lot that a destroyed key sealed.
CREATE FUNCTION refuse_retired_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM vault_key WHERE version = NEW.key_version AND retired_at IS NOT NULL) THEN
        RAISE EXCEPTION 'key % is retired', NEW.key_version USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER lot_key_is_kept AFTER INSERT ON lot
    FOR EACH ROW EXECUTE FUNCTION refuse_retired_key();

-- One row is a leg of a purchase: the debt to the supplier, the worth of the codes that lines took, and of the spare
-- ones. They are sums of lots and never updated in place.
CREATE VIEW purchase_leg AS
 SELECT l.attempt_id,
    a.supplier_id,
    l.state,
    l.purchase_currency AS currency,
    leg.account,
    leg.amount_minor
   FROM lot l
     JOIN attempt a ON a.id = l.attempt_id
     CROSS JOIN LATERAL ( VALUES ('stock'::text,(l.size - l.spare) * l.purchase_minor), ('spare'::text,l.spare * l.purchase_minor), ('supplier'::text,(- l.size) * l.purchase_minor)) leg(account, amount_minor);

-- One row is a file that a person uploaded to the console: tried out first, then imported. It may hold codes, so it is
-- kept sealed, and only until it is imported, refused or a quarter of an hour old.
CREATE TABLE upload (
    id         uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
    user_id    bigint NOT NULL REFERENCES app_user(id),
    kind       text NOT NULL CHECK (kind IN ('stock', 'products')),
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    bytes      integer NOT NULL CHECK (bytes BETWEEN 1 AND 33554432),
    terms      jsonb NOT NULL CHECK (jsonb_typeof(terms) = 'object'),  -- The fields of the form beside the file.
    sealed     bytea,
    -- 0 being tried, 1 ready, 2 being imported, 3 imported, 4 refused.
    status     smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 4),
    permille   smallint NOT NULL DEFAULT 0 CHECK (permille BETWEEN 0 AND 1000),  -- How far the work has come.
    report     jsonb CHECK (jsonb_typeof(report) = 'object'),
    created_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    -- An upload that is over has a report and no file.
    CONSTRAINT upload_status_fits CHECK (CASE status
        WHEN 0 THEN report IS NULL
        WHEN 1 THEN report IS NOT NULL
        WHEN 2 THEN report IS NOT NULL
        ELSE report IS NOT NULL AND sealed IS NULL
    END)
);
ALTER TABLE upload ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE INDEX upload_age ON upload (created_at);


-- ── Orders ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- A process takes a block of order ids at a time.
CREATE SEQUENCE order_block AS bigint;

-- One row is an order of a company. No index holds a column that changes, so every change of an order is a heap-only
-- update.
-- Companies read: (company_id + 0) = tenant_company() AND (id % 2) = tenant_state().
CREATE TABLE orders (
    -- From a block of order_block, with the state as its lowest bit; clients see it encrypted, as the trx.
    id               bigint PRIMARY KEY,
    company_id       integer NOT NULL,  -- No foreign key: the trigger of its items refuses an order without a company.
    type             smallint NOT NULL CHECK (type IN (0, 1)),  -- 0 api, 1 portal.
    -- 0 created, 1 pending, 2 finished, 3 cancelled, 4 deleted.
    status           smallint NOT NULL CHECK (status BETWEEN 0 AND 4),
    -- 0 unpaid, 1 paid, 2 partially refunded, 3 refunded.
    payment_status   smallint NOT NULL DEFAULT 0 CHECK (payment_status BETWEEN 0 AND 3),
    payment_currency text NOT NULL CHECK (payment_currency ~ '^[A-Z]{3}$'),
    -- The worth of one unit of the payment currency in EUR, as Create fixed it.
    payment_fx_e8    bigint NOT NULL CHECK (payment_fx_e8 > 0),
    price_minor      bigint NOT NULL CHECK (price_minor >= 0),
    vat_minor        bigint NOT NULL CHECK (vat_minor >= 0),
    charged_minor    bigint NOT NULL DEFAULT 0,
    refunded_minor   bigint NOT NULL DEFAULT 0,
    held_minor       bigint NOT NULL DEFAULT 0 CHECK (held_minor >= 0),  -- What Resolve holds of the wallet for it.
    lines            integer NOT NULL CHECK (lines BETWEEN 1 AND 10000),
    lines_finished   integer NOT NULL DEFAULT 0,
    lines_cancelled  integer NOT NULL DEFAULT 0,
    resolving        boolean NOT NULL DEFAULT false,  -- Finalised by Resolve: all of it by the deadline, or nothing.
    downloaded       boolean NOT NULL DEFAULT false,  -- Its codes were handed out as a file (OP-56).
    version          integer NOT NULL DEFAULT 1,  -- Grows with every change; events of the order are numbered by it.
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    deadline_at      timestamptz,  -- The end of the delivery window, or of the limit of Resolve.
    reference        text CHECK (length(reference) <= 1000),
    -- Cancelled by a program before 0.2.0 while a purchase was under way: lines that it brings codes for are delivered, the
    -- others refunded. Since then an order is cancelled at once (OP-45).
    cancelling       boolean NOT NULL DEFAULT false,
    CONSTRAINT orders_cancelling_fits CHECK (NOT cancelling OR (status IN (1, 2, 3))),
    CONSTRAINT orders_downloaded_has_codes CHECK (NOT downloaded OR lines_finished > 0),
    CONSTRAINT orders_lines_add_up CHECK (lines_finished >= 0 AND lines_cancelled >= 0 AND (lines_finished +
        lines_cancelled) <= lines),
    CONSTRAINT orders_never_refund_more CHECK (refunded_minor BETWEEN 0 AND charged_minor AND (charged_minor = 0 OR
        charged_minor = (price_minor + vat_minor))),
    CONSTRAINT orders_status_fits CHECK (CASE status
        WHEN 0 THEN charged_minor = 0 AND held_minor = 0 AND lines_finished = 0 AND lines_cancelled = 0
        WHEN 1 THEN (lines_finished + lines_cancelled) < lines
        WHEN 2 THEN lines_finished = lines AND held_minor = 0 AND refunded_minor = 0
        WHEN 3 THEN (lines_finished + lines_cancelled) = lines AND lines_cancelled > 0 AND held_minor = 0
        ELSE charged_minor = 0 AND held_minor = 0 AND lines_finished = 0
    END)
) WITH (fillfactor=60);
CREATE INDEX orders_company ON orders (company_id, (id & 1), created_at, id);
CREATE INDEX orders_reference ON orders (company_id, hashtextextended(reference, 0)) WHERE reference IS NOT NULL;
CREATE TRIGGER orders_downloaded_stays BEFORE UPDATE OF downloaded ON orders
    FOR EACH ROW WHEN (old.downloaded AND NOT new.downloaded) EXECUTE FUNCTION refuse_change();

-- One row is an item of an order: so many lines of one product at one price. Lines have no rows of their own; they are
-- the numbers from first_line on.
-- Companies read: (( SELECT o.company_id FROM orders o WHERE o.id = order_item.order_id)) = tenant_company().
CREATE TABLE order_item (
    order_id           bigint NOT NULL,
    item_no            smallint NOT NULL CHECK (item_no BETWEEN 0 AND 99),
    version_id         integer NOT NULL,
    amount             integer NOT NULL CHECK (amount BETWEEN 1 AND 10000),
    first_line         integer NOT NULL,
    face_minor         bigint NOT NULL,
    face_fx_e8         bigint NOT NULL,
    price_currency     text NOT NULL,
    price_fx_e8        bigint NOT NULL,
    -- Of one unit, in the currency of the price; so are vat_minor and turnover_minor.
    price_minor        bigint NOT NULL CHECK (price_minor >= 0),
    vat_minor          bigint NOT NULL CHECK (vat_minor >= 0),
    turnover_minor     bigint NOT NULL CHECK (turnover_minor >= 0),
    -- Of one unit, in the currency of the payment; so are the other pay_ columns.
    pay_price_minor    bigint NOT NULL CHECK (pay_price_minor >= 0),
    pay_vat_minor      bigint NOT NULL CHECK (pay_vat_minor >= 0),
    pay_turnover_minor bigint NOT NULL CHECK (pay_turnover_minor >= 0),
    offers             bigint[] NOT NULL,  -- Lot, stock, lot, stock …: the offers that Create saw, best first.
    PRIMARY KEY (order_id, item_no),
    CHECK (first_line >= 0 AND (first_line + amount) <= 10000)
);

-- One row is what became of a range of lines: delivered from a range of a lot, or (without a lot) cancelled.
-- Companies read: (( SELECT o.company_id FROM orders o WHERE o.id = outcome.order_id)) = tenant_company().
CREATE TABLE outcome (
    order_id  bigint NOT NULL,
    line_from integer NOT NULL CHECK (line_from >= 0),
    line_to   integer NOT NULL CHECK (line_to <= 10000),  -- The first line that is no longer of the range.
    lot_id    bigint,
    seq_from  integer CHECK (seq_from >= 0),  -- The code of line_from; those of the other lines follow it.
    at        timestamptz NOT NULL,
    PRIMARY KEY (order_id, line_from),
    CHECK (line_from < line_to),
    CHECK ((lot_id IS NULL) = (seq_from IS NULL)),
    CONSTRAINT outcome_same_state CHECK (lot_id IS NULL OR (lot_id & 1) = (order_id & 1))
);
CREATE UNIQUE INDEX outcome_lot ON outcome (lot_id, seq_from) WHERE lot_id IS NOT NULL;
CREATE TRIGGER outcome_append_only BEFORE UPDATE OR TRUNCATE ON outcome
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Refuses a line with two outcomes and a code on two lines. An exclusion constraint does the same and costs 70 µs a row
-- (measured); this costs three. It locks the orders and lots itself (every path of the program has locked them
-- already), so two transactions that can not see each other can not both pass.
CREATE FUNCTION guard_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Under a snapshot of the transaction's start the look below would not see what the lock waited for.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outcomes are written under read committed' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    -- FOR NO KEY UPDATE, which a foreign key does not wait for: claims point at orders that somebody changes.
    PERFORM FROM orders WHERE id IN (SELECT order_id FROM fresh) ORDER BY id FOR NO KEY UPDATE;
    PERFORM FROM lot WHERE id IN (SELECT lot_id FROM fresh) ORDER BY id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM fresh f LEFT JOIN orders o ON o.id = f.order_id
        WHERE o.id IS NULL OR f.line_to > o.lines
           OR EXISTS (SELECT FROM (SELECT p.line_to FROM outcome p WHERE p.order_id = f.order_id AND p.line_from < f.line_from
                                   ORDER BY p.line_from DESC LIMIT 1) before WHERE before.line_to > f.line_from)
           OR EXISTS (SELECT FROM outcome n WHERE n.order_id = f.order_id AND n.line_from > f.line_from AND n.line_from < f.line_to)) THEN
        RAISE EXCEPTION 'a line would have two outcomes' USING ERRCODE = 'exclusion_violation';
    END IF;
    IF EXISTS (
        SELECT FROM fresh f LEFT JOIN lot l ON l.id = f.lot_id
        WHERE f.lot_id IS NOT NULL
          AND (l.id IS NULL OR f.seq_from + (f.line_to - f.line_from) > l.cursor
           OR EXISTS (SELECT FROM (SELECT p.seq_from + (p.line_to - p.line_from) AS seq_to FROM outcome p
                                   WHERE p.lot_id = f.lot_id AND p.seq_from < f.seq_from
                                   ORDER BY p.seq_from DESC LIMIT 1) before WHERE before.seq_to > f.seq_from)
           OR EXISTS (SELECT FROM outcome n WHERE n.lot_id = f.lot_id AND n.seq_from > f.seq_from
                      AND n.seq_from < f.seq_from + (f.line_to - f.line_from)))) THEN
        RAISE EXCEPTION 'a code would be on two lines' USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER outcome_guard AFTER INSERT ON outcome REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_outcomes();

-- One row is a range of lines that were paid (or held) and wait for codes. The order of the key is the order of
-- service: within a product companies take turns by a loose index scan, and within a company the oldest order comes
-- first. The lines are at one of four places: a supplier is to be asked for them, they are being bought, they pause
-- before a supplier is looked for, or they wait for stock alone. Each place has an index of its own, so that a million
-- rows elsewhere cost nothing. At most one purchase is under way for a line, because a line is in one row and a row
-- names one purchase.
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE waiting (
    state       smallint NOT NULL CHECK (state IN (0, 1)),
    product_id  integer NOT NULL,
    face_minor  bigint NOT NULL,
    company_id  integer NOT NULL,
    order_id    bigint NOT NULL REFERENCES orders(id),
    line_from   integer NOT NULL,
    line_to     integer NOT NULL,
    not_before  timestamptz NOT NULL,  -- Orders of the sandbox may ask to be slow (OP-49).
    -- When the wait ends: at the end of the delivery window, or of the limit of Resolve.
    deadline_at timestamptz NOT NULL,
    urgent      boolean NOT NULL DEFAULT false,  -- Of a Resolve: never behind others.
    supplier_id integer REFERENCES supplier(id),  -- The supplier that is to be asked.
    attempt_id  uuid REFERENCES attempt(id),  -- The purchase that is under way.
    ask_at      timestamptz,  -- The end of the pause before a supplier is looked for.
    tried       integer[] NOT NULL DEFAULT '{}'::integer[],  -- The suppliers that failed in this round.
    rounds      integer NOT NULL DEFAULT 0 CHECK (rounds >= 0),  -- How often every supplier has failed.
    PRIMARY KEY (state, product_id, face_minor, company_id, order_id, line_from),
    CHECK (line_from < line_to),
    CONSTRAINT waiting_in_one_place CHECK (num_nonnulls(supplier_id, attempt_id, ask_at) <= 1),
    CONSTRAINT waiting_same_state CHECK ((order_id & 1) = state)
);
CREATE INDEX waiting_attempt ON waiting (attempt_id) WHERE attempt_id IS NOT NULL;
-- For the console: who waits, and since when.
CREATE INDEX waiting_company ON waiting (state, company_id, not_before);
CREATE INDEX waiting_deadline ON waiting (deadline_at);
CREATE INDEX waiting_for_shelf ON waiting (state, product_id, face_minor)
    WHERE supplier_id IS NULL AND attempt_id IS NULL AND ask_at IS NULL;
CREATE UNIQUE INDEX waiting_order ON waiting (order_id, line_from);
CREATE INDEX waiting_pausing ON waiting (ask_at) WHERE ask_at IS NOT NULL;
CREATE INDEX waiting_pausing_for ON waiting (state, product_id, face_minor, ask_at) WHERE ask_at IS NOT NULL;
CREATE INDEX waiting_to_ask ON waiting (supplier_id, urgent, company_id, order_id, line_from)
    WHERE supplier_id IS NOT NULL;

-- Refuses a line that would wait twice.
CREATE FUNCTION guard_waits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM fresh f
        WHERE EXISTS (SELECT FROM (SELECT p.line_to FROM waiting p WHERE p.order_id = f.order_id AND p.line_from < f.line_from
                                   ORDER BY p.line_from DESC LIMIT 1) before WHERE before.line_to > f.line_from)
           OR EXISTS (SELECT FROM waiting n WHERE n.order_id = f.order_id AND n.line_from > f.line_from
                      AND n.line_from < f.line_to)) THEN
        RAISE EXCEPTION 'a line would wait twice' USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER waiting_once AFTER INSERT ON waiting REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_waits();

-- A purchase lets go of its lines only once it can bring nothing for them any more without the help of a person.
CREATE FUNCTION guard_attempt_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.attempt_id IS NOT NULL OR EXISTS (SELECT FROM attempt WHERE id = OLD.attempt_id AND status < 2) THEN
        RAISE EXCEPTION 'a purchase is under way for these lines' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER waiting_one_attempt BEFORE UPDATE OF attempt_id ON waiting
    FOR EACH ROW WHEN (old.attempt_id IS NOT NULL AND new.attempt_id IS DISTINCT FROM old.attempt_id) EXECUTE
        FUNCTION guard_attempt_ends();

-- One row is a range of lines that a purchase was made for.
-- Companies read none of it.
CREATE TABLE attempt_line (
    attempt_id uuid NOT NULL REFERENCES attempt(id),
    order_id   bigint NOT NULL REFERENCES orders(id),
    line_from  integer NOT NULL CHECK (line_from >= 0),
    line_to    integer NOT NULL CHECK (line_to <= 10000),
    PRIMARY KEY (attempt_id, order_id, line_from),
    CHECK (line_from < line_to)
);
CREATE INDEX attempt_line_order ON attempt_line (order_id);
CREATE TRIGGER attempt_line_append_only BEFORE UPDATE OR TRUNCATE ON attempt_line
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is the cart of a person in the portal: one for live and one for the sandbox.
CREATE TABLE cart (
    user_id          bigint NOT NULL REFERENCES app_user(id) ON DELETE CASCADE,
    state            smallint NOT NULL CHECK (state IN (0, 1)),
    payment_currency text NOT NULL CHECK (payment_currency ~ '^[A-Z]{3}$'),
    PRIMARY KEY (user_id, state)
);

-- One row is a product in a cart.
CREATE TABLE cart_item (
    user_id    bigint NOT NULL,
    state      smallint NOT NULL,
    product_id integer NOT NULL REFERENCES product(id),
    face_minor bigint NOT NULL CHECK (face_minor >= 0),  -- 0: the face value of the product, where that is fixed.
    amount     integer NOT NULL CHECK (amount BETWEEN 1 AND 10000),
    added_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, state, product_id, face_minor),
    FOREIGN KEY (user_id, state) REFERENCES cart(user_id, state) ON DELETE CASCADE
);
CREATE INDEX cart_item_product ON cart_item (product_id);

-- One row is a request of one person that another one allows or rejects.
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE approval (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         smallint NOT NULL CHECK (kind BETWEEN 1 AND 3),  -- 1 order, 2 top-up, 3 correction.
    company_id   integer NOT NULL REFERENCES company(id),
    state        smallint NOT NULL CHECK (state IN (0, 1)),
    order_id     bigint REFERENCES orders(id) ON DELETE CASCADE,
    amount_minor bigint NOT NULL,
    currency     text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    reference    text CHECK (length(reference) BETWEEN 1 AND 200),
    note         text NOT NULL DEFAULT '' CHECK (length(note) <= 500),
    requested_by bigint NOT NULL REFERENCES app_user(id),
    requested_at timestamptz NOT NULL DEFAULT now(),
    ends_at      timestamptz NOT NULL,
    -- 0 open, 1 approved, 2 rejected, 3 ended.
    status       smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 3),
    decided_by   bigint REFERENCES app_user(id),
    decided_at   timestamptz,
    CONSTRAINT approval_amount CHECK (amount_minor <> 0 AND (kind = 3 OR amount_minor > 0)),
    CONSTRAINT approval_decided CHECK ((status IN (1, 2)) = (decided_by IS NOT NULL)),
    CONSTRAINT approval_ended CHECK ((status = 0) = (decided_at IS NULL)),
    CONSTRAINT approval_same_state CHECK ((order_id & 1) = state),
    CONSTRAINT approval_subject CHECK ((kind = 1) = (order_id IS NOT NULL) AND (kind = 1) = (reference IS NULL)),
    CONSTRAINT approval_two_people CHECK (decided_by <> requested_by)
);
CREATE INDEX approval_newest ON approval (company_id, state, id DESC);
CREATE UNIQUE INDEX approval_open_money ON approval (company_id, state, currency, reference)
    WHERE status = 0 AND kind <> 1;
CREATE UNIQUE INDEX approval_open_order ON approval (order_id) WHERE status = 0;
CREATE INDEX approval_order ON approval (order_id);
CREATE INDEX approval_payments ON approval (id DESC) WHERE kind <> 1;
-- A person who is new approves nothing, and is not the puppet of who let it in.
CREATE TRIGGER approval_by_known_people BEFORE UPDATE ON approval
    FOR EACH ROW WHEN (new.status = 1) EXECUTE FUNCTION refuse_resting_person();
-- A decision stays, and nobody turns a request into another one.
CREATE TRIGGER approval_decided_once BEFORE UPDATE ON approval
    FOR EACH ROW WHEN (old.status <> 0 OR new.kind <> old.kind OR new.company_id <> old.company_id OR new.state <>
        old.state OR new.amount_minor <> old.amount_minor OR new.currency <> old.currency OR new.requested_by <>
        old.requested_by) EXECUTE FUNCTION refuse_change();

-- One row is a line whose redemption link was opened, or whose code the operator took back (OP-57). A date that is
-- written stays: the first time is the first time.
-- Companies read: (( SELECT o.company_id FROM orders o WHERE o.id = line_view.order_id)) = tenant_company().
CREATE TABLE line_view (
    order_id          bigint NOT NULL REFERENCES orders(id),
    line              integer NOT NULL CHECK (line >= 0),
    link_viewed_at    timestamptz,  -- When a recipient first opened the link.
    voucher_viewed_at timestamptz,  -- When a recipient first saw the code.
    -- When the operator took the code back; its link shows it no more. A refund for it is a movement of its own.
    returned_at       timestamptz,
    PRIMARY KEY (order_id, line),
    CONSTRAINT line_view_in_order CHECK (voucher_viewed_at >= link_viewed_at),
    CONSTRAINT line_view_opened_first CHECK (voucher_viewed_at IS NULL OR link_viewed_at IS NOT NULL),
    CONSTRAINT line_view_says_something CHECK (num_nonnulls(link_viewed_at, returned_at) > 0)
);
CREATE TRIGGER line_view_once BEFORE UPDATE ON line_view
    FOR EACH ROW WHEN (new.order_id <> old.order_id OR new.line <> old.line OR new.link_viewed_at <>
        old.link_viewed_at OR old.voucher_viewed_at IS NOT NULL AND new.voucher_viewed_at IS DISTINCT FROM
        old.voucher_viewed_at) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER line_view_returned_once BEFORE UPDATE ON line_view
    FOR EACH ROW WHEN (old.returned_at IS NOT NULL AND new.returned_at IS DISTINCT FROM old.returned_at OR
        old.link_viewed_at IS NOT NULL AND new.link_viewed_at IS NULL) EXECUTE FUNCTION refuse_change();

-- Refuses the view of a line that has no code: only a line with a code has a link.
CREATE FUNCTION guard_views() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM fresh f WHERE NOT EXISTS (
        SELECT FROM outcome o
        WHERE o.order_id = f.order_id AND o.line_from <= f.line AND o.line_to > f.line AND o.lot_id IS NOT NULL)) THEN
        RAISE EXCEPTION 'a line without a code can''t be viewed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER line_view_has_code AFTER INSERT ON line_view REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_views();

-- One row is the PIN that recipients must give before they see a code of the order.
-- Companies read none of it.
CREATE TABLE order_pin (
    order_id bigint PRIMARY KEY REFERENCES orders(id) ON DELETE CASCADE,
    -- Keyed with the master key: a PIN is short, and a thief of the database alone can not try them all.
    hash     bytea NOT NULL CHECK (length(hash) = 32),
    set_at   timestamptz NOT NULL DEFAULT now(),
    -- How long the PIN is: the pauses after wrong ones are longer for a short one. The program before does not say it, so
    -- its PINs count as the shortest.
    digits   smallint NOT NULL DEFAULT 4 CHECK (digits BETWEEN 4 AND 12)
);

-- One row counts the wrong PINs at one link since the last right one there. Those of all links of an order count
-- together, and while one of them is blocked no link of the order opens.
-- Companies read none of it.
CREATE TABLE pin_try (
    order_id      bigint NOT NULL REFERENCES order_pin(order_id) ON DELETE CASCADE,
    line          integer NOT NULL CHECK (line >= 0),
    wrong         integer NOT NULL CHECK (wrong > 0),
    tried_at      timestamptz NOT NULL DEFAULT now(),
    blocked_until timestamptz,
    PRIMARY KEY (order_id, line)
);


-- ── Events, and who is told of them ──────────────────────────────────────────────────────────────────────────────────

-- One row is something that happened, written in the transaction in which it happened. Old events are removed.
-- Companies read: CASE WHEN company_id IS NULL THEN type = 'product.updated' AND COALESCE(state = tenant_state(), true)
-- ELSE company_id = tenant_company() AND state = tenant_state() END.
CREATE TABLE event (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    company_id integer,  -- NULL: for all companies, or for the operator alone.
    state      smallint CHECK (state IN (0, 1)),  -- NULL: of live and of the sandbox.
    type       text NOT NULL,
    order_id   bigint,
    seq        integer,  -- The version of the order after this event.
    data       jsonb,
    CONSTRAINT event_same_state CHECK (order_id IS NULL OR state IS NOT NULL AND (order_id & 1) = state)
);
-- What people did about a purchase.
CREATE INDEX event_attempt ON event ((data ->> 'attempt'), id)
    WHERE type IN ('attempt.settled', 'attempt.retried', 'attempt.revealed');
-- The events of a company, from any place on. It costs each insert some microseconds; without it the page of a small
-- company would read through the events of all (docs/decisions/0020).
CREATE INDEX event_company ON event (company_id, state, id);
CREATE INDEX event_order ON event (order_id, seq) WHERE order_id IS NOT NULL;
CREATE TRIGGER event_append_only BEFORE UPDATE OR TRUNCATE ON event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The only row says up to which id the feed of events may be read. Transactions take ids from a sequence and commit in
-- any order, so an id may become visible after higher ones. A reader therefore stops at `settled`: every id up to there
-- is in the table or never will be. Finding that number costs writers nothing. A transaction that inserts an event
-- holds the lock of the table in row exclusive mode from before it takes an id until after its commit is visible. So:
-- read the last id that was taken, then who holds the lock; once all of those are gone, nothing up to that id is under
-- way any more. Transactions that write elsewhere, for however long, are not waited for.
-- Companies read all of it.
CREATE TABLE event_mark (
    only_row   boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    settled    bigint NOT NULL DEFAULT 0,
    seen       bigint NOT NULL DEFAULT 0,  -- The last id that was taken when `waits_for` was read.
    waits_for  text[] NOT NULL DEFAULT '{}'::text[],  -- The virtual transactions that held the lock then.
    removed    bigint NOT NULL DEFAULT 0,  -- Events up to this id were kept for their time and removed.
    removed_at timestamptz,  -- None of those happened after this.
    CONSTRAINT event_mark_in_order CHECK (0 <= removed AND removed <= settled AND settled <= seen),
    CONSTRAINT event_mark_removed_fits CHECK ((removed = 0) = (removed_at IS NULL))
) WITH (fillfactor=50);
CREATE TRIGGER event_mark_forwards BEFORE UPDATE ON event_mark
    FOR EACH ROW WHEN (new.settled < old.settled OR new.removed < old.removed) EXECUTE FUNCTION refuse_change();

-- Moves the mark as far as it may go, and tells where it stands. To be called outside of transactions: the statements
-- that follow see everything up to there, a snapshot that is older does not. Any number of processes may call it at
-- once: it writes only over the mark that it concluded from.
CREATE FUNCTION settle_events(OUT settled_id bigint, OUT removed_id bigint) RETURNS record LANGUAGE plpgsql AS $$
DECLARE
    mark    record;
    taken   bigint;
    writers text[];
BEGIN
    SELECT * INTO STRICT mark FROM event_mark;
    settled_id := mark.settled;
    removed_id := mark.removed;
    -- First the id and then the lock: a transaction that took one of these ids holds it still, or has ended.
    SELECT CASE WHEN is_called THEN last_value ELSE 0 END INTO STRICT taken FROM event_id_seq;
    IF taken <= mark.settled THEN
        RETURN;
    END IF;
    SELECT coalesce(array_agg(virtualtransaction), '{}') INTO STRICT writers FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'event'::regclass AND mode = 'RowExclusiveLock' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
    IF writers = '{}' THEN
        settled_id := taken;
    ELSIF NOT mark.waits_for && writers THEN
        settled_id := mark.seen;
    ELSE
        RETURN;
    END IF;
    UPDATE event_mark SET settled = settled_id, seen = taken, waits_for = writers
    WHERE settled = mark.settled AND seen = mark.seen AND waits_for = mark.waits_for;
    IF NOT FOUND THEN
        SELECT settled INTO STRICT settled_id FROM event_mark;
    END IF;
END $$;

CREATE SEQUENCE webhook_number AS bigint;

-- One row is an endpoint to which a company wants its events sent (OP-54).
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE webhook (
    id              bigint PRIMARY KEY,
    company_id      integer NOT NULL REFERENCES company(id),
    state           smallint NOT NULL CHECK (state IN (0, 1)),
    -- A company has at most 20 endpoints in each state.
    slot            smallint NOT NULL CHECK (slot BETWEEN 1 AND 20),
    url             text CHECK (length(url) BETWEEN 1 AND 2000),  -- NULL: each order names its own address.
    description     text NOT NULL DEFAULT '' CHECK (length(description) <= 200),
    types           text[] NOT NULL DEFAULT '{}'::text[],  -- Empty: all.
    enabled         boolean NOT NULL DEFAULT true,
    disabled_reason text CHECK (disabled_reason IN ('gone', 'failing')),  -- NULL: a person disabled it.
    secret          bytea NOT NULL,  -- Signs what is sent. Sealed, as are old_secret and headers.
    old_secret      bytea,  -- Signs beside the new one until old_until.
    old_until       timestamptz,
    headers         bytea,
    header_names    text[] NOT NULL DEFAULT '{}'::text[],
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    -- How an event is written to it (OP-137).
    format          text NOT NULL DEFAULT 'standard' CHECK (format IN ('standard', 'classic')),
    UNIQUE (company_id, state, slot),
    CONSTRAINT webhook_headers_named CHECK ((headers IS NULL) = (header_names = '{}'::text[])),
    CONSTRAINT webhook_old_secret_ends CHECK ((old_secret IS NULL) = (old_until IS NULL)),
    CONSTRAINT webhook_reason_fits CHECK (disabled_reason IS NULL OR NOT enabled)
);
CREATE UNIQUE INDEX webhook_per_order ON webhook (company_id, state) WHERE url IS NULL;

-- One row says when an endpoint has its next turn.
-- Companies read: (webhook_id IN ( SELECT w.id FROM webhook w)).
CREATE TABLE webhook_queue (
    webhook_id    bigint PRIMARY KEY REFERENCES webhook(id) ON DELETE CASCADE,
    -- When something is due. The process that takes the endpoint moves it ahead by a lease, so that no other takes it and
    -- it comes back by itself if that process dies. NULL: nothing to send.
    next_at       timestamptz,
    leased        boolean NOT NULL DEFAULT false,
    fence         bigint NOT NULL DEFAULT 0,  -- Grows with each owner; an earlier one writes nothing any more.
    slow          boolean NOT NULL DEFAULT false,  -- Waits with other slow ones, so that it holds up no quick one.
    failures      integer NOT NULL DEFAULT 0 CHECK (failures >= 0),  -- Since the last success.
    failing_since timestamptz,
    CONSTRAINT webhook_queue_failing_fits CHECK ((failures = 0) = (failing_since IS NULL))
) WITH (fillfactor=50);
CREATE INDEX webhook_queue_due ON webhook_queue (slow, next_at) WHERE next_at IS NOT NULL;

-- One row is an event that one endpoint is to get.
-- Companies read: (webhook_id IN ( SELECT w.id FROM webhook w)).
CREATE TABLE webhook_delivery (
    webhook_id bigint NOT NULL REFERENCES webhook(id) ON DELETE CASCADE,
    event_id   bigint NOT NULL,
    type       text NOT NULL,
    url        text CHECK (length(url) BETWEEN 1 AND 2000),  -- Of an order that named its own address.
    status     smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 2),  -- 0 waiting, 1 delivered, 2 failed.
    attempts   integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- Attempts since it was last queued: they pick the pause.
    tries      integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at    timestamptz,  -- While it waits: for when.
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (webhook_id, event_id),
    CONSTRAINT webhook_delivery_waits CHECK ((status = 0) = (next_at IS NOT NULL))
) WITH (fillfactor=70);
CREATE INDEX webhook_delivery_age ON webhook_delivery (created_at);
CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, next_at, event_id) WHERE status = 0;
CREATE INDEX webhook_delivery_event ON webhook_delivery (event_id);

-- One row is a request to an endpoint, and the start of its answer.
-- Companies read: (webhook_id IN ( SELECT w.id FROM webhook w)).
CREATE TABLE webhook_attempt (
    webhook_id bigint NOT NULL,
    event_id   bigint NOT NULL,
    number     integer NOT NULL CHECK (number > 0),
    sent_at    timestamptz NOT NULL,  -- The header webhook-timestamp, which has whole seconds.
    ms         integer NOT NULL CHECK (ms >= 0),
    url        text NOT NULL,
    -- The status of the answer; NULL: there was none, but an error.
    http       smallint CHECK (http BETWEEN 100 AND 999),
    error      text CHECK (length(error) <= 300),
    head       text NOT NULL DEFAULT '' CHECK (length(head) <= 1000),
    body       text NOT NULL DEFAULT '' CHECK (length(body) <= 500),
    PRIMARY KEY (webhook_id, event_id, number),
    FOREIGN KEY (webhook_id, event_id) REFERENCES webhook_delivery(webhook_id, event_id) ON DELETE CASCADE,
    CONSTRAINT webhook_attempt_ended CHECK ((http IS NULL) <> (error IS NULL))
);
CREATE TRIGGER webhook_attempt_append_only BEFORE UPDATE OR TRUNCATE ON webhook_attempt
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is the address that an order named at Create: its events go there beside the endpoints of the company.
-- Companies read: (( SELECT o.company_id FROM orders o WHERE o.id = order_webhook.order_id)) = tenant_company().
CREATE TABLE order_webhook (
    order_id bigint PRIMARY KEY REFERENCES orders(id) ON DELETE CASCADE,
    url      text NOT NULL CHECK (length(url) BETWEEN 1 AND 2000)
);
CREATE TRIGGER order_webhook_unchanging BEFORE UPDATE OR TRUNCATE ON order_webhook
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The only row says up to which event deliveries were made.
CREATE TABLE webhook_cursor (
    only_row boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    upto     bigint NOT NULL CHECK (upto >= 0)
);
CREATE TRIGGER webhook_cursor_forwards BEFORE UPDATE ON webhook_cursor
    FOR EACH ROW WHEN (new.upto < old.upto) EXECUTE FUNCTION refuse_change();

-- One row is a letter to people, written in the transaction that it is about and sent afterwards. Its text is removed
-- once it is sent or too late.
CREATE TABLE mail (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    recipients text[] NOT NULL CHECK (cardinality(recipients) BETWEEN 1 AND 100),
    subject    text NOT NULL CHECK (length(subject) BETWEEN 1 AND 200),
    body       text NOT NULL CHECK (length(body) <= 20000),
    sent_at    timestamptz,
    -- The letter opens something; the program before 0.2.0 stored that in its text.
    secret     boolean NOT NULL DEFAULT false,
    ends_at    timestamptz,  -- It is of no use afterwards.
    tries      smallint NOT NULL DEFAULT 0 CHECK (tries >= 0),
    problem    text CHECK (length(problem) <= 300),  -- Of the last try.
    next_at    timestamptz DEFAULT now(),  -- NULL: it was sent or given up.
    -- The hash of the account_link that the letter carries. Its token is made when the letter is sent, and stored nowhere.
    link       bytea CHECK (length(link) = 32),
    CONSTRAINT mail_over CHECK (sent_at IS NULL OR next_at IS NULL)
);
CREATE INDEX mail_due ON mail (next_at, id) WHERE next_at IS NOT NULL;


-- ── The audit trail ──────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is something that somebody did. Rows are only added, and no row knows the one before it, so that writers do
-- not wait for one another; the worker seals them in blocks afterwards (trail_seal).
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE trail (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    -- 0 operator, 1 person, 2 key, 3 command, 4 system, 5 recipient.
    actor_kind smallint NOT NULL CHECK (actor_kind BETWEEN 0 AND 5),
    actor_id   bigint,
    actor      text NOT NULL CHECK (length(actor) BETWEEN 1 AND 300),  -- The name of the actor as it was then.
    action     text NOT NULL CHECK (action ~ '^[a-z][a-z0-9_]*([.-][a-z0-9_]+)+$' AND length(action) <= 100),
    subject    text NOT NULL CHECK (length(subject) BETWEEN 1 AND 300),  -- What it was done to.
    company_id integer,
    state      smallint CHECK (state IN (0, 1)),
    address    inet,
    request_id text CHECK (length(request_id) BETWEEN 1 AND 200),
    detail     jsonb CHECK (jsonb_typeof(detail) = 'object')
);
CREATE INDEX trail_company ON trail (company_id, id) WHERE company_id IS NOT NULL;
CREATE TRIGGER trail_append_only BEFORE UPDATE OR TRUNCATE ON trail
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row says that codes of an order were shown in one answer, however many. It is written before they leave.
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE reveal (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    order_id   bigint NOT NULL,
    company_id integer NOT NULL,
    line_from  integer NOT NULL CHECK (line_from BETWEEN 0 AND 9999),  -- The first line that was shown.
    lines      integer NOT NULL CHECK (lines BETWEEN 1 AND 10000),
    -- 0 Confirm, 1 Resolve, 2 Find, 3 Find all, 4 lines, 5 file, 6 portal, 7 redemption link, 8 Cancel.
    via        smallint NOT NULL CHECK (via BETWEEN 0 AND 8),
    actor_kind smallint NOT NULL CHECK (actor_kind BETWEEN 0 AND 5),  -- As in trail.
    actor_id   bigint,
    address    inet,
    -- Of its order, so that the policy of companies holds here, too.
    state      smallint NOT NULL GENERATED ALWAYS AS ((order_id & 1::bigint)::smallint) STORED
);
CREATE INDEX reveal_order ON reveal (order_id);
CREATE TRIGGER reveal_append_only BEFORE UPDATE OR TRUNCATE ON reveal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is a block of trail or reveal: all rows with ids above the block before it, up to its last_id. The worker
-- seals a block once no older row can come to light any more. Its hash covers the block before it: a change of a sealed
-- row breaks the chain from there on, and a rewritten chain has another head, which can be noted elsewhere
-- (docs/decisions/0023).
CREATE TABLE trail_seal (
    book     text NOT NULL CHECK (book IN ('trail', 'reveal')),
    block    bigint NOT NULL CHECK (block > 0),
    first_id bigint NOT NULL,
    last_id  bigint NOT NULL,
    rows     integer NOT NULL CHECK (rows > 0),
    previous bytea NOT NULL CHECK (length(previous) = 32),
    hash     bytea NOT NULL CHECK (length(hash) = 32),
    at       timestamptz NOT NULL DEFAULT now(),
    -- 1: its hash is a plain one, of a program before 0.2.0; 2: keyed with the key of the vault, so that somebody with the
    -- database alone can not make it.
    version  smallint NOT NULL DEFAULT 1 CHECK (version IN (1, 2)),
    PRIMARY KEY (book, block),
    CONSTRAINT trail_seal_in_order CHECK (0 < first_id AND first_id <= last_id AND rows <= (last_id - first_id + 1))
);
CREATE TRIGGER trail_seal_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON trail_seal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Refuses a block that the program before makes behind a keyed one: its worker leaves the sealing to a newer one.
CREATE FUNCTION guard_seals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM trail_seal WHERE book = NEW.book AND block = NEW.block - 1 AND version > NEW.version) THEN
        RAISE EXCEPTION 'a block without a key can not follow one with a key' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER trail_seal_stays_keyed BEFORE INSERT ON trail_seal
    FOR EACH ROW EXECUTE FUNCTION guard_seals();

-- One row ties a top-up or a correction to its row of the trail and, where a second person had to agree, to the
-- approval. The database writes it when the payment commits, and refuses a payment that has neither.
-- Companies read: (wallet_id IN ( SELECT w.id FROM wallet w)).
CREATE TABLE payment_deed (
    wallet_id   bigint NOT NULL,
    seq         bigint NOT NULL,
    trail_id    bigint UNIQUE REFERENCES trail(id),  -- NULL for payments from before this table was there.
    approval_id bigint UNIQUE REFERENCES approval(id),
    PRIMARY KEY (wallet_id, seq),
    FOREIGN KEY (wallet_id, seq) REFERENCES entry(wallet_id, seq)
);
CREATE TRIGGER payment_deed_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_deed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER payment_deed_told BEFORE INSERT ON payment_deed
    FOR EACH ROW WHEN (new.trail_id IS NULL) EXECUTE FUNCTION refuse_change();

-- Ties a top-up or a correction to the row of the trail that tells of it, when the transaction commits. Commands and
-- the program itself top up by themselves, anybody tops up play money in the sandbox, and the operator's only person
-- tops up alone (OP-151); everything else takes an approval of the same payment.
CREATE FUNCTION tie_payment() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE CONSTRAINT TRIGGER entry_payment_tied AFTER INSERT ON entry DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (new.kind IN (1, 6)) EXECUTE FUNCTION tie_payment();

-- Lets the role voucherd_service read and write rows, where there is one; it can alter no table and switch off no
-- guard. It runs after every migration, so that a new table can not be forgotten.
CREATE FUNCTION arrange_service() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF to_regrole('voucherd_service') IS NULL OR pg_has_role('voucherd_service', current_user, 'MEMBER') THEN
        RETURN false;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO voucherd_service', current_schema());
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO voucherd_service', current_schema());
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO voucherd_service', current_schema());
    REVOKE INSERT, UPDATE, DELETE ON schema_migration, archived_blocks FROM voucherd_service;
    RETURN true;
END $$;


-- ── Operation ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- The company that the transaction serves.
CREATE FUNCTION tenant_company() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
RETURN (NULLIF(current_setting('voucherd.company'::text, true), ''::text))::integer;

-- The state that the transaction serves.
CREATE FUNCTION tenant_state() RETURNS smallint LANGUAGE sql STABLE PARALLEL SAFE
RETURN (NULLIF(current_setting('voucherd.state'::text, true), ''::text))::smallint;

-- The role to take; `none` where there is none, as on a server that lets this user make no role.
CREATE FUNCTION tenant_role() RETURNS text LANGUAGE sql STABLE
RETURN CASE WHEN pg_has_role((to_regrole('voucherd_tenant'::text))::oid, 'MEMBER'::text) THEN 'voucherd_tenant'::text ELSE 'none'::text END;

-- The condition under which a company sees a row, for each table that has a company or belongs to a row that has one. A
-- condition that reads another table is under the policy of that one. An order is found by its key, row by row, because
-- a company may have millions; of wallets and endpoints it has few, so they are looked up once.
CREATE FUNCTION tenant_rules() RETURNS TABLE(relation regclass, rule text) LANGUAGE sql STABLE AS $$
    WITH special (name, rule) AS (VALUES
        ('company', 'id = tenant_company()'),
        -- In words that no index knows: an order is looked up by its key. With the company or the state at hand the server
        -- may take the index of companies, which ends in the id, and walk all orders that the company ever made.
        ('orders', 'company_id + 0 = tenant_company() AND id % 2 = tenant_state()'),
        -- An event for all companies has no company, and so has one for the operator alone. A CASE and not an OR: the
        -- planner takes an OR for two ways into the table, and gathered all events of a company to find the next fifty.
        ('event', 'CASE WHEN company_id IS NULL THEN type = ''product.updated'' AND coalesce(state = tenant_state(), true)'
                  ' ELSE company_id = tenant_company() AND state = tenant_state() END')
    ), owner (place, name, rule) AS (VALUES
        (1, 'company_id', 'company_id = tenant_company()'),
        (2, 'order_id', '(SELECT o.company_id FROM orders o WHERE o.id = order_id) = tenant_company()'),
        (3, 'wallet_id', 'wallet_id IN (SELECT w.id FROM wallet w)'),
        (4, 'webhook_id', 'webhook_id IN (SELECT w.id FROM webhook w)')
    ), owned AS (
        SELECT c.oid, c.relname, o.place, o.rule,
               bool_or(a.attname = 'state' AND a.atttypid = 'smallint'::regtype) OVER (PARTITION BY c.oid) AS has_state
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        -- An order that may be missing, as of an entry, owns nothing.
        LEFT JOIN owner o ON o.name = a.attname AND (a.attnotnull OR o.place = 1)
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    )
    SELECT c.oid::regclass, s.rule FROM special s
    JOIN pg_class c ON c.relname = s.name AND c.relnamespace = current_schema()::regnamespace
    UNION ALL
    SELECT * FROM (
        SELECT DISTINCT ON (oid) oid::regclass,
               rule || CASE WHEN place = 1 AND has_state THEN ' AND state = tenant_state()' ELSE '' END
        FROM owned WHERE place IS NOT NULL AND relname NOT IN (SELECT name FROM special) ORDER BY oid, place) first
$$;

-- Makes the role if this user may, and the policies and rights that are missing; returns whether it could. It runs
-- after every migration, so that a table with a company can not be forgotten.
CREATE FUNCTION arrange_tenants() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    one record;
    -- Tables that no company reads: hashes, answers and purchases of the operator. They have a policy all the same.
    hidden text[] := '{app_user,attempt_line,idempotency,order_pin,pin_try}';
    -- Tables without a company that it may read: the goods for sale, and the mark of the feed of events.
    shared text[] := '{brand,product,product_version,product_listing,product_count,product_change,fx_rate,vat_rate,event_mark}';
BEGIN
    BEGIN
        IF to_regrole('voucherd_tenant') IS NULL THEN
            CREATE ROLE voucherd_tenant NOLOGIN;
        END IF;
    EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL;  -- Another database of this server was faster.
        WHEN insufficient_privilege THEN RETURN false;
    END;
    IF (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = 'voucherd_tenant') THEN
        RETURN false;
    END IF;
    BEGIN
        IF NOT pg_has_role('voucherd_tenant', 'MEMBER') THEN
            -- Not inherited: its policies are for those who take the role, not for those who may.
            EXECUTE 'GRANT voucherd_tenant TO CURRENT_USER'
                || CASE WHEN current_setting('server_version_num')::int >= 160000 THEN ' WITH INHERIT FALSE, SET TRUE' ELSE '' END;
        END IF;
    EXCEPTION WHEN insufficient_privilege THEN RETURN false;
    END;
    IF NOT has_schema_privilege('voucherd_tenant', current_schema(), 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO voucherd_tenant', current_schema());
    END IF;
    FOR one IN
        SELECT r.relation, r.rule FROM tenant_rules() r
        WHERE NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = r.relation AND p.polname = 'tenant') ORDER BY 1
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', one.relation);
        EXECUTE format('CREATE POLICY everybody ON %s USING (true) WITH CHECK (true)', one.relation);
        EXECUTE format('CREATE POLICY tenant ON %s AS RESTRICTIVE TO voucherd_tenant USING (%s)', one.relation, one.rule);
    END LOOP;
    FOR one IN
        SELECT relation FROM tenant_rules() WHERE relation <> ALL (SELECT coalesce(to_regclass(name), 0) FROM unnest(hidden) name)
        UNION SELECT to_regclass(name) FROM unnest(shared) AS name ORDER BY 1
    LOOP
        IF NOT has_table_privilege('voucherd_tenant', one.relation, 'SELECT') THEN
            EXECUTE format('GRANT SELECT ON %s TO voucherd_tenant', one.relation);
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- One row says how far a periodic task of the worker has come.
CREATE TABLE sweep (
    name text PRIMARY KEY,
    upto timestamptz NOT NULL
);

-- One row is a worker of a program before 0.2.0, which says every few seconds that it runs; process_seen took its
-- place.
CREATE TABLE worker_seen (
    id         uuid PRIMARY KEY,
    host       text NOT NULL CHECK (length(host) BETWEEN 1 AND 200),
    pid        integer NOT NULL CHECK (pid > 0),
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
);

-- One row is a backup that was taken.
CREATE TABLE backup (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now(),
    bytes   bigint NOT NULL CHECK (bytes > 0),
    seconds double precision NOT NULL CHECK (seconds >= 0::double precision)
);
CREATE TRIGGER backup_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON backup
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row is a process, of the API or a worker, that says every second that it runs. It takes its row along when it
-- ends; one that can not is found out by its neighbours on the machine, or by its silence.
CREATE TABLE process_seen (
    id         uuid PRIMARY KEY,
    host       text NOT NULL CHECK (length(host) BETWEEN 1 AND 200),
    pid        integer NOT NULL CHECK (pid > 0),
    -- Where its number means something: this start of the machine, and the namespace of its processes. NULL: not known.
    place      text CHECK (length(place) BETWEEN 1 AND 200),
    works      boolean NOT NULL,  -- Whether it does the background work.
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor=50);

-- One row is a check of the audit that found nothing wrong, and how far it had looked. A run of the audit writes all of
-- them together, and a row of the trail with their hash: marks that somebody moved are not believed.
CREATE TABLE audit_mark (
    name     text PRIMARY KEY,
    at       timestamptz NOT NULL,  -- When the snapshot was taken in which all was well.
    event_id bigint NOT NULL,  -- Every event up to this one was in that snapshot.
    trail_id bigint NOT NULL  -- The row of the trail that vouches for the marks.
);

-- One row is a wallet as the last run of the audit that marks found it. The next run adds the entries since, and must
-- come to what the wallet says.
CREATE TABLE audit_wallet (
    id            bigint PRIMARY KEY,  -- Of the wallet.
    seq           bigint NOT NULL,
    balance_minor bigint NOT NULL,
    held_minor    bigint NOT NULL
) WITH (fillfactor=70);


-- ── Sales cost less ──────────────────────────────────────────────────────────────────────────────────────────────────

-- Refuses an item without an order, a company or a product. Three foreign keys do the same and cost 20 µs a row
-- (measured); this costs three.
CREATE FUNCTION guard_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM fresh f
               LEFT JOIN orders o ON o.id = f.order_id
               LEFT JOIN company c ON c.id = o.company_id
               LEFT JOIN product_version v ON v.id = f.version_id
               WHERE c.id IS NULL OR v.id IS NULL) THEN
        RAISE EXCEPTION 'an item needs an order of a company and a version of a product'
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER order_item_has_order AFTER INSERT ON order_item REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_items();

-- The items of an order go with it.
CREATE FUNCTION remove_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM order_item i USING gone WHERE i.order_id = gone.id;
    RETURN NULL;
END $$;
CREATE TRIGGER orders_take_items_along AFTER DELETE ON orders REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION remove_items();


-- ── Catalogue ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is the place of a product for sale in one of the orders. An order is cut into stretches: every product whose
-- id 1024 divides begins one. A search walks along the stretches and stops when its page is full, so it costs the same
-- for a word of ten products and for a word of all of them (docs/decisions/0030).
CREATE TABLE product_place (
    sort       text COLLATE "C" NOT NULL CHECK (sort IN ('name', 'brand', 'price', 'face', 'slug')),
    key        text COLLATE "C" NOT NULL,  -- Everything that the order compares before the id, as one text.
    product_id integer NOT NULL,
    stretch    integer NOT NULL,  -- The product that begins the stretch; 0 before the first of them.
    -- Each with its order and stretch before it: n1024/gift is a word of the name, brand or slug, n1024=acme the brand,
    -- n1024#food the category.
    words      tsvector NOT NULL,
    PRIMARY KEY (sort, key, product_id)
);
CREATE INDEX product_place_product ON product_place (product_id);
-- The stretches of an order.
CREATE INDEX product_place_start ON product_place (sort, key, product_id) WHERE (product_id % 1024) = 0;
CREATE INDEX product_place_words ON product_place USING gin (words) WITH (fastupdate=off);

-- The stretch to which a place belongs.
CREATE FUNCTION stretch_of(sort text, key text, product_id integer) RETURNS integer LANGUAGE sql STABLE PARALLEL
    SAFE
BEGIN ATOMIC
 SELECT COALESCE(( SELECT p.product_id
            FROM product_place p
           WHERE (((p.product_id % 1024) = 0) AND (p.sort = stretch_of.sort) AND (ROW(p.key, p.product_id) <= ROW(stretch_of.key, stretch_of.product_id)))
           ORDER BY p.key DESC, p.product_id DESC
          LIMIT 1), 0) AS "coalesce";
END;

-- What a place in this stretch is found by.
CREATE FUNCTION stretch_words(sort text, stretch integer, terms text[]) RETURNS tsvector LANGUAGE sql IMMUTABLE
    PARALLEL SAFE STRICT
RETURN array_to_tsvector(string_to_array((("left"(sort, 1) || stretch) || array_to_string(terms, (('
'::text || "left"(sort, 1)) || stretch))), '
'::text));

-- The places of the listings of these products, in each order.
CREATE FUNCTION places_of(ids integer[]) RETURNS TABLE(sort text, key text, product_id integer, terms text[])
    LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT one.sort,
     one.key,
     l.product_id,
     (ARRAY[('='::text || l.brand_slug), ('#'::text || l.category)] || string_to_array(('/'::text || array_to_string(tsvector_to_array(l.words), '
/'::text)), '
'::text))
    FROM ((unnest(places_of.ids) wanted(id)
      JOIN product_listing l ON ((l.product_id = wanted.id)))
      CROSS JOIN LATERAL ( VALUES ('name'::text,l.name_key), ('brand'::text,((l.brand_key || ''::text) || l.name_key)), ('price'::text,(l.price_currency || lpad((l.price_minor)::text, 19, '0'::text))), ('face'::text,(l.face_currency || lpad((l.face_low)::text, 19, '0'::text))), ('slug'::text,l.slug)) one(sort, key));
END;

-- Brings the places of these products up to date. The caller has listed them, and holds the turn of changes.
CREATE FUNCTION place_products(ids integer[]) RETURNS void LANGUAGE plpgsql SET enable_seqscan TO 'off' SET
    enable_hashjoin TO 'off' SET enable_mergejoin TO 'off' AS $$
DECLARE
    gone product_place[];
    come product_place[];
BEGIN
    WITH stale AS (
        DELETE FROM product_place p
        WHERE p.product_id = ANY(ids) AND NOT EXISTS (
            SELECT FROM places_of(ARRAY[p.product_id]) f
            WHERE f.sort = p.sort AND f.key = p.key AND stretch_words(p.sort, p.stretch, f.terms) = p.words)
        RETURNING p AS place)
    SELECT array_agg(place) INTO gone FROM stale WHERE (place).product_id % 1024 = 0;

    -- Those that begin a stretch come first, so that the others find it.
    WITH fresh AS (
        INSERT INTO product_place (sort, key, product_id, stretch, words)
        SELECT f.sort, f.key, f.product_id, f.product_id, stretch_words(f.sort, f.product_id, f.terms)
        FROM places_of(ids) f WHERE f.product_id % 1024 = 0
        ON CONFLICT DO NOTHING RETURNING product_place AS place)
    SELECT array_agg(place) INTO come FROM fresh;
    INSERT INTO product_place (sort, key, product_id, stretch, words)
    SELECT f.sort, f.key, f.product_id, s.stretch, stretch_words(f.sort, s.stretch, f.terms)
    FROM places_of(ids) f
    CROSS JOIN LATERAL (SELECT stretch_of(f.sort, f.key, f.product_id) AS stretch OFFSET 0) s
    WHERE f.product_id % 1024 <> 0
    -- Places that are read together come to lie together.
    ORDER BY f.sort COLLATE "C", f.key COLLATE "C", f.product_id
    ON CONFLICT DO NOTHING;

    -- Where a stretch begins or no longer does, the places behind it change theirs.
    IF gone IS NOT NULL OR come IS NOT NULL THEN
        UPDATE product_place p
        SET stretch = moved.stretch,
            words = stretch_words(p.sort, moved.stretch, ARRAY(
                SELECT substr(word, length(left(p.sort, 1) || p.stretch) + 1)
                FROM unnest(tsvector_to_array(p.words)) AS word))
        FROM (SELECT start.*, stretch_of(start.sort, start.key, start.product_id) AS stretch, ending.*
              FROM (SELECT DISTINCT t.sort, t.key, t.product_id FROM unnest(gone || come) t) start
              CROSS JOIN LATERAL (
                  SELECT n.key, n.product_id FROM product_place n
                  WHERE n.product_id % 1024 = 0 AND n.sort = start.sort
                    AND (n.key, n.product_id) > (start.key, start.product_id)
                  UNION ALL SELECT chr(1114111), 0
                  ORDER BY 1, 2 LIMIT 1) ending (end_key, end_id)
              OFFSET 0) moved
        WHERE p.sort = moved.sort AND (p.key, p.product_id) > (moved.key, moved.product_id)
          AND (p.key, p.product_id) < (moved.end_key, moved.end_id) AND p.stretch <> moved.stretch;
    END IF;
END $$;


-- ── Keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Writes the present role of the person who answers for a key beside it; refuses people and keys of others.
CREATE FUNCTION note_maker() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    maker app_user;
BEGIN
    NEW.maker_role := NULL;
    IF NEW.made_by IS NOT NULL THEN
        -- Locked, so that a person who is losing a right just now makes no key that keeps it.
        SELECT * INTO maker FROM app_user WHERE id = NEW.made_by FOR SHARE;
        IF maker.company_id IS DISTINCT FROM NEW.company_id THEN
            RAISE EXCEPTION 'people of its own company answer for a key'
                USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        NEW.maker_role := CASE WHEN maker.active THEN maker.role ELSE '' END;
    END IF;
    IF NEW.parent_id IS NOT NULL
       AND NOT EXISTS (SELECT FROM api_key p
                       WHERE p.id = NEW.parent_id AND p.company_id = NEW.company_id AND p.state = NEW.state
                         AND p.id <> NEW.id) THEN
        RAISE EXCEPTION 'a key is made with another one of its company and state'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER api_key_lineage BEFORE INSERT OR UPDATE OF made_by, maker_role, parent_id ON api_key
    FOR EACH ROW EXECUTE FUNCTION note_maker();

-- A person who gets another role or is let in no more: the keys that the person answers for lose what the person lost,
-- in the same transaction, whichever program does it.
CREATE FUNCTION tell_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE api_key SET made_by = made_by WHERE made_by = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER app_user_keys AFTER UPDATE OF role, active ON app_user
    FOR EACH ROW WHEN (old.role IS DISTINCT FROM new.role OR old.active IS DISTINCT FROM new.active) EXECUTE
        FUNCTION tell_keys();


-- ── Recovery ─────────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is a restore of this database to an earlier moment (OP-119). While recovered_at is NULL nothing may be sold.
CREATE TABLE recovery (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    noted_at     timestamptz NOT NULL DEFAULT now(),
    moment       timestamptz NOT NULL,  -- What happened after it is unknown to this database.
    source       text NOT NULL CHECK (length(source) BETWEEN 1 AND 300),  -- What it was restored from, in words.
    recovered_at timestamptz  -- When `voucherd recover` withheld codes and let the numbers jump.
);
CREATE UNIQUE INDEX recovery_open ON recovery ((true)) WHERE recovered_at IS NULL;
CREATE TRIGGER recovery_kept BEFORE DELETE OR UPDATE OF id, noted_at, moment, source OR TRUNCATE ON recovery
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER recovery_once BEFORE UPDATE OF recovered_at ON recovery
    FOR EACH ROW WHEN (old.recovered_at IS NOT NULL) EXECUTE FUNCTION refuse_change();

-- One row is a range of codes of a lot that may have been sold in a time that this database does not know. The cursor
-- of the lot has passed them, so nobody sells them from there.
CREATE TABLE withheld (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recovery_id bigint NOT NULL REFERENCES recovery(id),
    lot_id      bigint NOT NULL,
    seq_from    integer NOT NULL CHECK (seq_from >= 0),
    seq_to      integer NOT NULL,
    UNIQUE (lot_id, seq_from),
    CONSTRAINT withheld_some CHECK (seq_from < seq_to)
);
CREATE TRIGGER withheld_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON withheld
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Refuses to withhold a code twice, a code that was sold, or one that may still be sold. It stands for a foreign key,
-- too, which every sale would pay for.
CREATE FUNCTION guard_withheld() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM lot WHERE id IN (SELECT lot_id FROM fresh) ORDER BY id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM fresh f LEFT JOIN lot l ON l.id = f.lot_id
        WHERE l.id IS NULL OR f.seq_to > l.cursor
           OR EXISTS (SELECT FROM withheld w WHERE w.lot_id = f.lot_id AND w.id <> f.id
                      AND w.seq_from < f.seq_to AND w.seq_to > f.seq_from)
           OR EXISTS (SELECT FROM outcome o WHERE o.lot_id = f.lot_id AND o.seq_from < f.seq_to
                      AND o.seq_from + (o.line_to - o.line_from) > f.seq_from)) THEN
        RAISE EXCEPTION 'these codes were sold or withheld already, or the cursor has not passed them'
            USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER withheld_guard AFTER INSERT ON withheld REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_withheld();

-- One row is a range of withheld codes that the operator found unsold. They moved to a new lot, because a lot sells
-- forwards only.
CREATE TABLE withheld_release (
    lot_id      bigint PRIMARY KEY,  -- The lot that they are in now.
    withheld_id bigint NOT NULL REFERENCES withheld(id),
    seq_from    integer NOT NULL,
    seq_to      integer NOT NULL,
    released_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT withheld_release_some CHECK (seq_from < seq_to)
);
CREATE INDEX withheld_release_of ON withheld_release (withheld_id);
CREATE TRIGGER withheld_release_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON withheld_release
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Refuses to release a code that is not withheld, or was released already.
CREATE FUNCTION guard_releases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM lot WHERE id IN (SELECT w.lot_id FROM fresh f JOIN withheld w ON w.id = f.withheld_id)
    ORDER BY id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM fresh f JOIN withheld w ON w.id = f.withheld_id LEFT JOIN lot l ON l.id = f.lot_id
        WHERE l.id IS NULL OR f.seq_from < w.seq_from OR f.seq_to > w.seq_to
           OR EXISTS (SELECT FROM withheld_release r WHERE r.withheld_id = f.withheld_id AND r.lot_id <> f.lot_id
                      AND r.seq_from < f.seq_to AND r.seq_to > f.seq_from)) THEN
        RAISE EXCEPTION 'these codes are not withheld' USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER withheld_release_guard AFTER INSERT ON withheld_release REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION guard_releases();

-- Refuses to move a code that was not released to the lot it goes to.
CREATE FUNCTION guard_code_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM withheld_release r JOIN withheld w ON w.id = r.withheld_id
                   WHERE r.lot_id = NEW.lot_id AND w.lot_id = OLD.lot_id
                     AND OLD.seq >= r.seq_from AND OLD.seq < r.seq_to AND NEW.seq = OLD.seq - r.seq_from) THEN
        RAISE EXCEPTION 'a code stays in its place' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER code_stays BEFORE UPDATE OF lot_id, seq ON code
    FOR EACH ROW EXECUTE FUNCTION guard_code_moves();

-- One row is a restore that was tried out beside the database (OP-122), and how it ended.
CREATE TABLE drill (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT now(),
    backup_at timestamptz NOT NULL,  -- When the backup was taken that was tried.
    ok        boolean NOT NULL,
    said      text NOT NULL CHECK (length(said) <= 500),  -- What was wrong; empty if nothing was.
    seconds   double precision NOT NULL CHECK (seconds >= 0::double precision)
);
CREATE TRIGGER drill_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON drill
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();


-- ── The archive ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is a month (UTC) whose orders were written to files, which were then read back and compared (OP-129).
CREATE TABLE archive_month (
    month      date PRIMARY KEY CHECK (EXTRACT(day FROM month) = 1::numeric),
    orders     bigint NOT NULL CHECK (orders >= 0),  -- In its files.
    last_at    timestamptz NOT NULL,  -- Nothing of it was delivered or cancelled after this.
    written_at timestamptz NOT NULL DEFAULT now(),
    removed_at timestamptz  -- When the last of its orders left the tables; NULL: they are leaving.
);

-- One row is a file of a month. An order that is in no table is looked for in the files whose numbers reach over its
-- own.
CREATE TABLE archive_file (
    month    date NOT NULL REFERENCES archive_month(month),
    name     text NOT NULL CHECK (name ~ '^[0-9a-z-]{1,60}\.parquet$'),
    first_id bigint NOT NULL,
    last_id  bigint NOT NULL,
    orders   integer NOT NULL CHECK (orders > 0),
    bytes    bigint NOT NULL CHECK (bytes > 0),
    sha256   bytea NOT NULL CHECK (length(sha256) = 32),
    PRIMARY KEY (month, name),
    CONSTRAINT archive_file_in_order CHECK (first_id <= last_id)
);

-- One row is what the orders of a month that left the tables were charged and refunded in one wallet, which is the sum
-- of the entries that left with them.
-- Companies read: (wallet_id IN ( SELECT w.id FROM wallet w)).
CREATE TABLE archived_wallet (
    wallet_id      bigint NOT NULL REFERENCES wallet(id),
    month          date NOT NULL REFERENCES archive_month(month),
    orders         bigint NOT NULL CHECK (orders > 0),
    charged_minor  bigint NOT NULL CHECK (charged_minor >= 0),
    refunded_minor bigint NOT NULL,
    PRIMARY KEY (wallet_id, month),
    CONSTRAINT archived_wallet_refunds CHECK (refunded_minor BETWEEN 0 AND charged_minor)
);

-- One row is how a wallet stood behind the last of its entries that left the tables. From there on its entries are
-- without a gap; of those up to there only top-ups, corrections and entries of orders that stayed are left.
-- Companies read: (wallet_id IN ( SELECT w.id FROM wallet w)).
CREATE TABLE archived_ledger (
    wallet_id     bigint PRIMARY KEY REFERENCES wallet(id),
    seq           bigint NOT NULL CHECK (seq > 0),  -- The number of that entry.
    balance_minor bigint NOT NULL,
    held_minor    bigint NOT NULL,
    CONSTRAINT archived_ledger_not_overdrawn CHECK (held_minor >= 0 AND balance_minor >= held_minor)
);

-- One row is a range of codes of a lot that were sold to orders which left the tables. Ranges that touch are one.
CREATE TABLE archived_codes (
    lot_id   bigint NOT NULL,
    seq_from integer NOT NULL CHECK (seq_from >= 0),
    seq_to   integer NOT NULL,
    PRIMARY KEY (lot_id, seq_from),
    CONSTRAINT archived_codes_some CHECK (seq_from < seq_to)
);

-- One row is how many lines of a purchase were of orders which left the tables.
CREATE TABLE archived_purchase (
    attempt_id uuid NOT NULL REFERENCES attempt(id),
    month      date NOT NULL REFERENCES archive_month(month),
    lines      integer NOT NULL CHECK (lines > 0),
    PRIMARY KEY (attempt_id, month)
);

-- One row is as in line_view, of a line whose order left the tables: links are opened years later, too.
-- Companies read: company_id = tenant_company().
CREATE TABLE archived_view (
    order_id          bigint NOT NULL,
    line              integer NOT NULL CHECK (line >= 0),
    company_id        integer NOT NULL REFERENCES company(id),
    link_viewed_at    timestamptz,
    voucher_viewed_at timestamptz,
    returned_at       timestamptz,
    PRIMARY KEY (order_id, line),
    CONSTRAINT archived_view_in_order CHECK (voucher_viewed_at >= link_viewed_at),
    CONSTRAINT archived_view_opened_first CHECK (voucher_viewed_at IS NULL OR link_viewed_at IS NOT NULL),
    CONSTRAINT archived_view_says_something CHECK (num_nonnulls(link_viewed_at, returned_at) > 0)
);
CREATE TRIGGER archived_view_once BEFORE UPDATE ON archived_view
    FOR EACH ROW WHEN (new.order_id <> old.order_id OR new.line <> old.line OR new.company_id <> old.company_id OR
        old.link_viewed_at IS NOT NULL AND new.link_viewed_at IS DISTINCT FROM old.link_viewed_at OR
        old.voucher_viewed_at IS NOT NULL AND new.voucher_viewed_at IS DISTINCT FROM old.voucher_viewed_at OR
        old.returned_at IS NOT NULL AND new.returned_at IS DISTINCT FROM old.returned_at) EXECUTE FUNCTION
        refuse_change();

-- Refuses changes but those of the archive, which the owner of the tables makes. The role of the service can not.
CREATE FUNCTION refuse_unarchived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('voucherd.archiving', true) = 'on' AND TG_OP <> 'TRUNCATE'
       AND (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = TG_RELID) THEN
        IF TG_LEVEL = 'STATEMENT' THEN
            RETURN NULL;
        END IF;
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER entry_kept BEFORE DELETE ON entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
-- Only an order that was never confirmed may be removed (OP-40), and one that is in the archive (OP-129).
CREATE TRIGGER orders_kept BEFORE DELETE ON orders
    FOR EACH ROW WHEN (old.status <> 0) EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER outcome_kept BEFORE DELETE ON outcome
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER attempt_line_kept BEFORE DELETE ON attempt_line
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER line_view_stays BEFORE DELETE OR TRUNCATE ON line_view
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER trail_kept BEFORE DELETE ON trail
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER reveal_kept BEFORE DELETE ON reveal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archive_month_kept BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON archive_month
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archive_file_kept BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON archive_file
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_wallet_kept BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON archived_wallet
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_ledger_kept BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON archived_ledger
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_codes_kept BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON archived_codes
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_purchase_kept BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON archived_purchase
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_view_stays BEFORE DELETE OR TRUNCATE ON archived_view
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();

-- Keeps which codes were sold to orders that leave, as ranges; refuses a code that was sold to two of them.
CREATE FUNCTION remember_archived_codes(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    lots   bigint[];
    starts integer[];
    ends   integer[];
    sold   bigint;
BEGIN
    -- Ranges that are there already count where they lie between the new ones, or touch them.
    WITH fresh AS (
        SELECT lot_id, seq_from, seq_from + line_to - line_from AS seq_to FROM outcome
        WHERE order_id = ANY (ids) AND lot_id IS NOT NULL
    ), taken AS (
        SELECT * FROM fresh
        UNION ALL
        SELECT a.lot_id, a.seq_from, a.seq_to
        FROM (SELECT lot_id, min(seq_from) AS low, max(seq_to) AS high FROM fresh GROUP BY lot_id) f
        JOIN archived_codes a ON a.lot_id = f.lot_id AND a.seq_from <= f.high AND a.seq_to >= f.low
    ), merged AS (
        SELECT lot_id, range_agg(int4range(seq_from, seq_to)) AS ranges FROM taken GROUP BY lot_id
    )
    SELECT array_agg(m.lot_id), array_agg(lower(one)), array_agg(upper(one)), (SELECT sum(seq_to - seq_from) FROM taken)
    INTO lots, starts, ends, sold
    FROM merged m CROSS JOIN LATERAL unnest(m.ranges) AS one;
    IF sold <> (SELECT sum(r.seq_to - r.seq_from) FROM unnest(starts, ends) AS r (seq_from, seq_to)) THEN
        RAISE EXCEPTION 'a code was sold twice' USING ERRCODE = 'exclusion_violation';
    END IF;
    DELETE FROM archived_codes a
    USING (SELECT r.lot_id, min(r.seq_from) AS low, max(r.seq_to) AS high
           FROM unnest(lots, starts, ends) AS r (lot_id, seq_from, seq_to) GROUP BY 1) f
    WHERE a.lot_id = f.lot_id AND a.seq_from >= f.low AND a.seq_to <= f.high;
    INSERT INTO archived_codes (lot_id, seq_from, seq_to)
    SELECT r.lot_id, r.seq_from, r.seq_to FROM unnest(lots, starts, ends) AS r (lot_id, seq_from, seq_to);
END $$;

-- Takes the entries of orders out of the ledger, and leaves behind how each wallet stood after the last of them.
CREATE FUNCTION remove_archived_entries(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM orders o LEFT JOIN entry e ON e.order_id = o.id LEFT JOIN wallet w ON w.id = e.wallet_id
        WHERE o.id = ANY (ids) GROUP BY o.id
        HAVING coalesce(sum(e.amount_minor), 0) <> o.refunded_minor - o.charged_minor
            OR coalesce(sum(e.hold_minor), 0) <> 0
            OR NOT coalesce(bool_and((w.company_id, w.currency, w.state)
                                     IS NOT DISTINCT FROM (o.company_id, o.payment_currency, (o.id & 1)::smallint))
                            FILTER (WHERE e.seq IS NOT NULL), true)) THEN
        RAISE EXCEPTION 'the entries of an order are not what it was charged and refunded'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    -- From where the last run has left to the last entry that goes now, every one is there and carries on.
    IF EXISTS (
        SELECT FROM (SELECT wallet_id, max(seq) AS seq FROM entry WHERE order_id = ANY (ids) GROUP BY 1) last
        JOIN entry e ON e.wallet_id = last.wallet_id AND e.seq = last.seq
        LEFT JOIN archived_ledger a ON a.wallet_id = last.wallet_id
        CROSS JOIN LATERAL (
            SELECT count(*) AS count, sum(b.amount_minor) AS amount, sum(b.hold_minor) AS hold FROM entry b
            WHERE b.wallet_id = last.wallet_id AND b.seq > coalesce(a.seq, 0) AND b.seq <= last.seq) between_them
        WHERE last.seq > coalesce(a.seq, 0)
          AND (between_them.count <> last.seq - coalesce(a.seq, 0)
               OR coalesce(a.balance_minor, 0) + between_them.amount <> e.balance_after_minor
               OR coalesce(a.held_minor, 0) + between_them.hold <> e.held_after_minor)) THEN
        RAISE EXCEPTION 'the entries of a wallet do not continue one another'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    INSERT INTO archived_ledger AS a (wallet_id, seq, balance_minor, held_minor)
    SELECT e.wallet_id, e.seq, e.balance_after_minor, e.held_after_minor
    FROM (SELECT wallet_id, max(seq) AS seq FROM entry WHERE order_id = ANY (ids) GROUP BY 1) last
    JOIN entry e ON e.wallet_id = last.wallet_id AND e.seq = last.seq
    ON CONFLICT (wallet_id) DO UPDATE
    SET seq = excluded.seq, balance_minor = excluded.balance_minor, held_minor = excluded.held_minor
    WHERE a.seq < excluded.seq;
    DELETE FROM entry WHERE order_id = ANY (ids);
END $$;

-- Takes orders of a month out of the tables, with their entries. What the books need of them stays behind: sums for
-- each wallet, ranges of codes, lines of purchases, and what recipients saw. Only the owner of the tables may.
CREATE FUNCTION remove_archived(of_month date, ids bigint[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    removed integer;
BEGIN
    PERFORM FROM archive_month WHERE month = of_month AND removed_at IS NULL FOR UPDATE;
    IF NOT FOUND OR of_month + interval '2 months' > now() AT TIME ZONE 'UTC' THEN
        RAISE EXCEPTION 'the orders of % were not written to files, or are too young', of_month
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM FROM orders WHERE id = ANY (ids) ORDER BY id FOR UPDATE;
    IF EXISTS (
        SELECT FROM orders o
        WHERE o.id = ANY (ids) AND (o.status NOT IN (2, 3, 4) OR o.held_minor <> 0
            OR date_trunc('month', o.created_at AT TIME ZONE 'UTC') <> of_month
            OR NOT EXISTS (SELECT FROM archive_file f
                           WHERE f.month = of_month AND o.id BETWEEN f.first_id AND f.last_id)
            OR EXISTS (SELECT FROM waiting w WHERE w.order_id = o.id)
            OR EXISTS (SELECT FROM order_pin p WHERE p.order_id = o.id)
            OR EXISTS (SELECT FROM approval p WHERE p.order_id = o.id)
            OR EXISTS (SELECT FROM attempt_line l JOIN attempt a ON a.id = l.attempt_id
                       WHERE l.order_id = o.id AND a.status < 3))) THEN
        RAISE EXCEPTION 'an order that is not over, or not of this month, stays in its table'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM set_config('voucherd.archiving', 'on', true);

    INSERT INTO archived_wallet AS a (wallet_id, month, orders, charged_minor, refunded_minor)
    SELECT w.id, of_month, count(*), sum(o.charged_minor), sum(o.refunded_minor)
    FROM orders o JOIN wallet w
      ON w.company_id = o.company_id AND w.currency = o.payment_currency AND w.state = (o.id & 1)
    WHERE o.id = ANY (ids) GROUP BY w.id
    ON CONFLICT (wallet_id, month) DO UPDATE
    SET orders = a.orders + excluded.orders, charged_minor = a.charged_minor + excluded.charged_minor,
        refunded_minor = a.refunded_minor + excluded.refunded_minor;

    PERFORM remember_archived_codes(ids);

    INSERT INTO archived_purchase AS a (attempt_id, month, lines)
    SELECT attempt_id, of_month, sum(line_to - line_from) FROM attempt_line WHERE order_id = ANY (ids) GROUP BY 1
    ON CONFLICT (attempt_id, month) DO UPDATE SET lines = a.lines + excluded.lines;

    INSERT INTO archived_view (order_id, line, company_id, link_viewed_at, voucher_viewed_at, returned_at)
    SELECT v.order_id, v.line, o.company_id, v.link_viewed_at, v.voucher_viewed_at, v.returned_at
    FROM line_view v JOIN orders o ON o.id = v.order_id WHERE v.order_id = ANY (ids);

    PERFORM remove_archived_entries(ids);
    DELETE FROM line_view WHERE order_id = ANY (ids);
    DELETE FROM attempt_line WHERE order_id = ANY (ids);
    DELETE FROM outcome WHERE order_id = ANY (ids);
    DELETE FROM orders WHERE id = ANY (ids);
    GET DIAGNOSTICS removed = ROW_COUNT;
    PERFORM set_config('voucherd.archiving', 'off', true);
    RETURN removed;
END $$;


-- ── The archive of the audit trail ───────────────────────────────────────────────────────────────────────────────────

-- One row is a file with whole blocks of trail or reveal, from the first block of the book on without a gap. Its blocks
-- were read back, and have the hashes that trail_seal tells (OP-134).
CREATE TABLE archived_blocks (
    book        text NOT NULL CHECK (book IN ('trail', 'reveal')),
    first_block bigint NOT NULL CHECK (first_block > 0),
    last_block  bigint NOT NULL,
    first_id    bigint NOT NULL,
    last_id     bigint NOT NULL,
    rows        bigint NOT NULL CHECK (rows > 0),
    last_at     timestamptz NOT NULL,  -- No row of it is younger.
    bytes       bigint NOT NULL CHECK (bytes > 0),
    sha256      bytea NOT NULL CHECK (length(sha256) = 32),
    written_at  timestamptz NOT NULL DEFAULT now(),
    removed_at  timestamptz,  -- When the last of its rows left the table; NULL: they are leaving.
    PRIMARY KEY (book, first_block),
    CONSTRAINT archived_blocks_in_order CHECK (first_block <= last_block AND first_id <= last_id)
);
CREATE TRIGGER archived_blocks_kept BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON archived_blocks
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived();
CREATE TRIGGER archived_blocks_once BEFORE UPDATE ON archived_blocks
    FOR EACH ROW WHEN (old.removed_at IS NOT NULL OR (to_jsonb(new.*) - 'removed_at') <> (to_jsonb(old.*) -
        'removed_at')) EXECUTE FUNCTION refuse_change();

-- Refuses a file of blocks that were not sealed so, or that leaves a gap behind the files before it.
CREATE FUNCTION guard_archived_blocks() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before record;
    sealed record;
BEGIN
    SELECT last_block, last_id INTO before FROM archived_blocks
    WHERE book = NEW.book ORDER BY first_block DESC LIMIT 1;
    IF NEW.first_block <> coalesce(before.last_block, 0) + 1 THEN
        RAISE EXCEPTION 'only blocks that follow those in the archive may follow them there'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT count(*) AS blocks, sum(s.rows) AS rows, min(s.first_id) AS first_id, max(s.last_id) AS last_id INTO sealed
    FROM trail_seal s WHERE s.book = NEW.book AND s.block BETWEEN NEW.first_block AND NEW.last_block;
    IF (sealed.blocks, sealed.rows, sealed.first_id, sealed.last_id)
       IS DISTINCT FROM (NEW.last_block - NEW.first_block + 1, NEW.rows::numeric, NEW.first_id, NEW.last_id) THEN
        RAISE EXCEPTION 'the file does not hold the blocks that were sealed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER archived_blocks_follow BEFORE INSERT ON archived_blocks
    FOR EACH ROW EXECUTE FUNCTION guard_archived_blocks();

-- Takes whole blocks that are in a file out of their table. Rows of the trail that payments are tied to stay. Only the
-- owner of the tables may.
CREATE FUNCTION remove_archived_blocks(of_book text, from_block bigint, to_block bigint) RETURNS integer LANGUAGE
    plpgsql AS $$
DECLARE
    file    record;
    low     bigint;
    high    bigint;
    sealed  bigint;
    stored  record;
    removed integer;
BEGIN
    SELECT * INTO file FROM archived_blocks
    WHERE book = of_book AND first_block <= from_block AND last_block >= to_block AND removed_at IS NULL FOR UPDATE;
    IF NOT FOUND OR from_block > to_block OR file.last_at + interval '1 month' > now() THEN
        RAISE EXCEPTION 'blocks % to % of % are in no file, or too young', from_block, to_block, of_book
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT min(first_id) - 1, max(last_id), sum(rows) INTO low, high, sealed FROM trail_seal
    WHERE book = of_book AND block BETWEEN from_block AND to_block;
    EXECUTE format('SELECT count(*) AS count, max(at) AS last_at FROM %I WHERE id > $1 AND id <= $2', of_book)
        INTO stored USING low, high;
    IF stored.count <> sealed OR stored.last_at > file.last_at THEN
        RAISE EXCEPTION 'blocks % to % of % are not whole in their table', from_block, to_block, of_book
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM set_config('voucherd.archiving', 'on', true);
    IF of_book = 'reveal' THEN
        DELETE FROM reveal WHERE id > low AND id <= high;
    ELSE
        DELETE FROM trail t WHERE t.id > low AND t.id <= high
            AND NOT EXISTS (SELECT FROM payment_deed d WHERE d.trail_id = t.id);
    END IF;
    GET DIAGNOSTICS removed = ROW_COUNT;
    PERFORM set_config('voucherd.archiving', 'off', true);
    RETURN removed;
END $$;


-- ── The sandbox ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is how far a company has moved the time of its sandbox ahead. Moving it brings what its sandbox waits for
-- closer by as much, so nothing else has to know of it.
-- Companies read: company_id = tenant_company().
CREATE TABLE test_clock (
    company_id integer PRIMARY KEY REFERENCES company(id),
    ahead_s    bigint NOT NULL CHECK (ahead_s >= 0),  -- In all, since it was last reset.
    moved_at   timestamptz NOT NULL DEFAULT now(),
    -- When the first order expires whose window was shortened: until then nobody looks at orders for it.
    next_at    timestamptz
);
CREATE INDEX test_clock_due ON test_clock (next_at) WHERE next_at IS NOT NULL;

-- One row is an order of the sandbox that asked at Create for webhooks that come so many seconds late (OP-145).
-- Companies read: (( SELECT o.company_id FROM orders o WHERE o.id = webhook_delay.order_id)) = tenant_company().
CREATE TABLE webhook_delay (
    order_id bigint PRIMARY KEY REFERENCES orders(id) ON DELETE CASCADE,
    delay_s  integer NOT NULL CHECK (delay_s BETWEEN 1 AND 3600),
    CONSTRAINT webhook_delay_in_sandbox CHECK ((order_id & 1) = 1)
);

-- One row is how many calls of a company in one state were ever logged.
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE request_count (
    company_id integer NOT NULL REFERENCES company(id),
    state      smallint NOT NULL CHECK (state IN (0, 1)),
    logged     bigint NOT NULL CHECK (logged >= 0),
    PRIMARY KEY (company_id, state)
) WITH (fillfactor=50);

-- One row is a call of a key and its answer, without codes, keys and secrets (OP-148). A company has 10,000 slots in
-- each state, and the newest call takes the place of the oldest.
-- Companies read: company_id = tenant_company() AND state = tenant_state().
CREATE TABLE request_log (
    company_id integer NOT NULL REFERENCES company(id),
    state      smallint NOT NULL CHECK (state IN (0, 1)),
    slot       smallint NOT NULL,
    -- The number of the call among all that were logged of its company and state.
    seq        bigint NOT NULL CHECK (seq > 0),
    at         timestamptz NOT NULL,
    request_id text NOT NULL CHECK (length(request_id) BETWEEN 1 AND 128),
    key_id     bigint NOT NULL,
    method     text NOT NULL CHECK (length(method) <= 10),
    path       text NOT NULL CHECK (length(path) <= 500),  -- With the query.
    status     smallint NOT NULL CHECK (status BETWEEN 100 AND 999),
    ms         integer NOT NULL CHECK (ms >= 0),
    request    text NOT NULL DEFAULT '' CHECK (length(request) <= 4000),  -- The beginning of what was sent, redacted.
    answer     text NOT NULL DEFAULT '' CHECK (length(answer) <= 4000),
    PRIMARY KEY (company_id, state, slot),
    CONSTRAINT request_log_in_its_slot CHECK (slot = (seq % 10000))
);
CREATE INDEX request_log_age ON request_log (at);
CREATE INDEX request_log_newest ON request_log (company_id, state, seq);


-- ── The operator ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- The only row is the link by which the first person of the operator comes in; its use removes it (OP-150).
CREATE TABLE setup_link (
    only_row boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    -- The token of the link is made of it with the root of the vault, so what is read here opens nothing.
    nonce    bytea NOT NULL CHECK (length(nonce) = 32),
    ends_at  timestamptz NOT NULL
);

-- One row is a setting that the operator has chosen in the console, in place of the one that the program was started
-- with, or something to remember of setting the shop up. Every process reads all of them each second (OP-152).
CREATE TABLE setting (
    name       text PRIMARY KEY CHECK (name ~ '^[a-z][a-z_]{0,59}$'),
    -- As the environment would write it; empty: none, where there may be none.
    value      text NOT NULL CHECK (length(value) <= 2000),
    changed_at timestamptz NOT NULL DEFAULT now()
);

-- The only row is the picture that stands for the shop on its pages.
CREATE TABLE operator_logo (
    only_row boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    -- A hash of the picture and its kind, for the address that it is shown at.
    name     text NOT NULL CHECK (name ~ '^[0-9a-f]{32}\.(png|jpg|webp)$'),
    content  bytea NOT NULL CHECK (length(content) BETWEEN 1 AND 102400)
);


-- ── Sales ────────────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row is what was sold of a product on one day of UTC. A worker adds it up from the events of orders (OP-160); the
-- sums are those of the reports.
CREATE TABLE sales_day (
    state            smallint NOT NULL CHECK (state IN (0, 1)),
    day              date NOT NULL,
    product_id       integer NOT NULL,
    codes            bigint NOT NULL CHECK (codes > 0),
    -- Before VAT, by the rates that the orders were made with.
    price_eur_minor  bigint NOT NULL CHECK (price_eur_minor >= 0),
    margin_eur_minor bigint NOT NULL,
    PRIMARY KEY (state, day, product_id)
) WITH (fillfactor=50);

-- The only row says up to which event sales were added up.
CREATE TABLE sales_cursor (
    only_row boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    upto     bigint NOT NULL CHECK (upto >= 0)
);
CREATE TRIGGER sales_cursor_forwards BEFORE UPDATE ON sales_cursor
    FOR EACH ROW WHEN (new.upto < old.upto) EXECUTE FUNCTION refuse_change();

-- One row is the serial of a code, by which people find it (OP-161). Codes that came before this table have none.
CREATE TABLE code_serial (
    lot_id bigint NOT NULL,
    seq    integer NOT NULL CHECK (seq >= 0),
    -- A keyed hash of the serial: whoever reads the table learns none.
    blind  bytea NOT NULL CHECK (length(blind) = 16),
    PRIMARY KEY (lot_id, seq)
);
CREATE INDEX code_serial_blind ON code_serial (blind);
CREATE TRIGGER code_serial_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON code_serial
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();


-- ── Payments that people proposed ────────────────────────────────────────────────────────────────────────────────────

-- ── Rights ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Makes the policies and rights that the tables above name.
SELECT arrange_tenants();
SELECT arrange_service();
