import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { compiledFolder, isCompiled } from './compiled.ts'
import { agentEnvironment } from './openclaw.ts'
import { agentPaths } from './paths.ts'
import type { AgentdConfig } from './protocol.ts'

test('an engine is compiled if its folder has code for this version of Node and this user', (t) => {
  const engine = mkdtempSync(join(tmpdir(), 'berth-compiled-'))
  t.after(() => rmSync(engine, { recursive: true }))
  assert.equal(isCompiled(engine, 999), false)
  const code = (name: string) => mkdirSync(join(compiledFolder(engine), name), { recursive: true })
  code('v22.1.0-x64-0a1b2c3d-999')
  code(`${process.version}-x64-0a1b2c3d-1999`)
  assert.equal(isCompiled(engine, 999), false)
  code(`${process.version}-x64-0a1b2c3d-999`)
  assert.equal(isCompiled(engine, 999), true)
})

test('an agent uses the code of a compiled engine, and otherwise keeps its own in its home', (t) => {
  const engineDir = mkdtempSync(join(tmpdir(), 'berth-compiled-'))
  t.after(() => rmSync(engineDir, { recursive: true }))
  const config = { engineDir, gatewayPort: 18_789 } as AgentdConfig
  const code = () => agentEnvironment(config, agentPaths('/home/node'), { env: {} }).NODE_COMPILE_CACHE
  assert.equal(code(), '/home/node/.cache/node')
  mkdirSync(join(compiledFolder(engineDir), `${process.version}-x64-0a1b2c3d-${process.getuid?.()}`), {
    recursive: true,
  })
  assert.equal(code(), compiledFolder(engineDir))
})
