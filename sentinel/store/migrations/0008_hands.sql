-- What an action is to bring about, beside its name.
ALTER TABLE intent ADD COLUMN cause TEXT NOT NULL DEFAULT '';
ALTER TABLE intent ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';   -- JSON object
ALTER TABLE intent ADD COLUMN diff TEXT NOT NULL DEFAULT '[]';       -- JSON list of lines

-- How far a container is made anew, and all it takes to finish or undo that: its environment
-- too, so it is kept here alone, and no longer than it is needed.
ALTER TABLE intent ADD COLUMN recreation TEXT;

-- Each step that was held back or only watched, and what became of the trouble without it.
CREATE TABLE held_step (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    at         TEXT NOT NULL,
    target     TEXT NOT NULL,
    incident   INTEGER NOT NULL REFERENCES incident (number),
    remedy     TEXT NOT NULL,
    action     TEXT NOT NULL,
    guard      TEXT NOT NULL,
    deadline   TEXT NOT NULL,                -- by when it would have had to show its effect
    judged_at  TEXT,
    verdict    TEXT CHECK (verdict IN ('healed', 'person', 'done', 'went_on')),
    CHECK ((judged_at IS NULL) = (verdict IS NULL))
) STRICT;

CREATE UNIQUE INDEX held_step_once ON held_step (incident, action);
CREATE INDEX held_step_open ON held_step (number) WHERE judged_at IS NULL;
