-- Silences, kept for a while after they have ended, as Alertmanager keeps them.
CREATE TABLE silence (
    id          TEXT PRIMARY KEY,            -- a UUID
    matchers    TEXT NOT NULL,               -- JSON list of [name, operator, value]
    starts_at   TEXT NOT NULL,
    ends_at     TEXT NOT NULL,
    updated_at  TEXT NOT NULL,
    created_by  TEXT NOT NULL,
    comment     TEXT NOT NULL
) STRICT;
