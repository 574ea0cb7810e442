/** Sign-in through the dashboard, in a browser on this machine or any other. */
import { createHash, randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient, signInCode, unwrap } from '../../typescript/src/index.ts'
import { openInBrowser } from './browser.ts'
import { AdvisedError, EXIT } from './errors.ts'
import { paint } from './terminal.ts'

const ASK_MS = 2000
const LIMIT_MS = 900_000

/**
 * Shows the user a page of the dashboard, and waits until they allow the sign-in there.
 * @returns the API key.
 * @throws AdvisedError if nobody allows it within 15 minutes.
 */
export async function signInByBrowser(url: string, signal: AbortSignal): Promise<string> {
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const page = `${url}/dashboard/program?${new URLSearchParams({ challenge, name: hostname() })}`
  const code = paint('bold', signInCode(challenge), process.stderr)
  process.stderr.write(`Allow the sign-in on this page, if it shows the code ${code}:\n\n  ${page}\n\n`)
  // Over SSH, the browser is on the other machine.
  if (!process.env.SSH_CONNECTION) await openInBrowser(page)
  const berth = createClient({ url })
  const deadline = Date.now() + LIMIT_MS
  while (Date.now() < deadline) {
    const answer = await berth.POST('/v0/login/program', { body: { verifier }, signal })
    if (answer.response.status !== 404) return (await unwrap(answer)).data.token
    await delay(ASK_MS, undefined, { signal })
  }
  throw new AdvisedError(
    'nobody has allowed the sign-in',
    'run it again, or use an API key: --key',
    EXIT.signIn,
  )
}
