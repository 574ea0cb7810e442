import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { Button } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

const LINE_PX = 24
const MOST_LINES = 8

/** Where a message is written: Enter sends it, Shift+Enter begins a line. While the agent replies, it can be stopped. */
export function Composer({
  isBusy,
  onSay,
  onStop,
}: {
  isBusy: boolean
  /** Rejects where nothing was said: the text is kept then. */
  onSay: (text: string) => Promise<void>
  onStop: () => void
}) {
  const [text, setText] = useState('')
  const box = useRef<HTMLTextAreaElement>(null)
  const isEmpty = text.trim() === ''
  useEffect(() => {
    const lines = Math.min(text.split('\n').length, MOST_LINES)
    if (box.current) box.current.style.height = `${lines * LINE_PX + 20}px`
  }, [text])
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
        className="min-h-11 flex-1 resize-none rounded-lg border border-line bg-page px-3 py-2.5 text-sm placeholder:truncate"
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
