import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { texts } from '../../../texts.ts'
import type { Key } from './Keys.tsx'

const t = texts.operate.keys

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
