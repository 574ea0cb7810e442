import { Link, useLocation } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useRef, useState } from 'react'
import { Bar } from '../pages/files/Bar.tsx'
import { type Chosen, readDrop } from '../pages/files/upload/dropped.ts'
import { isActive, useUploads } from '../pages/files/upload/uploads.ts'
import { useStrayDrops } from '../parts/drops.ts'
import { useMayChange } from '../parts/rights.tsx'
import { Problem } from '../parts/ui.tsx'
import { texts } from '../texts.ts'

const words = texts.files.upload
const LIST = '/dashboard/files'

const DropDialog = lazy(async () => ({
  default: (await import('../pages/files/upload/DropDialog.tsx')).DropDialog,
}))

/** The state of the uploads on pages without the list, and the handler for files dropped there. */
export function Uploads() {
  const uploads = useUploads()
  const isListed = useLocation().pathname.replace(/\/$/, '') === LIST
  const [dropped, setDropped] = useState<Chosen[]>([])
  const [error, setError] = useState<Error | null>(null)
  const take = useCallback((transfer: DataTransfer) => {
    setError(null)
    readDrop(transfer).then(setDropped, setError)
  }, [])
  useStrayDrops(useMayChange() ? take : undefined)
  const underWay = uploads.filter(isActive)
  const failed = uploads.filter(({ state }) => state === 'failed').length
  const done = uploads.filter(({ state }) => state === 'done').length
  /** How many uploads were done when the list was last shown. */
  const seen = useRef(0)
  if (isListed) seen.current = done
  const isShown = !isListed && (underWay.length > 0 || failed > 0 || done > seen.current)
  const all = underWay.reduce((sum, { bytes }) => sum + bytes, 0)
  const sent = underWay.reduce(
    (sum, { bytes, share, state }) => sum + (state === 'packing' ? 0 : bytes * share),
    0,
  )
  return (
    <>
      <Problem error={error} />
      <div role="status" className="order-last w-full empty:hidden md:order-none md:mt-3">
        {isShown && (
          <Link
            to={LIST}
            className={`block rounded-lg border border-line bg-tint px-3 py-1.5 text-sm hover:border-accent ${failed > 0 ? 'text-bad' : ''}`}
          >
            {underWay.length > 0 ? words.underWay(done, uploads.length) : words.ended(done, uploads.length)}
            {underWay.length > 0 && (
              <Bar label={words.list} value={all > 0 ? sent / all : 0} className="mt-1.5 block w-full" />
            )}
          </Link>
        )}
      </div>
      {dropped.length > 0 && (
        <Suspense>
          <DropDialog chosen={dropped} onClose={() => setDropped([])} />
        </Suspense>
      )}
    </>
  )
}
