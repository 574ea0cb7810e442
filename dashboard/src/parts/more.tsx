import { texts } from '../texts.ts'
import { Button } from './ui.tsx'

/** A button that loads the next page of a list. */
export function More({
  hasMore,
  isReading,
  readMore,
}: {
  hasMore: boolean
  isReading: boolean
  readMore: () => void
}) {
  if (!hasMore) return null
  return (
    <div className="mt-4 flex justify-center">
      <Button disabled={isReading} onClick={readMore}>
        {texts.operate.older}
      </Button>
    </div>
  )
}
