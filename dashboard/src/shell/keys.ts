/** Keyboard shortcuts that work on every page. */
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'

/** The pages that open with `g` and a letter. */
export const GO = {
  o: '/dashboard',
  f: '/dashboard/files',
  a: '/dashboard/agents',
  s: '/dashboard/spending',
  p: '/dashboard/operate',
} as const
const BEHIND_MS = 1500

/** @param target the innermost element, also inside the shadow trees of the editors. */
const isTyping = (target: EventTarget | undefined) =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.closest('input, textarea, select, [role=textbox], dialog, .xterm') !== null)

export function useKeys({ onPalette, onHelp }: { onPalette: () => void; onHelp: () => void }): void {
  const navigate = useNavigate()
  useEffect(() => {
    let went = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === 'k') {
        // In a console, the terminal handles this key.
        if (event.ctrlKey && event.target instanceof HTMLElement && event.target.closest('.xterm')) return
        event.preventDefault()
        onPalette()
        return
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.composedPath()[0])) return
      if (event.key === '?') onHelp()
      else if (event.key === '/') {
        const field = document.querySelector<HTMLElement>('main input[type=search]')
        if (!field) return
        event.preventDefault()
        field.focus()
      } else if (event.key === 'g') went = event.timeStamp
      else if (event.timeStamp - went < BEHIND_MS && event.key in GO) {
        went = Number.NEGATIVE_INFINITY
        void navigate({ to: GO[event.key as keyof typeof GO] })
      }
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [navigate, onPalette, onHelp])
}
