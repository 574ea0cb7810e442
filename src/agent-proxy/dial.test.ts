/** A public address of this machine needs a network of its own: a namespace that only this test sees. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const ADDRESS = '44.1.1.1'
const inNamespace = (command: string, ...args: string[]) =>
  spawnSync(
    'unshare',
    ['-rn', 'sh', '-c', `ip link set lo up && ip addr add ${ADDRESS}/32 dev lo && ${command}`, 'sh', ...args],
    { encoding: 'utf8', timeout: 120_000 },
  )

/** Prints the status that refuses each host, or `open`. */
const DIAL = `
  import { createServer } from 'node:net'
  import { dial, resolveBySystem } from '${import.meta.resolve('./dial.ts')}'
  const server = createServer((socket) => socket.on('error', () => {})).listen(0, '${ADDRESS}', async () => {
    const { port } = server.address()
    const found = {}
    for (const host of JSON.parse(process.argv[1])) {
      const resolve = host === 'name' ? async () => [{ address: '::ffff:${ADDRESS}', family: 6 }] : resolveBySystem
      const socket = await dial({ host, port }, { isAllowed: false, connectMs: 30_000, resolve }).catch((error) => error)
      found[host] = socket.status ?? 'open'
    }
    console.log(JSON.stringify(found))
    process.exit()
  })`

const skip = inNamespace('true').status === 0 ? false : 'no network namespaces here'

test('a public address of this machine is refused in every spelling', { skip }, () => {
  const hosts = [ADDRESS, '::ffff:2c01:101', '::ffff:44.1.1.1', '64:ff9b::2c01:101', 'name']
  const { stdout, stderr } = inNamespace(
    '"$1" --input-type=module -e "$2" "$3"',
    process.execPath,
    DIAL,
    JSON.stringify(hosts),
  )
  assert.deepEqual(JSON.parse(stdout || '{}'), Object.fromEntries(hosts.map((host) => [host, 403])), stderr)
})
