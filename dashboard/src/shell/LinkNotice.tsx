import { useLink } from '../api/event-store.ts'
import { texts } from '../texts.ts'

/** Warns while the data shown may be stale, and reports when the stream is back. */
export function LinkNotice() {
  const link = useLink()
  return (
    <div
      role="status"
      className="pointer-events-none fixed inset-x-0 bottom-20 z-30 flex justify-center md:bottom-6"
    >
      {link !== 'on' && (
        <p
          className={`rounded-full border bg-card px-4 py-2 font-medium text-sm shadow-lg ${link === 'off' ? 'border-bad text-bad' : 'border-good text-good'}`}
        >
          {link === 'off' ? texts.shell.cut : texts.shell.back}
        </p>
      )}
    </div>
  )
}
