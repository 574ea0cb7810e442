/**
 * Clients that read paths of a gateway over and over, in a separate thread, because their work must not be measured.
 * Posts the status of each response.
 */
import { request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

export interface Readers {
  url: string
  host: string
  paths: string[]
  count: number
}

const { url, host, paths, count } = workerData as Readers

const read = (path: string) =>
  new Promise<void>((resolve) => {
    const sent = request(`${url}${path}`, { headers: { host }, agent: false }, (response) => {
      parentPort?.postMessage(response.statusCode)
      response.resume()
      response.on('error', () => {})
      response.on('close', resolve)
    })
    sent.on('error', () => resolve()) // the server may cut what it began
    sent.end()
  })

for (let i = 0; i < count; i++) void endlessly(i)

async function endlessly(i: number): Promise<void> {
  for (let n = i; ; n++) await read(paths[n % paths.length] as string)
}
