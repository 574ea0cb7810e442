/** Prints rows as JSON, or as a table with the keys as column headers. */
export function printRows(rows: Record<string, unknown>[], json: boolean | undefined): void {
  if (json) {
    console.log(JSON.stringify(rows, null, 2))
    return
  }
  if (rows.length === 0) {
    console.log('none')
    return
  }
  const names = Object.keys(rows[0] ?? {})
  const cells = [names, ...rows.map((row) => names.map((name) => cell(row[name])))]
  const widths = names.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)))
  for (const line of cells)
    console.log(
      line
        .map((text, i) => text.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (value instanceof Date) return value.toISOString()
  // Tenants' text must not move the cursor or begin a new line.
  return (Array.isArray(value) ? value.join(',') : String(value)).replace(/\p{Cc}+/gu, ' ')
}
