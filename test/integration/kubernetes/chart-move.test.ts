/** Moves a Berth with an agent into a cluster, with the commands of docs/kubernetes.md. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runCommands } from '../../../scripts/ci/docs-commands.ts'
import { startShared } from '../../contract/context.ts'
import { Client } from '../../support/client.ts'
import { loadBerthImages, makeSecret, startOutside, valuesFor } from '../../support/cluster-berth.ts'
import { ensureEngines } from '../../support/engines.ts'
import { helm, withoutHelm } from '../../support/helm.ts'
import { KUBECONFIG, kubectl, read, whyNotKubernetes } from '../../support/kubernetes.ts'
import { kuboBinary } from '../../support/kubo.ts'
import { startModel } from '../../support/model.ts'
import { DocumentCheck } from '../../support/openapi.ts'
import { freePort } from '../../support/processes.ts'
import { startS3, withoutS3 } from '../../support/s3.ts'
import { ServiceClient } from '../../support/service-client.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const NAMESPACE = 'berth'
const skip = whyNotKubernetes || withoutHelm || withoutS3 || (kuboBinary ? false : 'needs BERTH_TEST_KUBO')
const CID = 'bafkqaekimvwgy3zamzzg63jaijsxe5dibi'
const BACKUPS = 's3://moves/berth'

test('an agent that ran elsewhere continues as a pod, with its home, token and content', {
  skip,
}, async (t) => {
  await loadBerthImages({ engines: true })
  await ensureEngines()
  const s3 = await startS3()
  t.after(() => s3.stop())
  await s3.createBucket('moves')
  const bucket = { ...s3.env, BERTH_S3_PATH_STYLE: 'true' }
  const { agent, key, keys } = await fillAndBackUp(bucket)

  const outside = await startOutside()
  t.after(() => outside.stop())
  const model = await startModel()
  t.after(() => model.stop())
  t.after(() => kubectl('delete', 'namespace', NAMESPACE, `${NAMESPACE}-agents`, '--ignore-not-found'))
  await makeSecret(NAMESPACE, { ...outside.inPods, ...keys, BERTH_MODEL_KEY: model.env.BERTH_MODEL_KEY })
  const there = { ...bucket, AWS_ENDPOINT_URL_S3: await outside.expose(s3.env.AWS_ENDPOINT_URL_S3 ?? '') }
  const literals = Object.entries(there).map(([name, value]) => `--from-literal=${name}=${value}`)
  await kubectl('--namespace', NAMESPACE, 'create', 'secret', 'generic', 'bucket', ...literals)
  const port = await freePort()
  const dir = await mkdtemp(join(tmpdir(), 'berth-move-'))
  t.after(() => rm(dir, { recursive: true }))
  await symlink(join(ROOT, 'deploy'), join(dir, 'deploy'))
  const values = {
    ...valuesFor(outside, { namespace: NAMESPACE, publicUrl: `http://localhost:${port}` }),
    settings: {
      BERTH_MODEL: model.env.BERTH_MODEL,
      BERTH_MODEL_URL: await outside.expose(model.url),
      BERTH_KUBERNETES_REQUEST_PERCENT: '1',
    },
  }
  // JSON is YAML.
  await writeFile(join(dir, 'values.yaml'), JSON.stringify(values))
  const { code, output } = await runCommands(join(ROOT, 'docs/kubernetes.md'), 'moving', {
    cwd: dir,
    quiet: true,
    env: {
      PATH: [dirname(process.env.BERTH_TEST_HELM ?? ''), process.env.PATH].join(delimiter),
      HOME: dir,
      KUBECONFIG,
      BACKUPS,
    },
  })
  assert.equal(code, 0, output)

  const address = await read(NAMESPACE, 'service/berth-web', '.spec.clusterIP')
  const client = new ServiceClient(address, port, key)
  await client.running(agent)
  const home = await client.ofAgent(agent, '/console/exec', { command: 'cat workspace/note.txt; id -u' })
  assert.match(JSON.stringify(home), /moved.*1000/)
  assert.match(await client.chat(agent, 'there'), /pong: .*there/)
  const { body } = await client.call('/v3/files/public')
  assert.equal(body.data.files[0].cid, CID)
  await client.call(`/v0/agents/${agent.agentId}`, { method: 'DELETE', headers: { prefer: 'wait=120' } })
  await helm('uninstall', 'berth', '--namespace', NAMESPACE, '--wait')
})

/** A Berth on this machine with an agent and a pin, until it is backed up. */
async function fillAndBackUp(bucket: Record<string, string>) {
  const source = await startShared(bucket)
  try {
    const key = await source.createKey()
    const api = new Client(source.url, await DocumentCheck.load(source.url), key)
    await api.pin({ cid: CID }, { wait: 60 })
    const wait = { prefer: 'wait=180' }
    const made = await api.post('/v0/agents', { name: 'Moves' }, wait)
    const { agent } = made.body
    assert.equal(agent.status, 'running', JSON.stringify(made.body))
    const command = 'echo moved > workspace/note.txt'
    await api.post(`/v0/agents/${agent.agentId}/console/exec`, { command })
    await source.berth('backup', BACKUPS)
    const keyOf = async (name: string) => (await readFile(join(source.dataDir, name), 'utf8')).trim()
    return { agent, key, keys: { JWT_KEY: await keyOf('jwt.key'), SECRETS_KEY: await keyOf('secrets.key') } }
  } finally {
    await source.stop()
  }
}
