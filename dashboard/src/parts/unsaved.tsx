import { useBlocker } from '@tanstack/react-router'
import { texts } from '../texts.ts'
import { FormDialog } from './forms.tsx'

const t = texts.unsaved

/** Asks before unsaved input is lost through navigation, a reload or a closed tab. */
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
