import { createHash } from 'node:crypto'

/** Names what a sandbox was made from: the same for the same content, whatever the order of its keys. */
export function hashOf(content: unknown): string {
  const text = JSON.stringify(content, (_, part) =>
    part && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}
