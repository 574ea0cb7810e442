import { useChange } from '../../../api/change.ts'
import type { paths } from '../../../api/client.ts'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { texts } from '../../../texts.ts'

const t = texts.operate.keys

type Page = paths['/v0/workspaces/{workspaceId}/keys']['get']['responses'][200]['content']['application/json']
export type Key = Page['data']['keys'][number]

export function RevokeKey({ apiKey: { id, name }, onClose }: { apiKey: Key; onClose: () => void }) {
  const { workspaceId } = useRights()
  const revoke = useChange(
    () =>
      unwrap(
        api.DELETE('/v0/workspaces/{workspaceId}/keys/{keyId}', {
          params: { path: { workspaceId, keyId: id } },
        }),
      ),
    onClose,
  )
  return (
    <FormDialog
      title={t.revokeTitle}
      hint={t.revokeHint(name)}
      submit={t.revoke}
      look="danger"
      saving={revoke}
      onSubmit={() => revoke.mutate()}
      onClose={onClose}
    />
  )
}
