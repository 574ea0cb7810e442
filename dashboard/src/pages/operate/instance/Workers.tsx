import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../../api/client.ts'
import { usePages } from '../../../api/pages.ts'
import { More } from '../../../parts/more.tsx'
import { Section, Tag } from '../../../parts/section.tsx'
import { Cell, Table } from '../../../parts/table.tsx'
import { Time } from '../../../parts/time.tsx'
import { Empty, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { RequireRole } from '../RequireRole.tsx'

const t = texts.operate.workers
const { parts } = texts.operate.health
/** No events report workers and queues, so the page polls. */
const EACH_MS = 5000
const PAGE = 50

/** The workers and their queues. */
export function Workers() {
  return (
    <RequireRole who="admins">
      <Queues />
      <List />
    </RequireRole>
  )
}

function Queues() {
  const { data, error } = useQuery({
    queryKey: ['queues'],
    queryFn: () => unwrap(api.GET('/v0/admin/queues')),
    refetchInterval: EACH_MS,
  })
  return (
    <Section title={t.queues} hint={t.queuesHint}>
      <Problem error={error} />
      {data && (
        <Table
          label={t.queues}
          columns={Object.values(t.queueColumns)}
          numbers={Object.values(t.queueColumns).slice(1)}
        >
          {data.data.queues.map(({ name, queued, running, slots, oldestSeconds }) => (
            <tr key={name}>
              <Cell className="w-full font-medium">{t.queueNames[name] ?? name}</Cell>
              <Cell numeric>{queued.toLocaleString('en')}</Cell>
              <Cell numeric>{running.toLocaleString('en')}</Cell>
              <Cell numeric>{slots || <State state="degraded" label={t.unserved} />}</Cell>
              <Cell numeric className="text-soft">
                {oldestSeconds === null ? '–' : t.seconds(oldestSeconds)}
              </Cell>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}

function List() {
  const pages = usePages(
    ['workers'],
    async (pageToken) => {
      const query = { limit: PAGE, ...(pageToken && { pageToken }) }
      const { data } = await unwrap(api.GET('/v0/admin/workers', { params: { query } }))
      return { items: data.workers, next: data.next_page_token }
    },
    { refetchInterval: EACH_MS },
  )
  const { items, error } = pages
  return (
    <Section title={t.title} hint={t.hint}>
      <Problem error={error} />
      {items?.length === 0 && <Empty title={t.none} hint={t.noneHint} />}
      {items && items.length > 0 && (
        <Table label={t.title} columns={Object.values(t.columns)}>
          {items.map(({ id, version, isAlive, seenAt, slots, parts: found }) => (
            <tr key={id} className="align-top">
              <Cell className="w-full">
                <code className="break-all text-xs">{id}</code>
                {Object.entries(found)
                  .filter(([, { status }]) => status !== 'ok')
                  .map(([name, { status, detail }]) => (
                    <p key={name}>
                      <State
                        state={status}
                        label={[parts[name]?.[0] ?? name, detail].filter(Boolean).join(': ')}
                      />
                    </p>
                  ))}
              </Cell>
              <Cell className="whitespace-nowrap">{version ?? '–'}</Cell>
              <Cell className="whitespace-nowrap">
                <State state={isAlive ? 'ok' : 'failed'} label={isAlive ? t.alive : t.dead} />
                <Time at={seenAt} className="block text-soft text-xs" />
              </Cell>
              <Cell className="min-w-56">
                <span className="flex flex-wrap gap-1">
                  {Object.entries(slots).map(([queue, n]) => (
                    <Tag key={queue}>
                      {t.queueNames[queue] ?? queue} {n}
                    </Tag>
                  ))}
                </span>
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      <More {...pages} />
    </Section>
  )
}
