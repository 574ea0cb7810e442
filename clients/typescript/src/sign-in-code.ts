const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Without letters and digits that look alike. */
const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'

/**
 * A short code of a sign-in's challenge, such as `K7PM-2QXA`: a program and the dashboard show it, and the user compares.
 * @param challenge in base64url, at least 8 characters.
 */
export function signInCode(challenge: string): string {
  const code = Array.from(challenge.slice(0, 8), (one) => LETTERS[BASE64URL.indexOf(one) % 32]).join('')
  return `${code.slice(0, 4)}-${code.slice(4)}`
}
