/** Runs `work` on each item, at most `width` of them side by side. @throws what the first one throws. */
export async function eachOf<T>(
  items: AsyncIterable<T>,
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
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
