import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, unwrap } from '../../../api/client.ts'
import { Copy } from '../../../parts/copy.tsx'
import { AskedButton } from '../../../parts/forms.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Card, Modal, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import type { GatewayRecord } from './gateway.ts'

const words = texts.files.gateways

/** The access tokens of a gateway. A token is shown only once, when it is created. */
export function Tokens({ gateway: { id, settings } }: { gateway: GatewayRecord }) {
  const queries = useQueryClient()
  const tokens = settings.restriction_policies.accessTokens
  const create = useMutation({
    mutationFn: () => unwrap(api.POST('/v3/gateways/{id}/access_tokens', { params: { path: { id } } })),
    onSettled: () => queries.invalidateQueries(),
  })
  const revoke = useMutation({
    mutationFn: (item_id: string) =>
      unwrap(api.DELETE('/v3/gateways/{id}/access_tokens/{item_id}', { params: { path: { id, item_id } } })),
    onSettled: () => queries.invalidateQueries(),
  })
  return (
    <Card title={words.tokens}>
      <p className="break-words text-soft text-sm">
        {tokens.length > 0 ? words.restrictedHint : words.openHint}
      </p>
      <ul className="mt-2 divide-y divide-line text-sm">
        {tokens.map((token) => (
          <li key={token.id} className="flex items-center gap-3 py-2">
            <code className="min-w-0 flex-1 truncate text-xs">{token.id}</code>
            <Time at={token.createdAt} className="text-soft text-xs" />
            <AskedButton
              label={words.revoke}
              title={words.revokeTitle}
              hint={tokens.length > 1 ? words.revokeHint : words.revokeLastHint}
              saving={revoke}
              onConfirm={() => revoke.mutate(token.id)}
            />
          </li>
        ))}
      </ul>
      <Problem error={create.error} />
      <Button changes className="mt-3" disabled={create.isPending} onClick={() => create.mutate()}>
        {words.createToken}
      </Button>
      {create.data && (
        <Modal title={words.newToken} onClose={create.reset}>
          <p className="text-soft text-sm">{words.newTokenHint}</p>
          <p className="mt-3 break-all rounded-lg bg-page p-3 font-mono text-xs">{create.data.data.value}</p>
          <div className="mt-5 flex justify-end gap-2">
            <Copy text={create.data.data.value} />
            <Button look="main" onClick={create.reset}>
              {texts.close}
            </Button>
          </div>
        </Modal>
      )}
    </Card>
  )
}
