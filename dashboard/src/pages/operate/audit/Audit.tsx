import { useNavigate, useSearch } from '@tanstack/react-router'
import type { paths } from '../../../api/client.ts'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { usePages } from '../../../api/pages.ts'
import { More } from '../../../parts/more.tsx'
import { Section } from '../../../parts/section.tsx'
import { Cell, Table } from '../../../parts/table.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Empty, Loading, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { RequireRole } from '../RequireRole.tsx'
import { AuditFilters } from './AuditFilters.tsx'
import { Export } from './Export.tsx'
import type { AuditSearch } from './search.ts'

const t = texts.operate.audit
const PAGE = 100
const DAY_MS = 86_400_000

type Page = paths['/v0/audit']['get']['responses'][200]['content']['application/json']
type Entry = Page['data']['entries'][number]

/** The audit log: the workspace's for its owners, the instance's for its admins. */
export function Audit() {
  const { isInstanceAdmin } = useRights()
  return (
    <RequireRole who={isInstanceAdmin ? 'admins' : 'owners'}>
      <Entries />
    </RequireRole>
  )
}

/** The API query. A day ends where the next day begins. */
const queryOf = ({ of, from, to, ...rest }: AuditSearch) => ({
  ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value)),
  ...(from && { from: new Date(`${from}T00:00`).toISOString() }),
  ...(to && { to: new Date(Date.parse(`${to}T00:00`) + DAY_MS).toISOString() }),
})

function Entries() {
  const asked = useSearch({ from: '/shell/dashboard/operate/audit' })
  const go = useNavigate({ from: '/dashboard/operate/audit' })
  const { isOwner, isInstanceAdmin } = useRights()
  const isAll = isInstanceAdmin && (asked.of === 'instance' || !isOwner)
  const path = isAll ? '/v0/admin/audit' : '/v0/audit'
  const filters = queryOf(asked)
  const pages = usePages(['audit', path, filters], async (pageToken) => {
    const query = { limit: PAGE, ...filters, ...(pageToken && { pageToken }) }
    const params = { params: { query } }
    const page = await unwrap(isAll ? api.GET('/v0/admin/audit', params) : api.GET('/v0/audit', params))
    // The API returns text only for `Accept: application/x-ndjson`.
    if (typeof page === 'string') return { items: [], next: '' }
    return { items: page.data.entries, next: page.data.next_page_token }
  })
  const { items, error } = pages
  return (
    <Section title={t.title} hint={t.hint} actions={<Export path={path} query={filters} />}>
      <AuditFilters
        asked={{ ...asked, of: isAll ? 'instance' : undefined }}
        mayChoose={isOwner && isInstanceAdmin}
        // Start from the latest search: a choice made a moment ago may not be rendered yet.
        onChange={(change) =>
          void go({ search: (before: AuditSearch) => ({ ...before, ...change }), replace: true })
        }
      />
      <Problem error={error} />
      {!items && !error && <Loading />}
      {items?.length === 0 && (
        <Empty title={t.nothing}>
          {Object.keys(filters).length > 0 && (
            <Button onClick={() => void go({ search: { of: asked.of }, replace: true })}>
              {texts.clearFilters}
            </Button>
          )}
        </Empty>
      )}
      {items && items.length > 0 && (
        <Table label={t.title} columns={Object.values(t.columns)}>
          {items.map((entry) => (
            <Row key={entry.id} entry={entry} />
          ))}
        </Table>
      )}
      <More {...pages} />
    </Section>
  )
}

function Row({ entry }: { entry: Entry }) {
  const {
    createdAt,
    user,
    via,
    agentId,
    action,
    resource,
    status,
    errorCode,
    address,
    userAgent,
    requestId,
  } = entry
  const who = user ? (user.name ?? user.id) : (agentId ?? t.nobody)
  return (
    <tr className="align-top hover:bg-tint/40">
      <Cell className="whitespace-nowrap text-soft">
        <Time at={createdAt} />
      </Cell>
      <Cell className="min-w-36 max-w-52">
        <div className="min-w-0">
          <p className="break-words font-medium">{who}</p>
          <p className="text-soft text-xs">{t.via[via] ?? via}</p>
        </div>
      </Cell>
      <Cell>
        <code className="text-xs">{action}</code>
      </Cell>
      <Cell className="w-full lg:min-w-76">
        <code className="break-words text-soft text-xs">
          {/* A line may break after each slash. */}
          {resource.split(/(?<=\/)/).map((name, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: names may occur twice, and stay where they are
            <span key={at}>
              {name}
              <wbr />
            </span>
          ))}
        </code>
      </Cell>
      <Cell className="whitespace-nowrap">
        <div>
          <State
            state={errorCode ? 'failed' : 'ok'}
            label={[errorCode ? t.refused : t.done, status].filter(Boolean).join(' ')}
          />
          {errorCode && (
            <code className="block text-soft text-xs" title={requestId ?? undefined}>
              {errorCode}
            </code>
          )}
        </div>
      </Cell>
      <Cell className="max-w-28 text-soft text-xs">
        <div className="min-w-0">
          <span className="block truncate">{address}</span>
          <span className="block truncate" title={userAgent ?? undefined}>
            {userAgent}
          </span>
        </div>
      </Cell>
    </tr>
  )
}
