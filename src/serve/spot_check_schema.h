// The table of spot checks, as a step of serve_schema.h. Jobs get a kind for them, and know whether
// their runner is the author's own. SQLite changes no CHECK: the table is written anew.
#pragma once

namespace assay {

inline constexpr const char* kSpotCheckTables = R"(
CREATE TABLE jobs_with_checks(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK(kind IN ('judge', 'compare', 'finalist', 'spot_check')),
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
  own_runner INTEGER NOT NULL DEFAULT 0,
  CHECK((state = 'running') = (lease <> '')),
  CHECK((state IN ('done', 'failed', 'cancelled')) = (ended_s <> 0))
) STRICT;
INSERT INTO jobs_with_checks(
  id, kind, state, account, problem, size, settings, name, source, opponent, opponent_name, needs,
  client_key, request_hash, tag, made_s, ended_s, attempts, runner, lease, ended_lease, outcome,
  verdict, failure, own_runner)
  SELECT
  id, kind, state, account, problem, size, settings, name, source, opponent, opponent_name, needs,
  client_key, request_hash, tag, made_s, ended_s, attempts, runner, lease, ended_lease, outcome,
  verdict, failure,
  coalesce((SELECT promoted = 0 FROM runners WHERE runners.id = runner), 0) FROM jobs;
DROP TABLE jobs;
ALTER TABLE jobs_with_checks RENAME TO jobs;
CREATE UNIQUE INDEX jobs_by_key ON jobs(account, client_key) WHERE client_key <> '';
CREATE INDEX jobs_by_place ON jobs(state, tag, id);
CREATE INDEX jobs_by_account ON jobs(account, id);
CREATE INDEX jobs_by_verdict ON jobs(verdict) WHERE verdict <> '';
CREATE TRIGGER jobs_end_once BEFORE UPDATE ON jobs
  WHEN old.state IN ('done', 'failed', 'cancelled')
  BEGIN SELECT RAISE(ABORT, 'a job that has ended is never changed'); END;
CREATE TRIGGER jobs_remain BEFORE DELETE ON jobs
  BEGIN SELECT RAISE(ABORT, 'a job is never deleted'); END;
-- The job `job` judges the candidate of the job `checked` again. `result`: empty until it has.
CREATE TABLE spot_checks(
  job INTEGER NOT NULL PRIMARY KEY REFERENCES jobs(id),
  checked INTEGER NOT NULL UNIQUE REFERENCES jobs(id),
  result TEXT NOT NULL DEFAULT '' CHECK(result IN ('', 'agrees', 'differs', 'undecided')),
  text TEXT NOT NULL DEFAULT ''
) STRICT;
)";

}  // namespace assay
