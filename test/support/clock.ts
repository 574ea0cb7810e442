/** A clock for tests of parts that wait for seconds, on connections that need real time. */
import { Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** A test's `t`; for all tests of a file, `{ mock }` of `node:test`. */
type Mocking = Pick<TestContext, 'mock'>

/** The longest timeout of a timer: 24 days. */
const NEVER_MS = 2 ** 31 - 1

/**
 * Lets timeouts by `setTimeout` of exactly `ms` pass at once, until the test has ended; all others take their time.
 * `mock.timers` would stop the whole clock, including the idle timeouts of a pool's connections, which would then keep
 * the process for 30 s.
 */
export function passAtOnce({ mock }: Mocking, ms: number): void {
  const wait = globalThis.setTimeout
  const hurried = (callback: () => void, wanted?: number, ...args: []) =>
    wait(callback, wanted === ms ? 0 : wanted, ...args)
  mock.method(globalThis, 'setTimeout', hurried as typeof wait)
}

/**
 * Makes timeouts by `setTimeout` of exactly one of `ms`, started before the test has ended, never pass: the test is not
 * about what they limit, which takes longer on a busy machine.
 */
export function disableTimeouts({ mock }: Mocking, ...ms: number[]): void {
  const wait = globalThis.setTimeout
  const endless = (callback: () => void, wanted?: number, ...args: []) =>
    ms.includes(wanted ?? 0) ? wait(callback, NEVER_MS, ...args).unref() : wait(callback, wanted, ...args)
  mock.method(globalThis, 'setTimeout', endless as typeof wait)
}

/**
 * Keeps connections with an idle timeout of exactly `ms`, opened before the test has ended, from being dropped for it.
 */
export function neverIdle({ mock }: Mocking, ms: number): void {
  const bound = Socket.prototype.setTimeout
  mock.method(Socket.prototype, 'setTimeout', function (this: Socket, wanted: number, callback?: () => void) {
    return bound.call(this, wanted === ms ? 0 : wanted, callback)
  })
}

/**
 * Runs what `setInterval` does every `ms` when the returned function is called, and at no other time. Intervals started
 * after the test has ended take their own time.
 * @returns a function that returns how many callbacks it ran, and throws if there are none.
 */
export function onDemand({ mock }: Mocking, ms: number): () => number {
  const { setInterval: repeat, clearInterval: clear } = globalThis
  const repeated = new Map<unknown, () => void>()
  const caught = (callback: () => void, every?: number, ...args: []) => {
    if (every !== ms) return repeat(callback, every, ...args)
    const timer = repeat(() => {}, NEVER_MS)
    repeated.set(timer, callback)
    return timer
  }
  mock.method(globalThis, 'setInterval', caught as typeof repeat)
  mock.method(globalThis, 'clearInterval', (timer: NodeJS.Timeout) => {
    repeated.delete(timer)
    clear(timer)
  })
  return () => {
    if (repeated.size === 0) throw new Error(`nothing is done every ${ms} ms`)
    for (const callback of repeated.values()) callback()
    return repeated.size
  }
}
