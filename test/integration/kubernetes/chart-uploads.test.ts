/**
 * A Berth in a cluster without volumes and without Kubo: its blocks and unfinished uploads are in S3, and two `web`
 * pods serve the same upload.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { begin, bytesOf, head, patch, TUS } from '../../contract/tus-client.ts'
import {
  loadBerthImages,
  makeSecret,
  type Outside,
  startOutside,
  valuesFor,
} from '../../support/cluster-berth.ts'
import { CHART, helmWith, withoutHelm } from '../../support/helm.ts'
import { kubectl, read, whyNotKubernetes } from '../../support/kubernetes.ts'
import { kuboBinary } from '../../support/kubo.ts'
import { until } from '../../support/processes.ts'
import { type S3Server, startS3, withoutS3 } from '../../support/s3.ts'

const skip = whyNotKubernetes || withoutHelm || withoutS3 || (kuboBinary ? false : 'needs BERTH_TEST_KUBO')
const NAMESPACE = 'berth-uploads'
const IN = ['--namespace', NAMESPACE]
const WEB = '--selector=app.kubernetes.io/component=web'
const MIB = 2 ** 20

describe('a Berth in a cluster without volumes', { skip }, () => {
  let outside: Outside
  let s3: S3Server
  let key: string

  before(async () => {
    await loadBerthImages({ engines: false })
    ;[outside, s3] = await Promise.all([startOutside(), startS3()])
    await s3.createBucket('berth')
    const { IPFS_API_URL: _, IPFS_PRIVATE_API_URL: __, ...secrets } = outside.inPods
    await makeSecret(NAMESPACE, secrets)
    const bucket = {
      ...s3.env,
      AWS_ENDPOINT_URL_S3: await outside.expose(s3.env.AWS_ENDPOINT_URL_S3 as string),
    }
    const literals = Object.entries(bucket).map(([name, value]) => `--from-literal=${name}=${value}`)
    await kubectl(...IN, 'create', 'secret', 'generic', 'bucket', ...literals)
    const values = valuesFor(outside, { namespace: NAMESPACE, publicUrl: 'http://localhost:3000' })
    const all = {
      ...values,
      agents: { enabled: false },
      web: { ...(values.web as object), replicas: 2 },
      s3: { environmentSecret: 'bucket' },
      settings: { BERTH_BLOCKS_S3_URL: 's3://berth/blocks', BERTH_S3_PATH_STYLE: 'true' },
    }
    await helmWith(all, 'install', 'berth', CHART, ...IN, '--wait', '--timeout', '4m')
    const command = ['exec', 'deployment/berth-web', '--', 'node', 'bin/berth.mjs']
    await kubectl(...IN, ...command, 'workspaces', 'create', 'default', '--plan', 'unlimited')
    key = (await kubectl(...IN, ...command, 'keys', 'create')).trim()
  })
  after(async () => {
    await kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false')
    await outside?.stop()
    await s3?.stop()
  })

  /** The `web` pods that are ready, with the addresses that this machine reaches. */
  const pods = async () => {
    const { items } = JSON.parse(await kubectl(...IN, 'get', 'pods', WEB, '--output=json'))
    return items
      .filter((pod: any) => pod.status.containerStatuses?.[0]?.ready && !pod.metadata.deletionTimestamp)
      .map((pod: any) => ({ name: pod.metadata.name, url: `http://${pod.status.podIP}:3000` })) as {
      name: string
      url: string
    }[]
  }
  const at = (url: string, location: string) => `${url}${new URL(location).pathname}`

  it('no pod has a volume that lasts', async () => {
    const claims = await kubectl(...IN, 'get', 'persistentvolumeclaims', '--output=name')
    assert.equal(claims.trim(), '')
    const volumes = await read(NAMESPACE, 'deployment/berth-web', '.spec.template.spec.volumes[*].emptyDir')
    assert.equal(volumes, '{} {}')
  })

  it('an upload resumes at another web pod after its own was killed', async () => {
    const [first, second] = await pods()
    assert.ok(first && second)
    const bytes = bytesOf('two pods', 10 * MIB)
    const { location, id } = await begin({ url: first.url, key }, bytes.length, { filename: 'two pods' })
    const send = async (url: string, from: number, to: number) => {
      const answer = await patch(at(url, location), from, bytes.subarray(from, to), TUS)
      assert.equal(answer.status, 204, await answer.text())
      return answer
    }
    await send(first.url, 0, 3 * MIB)
    await send(second.url, 3 * MIB, 4 * MIB)
    await kubectl(...IN, 'delete', 'pod', first.name, '--grace-period=0', '--force')
    const { headers } = await head(at(second.url, location))
    assert.equal(headers.get('upload-offset'), `${4 * MIB}`)
    const third = await until('the pod is replaced', async () =>
      (await pods()).find(({ name }) => name !== first.name && name !== second.name),
    )
    // A pod is ready before its node has looked at the bucket, so that it can accept pins.
    await until('its IPFS node is up', async () => {
      const { parts } = (await (await fetch(`${third.url}/readyz`)).json()) as any
      return parts.ipfs_private?.status === 'ok'
    })
    const last = await send(third.url, 4 * MIB, bytes.length)
    const cid = last.headers.get('upload-cid')
    const file = await fetch(`${second.url}/v3/files/private/${id}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    assert.equal(((await file.json()) as any).data.cid, cid)
  })
})
