/** Invisible names, for everything that has a name. */
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError, type Client } from '../support/client.ts'
import { inlineCid, openContext } from './context.ts'
import { store } from './stored.ts'
import { file, send as sendForm } from './upload-form.ts'

const context = await openContext()
const { workspace, anonymous } = context
const { id, api } = await workspace()
const kept = await store(api, 'public', 'a file that keeps its name', { name: 'kept' })
const OLDER = '/pinning/pinFileToIPFS'
const cid = `${inlineCid('named')}`
/** Zero-width characters, a Hangul filler, and blanks next to such. */
const NAMES = ['\u200b', '\u200d\u2060\ufeff', '\u3164', ' \u200b ', '\u2800']

const given: [what: string, field: string, send: (name: string) => ReturnType<Client['get']>][] = [
  ['an agent', 'name', (name) => api.post('/v0/agents', { name })],
  ['a workspace', 'name', (name) => api.request('PATCH', `/v0/workspaces/${id}`, { json: { name } })],
  ['a user', 'name', (name) => anonymous.post('/v0/invitations/accept', { token: randomUUID(), name })],
  ['a key', 'keyName', (keyName) => api.post('/v3/pinata/keys', { keyName, permissions: { admin: true } })],
  ['a group', 'name', (name) => api.post('/v3/groups/public', { name })],
  ['a file', 'name', (name) => api.put(`/v3/files/public/${kept.id}`, { name })],
  ['a pin', 'name', (name) => api.post('/v3/files/public/pin_by_cid', { cid, name })],
  ['a pin of the Pinning Service API', 'name', (name) => api.post('/psa/pins', { cid, name })],
  ['an upload', 'name', (name) => sendForm(api, [['name', name], file('content', 'file.txt')])],
  [
    'an older upload',
    'pinataMetadata.name',
    (name) =>
      sendForm(api, [['pinataMetadata', JSON.stringify({ name })], file('content', 'file.txt')], OLDER),
  ],
  [
    'a signed upload',
    'filename',
    (filename) => api.post('/v3/files/sign', { expires: 60, date: Math.floor(Date.now() / 1000), filename }),
  ],
  ['a template', 'name', (name) => api.post('/v0/templates', { name, agentId: 'x0000001' })],
]

describe('an invisible name', () => {
  for (const [what, field, send] of given)
    it(`an invisible name is rejected for ${what} [report: display names]`, async () => {
      for (const name of NAMES) assertError(await send(name), 400, `${field}: must have a visible character`)
    })
})
