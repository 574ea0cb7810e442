import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bases } from 'multiformats/basics'
import { CID } from 'multiformats/cid'
import { ApiError } from '../errors.ts'
import { canonicalCid, parseCid } from './cid.ts'

const V0 = 'QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n'
const V1 = 'bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'

describe('CIDs', () => {
  it('CIDs of every version and base are parsed into one canonical form', () => {
    const cid = CID.parse(V1)
    assert.equal(canonicalCid(parseCid(V0)), V1)
    for (const base of Object.values(bases).filter(({ name }) => name !== 'identity')) {
      const text = base.encoder.encode(cid.bytes)
      assert.equal(canonicalCid(parseCid(text)), V1, base.name)
    }
  })

  it('CIDs in base32 may be in either case, because base32 is case-insensitive', () => {
    assert.equal(canonicalCid(parseCid(`b${V1.slice(1).toUpperCase()}`)), V1)
  })

  it('CIDs keep their codec: the same hash as raw bytes is another CID', () => {
    const raw = CID.createV1(0x55, CID.parse(V1).multihash)
    assert.notEqual(canonicalCid(parseCid(raw.toString())), V1)
  })

  const malformed = {
    nothing: '',
    'a space before it': ` ${V1}`,
    'a path behind it': `${V1}/file.txt`,
    'a path before it': `/ipfs/${V1}`,
    'a CIDv0 in lower case': V0.toLowerCase(),
    'a cut end': V1.slice(0, -1),
    'a cut CIDv0': V0.slice(0, -1),
    'one character too many': `${V1}a`,
    'an unknown base': `!${V1}`,
    'no CID at all': 'hello',
    'a key of IPNS': 'k51qzi5uqu5dgutdk6i1ynyzgkqngpha5xpgia3a5qqp4jsh0u4csozksxel2r',
    'very much of it': 'b'.repeat(100_000),
    'other characters': 'bäfy',
    'a space after it': `${V1} `,
    'a line feed after it': `${V1}\n`,
    'a scheme': `ipfs://${V1}`,
    'a gateway': `https://ipfs.io/ipfs/${V1}`,
    'a letter': 'b',
    'a CIDv0 in upper case': V0.toUpperCase(),
    'a CIDv0 with one character more': `${V0}1`,
    'a CIDv0 with a character outside base58': `${V0.slice(0, -1)}0`,
    'a CIDv0 with a prefix of v1': `z${V0}`,
    'a UUID': '0191f0f0-0000-7000-8000-000000000000',
    'an unknown version': `f02${CID.parse(V1).toString(bases.base16.encoder).slice(3)}`,
    'the name of a key': `${CID.createV1(0x72, CID.parse(V1).multihash)}`,
  }
  for (const [what, text] of Object.entries(malformed)) {
    it(`CIDs are rejected with ${what}`, () => {
      assert.throws(
        () => parseCid(text),
        (error) => error instanceof ApiError && error.status === 400 && error.message.startsWith('cid: '),
      )
    })
  }
})
