/**
 * Shares one run of `load` among all callers while it lasts and for `ms` after it, including failures: anonymous
 * callers must not control the load on the database.
 */
export function coalesce<T>(ms: number, load: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  const forget = () => {
    result = undefined
  }
  return () => {
    result ??= load().finally(() => setTimeout(forget, ms).unref())
    return result
  }
}
