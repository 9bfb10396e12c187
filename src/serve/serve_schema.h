// The tables of a server's SQLite file, as a list of steps from one version to the next.
#pragma once

#include <array>
#include <cstdint>

#include "serve/class_schema.h"
#include "serve/spot_check_schema.h"

namespace assay {

// In the file's header: it is a server's file of Assay's.
inline constexpr int64_t kServeApplicationId = 0x41535356;

// Step i leads from version i to i + 1. A step that was released never changes.
inline constexpr std::array kServeMigrations = {
    // Accounts, tokens, jobs, runners, and the board's projection of the archive.
    R"(
CREATE TABLE settings(
  name TEXT NOT NULL PRIMARY KEY,
  number INTEGER NOT NULL
) STRICT;
CREATE TABLE accounts(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE COLLATE NOCASE,
  role TEXT NOT NULL CHECK(role IN ('mentor', 'student', 'machine')),
  class_id INTEGER NOT NULL DEFAULT 0,
  is_server INTEGER NOT NULL DEFAULT 0,
  made_s INTEGER NOT NULL,
  last_tag INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX accounts_by_class ON accounts(class_id);
CREATE TABLE tokens(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account INTEGER NOT NULL REFERENCES accounts(id),
  hash TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK(kind IN ('access', 'session')),
  made_s INTEGER NOT NULL,
  ends_s INTEGER NOT NULL,
  revoked INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE runners(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  device TEXT NOT NULL,
  version TEXT NOT NULL,
  machine TEXT NOT NULL,
  promoted INTEGER NOT NULL DEFAULT 0,
  seen_s INTEGER NOT NULL,
  UNIQUE(account, name)
) STRICT;
CREATE TABLE jobs(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK(kind IN ('judge', 'compare', 'finalist')),
  state TEXT NOT NULL CHECK(state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  account INTEGER NOT NULL REFERENCES accounts(id),
  problem TEXT NOT NULL,
  size TEXT NOT NULL,
  settings TEXT NOT NULL,
  name TEXT NOT NULL,
  source TEXT NOT NULL,
  opponent TEXT NOT NULL,
  opponent_name TEXT NOT NULL,
  needs TEXT NOT NULL CHECK(needs IN ('', 'cpu', 'cuda')),
  client_key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  tag INTEGER NOT NULL,
  made_s INTEGER NOT NULL,
  ended_s INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  runner INTEGER REFERENCES runners(id),
  lease TEXT NOT NULL DEFAULT '',
  ended_lease TEXT NOT NULL DEFAULT '',
  outcome TEXT NOT NULL DEFAULT '',
  verdict TEXT NOT NULL DEFAULT '',
  failure TEXT NOT NULL DEFAULT '',
  CHECK((state = 'running') = (lease <> '')),
  CHECK((state IN ('done', 'failed', 'cancelled')) = (ended_s <> 0))
) STRICT;
CREATE UNIQUE INDEX jobs_by_key ON jobs(account, client_key) WHERE client_key <> '';
CREATE INDEX jobs_by_place ON jobs(state, tag, id);
CREATE INDEX jobs_by_account ON jobs(account, id);
CREATE INDEX jobs_by_verdict ON jobs(verdict) WHERE verdict <> '';
CREATE TRIGGER jobs_end_once BEFORE UPDATE ON jobs
  WHEN old.state IN ('done', 'failed', 'cancelled')
  BEGIN SELECT RAISE(ABORT, 'a job that has ended is never changed'); END;
CREATE TRIGGER jobs_remain BEFORE DELETE ON jobs
  BEGIN SELECT RAISE(ABORT, 'a job is never deleted'); END;
CREATE TABLE events(
  job INTEGER NOT NULL REFERENCES jobs(id),
  number INTEGER NOT NULL,
  time_s INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY(job, number)
) STRICT, WITHOUT ROWID;
-- Verdicts that ended a job and are not in the archive yet.
CREATE TABLE endings(
  job INTEGER NOT NULL PRIMARY KEY REFERENCES jobs(id),
  verdict TEXT NOT NULL
) STRICT;
CREATE TABLE board(
  sequence INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  problem TEXT NOT NULL,
  size TEXT NOT NULL,
  device TEXT NOT NULL,
  precision TEXT NOT NULL,
  form TEXT NOT NULL,
  author TEXT NOT NULL,
  role TEXT NOT NULL,
  outcome TEXT NOT NULL,
  stage INTEGER NOT NULL,
  prepares_weights INTEGER NOT NULL,
  speedup REAL NOT NULL,
  ci_low REAL NOT NULL,
  ci_high REAL NOT NULL,
  certified REAL NOT NULL,
  time_ns REAL NOT NULL,
  percent_of_peak REAL NOT NULL,
  time TEXT NOT NULL,
  source TEXT NOT NULL,
  runner TEXT NOT NULL,
  own_runner INTEGER NOT NULL,
  foul_rule TEXT NOT NULL
) STRICT;
)",
    kClassTables, kSpotCheckTables,
    // The sizes of problems that do not fit a runner's machine.
    R"(
CREATE TABLE refusals(
  runner INTEGER NOT NULL REFERENCES runners(id),
  problem TEXT NOT NULL,
  size TEXT NOT NULL,
  time_s INTEGER NOT NULL,
  PRIMARY KEY(runner, problem, size)
) STRICT, WITHOUT ROWID;
)",
    // An index by source finds its first sender; entries may be at constants of their own.
    R"(
CREATE INDEX jobs_by_source ON jobs(source, id);
ALTER TABLE board ADD COLUMN own_constants INTEGER NOT NULL DEFAULT 0;
)"};

}  // namespace assay
