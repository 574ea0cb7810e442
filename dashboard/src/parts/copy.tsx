import { useEffect, useState } from 'react'
import { texts } from '../texts.ts'
import { Icon } from './icon.tsx'
import { Button } from './ui.tsx'

/** How long it says that it is done. */
const DONE_MS = 2000

/** Browsers have a clipboard on https and localhost alone; elsewhere they do what the keys for copying do. */
async function write(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const put = (event: ClipboardEvent) => {
    event.preventDefault()
    event.stopImmediatePropagation()
    event.clipboardData?.setData('text/plain', text)
  }
  // Otherwise there is nothing to be copied where nothing is selected.
  const allow = (event: Event) => event.preventDefault()
  addEventListener('beforecopy', allow, { capture: true })
  addEventListener('copy', put, { capture: true })
  const isCopied = document.execCommand('copy')
  removeEventListener('beforecopy', allow, { capture: true })
  removeEventListener('copy', put, { capture: true })
  if (!isCopied) throw new Error('the browser does not copy')
}

function useCopy(text: string) {
  const [isDone, setDone] = useState(false)
  useEffect(() => {
    if (!isDone) return
    const timer = setTimeout(() => setDone(false), DONE_MS)
    return () => clearTimeout(timer)
  }, [isDone])
  return { isDone, copy: () => void write(text).then(() => setDone(true)) }
}

export function Copy({ text }: { text: string }) {
  const { isDone, copy } = useCopy(text)
  return <Button onClick={copy}>{isDone ? texts.copied : texts.copy}</Button>
}

/** An id, as much of it as is to be seen, with a small button that copies all of it. */
export function Id({ text, shown = text }: { text: string; shown?: string }) {
  const { isDone, copy } = useCopy(text)
  const label = isDone ? texts.copied : texts.copyOf(shown)
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
        className={`relative grid size-6 shrink-0 place-items-center rounded-md hover:bg-tint hover:text-accent ${isDone ? 'text-good' : 'text-soft'}`}
      >
        <Icon name={isDone ? 'done' : 'copy'} className="size-3.5" />
      </button>
    </span>
  )
}
