import type { KeyboardEvent } from 'react'

/** Marks what has the focus in a row of a tree: a button with `aria-expanded` for a folder, anything else for a file. */
export const TREE_ROW = { 'data-tree-row': '' }
const ROW = '[data-tree-row]'

/**
 * The arrow keys of a tree of nested lists: up and down between rows, right into a folder, which opens it, and left out of
 * it, which closes it. Home and End lead to its ends.
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
