// The queue's tables and functions in PostgreSQL, as a list of steps from one version to the next.
//
// Theory of operation. A work is in one of three small tables: waiting, claims or ends; moving it
// is one transaction. Claims skip rows that others have locked, so nobody waits. Requests and ends
// are written once. Ends get their numbers later, by whoever reads them, under a lock: a number
// that can be read is above all that can be read later. All times are the server's. Roles call
// functions, which run with their owner's rights: a worker sees a request only by claiming it.
#pragma once

#include <array>

namespace assay {

// Step i leads from version i to i + 1. A step that was released never changes.
inline constexpr std::array<const char*, 1> kPostgresQueueMigrations = {R"(
CREATE TABLE assay.runs(
  id bigserial PRIMARY KEY,
  owner name NOT NULL DEFAULT session_user,
  name text NOT NULL,
  added bigint NOT NULL DEFAULT 0,
  judged bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  cancelled bigint NOT NULL DEFAULT 0,
  is_open boolean NOT NULL DEFAULT true,
  served timestamptz NOT NULL DEFAULT '-infinity',
  UNIQUE(owner, name)
) WITH (fillfactor = 50);
CREATE INDEX runs_open ON assay.runs(id) WHERE is_open;
CREATE TABLE assay.works(
  id bigserial PRIMARY KEY,
  run bigint NOT NULL,
  key text NOT NULL,
  batch text NOT NULL,
  device text NOT NULL,
  priority integer NOT NULL,
  request text NOT NULL,
  UNIQUE(run, key)
);
CREATE TABLE assay.waiting(
  work bigint PRIMARY KEY,
  run bigint NOT NULL,
  device text NOT NULL,
  priority integer NOT NULL,
  batch text NOT NULL,
  attempts integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX waiting_in_order ON assay.waiting(run, device, priority DESC, work);
CREATE INDEX waiting_by_batch ON assay.waiting(run, device, batch, priority DESC, work);
CREATE TABLE assay.claims(
  work bigint PRIMARY KEY,
  run bigint NOT NULL,
  device text NOT NULL,
  priority integer NOT NULL,
  batch text NOT NULL,
  attempt integer NOT NULL,
  worker text NOT NULL,
  role name NOT NULL,
  ticket text NOT NULL,
  expires timestamptz NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX claims_by_worker ON assay.claims(worker, ticket);
CREATE TABLE assay.ends(
  work bigint PRIMARY KEY,
  run bigint NOT NULL,
  sequence bigint,
  state text NOT NULL,
  attempts integer NOT NULL,
  worker text NOT NULL,
  role name NOT NULL,
  node text NOT NULL,
  model text NOT NULL,
  verdict text NOT NULL,
  error text NOT NULL,
  time timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ends_in_order ON assay.ends(run, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX ends_fresh ON assay.ends(time) WHERE sequence IS NULL;
CREATE SEQUENCE assay.end_sequence;
-- Attempts that failed, with why.
CREATE TABLE assay.faults(
  work bigint NOT NULL,
  attempt integer NOT NULL,
  worker text NOT NULL,
  role name NOT NULL,
  error text NOT NULL,
  time timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY(work, attempt, worker)
);
CREATE TABLE assay.workers(
  name text PRIMARY KEY,
  role name NOT NULL,
  node text NOT NULL, device text NOT NULL, model text NOT NULL, version text NOT NULL,
  job text NOT NULL, measures text NOT NULL,
  first_seen timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_seen timestamptz NOT NULL DEFAULT clock_timestamp(),
  judged bigint NOT NULL DEFAULT 0,
  faults bigint NOT NULL DEFAULT 0,
  drained text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
-- Of a role without a line, nothing is limited.
CREATE TABLE assay.quotas(
  role name PRIMARY KEY,
  queued_max bigint NOT NULL,
  claimed_max bigint NOT NULL
);

CREATE FUNCTION assay.may_see(owner name) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = assay, pg_temp AS $$
  SELECT owner = session_user OR pg_has_role(session_user, current_user, 'MEMBER')
$$;
CREATE FUNCTION assay.visible_run(run_name text) RETURNS bigint
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = assay, pg_temp AS $$
  SELECT id FROM runs WHERE name = run_name AND may_see(owner)
  ORDER BY owner = session_user DESC, id LIMIT 1
$$;
CREATE FUNCTION assay.queue_add(run_name text, keys text[], batches text[], devices text[],
    priorities bigint[], requests text[]) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp AS $$
DECLARE run_id bigint; made bigint; most bigint; present bigint;
BEGIN
  INSERT INTO runs(owner, name) VALUES(session_user, run_name) ON CONFLICT DO NOTHING;
  SELECT r.id INTO run_id FROM runs r WHERE r.owner = session_user AND r.name = run_name
    FOR NO KEY UPDATE;
  WITH made AS (
    INSERT INTO works(run, key, batch, device, priority, request)
      SELECT run_id, key, batch, device, priority, request
      FROM unnest(keys, batches, devices, priorities, requests) WITH ORDINALITY
        AS given(key, batch, device, priority, request, place) ORDER BY place
      ON CONFLICT (run, key) DO NOTHING RETURNING id, device, priority, batch)
  INSERT INTO waiting SELECT m.id, run_id, m.device, m.priority, m.batch, 0 FROM made m;
  GET DIAGNOSTICS made = ROW_COUNT;
  UPDATE runs SET added = added + made, is_open = is_open OR made > 0 WHERE id = run_id;
  SELECT queued_max INTO most FROM quotas WHERE role = session_user;
  IF most IS NOT NULL AND made > 0 THEN
    SELECT sum(added - judged - failed - cancelled) INTO present FROM runs
      WHERE owner = session_user;
    IF present > most THEN
      RAISE EXCEPTION 'role % would have % works queued, and may have %: wait, or ask for more',
        session_user, present, most;
    END IF;
  END IF;
  IF made > 0 THEN PERFORM pg_notify('assay_queue', ''); END IF;
  RETURN made;
END $$;

-- The worker lives; returns why it is drained.
CREATE FUNCTION assay.queue_hear(facts text[]) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp AS $$
DECLARE answer text;
BEGIN
  INSERT INTO workers AS w(name, role, node, device, model, version, job, measures)
    VALUES(facts[1], session_user, facts[2], facts[3], facts[4], facts[5], facts[6], facts[7])
    ON CONFLICT (name) DO UPDATE SET last_seen = clock_timestamp(), node = EXCLUDED.node,
      device = EXCLUDED.device, model = EXCLUDED.model, version = EXCLUDED.version,
      job = EXCLUDED.job, measures = EXCLUDED.measures
    WHERE w.role = session_user
    RETURNING drained INTO answer;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a worker % is another role''s', facts[1];
  END IF;
  RETURN answer;
END $$;
-- Plans are kept while tables grow from nothing to millions of rows: those that serve both are
-- forced, which walk along the indexes. What is forbidden looks dear, which would start the JIT.
--
-- Claims are few, and their rows short-lived: the table is read, not an index of dead entries.
CREATE FUNCTION assay.queue_holds() RETURNS TABLE(run bigint, claimed bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = assay, pg_temp
  SET enable_seqscan = on AS $$
BEGIN
  RETURN QUERY SELECT c.run, count(*) FROM claims c GROUP BY c.run;
END $$;
CREATE FUNCTION assay.claimed_by(worker_name text, given_ticket text)
  RETURNS TABLE(work bigint, attempt integer, run_name text, key text, request text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = assay, pg_temp
  SET enable_seqscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT c.work, c.attempt, r.name, w.key, w.request
    FROM claims c CROSS JOIN LATERAL (SELECT each.key, each.request FROM works each
                                      WHERE each.id = c.work OFFSET 0) w
      JOIN runs r ON r.id = c.run
    WHERE c.worker = worker_name AND c.ticket = given_ticket AND c.role = session_user
    ORDER BY c.work;
END $$;
-- A claim whose answer was lost is asked for `again` by its ticket. A crash of the server may
-- forget a claim: then the work waits, and the worker hears that it is no longer its. While one run
-- alone is open, nobody counts who holds how much.
CREATE FUNCTION assay.queue_claim(facts text[], given_ticket text, again boolean, works_max bigint,
    lease_s double precision)
  RETURNS TABLE(work bigint, attempt integer, run_name text, key text, request text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp SET enable_bitmapscan = off
  SET enable_seqscan = off
  SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE candidate record; top record; picked bigint[]; alone boolean;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF queue_hear(facts) <> '' THEN RETURN; END IF;
  IF again THEN
    RETURN QUERY SELECT * FROM claimed_by(facts[1], given_ticket);
    IF FOUND THEN RETURN; END IF;
  END IF;
  alone := (SELECT count(*) FROM (SELECT FROM runs r WHERE r.is_open LIMIT 2) few) < 2
           AND NOT EXISTS(SELECT FROM quotas q WHERE q.claimed_max < 9223372036854775807);
  FOR candidate IN
    WITH holds AS MATERIALIZED (SELECT c.run, c.claimed FROM queue_holds() c WHERE NOT alone),
      owned AS (SELECT r.owner, sum(h.claimed) AS claimed FROM holds h JOIN runs r ON r.id = h.run
                GROUP BY r.owner)
    SELECT r.id, r.name FROM runs r
      CROSS JOIN LATERAL (SELECT w.priority FROM waiting w
                          WHERE w.run = r.id AND w.device = facts[3]
                          ORDER BY w.priority DESC, w.work LIMIT 1) first
      LEFT JOIN holds h ON h.run = r.id
      LEFT JOIN quotas q ON q.role = r.owner
      LEFT JOIN owned o ON o.owner = r.owner
    WHERE r.is_open AND coalesce(o.claimed, 0) < coalesce(q.claimed_max, 9223372036854775807)
    ORDER BY first.priority DESC, coalesce(h.claimed, 0), r.served, r.id
  LOOP
    SELECT w.work, w.batch, w.priority INTO top FROM waiting w
      WHERE w.run = candidate.id AND w.device = facts[3]
      ORDER BY w.priority DESC, w.work LIMIT 1 FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    picked := ARRAY[top.work];
    IF works_max > 1 THEN
      picked := ARRAY(SELECT w.work FROM waiting w
        WHERE w.run = candidate.id AND w.device = facts[3] AND w.batch = top.batch
          AND w.priority = top.priority
        ORDER BY w.priority DESC, w.work LIMIT works_max FOR UPDATE SKIP LOCKED);
    END IF;
    IF NOT alone THEN
      UPDATE runs SET served = clock_timestamp() WHERE id =
        (SELECT r.id FROM runs r WHERE r.id = candidate.id FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    RETURN QUERY WITH gone AS (DELETE FROM waiting w WHERE w.work = ANY(picked) RETURNING w.*),
      made AS (INSERT INTO claims AS c
        SELECT g.work, g.run, g.device, g.priority, g.batch, g.attempts + 1, facts[1],
               session_user, given_ticket, clock_timestamp() + lease_s * interval '1 s'
        FROM gone g RETURNING c.work, c.attempt)
      SELECT m.work, m.attempt, candidate.name, w.key, w.request
      FROM made m CROSS JOIN LATERAL (SELECT each.key, each.request FROM works each
                                      WHERE each.id = m.work OFFSET 0) w ORDER BY m.work;
    RETURN;
  END LOOP;
END $$;
CREATE FUNCTION assay.queue_beat(facts text[], held bigint[], attempts bigint[],
    lease_s double precision) RETURNS SETOF bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE claims c SET expires = clock_timestamp() + lease_s * interval '1 s'
    WHERE c.work = ANY(held) AND c.worker = facts[1] AND c.role = session_user;
  PERFORM queue_hear(facts);
  RETURN QUERY SELECT h.work FROM unnest(held, attempts) AS h(work, attempt)
    WHERE NOT EXISTS(SELECT FROM claims c WHERE c.work = h.work AND c.attempt = h.attempt
                     AND c.worker = facts[1] AND c.role = session_user);
END $$;
-- Puts a claim's work back, or ends it after the last attempt. The claim is gone already.
CREATE FUNCTION assay.queue_fault(held assay.claims, why text, attempts_max bigint) RETURNS void
  LANGUAGE plpgsql SET search_path = assay, pg_temp AS $$
BEGIN
  INSERT INTO faults VALUES(held.work, held.attempt, held.worker, held.role, why)
    ON CONFLICT DO NOTHING;
  IF held.attempt < attempts_max THEN
    INSERT INTO waiting
      VALUES(held.work, held.run, held.device, held.priority, held.batch, held.attempt);
  ELSE
    INSERT INTO ends(work, run, state, attempts, worker, role, node, model, verdict, error)
      SELECT held.work, held.run, 'failed', held.attempt, held.worker, held.role,
             coalesce(max(w.node), ''), coalesce(max(w.model), ''), '', why
      FROM workers w WHERE w.name = held.worker;
  END IF;
  UPDATE workers SET faults = workers.faults + 1 WHERE name = held.worker;
END $$;
CREATE FUNCTION assay.queue_end(facts text[], given_work bigint, given_attempt bigint,
    verdict text, error text, again boolean, attempts_max bigint) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp
  SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE held claims%ROWTYPE;
BEGIN
  DELETE FROM claims c WHERE c.work = given_work AND c.attempt = given_attempt
    AND c.worker = facts[1] AND c.role = session_user RETURNING c.* INTO held;
  IF NOT FOUND THEN
    RETURN EXISTS(SELECT FROM ends e WHERE e.work = given_work AND e.attempts = given_attempt
                  AND e.worker = facts[1] AND e.role = session_user AND e.state = 'judged')
        OR EXISTS(SELECT FROM faults f WHERE f.work = given_work AND f.attempt = given_attempt
                  AND f.worker = facts[1] AND f.role = session_user AND f.error = queue_end.error);
  END IF;
  IF again THEN
    PERFORM queue_fault(held, error, attempts_max);
    RETURN true;
  END IF;
  IF verdict = '' THEN
    INSERT INTO faults VALUES(held.work, held.attempt, held.worker, held.role, error)
      ON CONFLICT DO NOTHING;
  END IF;
  INSERT INTO ends(work, run, state, attempts, worker, role, node, model, verdict, error)
    VALUES(held.work, held.run, CASE verdict WHEN '' THEN 'failed' ELSE 'judged' END, held.attempt,
           held.worker, held.role, facts[2], facts[4], verdict, error);
  UPDATE workers SET judged = workers.judged + (verdict <> '')::int,
      faults = workers.faults + (verdict = '')::int, last_seen = clock_timestamp()
    WHERE name = facts[1];
  RETURN true;
END $$;
CREATE FUNCTION assay.queue_give_back(facts text[], held bigint[], attempts bigint[]) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path = assay, pg_temp
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
  WITH gone AS (
    DELETE FROM claims c USING unnest(held, attempts) AS h(work, attempt)
      WHERE c.work = h.work AND c.attempt = h.attempt AND c.worker = facts[1]
        AND c.role = session_user RETURNING c.*)
  INSERT INTO waiting
    SELECT g.work, g.run, g.device, g.priority, g.batch, g.attempt - 1 FROM gone g
$$;
CREATE FUNCTION assay.queue_expire(attempts_max bigint) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp AS $$
DECLARE held claims%ROWTYPE; expired bigint := 0;
BEGIN
  FOR held IN SELECT * FROM claims c WHERE c.expires < clock_timestamp()
      ORDER BY c.work LIMIT 1000 FOR UPDATE SKIP LOCKED LOOP
    DELETE FROM claims c WHERE c.work = held.work;
    PERFORM queue_fault(held, json_build_object('kind', 'environment', 'message', format(
      'worker %s fell silent in attempt %s, and its lease ran out', held.worker,
      held.attempt))::text, attempts_max);
    expired := expired + 1;
  END LOOP;
  IF expired > 0 THEN PERFORM pg_notify('assay_queue', ''); END IF;
  RETURN expired;
END $$;
-- Numbers the ends that have none, and counts them.
CREATE FUNCTION assay.queue_order() RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
  IF NOT EXISTS(SELECT FROM ends WHERE sequence IS NULL) THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(x'41535941'::int, 2);
  WITH fresh AS MATERIALIZED (
      SELECT work FROM ends WHERE sequence IS NULL ORDER BY time LIMIT 20000),
    numbers AS MATERIALIZED (SELECT work, nextval('end_sequence') AS number FROM fresh),
    numbered AS (UPDATE ends e SET sequence = n.number FROM numbers n WHERE e.work = n.work
                 RETURNING e.run, e.state),
    totals AS (SELECT run, count(*) FILTER (WHERE state = 'judged') AS judged,
                 count(*) FILTER (WHERE state = 'failed') AS failed,
                 count(*) FILTER (WHERE state = 'cancelled') AS cancelled
               FROM numbered GROUP BY run)
  UPDATE runs r SET judged = r.judged + t.judged, failed = r.failed + t.failed,
      cancelled = r.cancelled + t.cancelled,
      is_open = r.judged + r.failed + r.cancelled + t.judged + t.failed + t.cancelled < r.added
    FROM totals t WHERE r.id = t.run;
END $$;
CREATE FUNCTION assay.queue_ended(run_name text, after bigint, most bigint)
  RETURNS TABLE(sequence bigint, key text, state text, verdict text, error text, attempts integer,
                worker text, node text, model text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
  PERFORM queue_order();
  RETURN QUERY SELECT e.sequence, w.key, e.state, e.verdict, e.error, e.attempts, e.worker, e.node,
      e.model
    FROM ends e CROSS JOIN LATERAL (SELECT each.key FROM works each
                                    WHERE each.id = e.work OFFSET 0) w
    WHERE e.run = visible_run(run_name) AND e.sequence > after ORDER BY e.sequence LIMIT most;
END $$;
-- Below the first number of an end of these works; where none has one, the run's last number.
CREATE FUNCTION assay.queue_read_from(run_name text, keys text[]) RETURNS bigint
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = assay, pg_temp SET enable_bitmapscan = off
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
  WITH named AS MATERIALIZED (SELECT visible_run(run_name) AS run)
  SELECT coalesce(
    (SELECT min(e.sequence) - 1 FROM named n CROSS JOIN unnest(keys) AS k(key)
       CROSS JOIN LATERAL (SELECT each.id FROM works each
                           WHERE each.run = n.run AND each.key = k.key OFFSET 0) w
       CROSS JOIN LATERAL (SELECT each.sequence FROM ends each
                           WHERE each.work = w.id OFFSET 0) e),
    (SELECT last.sequence FROM named n
       CROSS JOIN LATERAL (SELECT e.sequence FROM ends e
                           WHERE e.run = n.run AND e.sequence IS NOT NULL
                           ORDER BY e.sequence DESC LIMIT 1) last),
    0)
$$;
CREATE FUNCTION assay.queue_counts(run_name text)
  RETURNS TABLE(queued bigint, claimed bigint, judged bigint, failed bigint, cancelled bigint)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp AS $$
BEGIN
  PERFORM queue_order();
  RETURN QUERY WITH seen AS MATERIALIZED (
      SELECT r.* FROM runs r WHERE CASE run_name WHEN '' THEN may_see(r.owner)
                                   ELSE r.id = visible_run(run_name) END),
    held AS (SELECT count(*) AS claimed FROM claims c WHERE c.run IN (SELECT id FROM seen))
  SELECT greatest(0, coalesce(sum(s.added - s.judged - s.failed - s.cancelled), 0)::bigint
                     - (SELECT h.claimed FROM held h)),
         (SELECT h.claimed FROM held h), coalesce(sum(s.judged), 0)::bigint,
         coalesce(sum(s.failed), 0)::bigint, coalesce(sum(s.cancelled), 0)::bigint
    FROM seen s;
END $$;
CREATE FUNCTION assay.queue_cancel(run_name text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = assay, pg_temp AS $$
DECLARE run_id bigint := visible_run(run_name); gone_waiting bigint; gone_claimed bigint;
BEGIN
  LOOP  -- until nothing moves from one to the other
    WITH gone AS (DELETE FROM waiting w WHERE w.run = run_id RETURNING w.*)
      INSERT INTO ends(work, run, state, attempts, worker, role, node, model, verdict, error)
        SELECT g.work, run_id, 'cancelled', g.attempts, '', session_user, '', '', '', ''
        FROM gone g;
    GET DIAGNOSTICS gone_waiting = ROW_COUNT;
    WITH held AS MATERIALIZED (
        SELECT c.work FROM claims c WHERE c.run = run_id ORDER BY c.work FOR UPDATE),
      gone AS (DELETE FROM claims c USING held h WHERE c.work = h.work RETURNING c.*)
      INSERT INTO ends(work, run, state, attempts, worker, role, node, model, verdict, error)
        SELECT g.work, run_id, 'cancelled', g.attempt, '', session_user, '', '', '', ''
        FROM gone g;
    GET DIAGNOSTICS gone_claimed = ROW_COUNT;
    EXIT WHEN gone_waiting + gone_claimed = 0;
  END LOOP;
  PERFORM pg_notify('assay_queue', '');
END $$;
CREATE FUNCTION assay.queue_workers()
  RETURNS TABLE(name text, node text, device text, model text, version text, job text,
                measures text, silent_s double precision, doing text, judged bigint, faults bigint,
                known_s double precision, drained text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = assay, pg_temp AS $$
  SELECT w.name, w.node, w.device, w.model, w.version, w.job, w.measures,
    extract(epoch FROM clock_timestamp() - w.last_seen)::double precision,
    coalesce((SELECT string_agg(CASE WHEN may_see(r.owner) THEN k.key ELSE '(another''s)' END, ' '
                                ORDER BY c.work)
              FROM claims c JOIN works k ON k.id = c.work JOIN runs r ON r.id = c.run
              WHERE c.worker = w.name), ''),
    w.judged, w.faults, extract(epoch FROM w.last_seen - w.first_seen)::double precision, w.drained
  FROM workers w ORDER BY w.name
$$;
CREATE FUNCTION assay.queue_drain(worker_name text, why text) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path = assay, pg_temp AS $$
  UPDATE workers SET drained = why WHERE name = worker_name
$$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA assay FROM PUBLIC;
)"};

}  // namespace assay
