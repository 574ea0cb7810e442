const BROWSERS = [
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const
const SYSTEMS = [
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Android', 'Android'],
  ['Mac OS X', 'macOS'],
  ['Windows', 'Windows'],
  ['Linux', 'Linux'],
] as const

/** A short name for a user agent: `Firefox, Linux`; the first part of the user agent if it is unknown here. */
export function browserName(userAgent: string): string {
  const named = [BROWSERS, SYSTEMS].flatMap(
    (names) => names.find(([part]) => userAgent.includes(part))?.[1] ?? [],
  )
  return named.join(', ') || userAgent.slice(0, 40)
}
