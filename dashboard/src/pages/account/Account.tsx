import { PageHead } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

export function Account() {
  return <PageHead title={texts.account.title} />
}
