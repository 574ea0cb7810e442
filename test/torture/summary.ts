/** The table of recovery times that a torture file prints at its end. */
const rows: { fault: string; victim: string; backend: string; ms: number }[] = []

/** Notes how long it took from a fault until things went on, or were well again. */
export function note(fault: string, victim: string, backend: string, ms: number): void {
  rows.push({ fault, victim, backend, ms: Math.round(ms) })
}

/** Prints what was noted since the last time. */
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
