/**
 * The OpenID provider from the settings: its sign-in page, and the user who came back from there. It uses
 * `openid-client`, which is loaded at the first sign-in.
 */
import type { Configuration } from 'openid-client'
import type { Config } from '../config.ts'
import { ApiError, ConfigError, unauthorized, unavailable } from '../errors.ts'

/** How long the provider's discovery document is cached. */
const DISCOVERY_MS = 3_600_000
const TIMEOUT_SECONDS = 10

/** Values that verify the end of a sign-in. */
export interface Checks {
  state: string
  nonce: string
  codeVerifier: string
}

/** The provider's claims about a user. */
export interface Claims {
  issuer: string
  subject: string
  name: string | undefined
  email: string | undefined
  isEmailVerified: boolean
}

type Settings = Pick<
  Config,
  'BERTH_OIDC_ISSUER' | 'BERTH_OIDC_CLIENT_ID' | 'BERTH_OIDC_CLIENT_SECRET' | 'BERTH_OIDC_NAME'
>

/** The configured provider, if any. @throws ConfigError if its settings are incomplete. */
export function openIdProvider(config: Settings): OpenIdProvider | undefined {
  const { BERTH_OIDC_ISSUER: issuer, BERTH_OIDC_NAME: name } = config
  const { BERTH_OIDC_CLIENT_ID: clientId, BERTH_OIDC_CLIENT_SECRET: clientSecret } = config
  if (!issuer) {
    if (!clientId && !clientSecret) return undefined
    throw new ConfigError('BERTH_OIDC_ISSUER: has to be set with the client of a provider')
  }
  if (!clientId) throw new ConfigError('BERTH_OIDC_CLIENT_ID: has to be set with BERTH_OIDC_ISSUER')
  if (!clientSecret) throw new ConfigError('BERTH_OIDC_CLIENT_SECRET: has to be set with BERTH_OIDC_ISSUER')
  return new OpenIdProvider({ issuer: new URL(issuer), name, clientId, clientSecret })
}

interface Options {
  issuer: URL
  name: string
  clientId: string
  clientSecret: string
}

export class OpenIdProvider {
  readonly name: string
  readonly #options: Options
  #found: { configuration: Promise<Configuration>; until: number } | undefined

  constructor(options: Options) {
    this.name = options.name
    this.#options = options
  }

  /** Where a browser goes to sign in. @throws ApiError 503 if the provider does not respond. */
  async begin(redirectUri: string, statePrefix: string): Promise<Checks & { url: string }> {
    const client = await import('openid-client')
    const configuration = await this.#configuration()
    const codeVerifier = client.randomPKCECodeVerifier()
    const checks = {
      state: `${statePrefix}${client.randomState()}`,
      nonce: client.randomNonce(),
      codeVerifier,
    }
    const url = client.buildAuthorizationUrl(configuration, {
      ...{
        redirect_uri: redirectUri,
        scope: 'openid profile email',
        state: checks.state,
        nonce: checks.nonce,
      },
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
    })
    return { ...checks, url: url.href }
  }

  /**
   * Ends a sign-in. @returns the user's claims.
   * @param query the query string of the URL to which the provider sent the browser, without `?`.
   * @throws ApiError 401 if the response is not the provider's to this sign-in, 503 if the provider does not respond.
   */
  async finish(redirectUri: string, query: string, { state, nonce, codeVerifier }: Checks): Promise<Claims> {
    const client = await import('openid-client')
    const configuration = await this.#configuration()
    const url = new URL(redirectUri)
    url.search = query
    try {
      const tokens = await client.authorizationCodeGrant(configuration, url, {
        ...{
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        },
      })
      const claims = tokens.claims()
      if (!claims) throw refused('There is no ID token')
      const isComplete = claims.email !== undefined || !configuration.serverMetadata().userinfo_endpoint
      // Many providers put only the subject into the token.
      const more = isComplete
        ? {}
        : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
      return toClaims({ ...more, ...claims })
    } catch (error) {
      throw answerFor(error)
    }
  }

  #configuration(): Promise<Configuration> {
    if (this.#found && this.#found.until > Date.now()) return this.#found.configuration
    const found = { configuration: this.#discover(), until: Date.now() + DISCOVERY_MS }
    this.#found = found
    found.configuration.catch(() => {
      if (this.#found === found) this.#found = undefined
    })
    return found.configuration
  }

  async #discover(): Promise<Configuration> {
    const client = await import('openid-client')
    const { issuer, clientId, clientSecret } = this.#options
    const extensions = [client.enableNonRepudiationChecks]
    if (issuer.protocol === 'http:') extensions.push(client.allowInsecureRequests)
    return client
      .discovery(issuer, clientId, clientSecret, undefined, { execute: extensions, timeout: TIMEOUT_SECONDS })
      .catch((error) => {
        throw away(error)
      })
  }
}

function toClaims(claims: Record<string, unknown> & { iss: string; sub: string }): Claims {
  const text = (name: string) => (typeof claims[name] === 'string' ? claims[name] : undefined)
  return {
    ...{ issuer: claims.iss, subject: claims.sub, email: text('email') },
    name: text('preferred_username') ?? text('name') ?? text('email'),
    isEmailVerified: claims.email_verified === true,
  }
}

const away = (cause: unknown) => unavailable('The OpenID provider cannot be reached: try again later', cause)

function refused(message: string, cause?: unknown): ApiError {
  const error = unauthorized(`${message}: sign in again`, 'oidc_refused')
  error.cause = cause
  return error
}

/** Failures of the provider or the network, rather than of the browser's request. */
const AWAY = ['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON']

function answerFor(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  const { code, error: said, status = 0 } = error as { code?: string; error?: string; status?: number }
  const isNetwork = error instanceof TypeError && error.message === 'fetch failed'
  if (isNetwork || AWAY.includes(code ?? '') || status >= 500) return away(error)
  if (said === 'invalid_client')
    return unavailable('The OpenID provider does not know Berth: its client id or secret is wrong', error)
  if (said === 'access_denied') return refused('The OpenID provider was told not to sign you in', error)
  return refused('The answer of the OpenID provider is not good', error)
}
