-- What is to be told: alerts as others see them, the groups they are told in, and what each
-- channel has been told of each group. Together they are Alertmanager's memory.
CREATE TABLE standing (
    fingerprint   TEXT PRIMARY KEY,
    labels        TEXT NOT NULL,             -- JSON object
    annotations   TEXT NOT NULL,             -- JSON object
    starts_at     TEXT NOT NULL,
    ends_at       TEXT,                      -- null: until told otherwise
    updated_at    TEXT NOT NULL,
    is_timeout    INTEGER NOT NULL,
    generator_url TEXT NOT NULL,
    origin        TEXT NOT NULL CHECK (origin IN ('rule', 'posted')),
    incident      TEXT
) STRICT;

CREATE TABLE gathering (
    key          TEXT NOT NULL,
    receiver     TEXT NOT NULL,              -- two routes with the same matchers share a key
    route_key    TEXT NOT NULL,
    labels       TEXT NOT NULL,              -- JSON object
    next_at      TEXT NOT NULL,
    has_flushed  INTEGER NOT NULL,
    members      TEXT NOT NULL,              -- JSON list of fingerprints
    PRIMARY KEY (key, receiver)
) STRICT;

CREATE TABLE told (
    group_key  TEXT NOT NULL,
    channel    TEXT NOT NULL,
    firing     TEXT NOT NULL,                -- JSON list of fingerprints
    resolved   TEXT NOT NULL,                -- JSON list of fingerprints
    at         TEXT NOT NULL,
    PRIMARY KEY (group_key, channel)
) STRICT;

-- When each alert began to fire, as far back as flapping is looked for.
CREATE TABLE firing (
    key  TEXT NOT NULL,
    at   TEXT NOT NULL,
    PRIMARY KEY (key, at)
) STRICT;
