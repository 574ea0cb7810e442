import { useEffect, useRef, useState } from 'react'

/** How long typing has to pause before a search. */
const TYPING_MS = 250

/**
 * A search text that takes effect once typing pauses. It follows changes of the value from a link or the Back button.
 * @param value the current search text.
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
