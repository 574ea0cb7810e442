/** Light, dark, or as the system has it; kept in this browser. */
import { useSyncExternalStore } from 'react'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'theme'
const listeners = new Set<() => void>()

/** Storage may be switched off, and may hold anything. */
function read(): Theme {
  try {
    const kept = localStorage.getItem(KEY)
    return THEMES.find((theme) => theme === kept) ?? 'system'
  } catch {
    return 'system'
  }
}

let theme = read()

/** To be called once before anything is shown, so that no other colour flashes up. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = theme
}

export function setTheme(chosen: Theme): void {
  theme = chosen
  try {
    localStorage.setItem(KEY, chosen)
  } catch {
    // It lasts as long as the page, then.
  }
  applyTheme()
  for (const listener of listeners) listener()
}

export const useTheme = () =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => theme,
  )
