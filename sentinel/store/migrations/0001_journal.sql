-- What Sentinel has resolved to do, written before it is done, and every step of doing it.
CREATE TABLE intent (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,
    target          TEXT NOT NULL,
    action          TEXT NOT NULL,
    mode            TEXT NOT NULL CHECK (mode IN ('watch', 'approve', 'act')),
    state           TEXT NOT NULL CHECK (state IN ('proposed', 'reserved', 'closed')),
    incident        INTEGER REFERENCES incident (number),
    because         TEXT NOT NULL,
    by              TEXT NOT NULL,
    container_id    TEXT NOT NULL,           -- the world the decision was made in:
    saw_started_at  TEXT NOT NULL,           -- acting on any other is refused
    proposed_at     TEXT,
    expires_at      TEXT,
    reserved_at     TEXT,
    verify_by       TEXT,                    -- set when the last step is done
    closed_at       TEXT,
    outcome         TEXT CHECK (outcome IN ('verified', 'failed', 'refused', 'rolled_back', 'rejected', 'expired')),
    closed_because  TEXT,
    CHECK ((state = 'closed') = (outcome IS NOT NULL)),
    CHECK ((state = 'closed') = (closed_at IS NOT NULL)),
    CHECK (state <> 'reserved' OR reserved_at IS NOT NULL)
) STRICT;

-- At most one thing is being done to a target at a time; the database sees to it.
CREATE UNIQUE INDEX intent_reserved ON intent (target) WHERE state = 'reserved';
CREATE UNIQUE INDEX intent_proposed ON intent (target) WHERE state = 'proposed';
CREATE INDEX intent_by_time ON intent (target, reserved_at);

CREATE TABLE step (
    intent      INTEGER NOT NULL REFERENCES intent (number),
    position    INTEGER NOT NULL,
    name        TEXT NOT NULL,
    started_at  TEXT,
    done_at     TEXT,
    says        TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (intent, position)
) STRICT;

-- Who asked Sentinel to keep its hands off. target '' is every target.
CREATE TABLE pause (
    target  TEXT PRIMARY KEY,
    since   TEXT NOT NULL,
    until   TEXT,
    by      TEXT NOT NULL
) STRICT;
