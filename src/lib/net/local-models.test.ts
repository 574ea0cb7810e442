import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { test } from 'node:test'
import { listen } from '../../../test/support/http-server.ts'
import { chooseLocalModel, findLocalModels, LOCAL_SERVERS } from './local-models.ts'

const serve = async (answer: RequestListener) => `${await listen(answer)}/v1`
const say = (body: string) => serve((_, response) => void response.end(body))
const find = async (baseUrl: string) => (await findLocalModels({ one: { name: 'One', baseUrl } }))[0]?.models

test('local model servers are only searched on loopback', () => {
  for (const { baseUrl } of Object.values(LOCAL_SERVERS))
    assert.match(baseUrl, /^http:\/\/127\.0\.0\.1:\d+\/v1$/)
})

test('a local model server is found with only its chat models', async () => {
  const asked: (string | undefined)[] = []
  const baseUrl = await serve(({ url }, response) => {
    asked.push(url)
    const data = [{ id: 'qwen3:8b' }, { id: 'nomic-embed-text' }, { id: 'a/b' }, { id: 'a/b' }, { id: 7 }, {}]
    response.end(JSON.stringify({ object: 'list', data }))
  })
  assert.deepEqual(await findLocalModels({ one: { name: 'One', baseUrl } }), [
    { server: 'one', name: 'One', models: ['qwen3:8b', 'a/b'] },
  ])
  assert.deepEqual(asked, ['/v1/models'])
})

test('programs other than model servers are ignored', async () => {
  const list = JSON.stringify({ data: [{ id: 'small' }] })
  for (const body of ['<h1>Hello</h1>', '[]', '{"data":[]}', `{"data":[{"id":"two\\nlines"}]}`])
    assert.equal(await find(await say(body)), undefined, body)
  assert.deepEqual(await find(await say(list)), ['small'])
  assert.equal(await find(await say(list + ' '.repeat(300_000))), undefined)
  const refusing = await serve((_, response) => void response.writeHead(401).end(list))
  assert.equal(await find(refusing), undefined)
  const target = await say(list)
  const leading = await serve((_, response) => void response.writeHead(302, { location: target }).end())
  assert.equal(await find(leading), undefined)
  assert.equal(await find(await serve(() => {})), undefined)
  assert.equal(await find('http://127.0.0.1:1/v1'), undefined)
})

test('the same local models give the same choice, one that calls tools if possible', () => {
  const choose = (models: string[], wanted?: string) => chooseLocalModel([{ models }], wanted)?.model
  const models = ['gemma2:2b', 'qwen3:8b', 'glm-4.6:cloud', 'llama3.2:3b']
  assert.equal(choose(models), 'llama3.2:3b')
  assert.equal(choose(models.toReversed()), 'llama3.2:3b')
  assert.equal(choose(['phi3', 'gemma2:2b']), 'gemma2:2b')
  assert.equal(choose(['glm-4.6:cloud']), undefined)
  assert.equal(choose(models, 'glm-4.6:cloud'), 'glm-4.6:cloud')
  assert.equal(choose(models, 'qwen3'), undefined)
  const servers = [
    { name: 'a', models: ['gpt-oss:120b-cloud'] },
    { name: 'b', models: ['phi3'] },
    { name: 'c', models: ['qwen3'] },
  ]
  assert.deepEqual(chooseLocalModel(servers), { ...servers[1], model: 'phi3' })
})
