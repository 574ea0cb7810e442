/** The middle value, or the mean of the two middle values. */
export function median(values: number[]): number {
  return (quantile(values, 0.5) + quantile(values, 0.5, Math.floor)) / 2
}

/** The value below which the share `q` (0 to 1) of the values lies. */
export function quantile(values: number[], q: number, round = Math.ceil): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[round((sorted.length - 1) * q)] ?? Number.NaN
}
