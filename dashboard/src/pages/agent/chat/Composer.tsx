import { type FormEvent, type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Button } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

/** Fits the height of a box to its text, up to the maximum in its style. */
function fit(box: HTMLTextAreaElement | null): void {
  if (!box) return
  box.style.height = 'auto'
  box.style.height = `${box.scrollHeight + box.offsetHeight - box.clientHeight}px`
}

/** The message box. Enter sends, Shift+Enter starts a new line, and a button stops the agent during a reply. */
export function Composer({
  isBusy,
  onSay,
  onStop,
}: {
  isBusy: boolean
  /** Rejects if the message was not sent: the text then stays in the box. */
  onSay: (text: string) => Promise<void>
  onStop: () => void
}) {
  const [text, setText] = useState('')
  const box = useRef<HTMLTextAreaElement>(null)
  const isEmpty = text.trim() === ''
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height of the box depends on the text
  useLayoutEffect(() => fit(box.current), [text])
  useEffect(() => {
    // A new window width changes the line breaks.
    const onResize = () => fit(box.current)
    addEventListener('resize', onResize)
    return () => removeEventListener('resize', onResize)
  }, [])
  const send = () => {
    if (isEmpty || isBusy) return
    setText('')
    onSay(text).catch(() => setText((now) => now || text))
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <form
      className="flex items-end gap-2 border-line border-t p-3"
      onSubmit={(event: FormEvent) => {
        event.preventDefault()
        send()
      }}
    >
      <textarea
        ref={box}
        aria-label={texts.chat.write}
        placeholder={texts.chat.placeholder}
        rows={1}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKey}
        className="max-h-52 min-h-11 flex-1 resize-none rounded-lg border border-line bg-page px-3 py-2.5 text-sm placeholder:truncate"
      />
      {isBusy ? (
        <Button className="min-h-11" onClick={onStop}>
          {texts.chat.stop}
        </Button>
      ) : (
        <Button className="min-h-11" look="main" type="submit" disabled={isEmpty}>
          {texts.chat.send}
        </Button>
      )}
    </form>
  )
}
