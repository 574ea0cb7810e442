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

/** A browser by what it calls itself: `Firefox, Linux`; the beginning of that where it is none of those known here. */
export function browserName(userAgent: string): string {
  const named = [BROWSERS, SYSTEMS].flatMap(
    (names) => names.find(([part]) => userAgent.includes(part))?.[1] ?? [],
  )
  return named.join(', ') || userAgent.slice(0, 40)
}
