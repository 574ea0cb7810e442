import { useEffect, useState } from 'react'
import { texts } from '../texts.ts'
import { Icon } from './icon.tsx'
import { Button } from './ui.tsx'

/** How long the result is shown. */
const SHOWN_MS = 2000

/** Browsers offer the clipboard only on https and localhost. Elsewhere this runs the command of the copy shortcut. */
async function write(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const put = (event: ClipboardEvent) => {
    event.preventDefault()
    event.stopImmediatePropagation()
    event.clipboardData?.setData('text/plain', text)
  }
  // Otherwise the browser does not copy if nothing is selected.
  const allow = (event: Event) => event.preventDefault()
  addEventListener('beforecopy', allow, { capture: true })
  addEventListener('copy', put, { capture: true })
  const isCopied = document.execCommand('copy')
  removeEventListener('beforecopy', allow, { capture: true })
  removeEventListener('copy', put, { capture: true })
  if (!isCopied) throw new Error('the browser does not copy')
}

const RESULTS = {
  done: { said: texts.copied, icon: 'done', colour: 'text-good' },
  failed: { said: texts.notCopied, icon: 'copy', colour: 'text-bad' },
} as const

function useCopy(text: string) {
  const [result, setResult] = useState<keyof typeof RESULTS>()
  useEffect(() => {
    if (!result) return
    const timer = setTimeout(() => setResult(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [result])
  const copy = () =>
    void write(text).then(
      () => setResult('done'),
      // The browser may refuse: the person then has to copy by hand.
      () => setResult('failed'),
    )
  return { result: result && RESULTS[result], copy }
}

export function Copy({ text }: { text: string }) {
  const { result, copy } = useCopy(text)
  return <Button onClick={copy}>{result?.said ?? texts.copy}</Button>
}

/** An id, possibly shortened, with a small button that copies all of it. */
export function Id({ text, shown = text }: { text: string; shown?: string }) {
  const { result, copy } = useCopy(text)
  const label = result?.said ?? texts.copyOf(shown)
  return (
    <span className="inline-flex min-w-0 max-w-full items-center gap-1 align-middle">
      <code title={text} className="min-w-0 truncate text-xs">
        {shown}
      </code>
      <button
        type="button"
        aria-label={label}
        title={label}
        onClick={copy}
        className={`relative grid size-6 shrink-0 place-items-center rounded-md hover:bg-tint hover:text-accent ${result?.colour ?? 'text-soft'}`}
      >
        <Icon name={result?.icon ?? 'copy'} className="size-3.5" />
      </button>
      {result === RESULTS.failed && <span className="shrink-0 text-bad text-xs">{result.said}</span>}
    </span>
  )
}
