import { useNavigate, useSearch } from '@tanstack/react-router'
import { useDeferredValue, useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { usePages } from '../../../api/pages.ts'
import { Search } from '../../../parts/choice.tsx'
import { More } from '../../../parts/more.tsx'
import { Section } from '../../../parts/section.tsx'
import { Cell, Table } from '../../../parts/table.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Empty, Loading, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Filter } from '../Filter.tsx'
import { NewKey } from './NewKey.tsx'
import { type Key, RevokeKey } from './RevokeKey.tsx'

const t = texts.operate.keys
const PAGE = 50

/** The API keys: all of the workspace for owners, their own for other members. */
export function Keys() {
  const { workspaceId, mayWrite } = useRights()
  const isNew = useSearch({ from: '/shell/dashboard/operate/keys' }).do === 'new'
  const go = useNavigate({ from: '/dashboard/operate/keys' })
  const setNew = (isOpen: boolean) => void go({ search: isOpen ? { do: 'new' } : {}, replace: true })
  const [typed, setTyped] = useState('')
  const [revoked, setRevoked] = useState<'true' | 'false'>('false')
  const [going, setGoing] = useState<Key>()
  const name = useDeferredValue(typed)
  const pages = usePages(['keys', name, revoked], async (pageToken) => {
    const query = { limit: PAGE, revoked, ...(name && { name }), ...(pageToken && { pageToken }) }
    const { data } = await unwrap(
      api.GET('/v0/workspaces/{workspaceId}/keys', { params: { path: { workspaceId }, query } }),
    )
    return { items: data.keys, next: data.next_page_token }
  })
  const { items, error } = pages
  const clear = () => {
    setTyped('')
    setRevoked('false')
  }
  const create = mayWrite && (
    <Button look="main" onClick={() => setNew(true)}>
      {t.create}
    </Button>
  )
  return (
    <Section title={t.title} hint={t.hint} actions={create}>
      <div className="mb-3 flex flex-wrap gap-2">
        <Search label={t.search} value={typed} onChange={setTyped} />
        <Filter
          label={t.show}
          value={revoked}
          onChange={(value) => setRevoked(value === 'true' ? 'true' : 'false')}
          options={[
            ['false', t.good],
            ['true', t.revoked],
          ]}
        />
      </div>
      <Problem error={error} />
      {!items && !error && <Loading />}
      {items?.length === 0 &&
        (name || revoked === 'true' ? (
          <Empty title={t.nothing}>
            <Button onClick={clear}>{texts.clearFilters}</Button>
          </Empty>
        ) : (
          <Empty changes title={t.empty} hint={t.emptyHint} />
        ))}
      {items && items.length > 0 && (
        <Table label={t.title} columns={Object.values(t.columns)}>
          {items.map((key) => (
            <tr key={key.id} className="hover:bg-tint/40">
              <Cell className="w-full min-w-44 max-w-0">
                <p className="truncate font-medium" title={key.name}>
                  {key.name}
                </p>
                <p className="truncate text-soft text-xs">
                  <code>{key.publicKey}</code> {key.user ? t.by(key.user.name) : t.nobody}
                  {key.audience === 'mcp' && ` · ${t.mcpOnly}`}
                </p>
              </Cell>
              <Cell className="min-w-64 max-w-80">
                <Scopes scopes={key.scopes} />
              </Cell>
              <Cell className="whitespace-nowrap text-soft">
                {key.lastUsedAt ? <Time at={key.lastUsedAt} /> : texts.operate.never}
                {key.maxUses !== null && (
                  <span className="block text-xs">{t.uses(key.uses, key.maxUses)}</span>
                )}
              </Cell>
              <Cell className="whitespace-nowrap text-soft">
                {key.revokedAt ? (
                  <Time at={key.revokedAt} words={t.wasRevoked} />
                ) : key.expiresAt ? (
                  <Time at={key.expiresAt} />
                ) : (
                  texts.operate.never
                )}
              </Cell>
              <Cell className="text-right">
                {mayWrite && !key.revokedAt && <Button onClick={() => setGoing(key)}>{t.revoke}</Button>}
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      <More {...pages} />
      {isNew && <NewKey onClose={() => setNew(false)} />}
      {going && <RevokeKey apiKey={going} onClose={() => setGoing(undefined)} />}
    </Section>
  )
}

function Scopes({ scopes }: { scopes: string[] }) {
  return (
    <span className="flex flex-wrap gap-1">
      {scopes.map((scope) => (
        <span key={scope} title={scope} className="whitespace-nowrap rounded bg-tint px-1.5 py-0.5 text-xs">
          {scope === 'admin' ? t.admin : (t.scopeWords[scope]?.[0] ?? scope)}
        </span>
      ))}
    </span>
  )
}
