-- The queues, the plan and the counts of one pipeline.
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS members (
    operator TEXT NOT NULL, replica INTEGER NOT NULL, owner TEXT NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (operator, replica)) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS failures (
    operator TEXT NOT NULL, replica INTEGER NOT NULL, error TEXT NOT NULL,
    PRIMARY KEY (operator, replica)) WITHOUT ROWID;

-- A batch in the shared queue belongs to nobody until a replica takes it.
CREATE TABLE IF NOT EXISTS batches (
    ticket INTEGER PRIMARY KEY AUTOINCREMENT, operator TEXT NOT NULL, replica INTEGER NOT NULL,
    taken_by TEXT, events INTEGER NOT NULL, born REAL NOT NULL, data BLOB NOT NULL,
    inquiry BLOB);
CREATE INDEX IF NOT EXISTS next_batch ON batches (operator, replica, taken_by, ticket);

-- Kept by triggers, so that nobody has to add up a long queue.
CREATE TABLE IF NOT EXISTS queues (
    operator TEXT NOT NULL, replica INTEGER NOT NULL, events INTEGER NOT NULL,
    PRIMARY KEY (operator, replica)) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS batch_added AFTER INSERT ON batches BEGIN
    INSERT INTO queues VALUES (new.operator, new.replica, new.events)
    ON CONFLICT DO UPDATE SET events = events + new.events;
END;
CREATE TRIGGER IF NOT EXISTS batch_removed AFTER DELETE ON batches BEGIN
    UPDATE queues SET events = events - old.events
    WHERE operator = old.operator AND replica = old.replica;
END;
CREATE TRIGGER IF NOT EXISTS batch_moved AFTER UPDATE OF replica ON batches BEGIN
    UPDATE queues SET events = events - old.events
    WHERE operator = old.operator AND replica = old.replica;
    INSERT INTO queues VALUES (new.operator, new.replica, new.events)
    ON CONFLICT DO UPDATE SET events = events + new.events;
END;

CREATE TABLE IF NOT EXISTS plans (version INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL);

-- What replicas let their producers know; the newest of each kind.
CREATE TABLE IF NOT EXISTS words (
    producer TEXT NOT NULL, number INTEGER NOT NULL, operator TEXT NOT NULL,
    replica INTEGER NOT NULL, kind TEXT NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (producer, number, operator, replica, kind)) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS counts (
    operator TEXT NOT NULL, replica INTEGER NOT NULL, processed INTEGER NOT NULL,
    emitted INTEGER NOT NULL, dropped INTEGER NOT NULL, busy REAL NOT NULL, cpu REAL NOT NULL,
    PRIMARY KEY (operator, replica)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sent (
    operator TEXT NOT NULL, replica INTEGER NOT NULL, target TEXT NOT NULL, events INTEGER NOT NULL,
    lost INTEGER NOT NULL, PRIMARY KEY (operator, replica, target)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS latencies (
    operator TEXT NOT NULL, replica INTEGER NOT NULL, bin INTEGER NOT NULL, events REAL NOT NULL,
    PRIMARY KEY (operator, replica, bin)) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS dead_letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT, operator TEXT NOT NULL, replica INTEGER NOT NULL,
    events INTEGER NOT NULL, error TEXT NOT NULL, data BLOB NOT NULL, time REAL NOT NULL);

-- What a task of a query has read for a source, until the query's batch is complete.
CREATE TABLE IF NOT EXISTS staged (
    number INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, parcel TEXT NOT NULL,
    events INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS parcels ON staged (source, parcel);
CREATE TABLE IF NOT EXISTS feeds (source TEXT PRIMARY KEY, admitted INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS outputs (
    queue TEXT PRIMARY KEY, consumed INTEGER NOT NULL, offered INTEGER NOT NULL) WITHOUT ROWID;
