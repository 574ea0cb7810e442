import { Link } from '@tanstack/react-router'
import { Button, Empty, PageHead } from '../parts/ui.tsx'
import { texts } from '../texts.ts'

const t = texts.shell

/** The page for unknown addresses, which the router shows inside the shell. */
export function Lost() {
  return (
    <>
      <PageHead title={t.notFound} />
      <Empty title={t.notFoundHint}>
        <Link to="/dashboard" className="font-medium text-accent text-sm hover:underline">
          {t.toOverview}
        </Link>
      </Empty>
    </>
  )
}

/** Replaces a page that failed, or that could not be loaded, for example after an upgrade of Berth. */
export function Broken({ error }: { error: unknown }) {
  return (
    <>
      <PageHead title={t.broken} />
      <Empty title={error instanceof Error ? error.message : String(error)} hint={t.brokenHint}>
        <Button look="main" onClick={() => location.reload()}>
          {t.reload}
        </Button>
      </Empty>
    </>
  )
}
