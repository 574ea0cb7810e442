/** The engine's needs on a machine where root runs agents as processes, each tested in a mount namespace. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { isRoot } from '../../../src/lib/process/system-user.ts'
import { newAgent, VERSIONS } from './subject.ts'

const execute = promisify(execFile)
const PROGRAM = join(import.meta.dirname, 'needs.program.ts')
const MAIN = join(import.meta.dirname, '../../../bin/berth.mjs')
const ROOT = join(import.meta.dirname, '../../..')
/**
 * Only root can write to the machine's /tmp. If the checkout is below /tmp, it is mounted again from `$BELOW`, outside.
 */
const CLOSED = `
mkdir -p "$BELOW"; mount --bind ${ROOT} "$BELOW"
mount -t tmpfs -o mode=755 tmpfs /tmp
mkdir /tmp/of-the-machine
mkdir -p ${ROOT}; [ -e ${ROOT}/package.json ] || mount --bind "$BELOW" ${ROOT};`
/** Root without the right to mount, as in most containers. */
const POWERLESS = 'setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin'

describe('the needs of the engine', { skip: isRoot() ? false : 'needs root' }, () => {
  let dir: string
  let dataDir: string
  let enginesDir: string
  before(async () => {
    dir = await mkdtemp('/var/tmp/berth-needs-')
    await chmod(dir, 0o711)
    dataDir = join(dir, 'data')
    enginesDir = join(dir, 'engines')
    await mkdir(join(enginesDir, VERSIONS[0], 'node_modules/openclaw'), { recursive: true })
  })
  after(() => rm(dir, { recursive: true, force: true }))

  /** Runs a program in a new mount namespace. */
  const inNamespace = (script: string, program: string[], env: NodeJS.ProcessEnv = {}) =>
    execute(
      'unshare',
      ['--mount', 'sh', '-c', `set -e; ${script} "$@"`, 'sh', process.execPath, ...program],
      {
        env: { PATH: process.env.PATH, BELOW: join(dir, 'checkout'), ...env },
      },
    )
  const tryIn = async (script: string, command = 'touch /tmp/own; ls /tmp; stat -c %a /tmp') => {
    const options = { dataDir, enginesDir, agentdDir: join(import.meta.dirname, 'agentd') }
    const given = JSON.stringify({ options, agentId: newAgent(), command })
    return JSON.parse((await inNamespace(script, [PROGRAM, given])).stdout)
  }

  it('agents of root get a private /tmp if the machine’s is unwritable [report: engine needs]', async () => {
    const { health, said } = await tryIn(`${CLOSED} exec`)
    assert.equal(health.status, 'ok', JSON.stringify(health))
    assert.match(said, /\bown\n.*1777$/s)
    assert.doesNotMatch(said, /of-the-machine/)
  })

  it('agents get a private /tmp even if Berth is below the machine’s /tmp [report: engine needs]', async () => {
    const script = `${CLOSED} mkdir -p ${dir}; mkdir /tmp/berth; mount --bind ${dir} /tmp/berth; exec`
    const options = {
      dataDir: '/tmp/berth/below',
      enginesDir: '/tmp/berth/engines',
      agentdDir: join(import.meta.dirname, 'agentd'),
    }
    const command = 'cd; pwd; touch kept; ls /tmp/berth; touch /tmp/own && ls -d /tmp/own /tmp/of-the-machine'
    const given = JSON.stringify({ options, agentId: newAgent(), command })
    const { health, said } = JSON.parse((await inNamespace(script, [PROGRAM, given])).stdout)
    assert.equal(health.status, 'ok', JSON.stringify(health))
    assert.match(said, /^\/tmp\/berth\/below\/agents\/x\w+\/home\nbelow\nengines\n/)
    assert.match(said, /\n\/tmp\/own(\n|$)/)
  })

  it('an unwritable /tmp is reported with a remedy before an agent starts [report: engine needs]', async () => {
    const { health, said } = await tryIn(`${CLOSED} exec ${POWERLESS}`)
    const found =
      /The engine cannot run here: Agents cannot write to \/tmp \(EACCES\): run `chmod 1777 \/tmp`/
    assert.equal(health.status, 'down')
    assert.match(health.cause, found)
    assert.match(said, /^unmet_need: /)
    assert.match(said, found)
  })

  it('`berth doctor` reports a /tmp that agents cannot write to [report: engine needs]', async () => {
    const env = { BERTH_DATA_DIR: dataDir, BERTH_RUNTIME: 'process', BERTH_ENGINES_DIR: enginesDir }
    const refused = await inNamespace(`${CLOSED} exec ${POWERLESS}`, [MAIN, 'doctor'], env).catch(
      (error) => error,
    )
    assert.match(refused.stdout, /✘.*Agents.*Agents cannot write to \/tmp/)
    const given = await inNamespace(`${CLOSED} exec`, [MAIN, 'doctor'], env).catch((error) => error)
    assert.match(given.stdout, /✔.*Agents.*processes of this machine/)
  })

  it('agents that share an open /tmp start without the right to mount [report: engine needs]', async () => {
    const { health, said } = await tryIn(
      `${CLOSED} chmod 1777 /tmp; exec ${POWERLESS}`,
      'touch /tmp/own; ls /tmp',
    )
    assert.equal(health.status, 'ok', JSON.stringify(health))
    assert.match(said, /of-the-machine\nown\b/)
  })
})
