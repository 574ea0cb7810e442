import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromContainer } from './host-machine.ts'

test('loopback is written as the machine, everything else as it was', () => {
  assert.equal(fromContainer('http://127.0.0.1:11434/v1'), 'http://host.docker.internal:11434/v1')
  assert.equal(fromContainer('http://localhost:11434/v1'), 'http://host.docker.internal:11434/v1')
  assert.equal(fromContainer('http://[::1]:80/v1/'), 'http://host.docker.internal/v1/')
  for (const url of ['https://models.example/v1', 'http://10.0.0.7:1/v1', 'http://localhost.example/v1'])
    assert.equal(fromContainer(url), url)
})
