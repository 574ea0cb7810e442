/**
 * Readers of a stream of events in a separate thread. Posts `open` when all streams have begun, and for each message
 * the times that events took since the last one: from the `"at":<ms>` in each event until its arrival here.
 */
import { request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

export interface EventReaders {
  url: string
  /** The headers of the readers, in turn. */
  headers: Record<string, string>[]
  count: number
}

const { url, headers, count } = workerData as EventReaders
const MARK = '"at":'
let latencies: number[] = []

const open = (n: number) =>
  new Promise<void>((resolve, reject) => {
    const options = { headers: headers[n % headers.length] ?? {}, agent: false }
    const sent = request(url, options, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`${url}: ${response.statusCode}`))
      response.setEncoding('latin1')
      response.on('error', () => {})
      response.once('data', () => resolve())
      response.on('data', (text: string) => {
        const now = performance.timeOrigin + performance.now()
        for (let at = text.indexOf(MARK); at !== -1; at = text.indexOf(MARK, at + 1))
          latencies.push(now - Number.parseFloat(text.slice(at + MARK.length, at + MARK.length + 20)))
      })
    })
    sent.on('error', reject)
    sent.end()
  })

await Promise.all(Array.from({ length: count }, (_, n) => open(n)))
parentPort?.on('message', () => {
  parentPort?.postMessage(latencies)
  latencies = []
})
parentPort?.postMessage('open')
