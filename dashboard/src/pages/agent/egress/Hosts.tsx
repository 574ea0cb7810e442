import { useState } from 'react'
import { bytes } from '../../../parts/format.ts'
import { Section } from '../../../parts/section.tsx'
import { Cell, Table } from '../../../parts/table.tsx'
import { Button, Empty, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { type Editing, type Host, useHosts } from '../../egress/policy.ts'
import { denies, draftOf, flipped } from '../../egress/rules.ts'

const t = texts.egress
const { requests, denied, sent, received } = t.columns
/** The API's name for hosts that it did not count one by one. */
const OTHERS = '(others)'
/** Rows before all are asked for. */
const FIRST = 100

/** The hosts that an agent asked for, those with refusals first. */
export function Hosts({
  agentId,
  editing,
  isCounted,
}: {
  agentId: string
  editing: Editing
  isCounted: boolean
}) {
  const { data, error } = useHosts(agentId)
  const [isWhole, setWhole] = useState(false)
  const sorted = data?.toSorted((a, b) => b.denied - a.denied || b.requests - a.requests) ?? []
  return (
    <Section title={t.hosts} hint={t.hostsHint}>
      <Problem error={error} />
      {data?.length === 0 && <Empty title={t.noHosts} hint={isCounted ? t.noHostsHint : t.notCounted} />}
      {sorted.length > 0 && (
        <Table
          label={t.hosts}
          columns={Object.values(t.columns)}
          numbers={[requests, denied, sent, received]}
        >
          {sorted.slice(0, isWhole ? undefined : FIRST).map((host) => (
            <HostRow key={host.host} {...host} editing={editing} />
          ))}
        </Table>
      )}
      {sorted.length > FIRST && !isWhole && (
        <Button className="mt-4" onClick={() => setWhole(true)}>
          {t.allHosts(sorted.length)}
        </Button>
      )}
    </Section>
  )
}

function HostRow({ host, editing: { policy, change }, ...counted }: Host & { editing: Editing }) {
  const isOne = host !== OTHERS
  const isDenied = denies(policy, host)
  const next = isOne && flipped(policy, host)
  return (
    <tr>
      <Cell className="w-full min-w-44 max-w-0 break-words font-medium">{isOne ? host : t.otherHosts}</Cell>
      <Cell>
        {isOne && (
          <div>
            <State state={isDenied ? 'refused' : 'ok'} label={isDenied ? t.denied : t.allowed} />
            {isDenied && !next && policy.mode !== 'none' && (
              <span className="block whitespace-nowrap text-soft text-xs">{t.byWildcard}</span>
            )}
          </div>
        )}
      </Cell>
      <Cell numeric>{counted.requests.toLocaleString('en')}</Cell>
      <Cell numeric className={counted.denied > 0 ? 'font-medium text-bad' : 'text-soft'}>
        {counted.denied.toLocaleString('en')}
      </Cell>
      <Cell numeric>{bytes(counted.bytesSent)}</Cell>
      <Cell numeric>{bytes(counted.bytesReceived)}</Cell>
      <Cell className="whitespace-nowrap text-soft tabular-nums">{counted.lastDay}</Cell>
      <Cell className="text-right">
        {next && (
          <Button
            changes
            aria-label={isDenied ? t.allowHost(host) : t.denyHost(host)}
            onClick={() => change(draftOf(next))}
          >
            {isDenied ? t.allow : t.deny}
          </Button>
        )}
      </Cell>
    </tr>
  )
}
