/** A clock for tests of parts that wait for seconds, on connections that need their own time. */
import type { TestContext } from 'node:test'

/**
 * Has waits by `setTimeout` of exactly `ms` pass at once, until the test has ended; all others take their time.
 * `mock.timers` stops the whole clock: also the idle connections of a pool, which then keep the process for 30 s.
 */
export function passAtOnce(t: TestContext, ms: number): void {
  const wait = globalThis.setTimeout
  const hurried = (callback: () => void, wanted?: number, ...args: []) =>
    wait(callback, wanted === ms ? 0 : wanted, ...args)
  t.mock.method(globalThis, 'setTimeout', hurried as typeof wait)
}
