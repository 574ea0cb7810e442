import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bases } from 'multiformats/basics'
import { CID } from 'multiformats/cid'
import { create as createDigest } from 'multiformats/hashes/digest'
import { UnsupportedError } from '../port.ts'
import { assertSupported, matches } from './codecs.ts'

/** The CIDs of "hello" from Kubo 0.43 (`ipfs block put --cid-codec=raw --mhtype=… --mhlen=…`). */
const HELLO = {
  sha1: 'bafkrcffk6tdb3xgf5crnvpw6b45uqlgzv2uugti',
  'sha2-256': 'bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq',
  'sha2-256 of 20 bytes': 'bafkrefbm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa',
  'sha2-512':
    'bafkrgqe3ohjcjplc6n4f3fwunlj6upltggn7xqujbsvnvyw764srszz4u4rshq6ztos4chl4plgg4ffyyxnayrtdi5oc4xb2332g645433aeg',
  'sha3-224': 'bafkrohfyp6emojyc77yxjdsyxb7jcqnefqg35xbju6glbvffzwaq',
  'sha3-256': 'bafkrmibthc7gst2qyxztrakjq3g7a2dekouirocpijgxskxuxeqchghtsi',
  'sha3-384': 'bafkrkmdsblvbcam66bseb67qlwd2ujdibiqvhxzza6zdmmphc56omih2cmyp6b6a7xpokruzutb64dxj3cdq',
  'sha3-512':
    'bafkriqdv2ut4g2hs57uer3hwwbz2gz3hqaeal2po6kyyk7k7tbhqg3vw36er25pxfwnrkriyyhgvra2sq3i5vgry325d32mlljj6l3lyvbexm',
  'shake-256':
    'bafkrsqasgqdvvzfb45zrntznqaajormbunb3t254u7r5dw4dhfgdb4rbmjxvstspbxtdsarutjpkk6ascmqvqe4rt6jkjwdncj2gny6qp2f6g',
  'shake-256 of 24 bytes': 'bafkrsgasgqdvvzfb45zrntznqaajormbunb3t254u7r5c',
  'keccak-256': 'bafkrwia4rl7zkbufylwuxqyxj42hekd3k3mvc644ssasomm2bgt2g3pkza',
  'keccak-512':
    'bafkr2qcs7kagmlteyeupqoe4t2tmopkmai3iabf7irrusgia2enkvxfdtvd54gybgypsa7crft5ht4hzfqzzlrt766ji4p244pr4quvtsl4xm',
  blake3: 'bafkr4ihkr4ld3m4gqkjf4reryxsy2s5tkbxprqkow6fin2iiyvreuzzab4',
  'blake3 of 20 bytes': 'bafkr4fhkr4ld3m4gqkjf4reryxsy2s5tkbxprqi',
  'blake3 of 64 bytes':
    'bafkr4qhkr4ld3m4gqkjf4reryxsy2s5tkbxprqkow6fin2iiyvreuzzab7uzeqc7bv4fwwm2fyzyp5wtjua7vth6wix3nf7ph7ktkqjedizyy',
  'blake3 of 128 bytes':
    'bafkr5aab5khrmpntq2bjexseshc6ldklwnig56gbj23yvbxjbdcwestheah6tesal4gxqw2ztixdhb7w2ngqd6wm72zc7nux5475knkbeqndhdggrb3fncvvy3ssjk5472eb4w2odletg3z7smwucisizgbjkntjt4d2dmoogx757yf6luamba5i37jjzgsdapitotgxbzvlz3donn4wy',
  'dbl-sha2-256': 'bafkvmievsxe57eahkfeowbugans56m2yjn23754cuuimntkiqosbtaz5ka',
  'blake2b-160': 'bafkzjzaccs2vghdqg7ygzhzji4jsu2txeawdbdujhe',
  'blake2b-168': 'bafkzlzaccxd7b52kejyrmvd3hutyr2jh5yvhnsd5q6lq',
  'blake2b-256': 'bafk2bzaceaze3tycpxkkgcutfrcb6ns2exugwfz556slrzmjjasti4nydnzm6',
  'blake2b-256 of 24 bytes': 'bafk2bzacdaze3tycpxkkgcutfrcb6ns2exugwfz556slrzmj',
  'blake2b-512':
    'bafk4bzacidsm7i42hu334mofsye6qb4xa6m4vjukdg72ufitl4lfbbpadva2mw5b4gyunlvwxuajfne6vqquyeb4z6r2gzmvjo56kl3uukzwedeu',
  'blake2s-256': 'bafk6bzaceamsco5mywg643n54phltjd4xmzqwpmg7dgkrgl6waf6ivxridfck',
}

for (const [name, text] of Object.entries(HELLO)) {
  test(`a block with ${name} is verified in the same way as in Kubo [report: impossible content]`, async () => {
    const cid = CID.parse(text, bases.base32)
    assertSupported(cid)
    assert.equal(await matches(cid, Buffer.from('hello')), true)
    assert.equal(await matches(cid, Buffer.from('Hello')), false)
  })
}

const cidOf = (codec: number, code: number, length: number) =>
  CID.createV1(codec, createDigest(code, new Uint8Array(length)))
const RAW = 0x55

/** CIDs whose content no node can provide, or that Berth cannot decode. */
const UNSUPPORTED: [what: string, cid: CID, reason: RegExp][] = [
  ['an identity CID of 129 bytes', cidOf(RAW, 0x00, 129), /^an identity CID of 129 bytes is not supported/],
  ['a digest of 19 bytes', cidOf(RAW, 0x12, 19), /^its digest of 19 bytes is shorter than 20/],
  [
    'a digest longer than its hash function makes',
    cidOf(RAW, 0x12, 33),
    /^its digest of 33 bytes is longer than/,
  ],
  ['a digest of 129 bytes', cidOf(RAW, 0x1e, 129), /^its digest of 129 bytes is longer than/],
  ['murmur3', cidOf(RAW, 0x22, 20), /^hash function 0x22 is not supported \(supported: sha1, /],
  ['md5', cidOf(RAW, 0xd5, 20), /^hash function 0xd5 is not supported/],
  ['keccak-224, which Kubo cannot compute', cidOf(RAW, 0x1a, 28), /^hash function 0x1a is not supported/],
  ['the codec git-raw', cidOf(0x78, 0x11, 20), /^codec 0x78 is not supported \(supported: raw, /],
]

for (const [what, cid, reason] of UNSUPPORTED) {
  test(`${what} is not supported, and the error names it [report: impossible content]`, () => {
    assert.throws(
      () => assertSupported(cid),
      (error) => error instanceof UnsupportedError && reason.test(error.reason),
    )
  })
}
