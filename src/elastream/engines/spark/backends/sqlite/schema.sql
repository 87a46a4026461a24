-- The lanes, the board and the ledger of one pipeline.
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE layout (
    operator TEXT PRIMARY KEY, lanes INTEGER NOT NULL, key TEXT, shared INTEGER NOT NULL)
    WITHOUT ROWID;

-- Who acts for which member, which roles are on offer, and what keeps members from working.
CREATE TABLE members (
    operator TEXT NOT NULL, replica INTEGER NOT NULL, process TEXT NOT NULL,
    generation INTEGER NOT NULL, heartbeat INTEGER NOT NULL DEFAULT 0,
    busy_for REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (operator, replica)) WITHOUT ROWID;
CREATE TABLE roles (
    generation INTEGER NOT NULL, priority INTEGER NOT NULL, operator TEXT NOT NULL,
    replica INTEGER NOT NULL, worker INTEGER, ready INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (generation, priority)) WITHOUT ROWID;
CREATE TABLE failures (
    generation INTEGER NOT NULL, operator TEXT NOT NULL, replica INTEGER NOT NULL,
    error TEXT NOT NULL, PRIMARY KEY (generation, operator, replica)) WITHOUT ROWID;

-- The replica is who has taken hold of the lane; the ownership grows whenever it changes hands.
-- head: the first batch, except in the lane that all replicas share.
-- done_of_first: how many events of that are done already.
CREATE TABLE lanes (
    operator TEXT NOT NULL, lane INTEGER NOT NULL, replica INTEGER,
    ownership INTEGER NOT NULL DEFAULT 0, arrived INTEGER NOT NULL DEFAULT 0,
    consumed INTEGER NOT NULL DEFAULT 0, done_of_first INTEGER NOT NULL DEFAULT 0, head INTEGER,
    PRIMARY KEY (operator, lane)) WITHOUT ROWID;

-- Events that wait in one lane. What several rows share is stored once, in parcels.
-- taken_by: only in the lane that all replicas share; there, batches are not cut.
-- deaths: of processes that may have been working on them.
-- follows: whether it came behind others of its lane. Most find their lane empty, and are its head
-- at once: they need no index. In the shared lane, all follow.
-- unit: the name of the events that were taken of it, for functions that ask for it.
CREATE TABLE batches (
    number INTEGER PRIMARY KEY, operator TEXT NOT NULL, lane INTEGER NOT NULL,
    taken_by TEXT, events INTEGER NOT NULL, births BLOB,
    data BLOB, parcel INTEGER, requests TEXT, deaths INTEGER NOT NULL DEFAULT 0, unit TEXT,
    follows INTEGER NOT NULL DEFAULT 1);
CREATE INDEX next_batch ON batches (operator, lane, taken_by, number) WHERE follows;
-- Events for several lanes of an operator, and large batches: replicas that change nothing pass them
-- on as they are. They go with the last row that needs them. births, lane_of: of several lanes.
CREATE TABLE parcels (
    number INTEGER PRIMARY KEY, births BLOB, data BLOB NOT NULL, lane_of BLOB);
CREATE INDEX who_needs ON batches (parcel) WHERE parcel IS NOT NULL;

CREATE TABLE plans (version INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL);

-- What replicas let producers know: the newest of each kind; the producer '' is all of them.
CREATE TABLE feedback (
    version INTEGER PRIMARY KEY AUTOINCREMENT, producer TEXT NOT NULL, number INTEGER NOT NULL,
    operator TEXT NOT NULL, replica INTEGER NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL,
    UNIQUE (producer, number, operator, replica, kind));

-- sent: by successor, how many events went there, and how many of them were lost, as JSON.
CREATE TABLE counts (
    operator TEXT NOT NULL, replica INTEGER NOT NULL, processed INTEGER NOT NULL,
    emitted INTEGER NOT NULL, dropped INTEGER NOT NULL, busy REAL NOT NULL, cpu REAL NOT NULL,
    saturated REAL NOT NULL DEFAULT 0, saturated_events INTEGER NOT NULL DEFAULT 0, sent TEXT,
    units INTEGER NOT NULL DEFAULT 0, squares REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (operator, replica)) WITHOUT ROWID;
CREATE TABLE latencies (
    operator TEXT NOT NULL, replica INTEGER NOT NULL, bin INTEGER NOT NULL, events REAL NOT NULL,
    PRIMARY KEY (operator, replica, bin)) WITHOUT ROWID;

CREATE TABLE dead_letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT, operator TEXT NOT NULL, lane INTEGER NOT NULL,
    events INTEGER NOT NULL, error TEXT NOT NULL, data BLOB NOT NULL, time REAL NOT NULL);

-- What a task of a query has read for a source, until the query's batch is complete.
CREATE TABLE staged (
    number INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, name TEXT NOT NULL,
    events INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX staged_by_name ON staged (source, name);
CREATE TABLE feeds (source TEXT PRIMARY KEY, admitted INTEGER NOT NULL) WITHOUT ROWID;
-- What waits to be read as a DataFrame. Queries remember its numbers: none is given out twice.
CREATE TABLE output_batches (
    number INTEGER PRIMARY KEY AUTOINCREMENT, operator TEXT NOT NULL, events INTEGER NOT NULL,
    data BLOB NOT NULL);
CREATE INDEX outputs_by_operator ON output_batches (operator, number);
CREATE TABLE outputs (
    operator TEXT PRIMARY KEY, consumed INTEGER NOT NULL, offered INTEGER NOT NULL) WITHOUT ROWID;
