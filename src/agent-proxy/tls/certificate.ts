/**
 * X.509 certificates (RFC 5280) with P-256 keys, encoded here: a library that can make them costs every proxy and
 * worker 24 MB. Nothing is parsed.
 */
import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto'

export interface CertificateFields {
  /** The common name of the subject. */
  name: string
  publicKey: KeyObject
  /** Host that the certificate is for; undefined for an authority. */
  host?: string
  from: Date
  to: Date
  issuer: { name: string; privateKey: KeyObject }
}

/** Makes a certificate for a host, or of an authority that signs only such certificates, as PEM. */
export function makeCertificate({ name, publicKey, host, from, to, issuer }: CertificateFields): string {
  const extensions = host === undefined ? ofAuthority(publicKey) : ofHost(host)
  const authorityKey = sequence(der(0x80, keyId(createPublicKey(issuer.privateKey))))
  const content = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ECDSA_SHA256,
    distinguishedName(issuer.name),
    sequence(time(from), time(to)),
    distinguishedName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions, extension('551d23', authorityKey))),
  )
  const bytes = sequence(content, ECDSA_SHA256, bits(0, sign('sha256', content, issuer.privateKey)))
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

/** Basic constraints with a path of 0, signing of certificates and lists, and the key's id. */
const ofAuthority = (publicKey: KeyObject) => [
  critical('551d13', sequence(der(0x01, Buffer.from([0xff])), integer(Buffer.from([0])))),
  critical('551d0f', bits(1, Buffer.from([0x06]))),
  extension('551d0e', der(0x04, keyId(publicKey))),
]

/** No authority, digital signatures, authentication of servers, and the host. */
const ofHost = (host: string) => [
  critical('551d13', sequence()),
  critical('551d0f', bits(7, Buffer.from([0x80]))),
  extension('551d25', sequence(oid('2b06010505070301'))),
  extension('551d11', sequence(der(0x82, Buffer.from(host, 'latin1')))),
]

function der(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content)
  const { length } = body
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}

const sequence = (...content: Buffer[]) => der(0x30, ...content)
/** A positive number whose first byte is below 0x80. */
const integer = (bytes: Buffer) => der(0x02, bytes)
const bits = (unused: number, bytes: Buffer) => der(0x03, Buffer.from([unused]), bytes)
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const distinguishedName = (name: string) =>
  sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(name)))))
const extension = (id: string, value: Buffer) => sequence(oid(id), der(0x04, value))
const critical = (id: string, value: Buffer) =>
  sequence(oid(id), der(0x01, Buffer.from([0xff])), der(0x04, value))
/** UTC until 2049, as RFC 5280 demands. */
const time = (at: Date) => der(0x17, Buffer.from(`${at.toISOString().slice(2, 19).replace(/[-:T]/g, '')}Z`))
const keyId = (key: KeyObject) =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
    .subarray(0, 20)
const ECDSA_SHA256 = sequence(oid('2a8648ce3d040302'))
