// The tables of classes, worklogs, marks and finalists, as a step of serve_schema.h.
#pragma once

namespace assay {

inline constexpr const char* kClassTables = R"(
CREATE TABLE classes(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  deadline_s INTEGER NOT NULL,
  jobs_a_day INTEGER NOT NULL CHECK(jobs_a_day > 0),
  worklogs_a_day INTEGER NOT NULL CHECK(worklogs_a_day > 0),
  rubric TEXT NOT NULL,
  made_s INTEGER NOT NULL,
  closed_s INTEGER NOT NULL DEFAULT 0,
  finals_s INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TRIGGER classes_close_once BEFORE UPDATE ON classes
  WHEN (old.closed_s <> 0 AND (new.closed_s <> old.closed_s OR new.deadline_s <> old.deadline_s))
    OR (old.finals_s <> 0 AND new.finals_s <> old.finals_s)
  BEGIN SELECT RAISE(ABORT, 'a class closes once'); END;
CREATE TABLE invitations(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  class INTEGER NOT NULL REFERENCES classes(id),
  hash TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK(role IN ('mentor', 'student', 'machine')),
  account INTEGER REFERENCES accounts(id),
  uses_max INTEGER NOT NULL CHECK(uses_max > 0),
  used INTEGER NOT NULL DEFAULT 0 CHECK(used <= uses_max),
  made_s INTEGER NOT NULL,
  ends_s INTEGER NOT NULL,
  revoked INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX invitations_by_class ON invitations(class);
CREATE TABLE worklogs(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  class INTEGER NOT NULL,
  account INTEGER NOT NULL REFERENCES accounts(id),
  worklog TEXT NOT NULL,
  problem TEXT NOT NULL,
  UNIQUE(account, worklog)
) STRICT;
CREATE INDEX worklogs_by_class ON worklogs(class);
CREATE INDEX worklogs_by_name ON worklogs(worklog);
CREATE TABLE uploads(
  worklog INTEGER NOT NULL REFERENCES worklogs(id),
  number INTEGER NOT NULL,
  time_s INTEGER NOT NULL,
  tar TEXT NOT NULL,
  PRIMARY KEY(worklog, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE worklog_facts(
  worklog INTEGER NOT NULL REFERENCES worklogs(id),
  hash TEXT NOT NULL,
  upload INTEGER NOT NULL,
  PRIMARY KEY(worklog, hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE marks(
  worklog INTEGER NOT NULL REFERENCES worklogs(id),
  revision INTEGER NOT NULL,
  mentor INTEGER NOT NULL REFERENCES accounts(id),
  time_s INTEGER NOT NULL,
  upload INTEGER NOT NULL,
  marks TEXT NOT NULL,
  PRIMARY KEY(worklog, revision)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER uploads_remain BEFORE DELETE ON uploads
  BEGIN SELECT RAISE(ABORT, 'an upload is never deleted'); END;
CREATE TRIGGER marks_remain BEFORE DELETE ON marks
  BEGIN SELECT RAISE(ABORT, 'marks are never deleted'); END;
CREATE TRIGGER marks_stay BEFORE UPDATE ON marks
  BEGIN SELECT RAISE(ABORT, 'marks are never changed'); END;
CREATE TABLE finalists(
  class INTEGER NOT NULL REFERENCES classes(id),
  account INTEGER NOT NULL REFERENCES accounts(id),
  board TEXT NOT NULL,
  best INTEGER NOT NULL,
  job INTEGER NOT NULL,
  PRIMARY KEY(class, account, board)
) STRICT, WITHOUT ROWID;
)";

}  // namespace assay
