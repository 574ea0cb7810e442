/** A trigger that records every step of every operation, and the rules that those steps must follow. */
import assert from 'node:assert/strict'
import type { Pool } from '../../src/db/pool.ts'

const FINISHED = ['succeeded', 'failed', 'canceled']

interface Step {
  operation_id: string
  concurrency_key: string
  before: string
  after: string
  epoch: number
}

/** Installs the trigger in the test's database. */
export async function createAudit(pool: Pool): Promise<void> {
  await pool.query(`
    CREATE TABLE torture_step (
      position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, operation_id uuid NOT NULL,
      concurrency_key text, before text NOT NULL, after text NOT NULL, epoch integer NOT NULL
    );
    CREATE FUNCTION torture_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO torture_step (operation_id, concurrency_key, before, after, epoch)
      VALUES (NEW.id, NEW.concurrency_key, OLD.state, NEW.state, NEW.epoch);
      RETURN NULL;
    END $$;
    CREATE TRIGGER torture_note AFTER UPDATE ON operation FOR EACH ROW
      WHEN (OLD.state <> NEW.state OR OLD.epoch <> NEW.epoch) EXECUTE FUNCTION torture_note()`)
}

/**
 * Asserts that each operation ended at most once and never left that state, that each claim raised the epoch by one,
 * and that no two operations with one exclusive key ran at the same time.
 */
export async function assertSteps(pool: Pool): Promise<void> {
  const { rows } = await pool.query<Step>('SELECT * FROM torture_step ORDER BY position')
  const epochs = new Map<string, number>()
  const ended = new Set<string>()
  const running = new Map<string, string>()
  for (const { operation_id: id, concurrency_key: key, before, after, epoch } of rows) {
    assert.ok(!ended.has(id), `operation ${id} went from ${before} to ${after} after its end`)
    const last = epochs.get(id) ?? 0
    if (after === 'running') {
      assert.equal(epoch, last + 1, `operation ${id}: a claim raises the epoch by one`)
      assert.equal(running.get(key) ?? id, id, `${key}: two operations run at a time`)
      running.set(key, id)
    } else {
      assert.equal(epoch, last, `operation ${id}: only a claim raises the epoch`)
      if (running.get(key) === id) running.delete(key)
    }
    epochs.set(id, epoch)
    if (FINISHED.includes(after)) ended.add(id)
  }
}
