/** The table of recovery times that a torture file prints at its end. */
const rows: { fault: string; victim: string; backend: string; ms: number }[] = []

/** Records the time from a fault until work resumed, or everything was well again. */
export function note(fault: string, victim: string, backend: string, ms: number): void {
  rows.push({ fault, victim, backend, ms: Math.round(ms) })
}

/** Prints the records since the last call. */
export function printSummary(): void {
  const cells = [
    ['fault', 'victim', 'backend', 'ms'],
    ...rows.splice(0).map(({ ms, fault, victim, backend }) => [fault, victim, backend, String(ms)]),
  ]
  const widths = [0, 1, 2, 3].map((i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)))
  for (const row of cells) {
    console.log(
      row
        .map((cell, i) => (i === 3 ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
        .join('  '),
    )
  }
}
