-- What a launch was made of, beside image and arguments, and what its log told of it.
ALTER TABLE launch ADD COLUMN environment  TEXT NOT NULL DEFAULT '{}';  -- JSON object, without secrets
ALTER TABLE launch ADD COLUMN compose_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE launch ADD COLUMN driver       TEXT NOT NULL DEFAULT '';
ALTER TABLE launch ADD COLUMN facts        TEXT NOT NULL DEFAULT '{}';  -- JSON object

-- How far the log of each container was taken: the time its last line was written, as the engine
-- writes it, and how many lines of that very time were taken.
CREATE TABLE log_position (
    container_id  TEXT PRIMARY KEY,
    stamp         TEXT NOT NULL,
    taken         INTEGER NOT NULL
) STRICT;

-- Each time memory ran out, so that what several witnesses saw is counted once.
CREATE TABLE oom (
    target      TEXT NOT NULL,
    launched_at TEXT NOT NULL,               -- the launch it happened in
    kind        TEXT NOT NULL CHECK (kind IN ('host', 'cgroup', 'cuda_startup', 'cuda_runtime')),
    at          TEXT NOT NULL,
    because     TEXT NOT NULL
) STRICT;

CREATE INDEX oom_by_target ON oom (target, at);

-- What was different when the incident opened, against the last launch that was healthy.
ALTER TABLE incident ADD COLUMN changed TEXT NOT NULL DEFAULT '[]';     -- JSON list of sentences
