/** Attacks on a brokered secret from inside the sandbox of an agent that has it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import type { Client } from '../../support/client.ts'
import { startGitBackend } from '../../support/git-backend.ts'
import { commitTo } from '../../support/git-repositories.ts'
import { until } from '../../support/processes.ts'
import { stackKind } from '../../support/stack.ts'
import { TerminalClient } from '../../support/terminal.ts'
import { openContext, startShared } from '../context.ts'
import { AT_ONCE, patientHost, running, type TestAgent, useStandIn } from './context.ts'
import { openGround } from './keys-ground.ts'

const VALUE = `sk-proj-${randomBytes(24).toString('hex')}`
/** Prints the value without having it in a command line. */
const PRINT = `printf '%s%s' ${VALUE.slice(0, 20)} ${VALUE.slice(20)}`
/** Names below `localhost` bypass the proxy otherwise. */
const PROXIED = 'export NO_PROXY= no_proxy=;'
const SOON_MS = 15_000

const whyNot = stackKind === 'embedded' && 'agents are processes here, without an egress proxy'

async function open() {
  const root = await mkdtemp(join(tmpdir(), 'berth-git-'))
  await commitTo(root, 'repository.git', { 'README.md': 'cloned' })
  const git = await startGitBackend(root)
  const ground = await openGround({ key: VALUE, git: git.url })
  after(async () => {
    await ground.stop()
    await git.close()
    await rm(root, { recursive: true })
  })
  const { host, elsewhere, servers } = ground
  const context = await openContext(await startShared(ground.env))
  const [owner, stranger] = [await context.workspace(), await context.workspace()]
  await useStandIn(context, stranger)
  const create = async (name: string, more: object = {}) =>
    (await owner.api.post('/v0/secrets', { name, value: VALUE, hosts: [host], ...more })).body.secret.id
  const reader = await owner.keyed('org:agents:read')
  for (const server of servers) server.berth = context.url
  const secretIds = [
    await create('KEYS_API_KEY'),
    await create('KEYS_PASSWORD', { via: { as: 'basic' } }),
    await create('OTHER_BERTH_KEY', { value: reader.key }),
  ]
  // The real engine writes its state to disk, and runs tools in an environment of its own.
  const [agent, other] = await Promise.all([start(owner.api, { secretIds }), start(stranger.api)])

  const exec = async (command: string, of: TestAgent = agent): Promise<string> => {
    const { status, body } = await of.api.post(`${of.path}/console/exec`, {
      command: `${PROXIED} ${command}`,
    })
    assert.equal(status, 200, JSON.stringify(body))
    return `${body.stdout}${body.stderr}`.trim()
  }
  const placeholder = await exec('echo $KEYS_API_KEY')
  /** Calls a URL with the placeholder. @returns body and statuses, and the first request that arrived. */
  const call = async (url: string, options = '', of?: TestAgent) => {
    const before = servers.map(({ requests }) => requests.length)
    const key = of ? placeholder : '$KEYS_API_KEY'
    const curl = `curl -sS --max-time 20 -w '\\n%{http_code} %{http_connect}' -H "Authorization: Bearer ${key}"`
    const text = await exec(`${curl} ${options} '${url}'`, of)
    const got = servers.flatMap(({ requests }, i) => requests.slice(before[i]))
    return { text, got: got[0], last: got.at(-1) }
  }
  return { agent, call, context, elsewhere, exec, host, other, owner, placeholder, reader, secretIds }
}

/** An agent that is removed with its Berth. */
async function start(api: Client, more: object = {}): Promise<TestAgent> {
  const { body } = await api.post('/v0/agents', { name: 'Own', ...more }, AT_ONCE)
  return running(api, body.agent.agentId)
}

const mentions = (what: object | string) => JSON.stringify(what).includes(VALUE)
const scene = whyNot ? undefined : await open()

describe('a brokered secret', { skip: whyNot }, () => {
  const { agent, call, context, elsewhere, exec, host, other, owner, placeholder, reader, secretIds } =
    scene as NonNullable<typeof scene>

  it('a brokered secret reaches its host as value, and the agent as placeholder', async () => {
    assert.match(placeholder, /^sk-proj-[0-9a-z]{48}$/)
    assert.notEqual(placeholder, VALUE)
    const { text, got } = await call(`https://${host}/`)
    assert.equal(text, '{"welcome":true}\n200 200')
    assert.equal(got?.headers.authorization, `Bearer ${VALUE}`)
  })
  it('a brokered secret is masked in responses that repeat it', async () => {
    const { text } = await call(`https://${host}/echo`, '-i')
    assert.match(text, /^x-echo: Bearer \*{56}\r?$/m)
    assert.match(text, /"authorization":"Bearer \*{56}"/)
  })
  it('a brokered secret is masked in the token of an OAuth server', async () => {
    const { text } = await call(`https://${host}/token`)
    assert.match(text, /"access_token":"\*{56}","encoded":"\*{56}","base64":"[A-Za-z0-9+/=]+"/)
    const [, base64 = ''] = /"base64":"([^"]+)"/.exec(text) ?? []
    assert.ok(!atob(base64).includes(VALUE.slice(8)))
  })

  it('a brokered secret is in no environment or command line of its sandbox', async () => {
    assert.ok(!mentions(await exec('env; export -p')))
    const search = (what: string) =>
      `grep -alF -f <(${what}) /proc/[0-9]*/{environ,cmdline} 2>/dev/null | wc -l`
    assert.equal(await exec(search(PRINT)), '0')
    assert.notEqual(await exec(search('echo $KEYS_API_KEY')), '0')
  })
  it('a terminal has the placeholder of a brokered secret in its environment, not the value', async () => {
    const headers = { authorization: `Bearer ${owner.api.key}` }
    const terminal = new TerminalClient(context.url, `${agent.path}/console/terminal`, { headers })
    after(() => terminal.raw.terminate())
    await terminal.message('ready')
    terminal.type('env; export -p; cat /proc/[0-9]*/environ 2> /dev/null; echo e""nd\r')
    await terminal.sees('end\r\n')
    assert.ok(terminal.shown.includes(`KEYS_API_KEY=${placeholder}`))
    assert.ok(!mentions(terminal.shown))
  })
  it('a brokered secret is in no memory of its sandbox, and in no core dump', async () => {
    const scan = `node -e '${SCAN.replaceAll('\n', ' ')}'`
    assert.equal(await exec(`${scan} ${VALUE.slice(0, 20)} ${VALUE.slice(20)}`), '0')
    const [start, end] = [placeholder.slice(0, 20), placeholder.slice(20)]
    assert.notEqual(await exec(`KEEP=$KEYS_API_KEY sleep 60 & ${scan} ${start} ${end}; kill $!`), '0')
  })
  it('a brokered secret is in no file of its sandbox', async () => {
    const search = (what: string) =>
      `${what} | grep -rlF -f - / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev 2>/dev/null | head -3`
    await exec('echo $KEYS_API_KEY > /tmp/placeholder')
    assert.equal(await exec(search(PRINT)), '')
    assert.match(await exec(search('echo $KEYS_API_KEY')), /\/tmp\/placeholder/)
  })
  it('a brokered secret is in no snapshot', async () => {
    await exec('cd ~/clawd/workspace; env > environment.txt; echo to be found > notes.txt')
    const saved = await agent.api.post(`${agent.path}/snapshots/sync`, {}, { prefer: 'wait=120' })
    assert.equal(saved.status, 200, JSON.stringify(saved.body))
    const [snapshot] = (await agent.api.get(`${agent.path}/snapshots`)).body.snapshots
    const query = `arg=${snapshot.snapshotCid}&progress=false`
    const url = `${context.env.IPFS_PRIVATE_API_URL}/api/v0/dag/export?${query}`
    const blocks = Buffer.from(await (await fetch(url, { method: 'POST' })).arrayBuffer())
    assert.ok(blocks.includes('to be found'))
    assert.ok(!blocks.includes(VALUE))
  })
  it('a brokered secret is in no log, configuration or record', async () => {
    await exec('echo "$KEYS_API_KEY" >> /proc/1/fd/1')
    const { path, api } = agent
    for (const route of [
      `${path}/logs`,
      `${path}/config`,
      `${path}/secrets`,
      path,
      '/v0/secrets',
      '/v0/audit',
    ])
      assert.ok(!mentions(await api.get(route)), route)
    const [secret] = (await api.get(`${path}/secrets`)).body.secrets
    assert.deepEqual([secret.readable, secret.synced], [false, true])
  })
  it('agentd tells a program of its sandbox nothing', async () => {
    assert.match(
      await exec('curl -sS --noproxy "*" http://127.0.0.1:7700/v1/gateway -X PUT -w "%{http_code}"'),
      /401$/,
    )
    assert.match(
      await exec('curl -sS --noproxy "*" http://127.0.0.1:7700/v1/status -w "%{http_code}"'),
      /401$/,
    )
  })

  for (const [where, at] of Object.entries(elsewhere))
    it(`the placeholder stays a placeholder at another place: ${where}`, async () => {
      const { text, got } = await call(`https://${at}/echo`, '-k -H "Expect:"')
      assert.match(text, /200 200$/)
      assert.equal(got?.headers.authorization, `Bearer ${placeholder}`)
    })
  it('the placeholder stays a placeholder behind a redirect', async () => {
    const to = encodeURIComponent(`https://${elsewhere.other}/echo`)
    const { text, got, last } = await call(`https://${host}/redirect?to=${to}`, '-k -L --location-trusted')
    assert.match(text, /200 200$/)
    assert.equal(got?.headers.authorization, `Bearer ${VALUE}`)
    assert.equal(last?.headers.authorization, `Bearer ${placeholder}`)
  })
  it('the placeholder stays a placeholder in other places of a request', async () => {
    const options = `-H "X-Key: $KEYS_API_KEY" --data "key=$KEYS_API_KEY"`
    const { got } = await call(`https://${host}/echo?key=${placeholder}`, options)
    assert.equal(got?.headers.authorization, `Bearer ${VALUE}`)
    assert.deepEqual(
      [got.headers['x-key'], got.body, got.url],
      [placeholder, `key=${placeholder}`, `/echo?key=${placeholder}`],
    )
  })

  it('a request whose Host, SNI and tunnel disagree gets no value', async () => {
    const { other } = elsewhere
    const name = other.split(':')[0]
    const wrongHost = await call(`https://${host}/`, `-H "Host: ${name}"`)
    assert.match(wrongHost.text, /421 200$/)
    const wrongName = await call(`https://${name}/`, `-k --connect-to ${name}:443:${host}:443`)
    assert.equal(wrongName.got, undefined)
    const fronted = await call(`https://${host}/`, `-k --connect-to ${host}:443:${other}`)
    assert.equal(fronted.got?.headers.authorization, `Bearer ${placeholder}`)
    assert.match(
      await exec(`node -e '${WITHOUT_NAME.replaceAll('\n', ' ')}' ${host}`),
      /^(HTTP\/1\.1 421\n)?(ended|refused)$/,
    )
  })
  it('a path with an encoded separator gets no value', async () => {
    const { text, got } = await call(`https://${host}/public/..%2fadmin`, '--path-as-is')
    assert.match(text, /400 200$/)
    assert.equal(got, undefined)
  })

  it('without the proxy and its credential nothing gets the value', async () => {
    const direct = await exec(`env -u HTTPS_PROXY -u https_proxy curl -sS --max-time 5 https://${host}/`)
    assert.match(direct, /curl: \(\d+\)/)
    const proxy = new URL(await exec('echo $HTTPS_PROXY'))
    const { got } = await call(`https://${host}/`, `-k --proxy http://${proxy.host}`)
    assert.ok(!got || !mentions(got))
  })
  it('an agent gets no value by IPv6', async () => {
    const { text, got } = await call('https://[::1]/')
    assert.equal(got, undefined)
    assert.match(text, /403$/)
    assert.match(
      await exec('curl -6 -sS --noproxy "*" --max-time 5 https://[2606:4700::1111]/'),
      /curl: \(\d+\)/,
    )
  })
  it('another agent gets no value with the credential of the agent that has the secret', async () => {
    const credential = new URL(await exec('echo $HTTPS_PROXY')).password
    const proxy = new URL(await exec('echo $HTTPS_PROXY', other))
    const { text, got } = await call(
      `https://${host}/`,
      `-k --proxy http://x:${credential}@${proxy.host}`,
      other,
    )
    assert.equal(got, undefined)
    assert.match(text, /407$/)
  })

  it('git clones with a brokered password', async () => {
    const url = `https://x:$KEYS_PASSWORD@${host}/repository.git`
    assert.match(
      await exec(`rm -rf /tmp/cloned; git clone -q ${url} /tmp/cloned && cat /tmp/cloned/README.md`),
      /^cloned$/,
    )
  })
  it('a tool of the engine uses a brokered secret', async () => {
    const { status, body } = await patientHost(context.url, agent).post('/v1/chat/completions', {
      model: 'openclaw',
      messages: [{ role: 'user', content: `run: ${PROXIED} ${TOOL(host)}` }],
    })
    assert.equal(status, 200, JSON.stringify(body))
    assert.match(body.choices[0].message.content, /"welcome":true[\s\S]*refs\/heads\/main/)
  })
  it('the engine is a client of /mcp with a placeholder of its key', async () => {
    const server = {
      url: `https://${host}/mcp`,
      transport: 'streamable-http',
      requestTimeoutMs: 60_000,
      headers: { Authorization: `Bearer \${OTHER_BERTH_KEY}` },
    }
    const path = `${agent.path}/config`
    const config = JSON.parse((await agent.api.get(path)).body.config)
    const put = await agent.api.put(path, { config: { ...config, mcp: { servers: { berth: server } } } })
    assert.equal(put.status, 200, JSON.stringify(put.body))
    // The engine of the gateway calls names below localhost directly.
    assert.match(await exec('openclaw mcp probe berth --json'), /"berth__agents_list"/)
    assert.notEqual(await exec('echo $OTHER_BERTH_KEY'), reader.key)
  })
  it('a new value is used within a second, and one without hosts not at all', async () => {
    const [id] = secretIds
    assert.equal((await owner.api.put(`/v0/secrets/${id}`, { value: VALUE.replace(/.$/, 'f') })).status, 200)
    await until(
      'the new value is used',
      async () => /welcome/.test((await call(`https://${host}/`)).text),
      SOON_MS,
    )
    assert.equal((await owner.api.put(`/v0/secrets/${id}`, { value: VALUE, hosts: null })).status, 200)
    const isOver = async () =>
      (await call(`https://${host}/`)).got?.headers.authorization === `Bearer ${placeholder}`
    await until('the value is no longer inserted', isOver, SOON_MS)
  })
})

const TOOL = (host: string) =>
  `curl -sS -H "Authorization: Bearer $KEYS_API_KEY" https://${host}/ && ` +
  `git ls-remote https://x:$KEYS_PASSWORD@${host}/repository.git`

/** Counts the processes, except itself, whose memory contains its two arguments one after the other. */
const SCAN = `const fs = require("fs");
let found = 0;
for (const pid of fs.readdirSync("/proc").filter((it) => +it && +it !== process.pid)) {
  try {
    const memory = fs.openSync("/proc/" + pid + "/mem");
    const has = fs.readFileSync("/proc/" + pid + "/maps", "utf8").split("\\n").some((line) => {
      const [from, to] = line.split(" ")[0].split("-").map((it) => parseInt(it, 16));
      if (!/^\\S+ rw/.test(line) || to - from > 2 ** 28) return false;
      const bytes = Buffer.alloc(to - from);
      try { fs.readSync(memory, bytes, 0, to - from, from) } catch { return false }
      return bytes.includes(process.argv[1] + process.argv[2]);
    });
    if (has) found++;
  } catch {}
}
console.log(found)`

/** A request over TLS without a name. */
const WITHOUT_NAME = `const { request } = require("http");
const proxy = new URL(process.env.HTTPS_PROXY);
const host = process.argv[1];
const basic = "Basic " + btoa(proxy.username + ":" + proxy.password);
request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: host + ":443",
  headers: { "proxy-authorization": basic } }).on("connect", (res, socket) => {
  const tls = require("tls").connect({ socket, rejectUnauthorized: false }, () =>
    tls.write("GET / HTTP/1.1\\r\\nHost: " + host + "\\r\\nConnection: close\\r\\n\\r\\n"));
  tls.on("error", () => console.log("refused")).on("data", (it) => console.log(String(it).slice(0, 12)))
    .on("end", () => console.log("ended"));
}).end()`
