import { useBlocker } from '@tanstack/react-router'
import { texts } from '../texts.ts'
import { FormDialog } from './forms.tsx'

const t = texts.unsaved

/** Asks before what was typed and is not saved gets lost: by another address, a reload or the tab's end. */
export function Unsaved({ isOn }: { isOn: boolean }) {
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: () => isOn,
    enableBeforeUnload: isOn,
    withResolver: true,
  })
  if (status !== 'blocked') return null
  return (
    <FormDialog
      title={t.title}
      hint={t.hint}
      submit={t.leave}
      look="danger"
      saving={{ isPending: false, error: null }}
      onSubmit={proceed}
      onClose={reset}
    />
  )
}
