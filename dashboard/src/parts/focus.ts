/** How long after a dialog closes its list may still lose the row that the dialog was about. */
const WATCHED_MS = 10_000

/** @returns a function that returns the focus to the element that has it now, or to the heading if that is removed. */
export function rememberFocus(): (dialog: Element | null) => void {
  const had = document.activeElement
  return (dialog) => {
    const now = document.activeElement
    // Keep the focus if the browser has already moved it.
    if (had instanceof HTMLElement && (now === document.body || dialog?.contains(now)))
      had.focus({ preventScroll: true })
    const watch = new MutationObserver(() => {
      if (had !== document.body && had?.isConnected) return
      watch.disconnect()
      if (document.activeElement === document.body)
        document.querySelector('h1')?.focus({ preventScroll: true })
    })
    watch.observe(document.body, { childList: true, subtree: true })
    setTimeout(() => watch.disconnect(), WATCHED_MS)
  }
}
