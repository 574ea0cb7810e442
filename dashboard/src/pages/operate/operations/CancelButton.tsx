import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { AskedButton } from '../../../parts/forms.tsx'
import { texts } from '../../../texts.ts'
import { isOver, type Operation } from './operations.ts'

const t = texts.operate.operations

/** Cancels a pin. Other operations cannot be cancelled: the next operation on the same agent ends them. */
export function CancelButton({ operation }: { operation: Operation }) {
  const { mayWrite } = useRights()
  const cancel = useChange(() =>
    unwrap(api.DELETE('/v0/operations/{id}', { params: { path: { id: operation.id } } })),
  )
  if (!mayWrite || operation.kind !== 'pin.add' || isOver(operation)) return null
  return (
    <AskedButton
      className="shrink-0"
      label={t.cancel}
      submit={t.cancelSubmit}
      title={t.cancelTitle}
      hint={t.cancelHint}
      saving={cancel}
      onConfirm={() => cancel.mutate()}
    />
  )
}
