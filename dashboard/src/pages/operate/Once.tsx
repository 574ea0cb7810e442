import { Copy } from '../../parts/copy.tsx'
import { Button, Modal } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

/** Shows a key, a token or a secret once. It is stored nowhere, and gone when the dialog closes. */
export function Once({
  title,
  hint,
  label,
  value,
  onClose,
}: {
  title: string
  hint?: string
  label: string
  value: string
  onClose: () => void
}) {
  return (
    <Modal title={title} onClose={onClose}>
      <div className="space-y-4">
        {hint && <p className="text-soft text-sm">{hint}</p>}
        <p className="font-medium text-busy text-sm">{texts.operate.once}</p>
        <div>
          <p className="mb-1 font-medium text-sm">{label}</p>
          <p className="max-h-40 select-all overflow-y-auto break-all rounded-lg bg-page p-3 font-mono text-xs">
            {value}
          </p>
        </div>
        <div className="flex justify-end gap-2">
          <Copy text={value} />
          <Button look="main" onClick={onClose}>
            {texts.operate.done}
          </Button>
        </div>
      </div>
    </Modal>
  )
}
