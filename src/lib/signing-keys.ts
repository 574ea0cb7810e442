/** Tokens that Berth signs itself are JWTs under JWT_KEY. */
// Imported by path: the whole of jose is 46 modules, which every `berth` command would load.
import type { JWTPayload, JWTVerifyOptions } from 'jose'
import { JWSSignatureVerificationFailed } from 'jose/errors'
import { jwtVerify } from 'jose/jwt/verify'
import type { Config } from '../config.ts'
import { readOrCreateSecret } from './files.ts'

/** JWT_KEY, then JWT_KEY_PREVIOUS if it is set: the first one signs, both verify. */
export type SigningKeys = readonly [current: Uint8Array, previous?: Uint8Array]

/** The signing key from the setting, or from `<data folder>/jwt.key`, which is created (mode 600) if it is missing. */
export function loadSigningKey(setting: string | undefined, dataDir: string): Uint8Array {
  return new TextEncoder().encode(setting ?? readOrCreateSecret(dataDir, 'jwt.key'))
}

export function loadSigningKeys(config: Config): SigningKeys {
  const { JWT_KEY, JWT_KEY_PREVIOUS: previous, BERTH_DATA_DIR } = config
  const current = loadSigningKey(JWT_KEY, BERTH_DATA_DIR)
  return previous ? [current, new TextEncoder().encode(previous)] : [current]
}

/** Verifies a token with each key in turn. @throws as jose does. */
export async function verifyJwt(
  [current, previous]: SigningKeys,
  token: string,
  options: JWTVerifyOptions,
): Promise<{ payload: JWTPayload }> {
  try {
    return await jwtVerify(token, current, options)
  } catch (error) {
    if (!previous || !(error instanceof JWSSignatureVerificationFailed)) throw error
    return jwtVerify(token, previous, options)
  }
}
