import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { clock, exact } from '../../parts/format.ts'
import { Select } from '../../parts/forms.tsx'
import { Button, Empty, Field, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { type Line, useLog } from './logs/follow.ts'

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']
const TONES: Record<string, string> = {
  TRACE: 'text-soft',
  DEBUG: 'text-soft',
  WARN: 'text-busy',
  ERROR: 'text-bad',
  FATAL: 'text-bad',
}
const LINE_PX = 22
const words = texts.logs

/** The live log of an agent, with a search, filters for level and source, and a download. */
export function Logs() {
  const { agentId, agent } = useAgent()
  const { lines, error, isOpen } = useLog(agentId)
  const [search, setSearch] = useState('')
  const [level, setLevel] = useState('TRACE')
  const [source, setSource] = useState('')
  const sources = useMemo(() => [...new Set(lines.map((line) => line.source))].sort(), [lines])
  const shown = useMemo(() => {
    const wanted = search.toLowerCase()
    return lines.filter(
      (line) =>
        LEVELS.indexOf(line.level) >= LEVELS.indexOf(level) &&
        (source === '' || line.source === source) &&
        (wanted === '' || `${line.source} ${line.message}`.toLowerCase().includes(wanted)),
    )
  }, [lines, search, level, source])
  return (
    <>
      <div className="mb-3 grid grid-cols-2 gap-3 lg:grid-cols-[1fr_9rem_14rem_auto] lg:items-end">
        <div className="col-span-2 lg:col-span-1">
          <Field
            label={words.search}
            type="search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </div>
        <Select label={words.level} value={level} onChange={(event) => setLevel(event.target.value)}>
          {LEVELS.map((name) => (
            <option key={name} value={name}>
              {words.levels[name]}
            </option>
          ))}
        </Select>
        <Select label={words.source} value={source} onChange={(event) => setSource(event.target.value)}>
          <option value="">{words.allSources}</option>
          {sources.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </Select>
        <Button
          className="col-span-2 min-h-9.5 lg:col-span-1"
          disabled={shown.length === 0}
          onClick={() => download(`${agentId}.log`, shown.map(asText).join(''))}
        >
          {words.download}
        </Button>
      </div>
      {!isOpen && <Problem error={error} />}
      <div className="mt-3 mb-2 flex items-center justify-between gap-3 text-sm">
        <State state={isOpen ? 'running' : 'starting'} label={isOpen ? words.live : words.waiting} />
        <span className="text-soft">{words.count(shown.length, lines.length)}</span>
      </div>
      {shown.length > 0 ? (
        <Lines lines={shown} />
      ) : (
        <Empty
          title={lines.length > 0 ? words.noMatch : words.empty}
          hint={lines.length === 0 && agent?.status === 'not_running' ? words.notRunning : undefined}
        />
      )}
    </>
  )
}

/** A box that follows the end of the log unless somebody has scrolled up. Only visible lines are in the page. */
function Lines({ lines }: { lines: Line[] }) {
  const box = useRef<HTMLDivElement>(null)
  const [isFollowing, setFollowing] = useState(true)
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    getItemKey: (index) => lines[index]?.id ?? index,
    overscan: 20,
  })
  useEffect(() => {
    if (isFollowing) rows.scrollToIndex(lines.length - 1)
  }, [lines, isFollowing, rows])
  const look = () => {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = box.current ?? {}
    setFollowing(scrollHeight - scrollTop - clientHeight < 2 * LINE_PX)
  }
  return (
    <div className="relative">
      <section
        ref={box}
        aria-label={words.title}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
        tabIndex={0}
        onScroll={look}
        className="h-[calc(100dvh-22rem)] min-h-72 overflow-y-auto rounded-xl border border-line bg-card font-mono text-xs leading-[1.375rem]"
      >
        <div className="relative" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ key, index, start }) => (
            <div
              key={key}
              data-index={index}
              ref={rows.measureElement}
              className="absolute inset-x-0 flex gap-3 px-3 hover:bg-tint"
              style={{ transform: `translateY(${start}px)` }}
            >
              {lines[index] && <LineView line={lines[index]} />}
            </div>
          ))}
        </div>
      </section>
      {!isFollowing && (
        <Button className="absolute right-4 bottom-4 shadow-lg" onClick={() => setFollowing(true)}>
          {words.toEnd}
        </Button>
      )}
    </div>
  )
}

function LineView({ line: { timestamp, level, source, message } }: { line: Line }) {
  return (
    <>
      <time dateTime={timestamp} title={exact(timestamp)} className="shrink-0 text-soft tabular-nums">
        {clock(timestamp)}
      </time>
      <span className={`hidden w-10 shrink-0 sm:block ${TONES[level] ?? ''}`}>{level}</span>
      <span className="hidden w-32 shrink-0 truncate text-soft lg:block" title={source}>
        {source}
      </span>
      <span className={`min-w-0 whitespace-pre-wrap break-words ${TONES[level] ?? ''}`}>{message}</span>
    </>
  )
}

const asText = ({ timestamp, level, source, message }: Line) => `${timestamp} ${level} ${source} ${message}\n`

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  link.click()
  URL.revokeObjectURL(url)
}
