// The tables of the archive's SQLite file, as a list of steps from one version to the next.
#pragma once

#include <array>
#include <cstdint>

namespace assay {

// In the file's header: it is an archive of Assay's.
inline constexpr int64_t kArchiveApplicationId = 0x41535941;

// Step i leads from version i to i + 1. A step that was released never changes.
inline constexpr std::array<const char*, 3> kArchiveMigrations = {R"(
CREATE TABLE blobs(
  hash TEXT NOT NULL PRIMARY KEY,
  bytes BLOB NOT NULL
) STRICT;
CREATE TABLE records(
  sequence INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK(kind IN ('candidate', 'verdict', 'failure', 'run', 'note')),
  time TEXT NOT NULL,
  name TEXT NOT NULL,
  id TEXT NOT NULL,
  problem TEXT NOT NULL,
  outcome TEXT NOT NULL,
  content TEXT NOT NULL REFERENCES blobs(hash),
  source TEXT REFERENCES blobs(hash),
  terms TEXT REFERENCES blobs(hash),
  parent TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL UNIQUE
) STRICT;
CREATE INDEX records_by_problem ON records(problem, sequence);
CREATE INDEX records_by_outcome ON records(outcome, sequence);
CREATE INDEX records_by_content ON records(content);
CREATE INDEX records_by_id ON records(id);
CREATE TRIGGER records_stay BEFORE UPDATE ON records
  BEGIN SELECT RAISE(ABORT, 'a record is never changed'); END;
CREATE TRIGGER records_remain BEFORE DELETE ON records
  BEGIN SELECT RAISE(ABORT, 'a record is never deleted'); END;
CREATE TRIGGER records_are_new BEFORE INSERT ON records
  WHEN EXISTS(SELECT 1 FROM records
              WHERE sequence = new.sequence OR hash = new.hash OR parent = new.parent)
  BEGIN SELECT RAISE(ABORT, 'a record is never replaced'); END;
CREATE TRIGGER blobs_stay BEFORE UPDATE ON blobs
  BEGIN SELECT RAISE(ABORT, 'a blob is never changed'); END;
CREATE TRIGGER blobs_remain BEFORE DELETE ON blobs
  BEGIN SELECT RAISE(ABORT, 'a blob is never deleted'); END;
CREATE TRIGGER blobs_are_new BEFORE INSERT ON blobs
  WHEN EXISTS(SELECT 1 FROM blobs WHERE hash = new.hash)
  BEGIN SELECT RAISE(ABORT, 'a blob is never replaced'); END;
)",
                                                                  R"(
-- SQLite cannot change a CHECK: the table is written anew, with the kinds of searches.
CREATE TABLE records_with_searches(
  sequence INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK(kind IN ('candidate', 'verdict', 'failure', 'run', 'note', 'search',
                                    'step', 'result', 'steer', 'reference')),
  time TEXT NOT NULL,
  name TEXT NOT NULL,
  id TEXT NOT NULL,
  problem TEXT NOT NULL,
  outcome TEXT NOT NULL,
  content TEXT NOT NULL REFERENCES blobs(hash),
  source TEXT REFERENCES blobs(hash),
  terms TEXT REFERENCES blobs(hash),
  parent TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO records_with_searches SELECT * FROM records ORDER BY sequence;
DROP TABLE records;
ALTER TABLE records_with_searches RENAME TO records;
CREATE INDEX records_by_problem ON records(problem, sequence);
CREATE INDEX records_by_outcome ON records(outcome, sequence);
CREATE INDEX records_by_content ON records(content);
CREATE INDEX records_by_id ON records(id);
CREATE INDEX records_by_kind ON records(kind, sequence);
CREATE TRIGGER records_stay BEFORE UPDATE ON records
  BEGIN SELECT RAISE(ABORT, 'a record is never changed'); END;
CREATE TRIGGER records_remain BEFORE DELETE ON records
  BEGIN SELECT RAISE(ABORT, 'a record is never deleted'); END;
CREATE TRIGGER records_are_new BEFORE INSERT ON records
  WHEN EXISTS(SELECT 1 FROM records WHERE sequence = new.sequence OR hash = new.hash)
  BEGIN SELECT RAISE(ABORT, 'a record is never replaced'); END;
CREATE TRIGGER records_are_a_chain BEFORE INSERT ON records
  WHEN new.sequence > 1
       AND new.parent IS NOT (SELECT hash FROM records WHERE sequence = new.sequence - 1)
  BEGIN SELECT RAISE(ABORT, 'a record names the one before it'); END;
)",
                                                                  R"(
-- Once more, without a CHECK of kinds: this program knows them.
CREATE TABLE records_of_any_kind(
  sequence INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  time TEXT NOT NULL,
  name TEXT NOT NULL,
  id TEXT NOT NULL,
  problem TEXT NOT NULL,
  outcome TEXT NOT NULL,
  content TEXT NOT NULL REFERENCES blobs(hash),
  source TEXT REFERENCES blobs(hash),
  terms TEXT REFERENCES blobs(hash),
  parent TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO records_of_any_kind SELECT * FROM records ORDER BY sequence;
DROP TABLE records;
ALTER TABLE records_of_any_kind RENAME TO records;
CREATE INDEX records_by_problem ON records(problem, sequence);
CREATE INDEX records_by_outcome ON records(outcome, sequence);
CREATE INDEX records_by_content ON records(content);
CREATE INDEX records_by_id ON records(id);
CREATE INDEX records_by_kind ON records(kind, sequence);
CREATE TRIGGER records_stay BEFORE UPDATE ON records
  BEGIN SELECT RAISE(ABORT, 'a record is never changed'); END;
CREATE TRIGGER records_remain BEFORE DELETE ON records
  BEGIN SELECT RAISE(ABORT, 'a record is never deleted'); END;
CREATE TRIGGER records_are_new BEFORE INSERT ON records
  WHEN EXISTS(SELECT 1 FROM records WHERE sequence = new.sequence OR hash = new.hash)
  BEGIN SELECT RAISE(ABORT, 'a record is never replaced'); END;
CREATE TRIGGER records_are_a_chain BEFORE INSERT ON records
  WHEN new.sequence > 1
       AND new.parent IS NOT (SELECT hash FROM records WHERE sequence = new.sequence - 1)
  BEGIN SELECT RAISE(ABORT, 'a record names the one before it'); END;
)"};

}  // namespace assay
