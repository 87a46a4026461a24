CREATE TABLE IF NOT EXISTS cycles (
    cycle INTEGER PRIMARY KEY, time REAL NOT NULL, td REAL, input REAL, forecast REAL, model TEXT,
    outcome TEXT NOT NULL, note TEXT NOT NULL, latency_mean REAL, latency_p50 REAL,
    latency_p95 REAL, latency_p99 REAL, at REAL, executors REAL, executor_seconds REAL);
CREATE TABLE IF NOT EXISTS operators (
    cycle INTEGER NOT NULL REFERENCES cycles ON DELETE CASCADE, operator TEXT NOT NULL,
    received REAL, processed REAL, emitted REAL, queued REAL, dropped REAL, busy REAL,
    active INTEGER, proposed INTEGER, planned INTEGER, PRIMARY KEY (cycle, operator)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS edges (
    cycle INTEGER NOT NULL REFERENCES cycles ON DELETE CASCADE, origin TEXT NOT NULL,
    target TEXT NOT NULL, events REAL, PRIMARY KEY (cycle, origin, target)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS samples (
    cycle INTEGER NOT NULL REFERENCES cycles ON DELETE CASCADE, position INTEGER NOT NULL,
    events REAL, PRIMARY KEY (cycle, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS changes (
    cycle INTEGER NOT NULL REFERENCES cycles ON DELETE CASCADE, operator TEXT NOT NULL,
    before INTEGER, after INTEGER, reasons TEXT, facts TEXT,
    PRIMARY KEY (cycle, operator)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS steering (
    number INTEGER PRIMARY KEY, cycle INTEGER NOT NULL, time REAL NOT NULL, at REAL NOT NULL,
    who TEXT NOT NULL, what TEXT NOT NULL);
