/** So long after a dialog is closed a list is expected to lose the row that the dialog was about. */
const WATCHED_MS = 10_000

/** @returns gives the focus back from a dialog to what has it now, or to the heading of the page where that goes. */
export function rememberFocus(): (dialog: Element | null) => void {
  const had = document.activeElement
  return (dialog) => {
    const now = document.activeElement
    // What the browser has given it to already keeps it.
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
