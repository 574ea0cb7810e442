/** The theme: light, dark or the system's; stored in this browser. */
import { useSyncExternalStore } from 'react'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'theme'
const listeners = new Set<() => void>()

/** Storage may be disabled, and may contain anything. */
function read(): Theme {
  try {
    const kept = localStorage.getItem(KEY)
    return THEMES.find((theme) => theme === kept) ?? 'system'
  } catch {
    return 'system'
  }
}

let theme = read()

/** Called once before the first render, so that no other colour flashes up. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = theme
}

export function setTheme(chosen: Theme): void {
  theme = chosen
  try {
    localStorage.setItem(KEY, chosen)
  } catch {
    // Without storage, the choice lasts as long as the page.
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
