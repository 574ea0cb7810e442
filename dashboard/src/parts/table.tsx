import type { CSSProperties, ReactNode } from 'react'

/**
 * A table. On a phone or tablet each row is a block: one value per line, after the name of its column (styles.css).
 * `label` names it to screen readers.
 * @param numbers the columns whose values are right-aligned; their cells have `numeric`.
 */
export function Table({
  label,
  columns,
  numbers = [],
  children,
}: {
  label: string
  columns: string[]
  numbers?: string[]
  children: ReactNode
}) {
  return (
    <div
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
      tabIndex={0}
      className="overflow-x-auto rounded-xl border border-line bg-card"
    >
      <table aria-label={label} style={namesOf(columns)} className="stacked w-full text-left text-sm">
        <thead className="border-line border-b text-soft">
          <tr>
            {columns.map((column) => (
              <th
                key={column}
                scope="col"
                className={`whitespace-nowrap px-4 py-2.5 font-medium ${numbers.includes(column) ? 'text-right' : ''}`}
              >
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">{children}</tbody>
      </table>
    </div>
  )
}

/** The column names as custom properties for the styles. */
const namesOf = (columns: string[]) =>
  Object.fromEntries(columns.map((name, i) => [`--column-${i + 1}`, JSON.stringify(name)])) as CSSProperties

export function Cell({
  children,
  className = '',
  numeric = false,
}: {
  children: ReactNode
  className?: string
  numeric?: boolean
}) {
  return (
    <td className={`px-4 py-2.5 ${numeric ? 'whitespace-nowrap text-right tabular-nums' : ''} ${className}`}>
      {children}
    </td>
  )
}
