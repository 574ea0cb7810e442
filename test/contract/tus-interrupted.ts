/** Resumable uploads that break off or collide, over real sockets and two web processes: nothing of them remains. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, describe, it } from 'node:test'
import { until } from '../support/processes.ts'
import type { Context } from './context.ts'
import { begin, bytesOf, head, patch, sendPart, TUS } from './tus-client.ts'
import { startWebProcess } from './web-process.ts'

const MIB = 2 ** 20

/** Where web processes keep the bytes of unfinished uploads. */
export interface PlaceOfUploads {
  /** Settings with which web processes use it. */
  settings: NodeJS.ProcessEnv
  /** The uploads that have bytes there. */
  ids(): Promise<string[]>
  read(id: string): Promise<Buffer>
  /** A piece that is large enough for some of its bytes to be stored before the request ends. */
  pieceBytes: number
}

/** The URL of the same upload at another process. */
export const at = (url: string, location: string) => `${url}${new URL(location).pathname}`

/** Tests of a place. Resolves to what further tests of the file need. */
export async function interruptedUploads(context: Context, place: PlaceOfUploads) {
  const { settings, pieceBytes } = place
  const webs = await Promise.all([
    startWebProcess(context.env, settings),
    startWebProcess(context.env, settings),
  ])
  after(() => Promise.all(webs.map(({ running }) => running.end())))
  const [first, second] = webs.map(({ url }) => url) as [string, string]
  const { api, id: workspaceId } = await context.workspace()
  const caller = { url: first, key: api.key }

  const rows = async () =>
    await context.sql('SELECT id, lease_until FROM upload WHERE workspace_id = $1 AND cid IS NULL', [
      workspaceId,
    ])
  /** Uploads that a request holds. */
  const held = async () => (await rows()).filter(({ lease_until }) => lease_until !== null)
  const hasArrived = (id: string) => async () => (await place.read(id)).length > 0
  const nothingIsLeft = () =>
    until('no row and no bytes are left', async () => !(await rows()).length && !(await place.ids()).length)

  /** Creates an upload with its bytes, but sends only part of them. The returned function disconnects. */
  function createPart(length: number, part: Uint8Array, url = first): () => void {
    const sending = request(`${url}/v3/files`, {
      method: 'POST',
      headers: {
        ...TUS,
        authorization: `Bearer ${api.key}`,
        'content-type': 'application/offset+octet-stream',
        'content-length': length,
        'upload-length': length,
      },
    })
    sending.on('error', () => {})
    sending.write(part)
    return () => sending.destroy()
  }

  describe('interrupted uploads', () => {
    it('an upload interrupted during its creation is removed at once, without delaying the next', async () => {
      const hangUp = createPart(2 * MIB, bytesOf('creation', MIB))
      await until('it is being received', async () => (await held()).length > 0)
      hangUp()
      const next = bytesOf('next', 1000)
      const { location } = await begin(caller, next.length)
      assert.equal((await patch(location, 0, next, TUS)).status, 204)
      await nothingIsLeft()
    })

    it('an upload interrupted during a piece releases its lock, and resumes at the other process', async () => {
      const bytes = bytesOf('piece', 2 * pieceBytes)
      const { location, id } = await begin(caller, bytes.length)
      const sending = sendPart(location, 0, bytes.subarray(0, pieceBytes), bytes.length)
      await until('some bytes have arrived', hasArrived(id))
      sending.hangUp()
      await until('its lock is released', async () => !(await held()).length)
      const offset = Number((await head(at(second, location))).headers.get('upload-offset'))
      assert.equal((await patch(at(second, location), offset, bytes.subarray(offset), TUS)).status, 204)
      await nothingIsLeft()
    })
  })

  describe('two requests for the same piece', () => {
    for (const [who, headers] of Object.entries({ 'tus clients': TUS, 'clients without a tus header': {} })) {
      it(`concurrent pieces by ${who} at two processes: the accepted one determines the bytes`, async () => {
        for (let round = 0; round < 10; round++) {
          const rivals = ['a', 'b'].map((name) => bytesOf(`${who} ${round} ${name}`, 64 * 1024))
          const { location, id } = await begin(caller, 128 * 1024)
          const answers = await Promise.all(
            rivals.map((bytes, i) => patch(at(i ? second : first, location), 0, bytes, headers)),
          )
          const statuses = answers.map(({ status }) => status)
          assert.ok(
            statuses.includes(204) && statuses.every((status) => [204, 409, 423].includes(status)),
            `${statuses}`,
          )
          // A client without the header may repeat an accepted piece: then the bytes of the later request are stored.
          if (headers === TUS)
            assert.equal(statuses.filter((status) => status === 204).length, 1, `${statuses}`)
          const there = await place.read(id)
          assert.ok(
            rivals.some((bytes, i) => statuses[i] === 204 && there.equals(bytes)),
            'the bytes of one of them',
          )
          await fetch(location, { method: 'DELETE', headers: TUS })
        }
        await nothingIsLeft()
      })
    }
  })

  describe('killed web processes', () => {
    it('after a web process is killed during a piece, the upload resumes at another one', async () => {
      const third = await startWebProcess(context.env, settings)
      const bytes = bytesOf('killed', 2 * pieceBytes)
      const { location, id } = await begin({ url: third.url, key: api.key }, bytes.length)
      const sending = sendPart(location, 0, bytes.subarray(0, pieceBytes), bytes.length)
      await until('some bytes have arrived', hasArrived(id))
      await third.running.end('SIGKILL')
      await sending.answered
      const asked = await head(at(first, location))
      const offset = Number(asked.headers.get('upload-offset'))
      assert.equal(asked.status, 200)
      assert.ok(offset > 0 && offset <= pieceBytes, `${offset}`)
      const last = await patch(at(first, location), offset, bytes.subarray(offset), TUS)
      assert.equal(last.status, 204)
      await nothingIsLeft()
    })

    it('a killed web process leaves nothing once its interrupted uploads have expired', async () => {
      const own = { ...settings, BERTH_INTERVALS: 'reconcile=1' }
      const [survivor, killed] = await Promise.all([
        startWebProcess(context.env, own),
        startWebProcess(context.env, own),
      ])
      try {
        const hangUps = Array.from({ length: 20 }, (_, i) =>
          createPart(2 * MIB, bytesOf(`c ${i}`, MIB), killed.url),
        )
        const pieces = await Promise.all(
          Array.from({ length: 20 }, async (_, i) => {
            const { location } = await begin({ url: (i % 2 ? survivor : killed).url, key: api.key }, 2 * MIB)
            return sendPart(location, 0, bytesOf(`p ${i}`, MIB), 2 * MIB)
          }),
        )
        await until('all are being received', async () => (await held()).length === 40)
        for (const hangUp of hangUps.slice(10)) hangUp()
        for (const { hangUp } of pieces.slice(10)) hangUp()
        await killed.running.end('SIGKILL')
        for (const hangUp of hangUps) hangUp()
        for (const { hangUp } of pieces) hangUp()
        await context.sql('UPDATE upload SET expires_at = now() WHERE workspace_id = $1', [workspaceId])
        // Leases of the killed process expire first.
        await nothingIsLeft()
      } finally {
        await Promise.all([survivor, killed].map(({ running }) => running.end()))
      }
    })
  })

  return { caller, rows, nothingIsLeft, first, second }
}
