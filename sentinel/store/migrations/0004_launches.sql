-- The ledger of launches: each start of a target, how it was started and how it ended.
CREATE TABLE launch (
    target         TEXT NOT NULL,
    container_id   TEXT NOT NULL,
    started_at     TEXT NOT NULL,
    by             TEXT NOT NULL CHECK (by IN ('docker', 'sentinel', 'other')),
    image          TEXT NOT NULL,
    image_id       TEXT NOT NULL,
    argv           TEXT NOT NULL,            -- JSON list
    devices        TEXT NOT NULL DEFAULT '[]',
    restart_count  INTEGER NOT NULL DEFAULT 0,
    seen_at        TEXT NOT NULL,
    ready_at       TEXT,                     -- first time it answered as a server
    model          TEXT,
    ended_at       TEXT,
    exit_code      INTEGER,
    ended_as       TEXT,                     -- own | person | engine_shutdown | crash | oom | unwitnessed
    ended_because  TEXT,
    ended_cause    TEXT,
    PRIMARY KEY (container_id, started_at)
) STRICT;

CREATE INDEX launch_by_target ON launch (target, started_at);

-- What the container engine was heard to say, kept so that a stop by a person outlives a restart.
CREATE TABLE engine_event (
    at_ns         INTEGER NOT NULL,
    container_id  TEXT NOT NULL,
    action        TEXT NOT NULL,
    at            TEXT NOT NULL,
    signal        TEXT NOT NULL DEFAULT '',
    exit_code     INTEGER,
    PRIMARY KEY (at_ns, container_id, action)
) STRICT;

CREATE INDEX engine_event_by_container ON engine_event (container_id, at_ns);

-- Counters that must not start again at zero with the daemon.
CREATE TABLE counter (
    name    TEXT NOT NULL,
    labels  TEXT NOT NULL,                   -- JSON object, keys sorted
    value   REAL NOT NULL,
    PRIMARY KEY (name, labels)
) STRICT;
