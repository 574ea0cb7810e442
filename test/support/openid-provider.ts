/**
 * An OpenID provider on loopback: npm's `oidc-provider` itself. The test sets who signs in, because the pages on which
 * a person would do so are not tested.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

const CLIENT = { id: 'berth', secret: 'the secret of Berth at the provider' }

export interface Account {
  sub: string
  name?: string
  email?: string
  email_verified?: boolean
}

export interface StartedProvider {
  issuer: string
  /** The account that signs in from now on; null for a user who declines. */
  account: Account | null
  /** The tokens that Berth received at the last sign-in. */
  issued: string[]
  stop(): Promise<void>
}

const issuerAt = (port: number) => `http://localhost:${port}`

/** Settings of a Berth that uses the provider on a port; the provider may start later. */
export const oidcSettings = (port: number): NodeJS.ProcessEnv => ({
  BERTH_OIDC_ISSUER: issuerAt(port),
  BERTH_OIDC_CLIENT_ID: CLIENT.id,
  BERTH_OIDC_CLIENT_SECRET: CLIENT.secret,
  BERTH_OIDC_NAME: 'Example ID',
})

/** @param redirectUri where it may send browsers. */
export async function startProvider(
  redirectUri: string,
  { port = 0, secret = CLIENT.secret } = {},
): Promise<StartedProvider> {
  const server = createServer((req, res) => void answer(req, res))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const issuer = issuerAt((server.address() as AddressInfo).port)
  const known = new Map<string, Account>()
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: secret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code'],
      },
    ],
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
    cookies: { keys: ['a key of the provider of tests'] },
    features: { devInteractions: { enabled: false } },
    findAccount: (_context, sub) => ({ accountId: sub, claims: async () => ({ ...known.get(sub), sub }) }),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    async loadExistingGrant({ oidc }) {
      const { client, session, provider } = oidc
      const grant = new provider.Grant({ clientId: client?.clientId, accountId: session?.accountId })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
  })
  const handle = provider.callback()
  const started: StartedProvider = {
    issuer,
    account: null,
    issued: [],
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  provider.on('grant.success', ({ body }) => {
    const { id_token, access_token } = body as Record<string, string>
    started.issued = [id_token ?? '', access_token ?? '']
  })
  async function answer(...[req, res]: Parameters<typeof handle>): Promise<void> {
    if (!req.url?.startsWith('/interaction/')) return void handle(req, res)
    const { account } = started
    if (account) known.set(account.sub, account)
    const result = account ? { login: { accountId: account.sub } } : { error: 'access_denied' }
    await provider.interactionFinished(req, res, result, { mergeWithLastSubmission: false })
  }
  return started
}

/**
 * Follows redirects like a browser that is new to the provider. @returns the query with which the provider sends it
 * back.
 */
export async function passProvider(start: string, redirectUri: string): Promise<string> {
  const cookies = new Map<string, string>()
  let url = start
  for (let hops = 0; hops < 10; hops++) {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (!location) throw new Error(`${url}: ${response.status} ${await response.text()}`)
    url = new URL(location, url).href
    if (url.startsWith(redirectUri)) return new URL(url).search.slice(1)
  }
  throw new Error(`more than ten redirects from ${start}`)
}
