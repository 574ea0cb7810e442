/**
 * Shares one run of `load` among all who ask while it lasts and for `ms` after it, failure included: what
 * anybody may ask without a key must not put a load of their choice on the database.
 */
export function shared<T>(ms: number, load: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  const forget = () => {
    result = undefined
  }
  return () => {
    result ??= load().finally(() => setTimeout(forget, ms).unref())
    return result
  }
}
