import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { useEffect, useRef, useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { useMayChange } from '../../parts/rights.tsx'
import { Button, Empty } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Remote, type State } from './console/remote.ts'
import { allowStyles } from './console/styles.ts'

const { console: words } = texts
/** Dark in both colour schemes: programs choose their colours for dark terminals. */
const THEME = {
  background: '#0b0b0f',
  foreground: '#e4e4e9',
  cursor: '#8b93ff',
  selectionBackground: '#3b3d73',
  red: '#f87171',
  green: '#4ade80',
  yellow: '#fbbf24',
  blue: '#8b93ff',
  magenta: '#e879f9',
  cyan: '#67e8f9',
}

/** The console, for users who may run commands in the agent. */
export function Console() {
  return useMayChange() ? (
    <Shell />
  ) : (
    <Empty title={texts.shell.viewersOnly} hint={texts.shell.viewersOnlyHint} />
  )
}

/** A terminal in the agent. */
function Shell() {
  const { agentId } = useAgent()
  const place = useRef<HTMLDivElement>(null)
  const focus = useRef<() => void>(null)
  const remote = useRef<Remote>(null)
  const [state, setState] = useState<State>('connecting')
  useEffect(() => {
    if (!place.current) return
    const refuseStyles = allowStyles()
    const terminal = new Terminal({
      cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
      fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, monospace',
      fontSize: 13,
      lineHeight: 1.25,
      minimumContrastRatio: 4.5,
      screenReaderMode: true,
      scrollback: 5000,
      theme: THEME,
      // A program's links may lead anywhere, so they do not open.
      linkHandler: { activate: () => {} },
    })
    const fit = new FitAddon()
    terminal.loadAddon(fit)
    terminal.attachCustomKeyEventHandler((event) => isForTerminal(event, terminal))
    terminal.open(place.current)
    terminal.textarea?.setAttribute('aria-label', words.title)
    fit.fit()
    const resized = new ResizeObserver(() => fit.fit())
    resized.observe(place.current)
    remote.current = new Remote(terminal, agentId, setState)
    focus.current = () => terminal.focus()
    terminal.focus()
    return () => {
      remote.current?.close()
      resized.disconnect()
      terminal.dispose()
      refuseStyles()
    }
  }, [agentId])
  const renew = () => {
    remote.current?.renew()
    focus.current?.()
  }
  return (
    <div className="overflow-hidden rounded-xl border border-line bg-[#0b0b0f]">
      <div className="flex flex-wrap items-center justify-between gap-2 border-line border-b bg-card px-4 py-2">
        <p className="text-soft text-xs">{words.hint}</p>
        <div className="flex items-center gap-3">
          <output className="text-soft text-xs">{words.states[state]}</output>
          <Button onClick={renew}>{words.renew}</Button>
        </div>
      </div>
      <div className="h-[65dvh] min-h-72 p-3">
        <div ref={place} className="h-full overflow-hidden" />
      </div>
    </div>
  )
}

/**
 * True for keys of the terminal. The page keeps Shift+Tab, which leaves the terminal, and the palette and clipboard
 * keys.
 */
function isForTerminal(event: KeyboardEvent, terminal: Terminal): boolean {
  if (event.key === 'Tab' && event.shiftKey) return false
  if (!event.ctrlKey && !event.metaKey) return true
  const key = event.key.toLowerCase()
  if (key === 'k' || key === 'v') return false
  return !(key === 'c' && terminal.hasSelection())
}
