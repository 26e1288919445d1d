-- Messages owed to channels. A row is done only when the channel has taken it or never will.
CREATE TABLE outbox (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    channel     TEXT NOT NULL,               -- receiver/integration/index; order is kept per channel
    incident    INTEGER REFERENCES incident (number),
    kind        TEXT NOT NULL,
    notice      TEXT NOT NULL,               -- JSON of a Notice
    queued_at   TEXT NOT NULL,
    due_at      TEXT NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    last_error  TEXT NOT NULL DEFAULT '',
    sent_at     TEXT,
    dropped_at  TEXT,
    CHECK (sent_at IS NULL OR dropped_at IS NULL)
) STRICT;

CREATE INDEX outbox_owed ON outbox (channel, number) WHERE sent_at IS NULL AND dropped_at IS NULL;
