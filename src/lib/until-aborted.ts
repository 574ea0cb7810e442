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
