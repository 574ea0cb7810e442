/**
 * The OpenID provider of the settings: its page to sign in at, and who came back from there. By `openid-client`, which is
 * loaded when somebody first signs in.
 */
import type { Configuration } from 'openid-client'
import type { Config } from '../config.ts'
import { ApiError, ConfigError, unauthorized, unavailable } from '../errors.ts'

/** The provider's description of itself is read again after this. */
const DISCOVERY_MS = 3_600_000
const TIMEOUT_SECONDS = 10

/** Values against which the end of a sign-in is checked. */
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

/** The provider that is set, where one is. @throws ConfigError for settings that are not all there. */
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

  /** Where a browser goes to sign in. @throws ApiError 503 where the provider does not answer. */
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
   * Ends a sign-in. @returns who came back.
   * @param query the text behind the `?` of the address to which the provider sent the browser.
   * @throws ApiError 401 for an answer that is not the provider's to this sign-in, 503 where it does not answer.
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
      // Many providers put no more than the subject into the token.
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

/** Failures that are the provider's, or of the way there, and not of what the browser brought. */
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
