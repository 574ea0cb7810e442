import { Link } from '@tanstack/react-router'
import { Button, Empty, PageHead } from '../parts/ui.tsx'
import { texts } from '../texts.ts'

const t = texts.shell

/** For an address that no page has; the router shows it in the shell. */
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

/** For a page that broke, and for one that could not be loaded, such as after an upgrade of Berth. */
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
