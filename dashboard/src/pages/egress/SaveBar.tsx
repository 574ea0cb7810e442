import { useMayChange } from '../../parts/rights.tsx'
import { Button, Problem } from '../../parts/ui.tsx'
import { Unsaved } from '../../parts/unsaved.tsx'
import { texts } from '../../texts.ts'
import type { Editing } from './policy.ts'

const t = texts.egress

/** The buttons that save or discard changes of a policy, always in view, and why a save failed. */
export function SaveBar({ editing: { isChanged, save, discard }, hint }: { editing: Editing; hint: string }) {
  const mayChange = useMayChange()
  if (!mayChange) return null
  return (
    <div className="sticky bottom-13.5 z-10 -mx-4 mt-4 border-line border-t bg-page px-4 py-3 md:bottom-0">
      <Unsaved isOn={isChanged} />
      {isChanged && <Problem error={save.error} />}
      <div className="flex flex-wrap items-center justify-end gap-2 not-first:mt-3">
        <p role="status" className={`mr-auto text-sm ${isChanged ? 'text-busy' : 'text-good'}`}>
          {isChanged ? hint : save.isSuccess && t.saved}
        </p>
        {isChanged && <Button onClick={discard}>{texts.config.discard}</Button>}
        <Button look="main" disabled={!isChanged || save.isPending} onClick={save.send}>
          {save.isPending ? texts.config.saving : t.save}
        </Button>
      </div>
    </div>
  )
}
