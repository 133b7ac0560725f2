-- A study, schema 1: docs/reference/study-format.md. Times in seconds, energies in joules; what is unknown is NULL.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE configuration (
    id               INTEGER PRIMARY KEY,
    on_axes          INTEGER NOT NULL,
    is_reference     INTEGER NOT NULL,
    gpus             INTEGER NOT NULL,
    power_cap_w      REAL,
    power_caps_w     TEXT,
    core_clock_mhz   REAL,
    memory_clock_mhz REAL,
    cpu_power_cap_w  REAL
);

CREATE TABLE parameter (
    configuration INTEGER NOT NULL REFERENCES configuration (id),
    name          TEXT NOT NULL,
    value         TEXT NOT NULL,
    PRIMARY KEY (configuration, name)
) WITHOUT ROWID;

CREATE TABLE run (
    id             INTEGER PRIMARY KEY,
    configuration  INTEGER NOT NULL REFERENCES configuration (id),
    repeat         INTEGER NOT NULL,
    status         TEXT NOT NULL,
    reason         TEXT,
    output         TEXT,
    started_unix_s REAL,
    time_s         REAL,
    items          REAL,
    job_gpus_j     REAL, job_gpus_low_j REAL, job_gpus_high_j REAL,
    all_gpus_j     REAL, all_gpus_low_j REAL, all_gpus_high_j REAL,
    node_j         REAL, node_low_j     REAL, node_high_j     REAL,
    UNIQUE (configuration, repeat)
);

CREATE TABLE run_device (
    run      INTEGER NOT NULL REFERENCES run (id),
    position INTEGER NOT NULL,
    device   TEXT NOT NULL,
    in_job   INTEGER NOT NULL,
    energy_j REAL, low_j REAL, high_j REAL,
    method   TEXT NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;

CREATE TABLE run_phase (
    run      INTEGER NOT NULL REFERENCES run (id),
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    time_s   REAL NOT NULL,
    energy_j REAL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;

-- Phases on each GPU of the job. Studies of earlier versions lack this table.
CREATE TABLE run_device_phase (
    run      INTEGER NOT NULL REFERENCES run (id),
    position INTEGER NOT NULL,
    device   INTEGER NOT NULL,
    time_s   REAL NOT NULL,
    energy_j REAL,
    PRIMARY KEY (run, position, device)
) WITHOUT ROWID;

CREATE TABLE run_value (
    run   INTEGER NOT NULL REFERENCES run (id),
    name  TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;

CREATE TABLE run_enforced (
    run         INTEGER NOT NULL REFERENCES run (id),
    device      TEXT NOT NULL,
    requested_w REAL NOT NULL,
    enforced_w  REAL NOT NULL,
    reason      TEXT NOT NULL,
    PRIMARY KEY (run, device)
) WITHOUT ROWID;

CREATE TABLE run_warning (
    run      INTEGER NOT NULL REFERENCES run (id),
    position INTEGER NOT NULL,
    text     TEXT NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;

-- Where a run was made by a scheduler; the UUIDs of its GPUs are separated by commas. Studies of earlier versions, and
-- those of one machine, lack rows or the whole table.
CREATE TABLE run_place (
    run  INTEGER PRIMARY KEY REFERENCES run (id),
    node TEXT NOT NULL,
    job  TEXT,
    gpus TEXT NOT NULL
);

-- The means that most questions are about.
CREATE VIEW result AS
SELECT c.*, count(*) AS runs, sum(r.status <> 'ok') AS failed, avg(r.time_s) AS time_s,
       avg(r.job_gpus_j) AS job_gpus_j, avg(r.all_gpus_j) AS all_gpus_j, avg(r.node_j) AS node_j,
       avg(r.items) AS items
FROM configuration c JOIN run r ON r.configuration = c.id
GROUP BY c.id;
