import { texts } from '../texts.ts'

const shown = { tab: '', page: '' }

/** Names the tab of the browser: by the page, and by which of its pages side by side is open. */
export function setTitle(change: Partial<typeof shown>): void {
  Object.assign(shown, change)
  document.title = [shown.tab, shown.page, texts.name].filter(Boolean).join(' · ')
}
