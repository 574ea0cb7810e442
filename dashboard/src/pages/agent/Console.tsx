import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { useEffect, useRef, useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { useMayChange } from '../../parts/rights.tsx'
import { Button, Empty } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Shell } from './console/shell.ts'
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
    <Commands />
  ) : (
    <Empty title={texts.shell.viewersOnly} hint={texts.shell.viewersOnlyHint} />
  )
}

/** Runs commands in the agent, and streams their output. */
function Commands() {
  const { agentId } = useAgent()
  const place = useRef<HTMLDivElement>(null)
  const shell = useRef<Shell>(null)
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    if (!place.current) return
    const refuseStyles = allowStyles()
    const terminal = new Terminal({
      convertEol: true,
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
    shell.current = new Shell(terminal, agentId, setBusy)
    terminal.focus()
    return () => {
      shell.current?.close()
      resized.disconnect()
      terminal.dispose()
      refuseStyles()
    }
  }, [agentId])
  return (
    <div className="overflow-hidden rounded-xl border border-line bg-[#0b0b0f]">
      <div className="flex flex-wrap items-center justify-between gap-2 border-line border-b bg-card px-4 py-2">
        <p className="text-soft text-xs">{words.hint}</p>
        <div className="flex gap-2">
          <Button disabled={!isBusy} onClick={() => shell.current?.cancel()}>
            {words.stop}
          </Button>
          <Button disabled={isBusy} onClick={() => shell.current?.clear()}>
            {words.clear}
          </Button>
        </div>
      </div>
      <div className="h-[65dvh] min-h-72 p-3">
        <div ref={place} className="h-full overflow-hidden" />
      </div>
    </div>
  )
}

/** True for keys of the terminal. The page keeps Tab, which leaves the terminal, and the palette and clipboard keys. */
function isForTerminal(event: KeyboardEvent, terminal: Terminal): boolean {
  if (event.key === 'Tab') return false
  if (!event.ctrlKey && !event.metaKey) return true
  const key = event.key.toLowerCase()
  if (key === 'k' || key === 'v') return false
  return !(key === 'c' && terminal.hasSelection())
}
