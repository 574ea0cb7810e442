/** Runs `work` on each item, at most `width` at a time. @throws the first error; no further items are started then. */
export async function forEachConcurrently<T>(
  items: AsyncIterable<T> | Iterable<T>,
  width: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  let failed = false
  const next = async (): Promise<void> => {
    for (;;) {
      const { done, value } = await iterator.next()
      if (done || failed) return
      await work(value).catch((error) => {
        failed = true
        throw error
      })
    }
  }
  try {
    await Promise.all(Array.from({ length: width }, next))
  } finally {
    await iterator.return?.()
  }
}
