import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { Cell, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { Button, Empty, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Part, Sure } from './Part.tsx'

const readIdentities = () => unwrap(api.GET('/v0/identities'))
type Identity = Awaited<ReturnType<typeof readIdentities>>['data']['identities'][number]
const words = texts.account.identities

/** The user's identities at the OpenID provider. */
export function Identities({ provider }: { provider: string }) {
  const { data, error } = useQuery({ queryKey: ['identities'], queryFn: readIdentities })
  const [leaving, setLeaving] = useState<Identity>()
  const link = useMutation({
    mutationFn: () => unwrap(api.POST('/v0/identities/begin')),
    onSuccess: ({ data }) => location.assign(data.url),
  })
  const identities = data?.data.identities
  const add = (
    <Button look="main" disabled={link.isPending} onClick={() => link.mutate()}>
      {words.link(provider)}
    </Button>
  )
  return (
    <Part title={words.title} hint={words.hint(provider)} action={identities?.length ? add : null}>
      <Problem error={error ?? link.error} />
      {identities?.length === 0 && <Empty title={words.empty}>{add}</Empty>}
      {identities && identities.length > 0 && (
        <Table label={words.title} columns={words.columns}>
          {identities.map((identity) => (
            <tr key={identity.id}>
              <Cell className="max-w-60 truncate font-medium">{identity.email ?? words.unnamed}</Cell>
              <Cell className="max-w-60 truncate text-soft">{identity.issuer}</Cell>
              <Cell className="whitespace-nowrap text-soft">
                {identity.lastUsedAt ? <Time at={identity.lastUsedAt} /> : texts.account.never}
              </Cell>
              <Cell className="text-right">
                <Button onClick={() => setLeaving(identity)}>{texts.account.remove}</Button>
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      {leaving && <Unlink identity={leaving} onClose={() => setLeaving(undefined)} />}
    </Part>
  )
}

function Unlink({ identity: { id }, onClose }: { identity: Identity; onClose: () => void }) {
  const queries = useQueryClient()
  const unlink = useMutation({
    mutationFn: () =>
      unwrap(api.DELETE('/v0/identities/{identityId}', { params: { path: { identityId: id } } })),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: ['identities'] })
      onClose()
    },
  })
  return (
    <Sure
      title={words.removeTitle}
      hint={words.removeHint}
      saving={unlink}
      onConfirm={() => unlink.mutate()}
      onClose={onClose}
    />
  )
}
