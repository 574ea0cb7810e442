import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { Choice } from '../../../parts/choice.tsx'
import { Copy } from '../../../parts/copy.tsx'
import { Section, Tag } from '../../../parts/section.tsx'
import { texts } from '../../../texts.ts'
import { mcpSetUps, otherSetUps, type SetUp } from './set-ups.ts'

const t = texts.operate.connect

/** How programs reach this Berth: clients of the Model Context Protocol, the command line and the API. */
export function Connect() {
  const [how, setHow] = useState<'browser' | 'key'>('key')
  const key = (
    <Link to="/dashboard/operate/keys" search={{ do: 'new' }} className="text-accent underline">
      {t.newKey}
    </Link>
  )
  return (
    <>
      <Section
        title={t.mcp}
        hint={t.mcpHint}
        actions={<Choice label={t.how} value={how} onChange={setHow} options={t.ways} />}
      >
        <p className="mb-3 max-w-3xl text-sm">
          {how === 'key' ? (
            <>
              {t.keyHint} {key}
            </>
          ) : (
            t.browserHint
          )}
        </p>
        <SetUps setUps={mcpSetUps(location.origin, how === 'key')} />
      </Section>
      <Section title={t.others} hint={t.othersHint}>
        <SetUps setUps={otherSetUps(location.origin)} />
      </Section>
    </>
  )
}

function SetUps({ setUps }: { setUps: SetUp[] }) {
  return (
    <div className="gap-4 xl:columns-2">
      {setUps.map(({ name, place, text }) => (
        <article key={name} className="mb-4 break-inside-avoid rounded-xl border border-line bg-card">
          <header className="flex flex-wrap items-center gap-2 border-line border-b px-4 py-2.5">
            <h3 className="font-medium text-sm">{name}</h3>
            <Tag>{place}</Tag>
            <span className="ml-auto">
              <Copy text={text} />
            </span>
          </header>
          <pre
            // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
            tabIndex={0}
            className="overflow-x-auto p-4 font-mono text-xs leading-relaxed"
          >
            {text}
          </pre>
        </article>
      ))}
    </div>
  )
}
