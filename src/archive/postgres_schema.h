// The archive's tables and functions in PostgreSQL, as steps from one version to the next.
//
// Roles call functions, which run with their owner's rights: whoever may append can neither change
// a record nor choose its time, its place in the chain or its hash. Names are bytes, as a file's
// name need not be UTF-8.
#pragma once

#include <array>

namespace assay {

// Step i leads from version i to i + 1. A step that was released never changes.
inline constexpr std::array<const char*, 1> kPostgresArchiveMigrations = {R"(
CREATE TABLE assay.blobs(
  hash text COLLATE "C" PRIMARY KEY,
  bytes bytea NOT NULL
);
CREATE TABLE assay.records(
  sequence bigint PRIMARY KEY,
  kind text NOT NULL,
  time text NOT NULL,
  name bytea NOT NULL,
  id bytea NOT NULL,
  problem bytea NOT NULL,
  outcome bytea NOT NULL,
  content text COLLATE "C" NOT NULL,
  source text COLLATE "C" NOT NULL,
  terms text COLLATE "C" NOT NULL,
  parent text NOT NULL,
  hash text COLLATE "C" NOT NULL UNIQUE
);
CREATE INDEX records_by_problem ON assay.records(problem, sequence);
CREATE INDEX records_by_outcome ON assay.records(outcome, sequence);
CREATE INDEX records_by_content ON assay.records(content);
CREATE INDEX records_by_id ON assay.records(id, sequence);
CREATE INDEX records_by_kind ON assay.records(kind, sequence);
-- Appends of the last day: one whose answer was lost is known by its token.
CREATE TABLE assay.appends(
  token text PRIMARY KEY,
  first bigint NOT NULL,
  last bigint NOT NULL,
  time timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX appends_by_time ON assay.appends(time);
CREATE VIEW assay.readable AS
  SELECT sequence, kind, time, encode(name, 'escape') AS name, encode(id, 'escape') AS id,
         encode(problem, 'escape') AS problem, encode(outcome, 'escape') AS outcome, content,
         source, terms, parent, hash
  FROM assay.records;

CREATE FUNCTION assay.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a % is never %', rtrim(TG_TABLE_NAME, 's'),
    CASE TG_OP WHEN 'UPDATE' THEN 'changed' ELSE 'deleted' END;
END $$;
CREATE TRIGGER records_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON assay.records
  FOR EACH STATEMENT EXECUTE FUNCTION assay.refuse_change();
CREATE TRIGGER blobs_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON assay.blobs
  FOR EACH STATEMENT EXECUTE FUNCTION assay.refuse_change();

CREATE FUNCTION assay.record_hash(r assay.records) RETURNS text IMMUTABLE LANGUAGE sql AS $$
  SELECT encode(sha256(convert_to(
      E'assay.archive/1\n' || r.sequence || E'\n'
      || octet_length(r.kind) || ' ' || r.kind || E'\n'
      || octet_length(r.time) || ' ' || r.time || E'\n'
      || octet_length(r.name) || ' ', 'UTF8')
    || r.name || convert_to(E'\n' || octet_length(r.id) || ' ', 'UTF8')
    || r.id || convert_to(E'\n' || octet_length(r.problem) || ' ', 'UTF8')
    || r.problem || convert_to(E'\n' || octet_length(r.outcome) || ' ', 'UTF8')
    || r.outcome || convert_to(E'\n'
      || octet_length(r.content) || ' ' || r.content || E'\n'
      || octet_length(r.source) || ' ' || r.source || E'\n'
      || octet_length(r.terms) || ' ' || r.terms || E'\n'
      || octet_length(r.parent) || ' ' || r.parent || E'\n', 'UTF8')), 'hex')
$$;
-- Whoever inserts by other means continues the chain, too.
CREATE FUNCTION assay.check_chain() RETURNS trigger LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
  IF NEW.sequence > 1 AND NOT EXISTS(SELECT FROM assay.records
      WHERE sequence = NEW.sequence - 1 AND hash = NEW.parent) THEN
    RAISE EXCEPTION 'a record names the one before it';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER records_are_a_chain BEFORE INSERT ON assay.records
  FOR EACH ROW EXECUTE FUNCTION assay.check_chain();

CREATE FUNCTION assay.keep(given bytea) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp AS $$
DECLARE digest text := encode(sha256(given), 'hex');
BEGIN
  INSERT INTO blobs VALUES(digest, given) ON CONFLICT DO NOTHING;
  RETURN digest;
END $$;
CREATE FUNCTION assay.insist_on_bytes(VARIADIC hashes text[]) RETURNS void
  LANGUAGE plpgsql STABLE SET search_path = assay, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE each text;
BEGIN
  FOREACH each IN ARRAY hashes LOOP
    IF each <> '' AND NOT EXISTS(SELECT FROM blobs WHERE hash = each) THEN
      RAISE EXCEPTION 'there are no bytes of hash %', each;
    END IF;
  END LOOP;
END $$;
-- One writer at a time, to the end of its transaction.
CREATE FUNCTION assay.lock_chain() RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(x'41535941'::int, 1)
$$;
CREATE FUNCTION assay.append(kind text, name bytea, id bytea, problem bytea, outcome bytea,
    content text, source text, terms text, once boolean) RETURNS SETOF assay.records
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE made records%ROWTYPE;
BEGIN
  PERFORM lock_chain();
  IF once AND EXISTS(SELECT FROM (SELECT r.kind FROM records r WHERE r.content = append.content
                                  OFFSET 0) same WHERE same.kind = append.kind) THEN
    RETURN;
  END IF;
  PERFORM insist_on_bytes(content, source, terms);
  SELECT r.sequence, r.hash INTO made.sequence, made.parent
    FROM records r ORDER BY r.sequence DESC LIMIT 1;
  made := (coalesce(made.sequence, 0) + 1, kind,
           to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
           name, id, problem, outcome, content, source, terms,
           coalesce(made.parent, repeat('0', 64)), NULL);
  made.hash := record_hash(made);
  INSERT INTO records VALUES(made.*);
  RETURN NEXT made;
END $$;
-- Ends an append of at most `at_most` records: keeps which ones it made, and tells listeners.
CREATE FUNCTION assay.sign_append(token text, at_most bigint) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE head bigint; made bigint;
BEGIN
  PERFORM lock_chain();
  SELECT max(sequence) INTO head FROM records;
  SELECT count(*) INTO made FROM records
    WHERE sequence > head - at_most AND xmin = pg_current_xact_id()::xid;
  IF made = 0 THEN RETURN; END IF;
  INSERT INTO appends VALUES(token, head - made + 1, head);
  DELETE FROM appends WHERE time < clock_timestamp() - interval '1 day';
  PERFORM pg_notify('assay_archive', head::text);
END $$;
CREATE FUNCTION assay.signed_append(given text) RETURNS SETOF assay.records
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = assay, pg_temp AS $$
  SELECT r.* FROM appends a JOIN records r ON r.sequence BETWEEN a.first AND a.last
  WHERE a.token = given ORDER BY r.sequence
$$;
-- A record of another archive, as it stands there. False: it is here.
CREATE FUNCTION assay.adopt(copied assay.records) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE head bigint; parent text;
BEGIN
  PERFORM lock_chain();
  IF record_hash(copied) IS DISTINCT FROM copied.hash THEN
    RAISE EXCEPTION 'record % was changed', copied.sequence;
  END IF;
  IF EXISTS(SELECT FROM records WHERE sequence = copied.sequence AND hash = copied.hash) THEN
    RETURN false;
  END IF;
  SELECT r.sequence, r.hash INTO head, parent FROM records r ORDER BY r.sequence DESC LIMIT 1;
  IF copied.sequence <> coalesce(head, 0) + 1
     OR copied.parent <> coalesce(parent, repeat('0', 64)) THEN
    RAISE EXCEPTION 'record % does not continue this archive', copied.sequence;
  END IF;
  PERFORM insist_on_bytes(copied.content, copied.source, copied.terms);
  INSERT INTO records VALUES(copied.*);
  RETURN true;
END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA assay FROM PUBLIC;
)"};

}  // namespace assay
