/** The credential of an agent's proxy URL, as clients send it in `Proxy-Authorization`. */
import { hash } from 'node:crypto'

/** In hex. */
export const sha256 = (text: string) => hash('sha256', text)

/** SHA-256 (hex) of the password in `Basic …`; undefined if there is none. */
export function passwordHash(authorization: string | undefined): string | undefined {
  const encoded = /^Basic +([\w+/=-]+)$/i.exec(authorization ?? '')?.[1]
  if (!encoded) return undefined
  const decoded = Buffer.from(encoded, 'base64').toString()
  return sha256(decoded.slice(decoded.indexOf(':') + 1))
}
