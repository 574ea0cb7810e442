import { texts } from '../texts.ts'

const shown = { tab: '', page: '' }

/** Sets the title of the browser tab: the page, and which of its tabs is open. */
export function setTitle(change: Partial<typeof shown>): void {
  Object.assign(shown, change)
  document.title = [shown.tab, shown.page, texts.name].filter(Boolean).join(' · ')
}
