-- What is wrong: alerts as they stand, incidents as people see them, and the history of both.
CREATE TABLE incident (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,
    subject_kind    TEXT NOT NULL CHECK (subject_kind IN ('target', 'gpu', 'host')),
    subject_name    TEXT NOT NULL,
    severity        TEXT NOT NULL,
    opened_at       TEXT NOT NULL,
    quiet_since     TEXT,                    -- since when none of its alerts fires
    resolved_at     TEXT,
    diagnosis       TEXT NOT NULL DEFAULT '{}',
    acknowledged_at TEXT,
    acknowledged_by TEXT,
    person_called_at TEXT
) STRICT;

CREATE UNIQUE INDEX incident_open ON incident (subject_kind, subject_name) WHERE resolved_at IS NULL;

CREATE TABLE alert (
    key          TEXT PRIMARY KEY,           -- rule and label set
    alertname    TEXT NOT NULL,
    labels       TEXT NOT NULL,
    annotations  TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('pending', 'firing', 'resolved')),
    value        REAL,
    active_at    TEXT NOT NULL,
    fired_at     TEXT,
    resolved_at  TEXT,
    last_seen_at TEXT NOT NULL,
    keep_since   TEXT,
    incident     INTEGER REFERENCES incident (number),
    rule         TEXT NOT NULL,
    rule_group   TEXT NOT NULL,
    file         TEXT NOT NULL
) STRICT;

-- Every alert that an incident has ever held.
CREATE TABLE incident_alert (
    incident   INTEGER NOT NULL REFERENCES incident (number),
    alertname  TEXT NOT NULL,
    PRIMARY KEY (incident, alertname)
) STRICT;

-- One line of history: when, what, because, by whom.
CREATE TABLE record (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    at        TEXT NOT NULL,
    event     TEXT NOT NULL,
    target    TEXT,
    incident  INTEGER REFERENCES incident (number),
    because   TEXT NOT NULL,
    by        TEXT NOT NULL,
    facts     TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE INDEX record_by_incident ON record (incident, number);
CREATE INDEX record_by_target ON record (target, number);
