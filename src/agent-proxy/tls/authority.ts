/**
 * The certificate authority of an agent, which its sandbox trusts and with which the egress proxy answers as the hosts
 * of the agent's secrets. Its key is derived from AGENT_PROXY_KEY, so that workers and all agent proxies have it
 * without storing it.
 */
import { createECDH, createPrivateKey, createPublicKey, generateKeyPairSync, hkdfSync } from 'node:crypto'
import { makeCertificate } from './certificate.ts'

const DAY = 86_400_000
/** How long a certificate of a host is valid, and how long it is used. */
const LEAF_MS = 7 * DAY
const LEAF_USED_MS = DAY
/** Hosts whose certificates an authority keeps. */
const MAX_LEAVES = 256

export interface AgentAuthority {
  /** The authority's own certificate. Each call of {@link agentAuthority} signs it again, for the same key. */
  certificatePem: string
  /** Key and certificate with which a server answers as `host`, a name in lower case. */
  leafFor(host: string): Leaf
}

/** As PEM. */
export interface Leaf {
  key: string
  cert: string
}

/** @param agentId the agent's id in paths. */
export function agentAuthority(agentProxyKey: string, agentId: string): AgentAuthority {
  const privateKey = derivedKey(agentProxyKey, agentId)
  const name = `Berth egress of agent ${agentId}`
  const issuer = { name, privateKey }
  const year = new Date().getUTCFullYear()
  const [from, to] = [new Date(Date.UTC(year - 1)), new Date(Date.UTC(year + 9))]
  const leaves = new Map<string, Leaf & { usedUntil: number }>()
  return {
    certificatePem: makeCertificate({ name, publicKey: createPublicKey(privateKey), from, to, issuer }),
    leafFor(host) {
      const now = Date.now()
      const found = leaves.get(host)
      if (found && found.usedUntil > now) return found
      const key = leafKey()
      const cert = makeCertificate({
        name: host.slice(0, 64),
        publicKey: key.publicKey,
        host,
        from: new Date(now - DAY),
        to: new Date(now - DAY + LEAF_MS),
        issuer,
      })
      const leaf = { key: key.pem, cert, usedUntil: now + LEAF_USED_MS }
      const [oldest] = leaves.keys()
      if (leaves.size >= MAX_LEAVES && oldest !== undefined) leaves.delete(oldest)
      leaves.set(host, leaf)
      return leaf
    },
  }
}

/** The order of P-256's group (SEC 2, 2.4.2). */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** A key from 384 bits, so that no residue is likelier than another (FIPS 186-5, A.2.1). */
function derivedKey(agentProxyKey: string, agentId: string) {
  const bits = Buffer.from(hkdfSync('sha256', agentProxyKey, agentId, 'egress ca', 48))
  const scalar = (BigInt(`0x${bits.toString('hex')}`) % (ORDER - 1n)) + 1n
  const d = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex')
  const curve = createECDH('prime256v1')
  curve.setPrivateKey(d)
  const point = curve.getPublicKey()
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'))
  const jwk = { kty: 'EC', crv: 'P-256', d: d.toString('base64url'), x: x as string, y: y as string }
  return createPrivateKey({ key: jwk, format: 'jwk' })
}

let ofProcess: ReturnType<typeof makeLeafKey> | undefined

/** One key for all hosts of this process: it never leaves the process, and each certificate costs a signature only. */
function leafKey() {
  ofProcess ??= makeLeafKey()
  return ofProcess
}

function makeLeafKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { publicKey, pem: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
}
