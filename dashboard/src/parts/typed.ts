import { useEffect, useRef, useState } from 'react'

/** Nothing is asked for each letter. */
const TYPING_MS = 250

/**
 * A text that is looked for once typing pauses. It follows where what is looked for changes by itself: by a link, or the way back.
 * @param value what is looked for now.
 */
export function useTyped(
  value: string,
  onPause: (typed: string) => void,
): [typed: string, setTyped: (typed: string) => void] {
  const [typed, setTyped] = useState(value)
  const asked = useRef(value)
  useEffect(() => {
    if (value === asked.current) return
    asked.current = value
    setTyped(value)
  }, [value])
  useEffect(() => {
    const next = typed.trim()
    if (next === asked.current) return
    const timer = setTimeout(() => {
      asked.current = next
      onPause(next)
    }, TYPING_MS)
    return () => clearTimeout(timer)
  })
  return [typed, setTyped]
}
