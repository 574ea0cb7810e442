import type { KeyboardEvent } from 'react'

/** Marks the focusable element of a tree row: a button with `aria-expanded` for a folder, anything else for a file. */
export const TREE_ROW = { 'data-tree-row': '' }
const ROW = '[data-tree-row]'

/**
 * Arrow keys in a tree of nested lists: up and down move between rows, right opens or enters a folder, left closes or
 * leaves it. Home and End move to the first and last row.
 */
export function moveInTree(event: KeyboardEvent<HTMLElement>): void {
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>(ROW)]
  const row = event.target as HTMLElement
  const at = rows.indexOf(row)
  if (at < 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return
  const item = row.closest('li')
  const toggle = (isOpen: boolean) => row.ariaExpanded === `${isOpen}` && row
  const target: Record<string, () => Element | null | undefined> = {
    ArrowDown: () => rows[at + 1],
    ArrowUp: () => rows[at - 1],
    Home: () => rows[0],
    End: () => rows.at(-1),
    ArrowRight: () => toggle(false) || item?.querySelector(`:scope ul ${ROW}`),
    ArrowLeft: () => toggle(true) || item?.parentElement?.closest('li')?.querySelector(ROW),
  }
  const find = target[event.key]
  if (!find) return
  event.preventDefault()
  const found = find()
  if (found === row && row.ariaExpanded !== null && event.key.match(/Left|Right/)) row.click()
  else if (found instanceof HTMLElement) found.focus()
}
