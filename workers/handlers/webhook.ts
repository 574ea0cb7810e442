/** A round of deliveries: sends the due deliveries of one webhook, and records the outcome of each. */
import { Counter } from 'prom-client'
import { inTransaction, type PrismaClient, type Transaction } from '../../src/db/prisma.ts'
import {
  countWaiting,
  endWaiting,
  forgetRounds,
  noteAttempts,
  noteDue,
  noteFailing,
  notePause,
  noteWell,
  readDueDeliveries,
} from '../../src/db/statements/webhooks.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import { OperationCanceled } from '../../src/operations/handler.ts'
import { targetOf } from '../../src/webhooks/target.ts'
import { openSecrets } from '../../src/webhooks/webhooks.ts'
import { defineHandler } from '../services.ts'
import { OpenTarget, type Outcome } from '../webhooks/send.ts'

/** Waits after a failed attempt, in milliseconds; the last attempt follows the last wait. */
export const WAITS_MS = [5, 300, 1800, 7200, 18_000, 36_000, 36_000].map((seconds) => seconds * 1000)
/** A target that has failed for this long gets nothing more. */
const FAILING_MS = 5 * 86_400_000
/** A webhook with this many waiting deliveries is too far behind. */
const MAX_WAITING = 100_000
/** Concurrent deliveries of one webhook. */
const AT_ONCE = 8
/** A round ends after this time, so that other webhooks get their turn; the rest is another round. */
const ROUND_MS = 10_000

const attempts = new Counter({
  name: 'berth_webhook_attempts_total',
  help: 'Attempts to deliver an event to a webhook, by result: `delivered` or `failed`.',
  labelNames: ['result'],
})

/** The outcome of an attempt without a secret to sign it: the receiver could not verify the sender. */
const UNSIGNED: Outcome = {
  status: null,
  response: null,
  error: 'The secret of the webhook cannot be decrypted: rotate it',
  isSilent: true,
  retryMs: 0,
}

interface Due {
  id: string
  body: string
  attempts: number
}
interface Attempted {
  delivery: Due
  outcome: Outcome
}

export const deliver = defineHandler('webhook.deliver', ({ pool, prisma, webhooks }) => ({
  async handle(run) {
    const { targetId: id } = run.operation
    const webhook = await prisma.webhook.findFirst({ where: { id, disabledReason: null } })
    if (!webhook) {
      // Deliveries that were added while it was disabled.
      await endWaiting.run(pool, id, 'The webhook was disabled')
      throw new OperationCanceled('the webhook is gone, or disabled')
    }
    const isPaused = webhook.pausedUntil !== null && webhook.pausedUntil > new Date()
    if (!isPaused) {
      const secrets = openSecrets(webhooks.encryption, webhook)
      const target = new OpenTarget(targetOf(webhook.url, webhooks.allowed), { secrets, atOnce: AT_ONCE })
      // A target that did not respond last time is probed with one delivery.
      const atOnce = webhook.silences > 0 ? 1 : AT_ONCE
      const end = performance.now() + ROUND_MS
      try {
        let isWell = true
        while (isWell && performance.now() < end) {
          const { rows } = await readDueDeliveries.run(pool, id, atOnce)
          if (rows.length === 0) break
          const send = async (delivery: Due) => ({
            delivery,
            outcome: secrets.length > 0 ? await target.send(delivery, run.signal) : UNSIGNED,
          })
          const attempted = await Promise.all(rows.map(send))
          crashPoint('webhook-before-note')
          isWell = await note(prisma, id, attempted)
          crashPoint('webhook-after-note')
        }
      } finally {
        target.close()
      }
    }
    return run.succeed(async (tx) => {
      await noteDue.run(tx, id)
      await forgetRounds.run(tx, id, run.operation.id)
      return {}
    })
  },
  /** Deliveries that are still due get another operation. */
  async failed(tx, run) {
    await noteDue.run(tx, run.operation.targetId)
  },
}))

/** Records the outcome of attempts, all of them or none. Resolves to whether to continue with the target. */
function note(prisma: PrismaClient, webhookId: string, attempted: readonly Attempted[]): Promise<boolean> {
  for (const { outcome } of attempted)
    attempts.inc({ result: outcome.error === null ? 'delivered' : 'failed' })
  return inTransaction(prisma, async (tx) => {
    // Locks the webhook before its deliveries, as all changes of a webhook do.
    const isSilent = attempted.every(({ outcome }) => outcome.isSilent)
    const isWell = attempted.some(({ outcome }) => outcome.error === null)
    const failing = isWell ? undefined : await noteFailing.first(tx, webhookId, isSilent)
    if (isWell) await noteWell.run(tx, webhookId)
    const retryMs = Math.max(...attempted.map(({ outcome }) => outcome.retryMs))
    if (retryMs > 0) await notePause.run(tx, webhookId, retryMs)
    const of = <T>(value: (one: Attempted) => T) => attempted.map(value)
    await noteAttempts.run(
      tx,
      of(({ delivery }) => delivery.id),
      of(({ delivery }) => delivery.attempts),
      of(({ outcome }) => outcome.status),
      of(({ outcome }) => outcome.response),
      of(({ outcome }) => outcome.error),
      of(({ delivery, outcome }) =>
        outcome.error === null ? null : waitMs(delivery.attempts, outcome.retryMs),
      ),
    )
    if (isWell) return retryMs === 0
    const reason = await findReason(tx, webhookId, attempted, failing?.failingMs ?? 0)
    if (reason) await disable(tx, webhookId, reason)
    return !reason && !isSilent && retryMs === 0
  })
}

/**
 * The wait before the next attempt, null after the last one. It varies by a tenth, so that deliveries that failed
 * together are not retried together.
 * @param leastMs the wait that the target has asked for.
 */
function waitMs(attempts: number, leastMs: number): number | null {
  const ms = WAITS_MS[attempts]
  return ms === undefined ? null : Math.max(ms * (0.9 + Math.random() * 0.2), leastMs)
}

/** The reason to stop sending to a target that has just failed, if there is one. */
async function findReason(
  tx: Transaction,
  webhookId: string,
  attempted: readonly Attempted[],
  failingMs: number,
): Promise<'gone' | 'failing' | 'behind' | undefined> {
  if (attempted.some(({ outcome }) => outcome.status === 410)) return 'gone'
  if (failingMs > FAILING_MS) return 'failing'
  const { waiting } = await countWaiting.one(tx, webhookId, MAX_WAITING)
  return waiting >= MAX_WAITING ? 'behind' : undefined
}

async function disable(tx: Transaction, webhookId: string, reason: string): Promise<void> {
  await tx.webhook.updateMany({
    where: { id: webhookId, disabledReason: null },
    data: { disabledReason: reason, dueAt: null },
  })
  await endWaiting.run(tx, webhookId, 'The webhook was disabled')
}
