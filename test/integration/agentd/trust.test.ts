/** Which programs of an agent trust the certificate authority of its egress proxy. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { createSecureContext } from 'node:tls'
import type { ExecResult } from '../../../agentd/protocol.ts'
import { agentAuthority } from '../../../src/agent-proxy/tls/authority.ts'
import { standInEngine, TestAgentd } from './agentd.ts'

const authority = agentAuthority('k'.repeat(43), 'xtest123')
/** Each prints `trusted`, or an error of its TLS library. */
const PROGRAMS = {
  'fetch of Node': (url: string) =>
    `node -e 'fetch("${url}").then(async (it) => console.log(await it.text()))'`,
  'https of Node': (url: string) =>
    `node -e 'require("https").get("${url}", (it) => it.pipe(process.stdout))'`,
  curl: (url: string) => `curl -sS ${url}`,
  git: (url: string) => `git ls-remote ${url} | grep -o trusted`,
  // As in the tools of the engine.
  'git without GIT_SSL_CAINFO': (url: string) =>
    `unset GIT_SSL_CAINFO; git ls-remote ${url} | grep -o trusted`,
  'urllib of Python': (url: string) =>
    `python3 -c 'import urllib.request as u; print(u.urlopen("${url}").read().decode())'`,
  'requests of Python': (url: string) => `python3 -c 'import requests; print(requests.get("${url}").text)'`,
}

describe('programs of an agent', () => {
  const server = createServer({
    SNICallback: (host, done) => done(null, createSecureContext(authority.leafFor(host))),
  })
  server.on('request', (req, res) => {
    const isGit = req.url?.includes('/info/refs')
    if (isGit) res.setHeader('content-type', 'application/x-git-upload-pack-advertisement')
    res.end(isGit ? REFS : 'trusted')
  })
  let engineDir: string
  let agentd: TestAgentd
  let url: string
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `https://localhost:${(server.address() as AddressInfo).port}/`
    engineDir = await standInEngine()
    agentd = await TestAgentd.start({ engineDir })
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await agentd.close()
    await rm(engineDir, { recursive: true })
  })

  const startGateway = async (caCertificate: string | undefined) => {
    await agentd.start({ caCertificate })
    await agentd.until('ready', 60_000, ({ gateway }) => gateway.state === 'ready')
  }
  const run = async (command: string): Promise<string> => {
    const json = { command, timeoutMs: 60_000, outputBytes: 10_000 }
    const { stdout, stderr } = (await agentd.call<ExecResult>('POST', '/v1/exec', { json })).body
    return stdout.trim() || stderr
  }

  for (const [name, command] of Object.entries(PROGRAMS))
    it(`${name} trusts the authority, and only then`, { skip: whyNot(command('')) }, async () => {
      await startGateway(authority.certificatePem)
      assert.equal(await run(command(url)), 'trusted')
      await startGateway(undefined)
      assert.match(await run(command(url)), /certificate|UNABLE_TO_VERIFY|self.signed/i)
    })

  it('programs trust the authority again after agentd was killed, and with its files removed', async () => {
    await startGateway(authority.certificatePem)
    await agentd.kill('SIGKILL')
    await agentd.boot()
    await rm(`${agentd.home}/.openclaw/berth`, { recursive: true })
    await startGateway(authority.certificatePem)
    assert.equal(await run(PROGRAMS.curl(url)), 'trusted')
  })
})

/** The refs of a repository with one branch (gitprotocol-http). */
const LINES = [`${'1'.repeat(40)} refs/heads/trusted\0\n`]
const packet = (line: string) => `${(line.length + 4).toString(16).padStart(4, '0')}${line}`
const REFS = `${packet('# service=git-upload-pack\n')}0000${LINES.map(packet).join('')}0000`

/** Why a program cannot run here, false if it can. */
function whyNot(command: string): string | false {
  const [, program = '', module] = /^(\w+)(?:.*import (\w+))?/.exec(command) ?? []
  const check = module ? `${program} -c 'import ${module}'` : `command -v ${program}`
  const { status } = spawnSync('sh', ['-c', check])
  return status !== 0 && `${program} ${module ?? ''} is not installed`
}
