/** Times in UUIDs of version 7, which begin with their milliseconds (RFC 9562, 5.7). */

export const timeOfUuid = (id: string): Date =>
  new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))

/** The least UUID of a time; times before 1970 have none of their own. */
export function leastUuid(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
