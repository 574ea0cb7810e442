/** The smallest 1, 2 or 5 times a power of ten that is at least 10% above the value: the top of a plot's axis. */
export function niceTop(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((step) => step * power >= value * 1.1) ?? 20) * power
}
