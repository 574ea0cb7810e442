import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { paths } from '../../api/client.ts'
import { api, unwrap } from '../../api/client.ts'
import { useMe } from '../../api/me.ts'
import { Check } from '../../parts/choice.tsx'
import { Button, Card, Loading, PageHead, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { openedQuery } from '../login/come-back.ts'
import { Fact, KeysHint, Lifetime } from './parts.tsx'

const t = texts.authorize
type Body = NonNullable<paths['/v0/oauth/grants']['post']['requestBody']>['content']['application/json']
type Scope = Body['scopes'][number]

/** Asks the user whether a client of `/mcp` may act for them. The client sent the browser here, with its request. */
export function Authorize() {
  const query = openedQuery
  const asked = useQuery({
    queryKey: ['authorize', query],
    queryFn: () => unwrap(api.POST('/v0/oauth/requests', { body: { query } })),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (asked.error)
    return (
      <>
        <PageHead title={t.broken} />
        <Problem error={asked.error} />
        <p className="mt-3 max-w-prose text-soft text-sm">{t.brokenHint}</p>
      </>
    )
  if (!asked.data) return <Loading />
  return <Decision query={query} {...asked.data.data} />
}

interface Asked {
  client: { id: string; host: string; name: string | null }
  returnsTo: string
  scopes: Scope[]
  refusalUrl: string
}

function Decision({ query, client, returnsTo, scopes, refusalUrl }: Asked & { query: string }) {
  const me = useMe().data?.data
  const [given, setGiven] = useState(scopes)
  const [days, setDays] = useState('30')
  const grant = useMutation({
    mutationFn: () =>
      unwrap(api.POST('/v0/oauth/grants', { body: { query, scopes: given, days: Number(days) } })),
    onSuccess: ({ data }) => location.assign(data.url),
  })
  const isBusy = grant.isPending || grant.isSuccess
  const toggle = (scope: Scope, isOn: boolean) =>
    setGiven((before) => scopes.filter((one) => (one === scope ? isOn : before.includes(one))))
  const isLocal = /^(127\.|localhost|\[::1\])/.test(returnsTo)
  return (
    <div className="mx-auto max-w-xl">
      <PageHead title={t.title(client.host)} />
      <Card>
        <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-2 text-sm">
          <Fact name={t.client} value={client.id} />
          {client.name && <Fact name={t.name} value={t.claimed(client.name)} />}
          <Fact name={t.returnsTo} value={isLocal ? t.thisMachine(returnsTo) : returnsTo} />
          <Fact name={t.workspace} value={me ? `${me.workspace.name} · ${me.user.name}` : ''} />
        </dl>
        <fieldset className="mt-5 space-y-2.5" aria-label={t.scopes}>
          <legend className="mb-2 font-medium text-sm">{t.scopes}</legend>
          {scopes.map((scope) => {
            const [label = scope, hint = ''] = texts.operate.keys.scopeWords[scope] ?? []
            return (
              <Check
                key={scope}
                label={label}
                hint={hint}
                checked={given.includes(scope)}
                onChange={(isOn) => toggle(scope, isOn)}
              />
            )
          })}
        </fieldset>
        <Lifetime value={days} onChange={setDays} />
        <KeysHint text={t.hint} />
        <Problem error={grant.error} />
        <div className="mt-5 flex justify-end gap-2">
          <Button disabled={isBusy} onClick={() => location.assign(refusalUrl)}>
            {t.refuse}
          </Button>
          <Button look="main" disabled={isBusy || given.length === 0} onClick={() => grant.mutate()}>
            {t.allow}
          </Button>
        </div>
      </Card>
    </div>
  )
}
