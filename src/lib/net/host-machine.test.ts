import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromContainer, modelFromContainer } from './host-machine.ts'

test('loopback becomes the machine’s name, and everything else stays unchanged', () => {
  assert.equal(fromContainer('http://127.0.0.1:11434/v1'), 'http://host.docker.internal:11434/v1')
  assert.equal(fromContainer('http://localhost:11434/v1'), 'http://host.docker.internal:11434/v1')
  assert.equal(fromContainer('http://[::1]:80/v1/'), 'http://host.docker.internal/v1/')
  for (const url of ['https://models.example/v1', 'http://10.0.0.7:1/v1', 'http://localhost.example/v1'])
    assert.equal(fromContainer(url), url)
})

test('a model at a private address gets a name that the engine does not call directly', () => {
  for (const host of ['192.168.1.20', '10.0.0.7', '172.16.0.9', 'ollama.local'])
    assert.equal(modelFromContainer(`http://${host}:11434/v1`), 'http://model.berth.internal:11434/v1')
  assert.equal(modelFromContainer('http://localhost:11434/v1'), 'http://host.docker.internal:11434/v1')
  for (const url of ['https://10.0.0.7/v1', 'http://1.1.1.1/v1', 'http://ollama.example/v1'])
    assert.equal(modelFromContainer(url), url)
})
