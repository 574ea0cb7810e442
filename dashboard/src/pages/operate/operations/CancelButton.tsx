import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Button } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { isOver, type Operation } from './operations.ts'

const t = texts.operate.operations

/** Only pins can be cancelled: what an agent has begun is ended by its next operation. */
export function CancelButton({ operation }: { operation: Operation }) {
  const { mayWrite } = useRights()
  const [isAsked, setAsked] = useState(false)
  const cancel = useChange(
    () => unwrap(api.DELETE('/v0/operations/{id}', { params: { path: { id: operation.id } } })),
    () => setAsked(false),
  )
  const mayCancel = mayWrite && operation.kind === 'pin.add' && !isOver(operation)
  return (
    <>
      {mayCancel && (
        <Button className="shrink-0" onClick={() => setAsked(true)}>
          {t.cancel}
        </Button>
      )}
      {isAsked && (
        <FormDialog
          title={t.cancelTitle}
          hint={t.cancelHint}
          submit={t.cancelSubmit}
          look="danger"
          saving={cancel}
          onSubmit={() => cancel.mutate()}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}
