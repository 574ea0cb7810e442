/** Tokens that Berth signs itself are JWTs under JWT_KEY. */
import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose'

/** JWT_KEY, then JWT_KEY_PREVIOUS where it is set: the first one signs, both verify. */
export type SigningKeys = readonly [current: Uint8Array, previous?: Uint8Array]

/** Verifies a token with each key in turn. @throws as jose does. */
export async function verifyJwt(
  [current, previous]: SigningKeys,
  token: string,
  options: JWTVerifyOptions,
): Promise<{ payload: JWTPayload }> {
  try {
    return await jwtVerify(token, current, options)
  } catch (error) {
    if (!previous || !(error instanceof errors.JWSSignatureVerificationFailed)) throw error
    return jwtVerify(token, previous, options)
  }
}
