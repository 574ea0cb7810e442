/** Combines the abort signals and deadlines of a call. */

/**
 * Fires with `signal`, or after `ms`. Keeps about 1 KB until `ms` have passed, even if the call ends earlier, and does
 * not keep the process running.
 */
export function within(ms: number, signal?: AbortSignal): AbortSignal {
  const deadline = AbortSignal.timeout(ms)
  return signal ? AbortSignal.any([signal, deadline]) : deadline
}

/**
 * Runs `work` with a signal that fires with the caller's signal, or after `ms`, and waits until `work` has ended.
 * @throws if that signal has fired, its reason: that of the caller's signal, or the result of `late`. Otherwise what
 *   `work` throws.
 */
export async function withDeadline<T>(
  { ms, signal, late }: { ms: number; signal?: AbortSignal | undefined; late: () => Error },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(late()), ms)
  const either = signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal
  try {
    return await work(either)
  } catch (error) {
    throw either.aborted ? either.reason : error
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Yields the items of a source until the signal fires, so that a hanging source does not hold up the caller.
 * @throws the signal's reason, or what the source throws.
 */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await orAborted(iterator.next(), signal)
      if (next.done) return
      yield next.value
    }
  } finally {
    // Not awaited: a hanging source ends whenever it does.
    iterator.return?.()?.catch(() => {})
  }
}

/**
 * Resolves like the promise, until the signal fires. Not `Promise.race`: a promise that lives as long as the signal
 * would hold every result until then.
 * @throws the signal's reason, or what the promise rejects with.
 */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
