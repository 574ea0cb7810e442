/** The uploads of this browser tab, active and ended. They continue while the user visits other dashboard pages. */
import { useSyncExternalStore } from 'react'
import type { Upload } from 'tus-js-client'
import { texts } from '../../../texts.ts'
import type { Network } from '../files.ts'
import type { Chosen } from './dropped.ts'
import type { PackAnswer, PackRequest } from './pack.worker.ts'

/** The most uploads that are sent at the same time. */
const AT_ONCE = 3
/** How long an upload that cannot reach Berth waits before it retries, unless the browser is online before. */
const OFFLINE_MS = 5000

export interface Target {
  network: Network
  groupId: string | undefined
  workspaceId: string
}

/**
 * - `waiting`: queued
 * - `packing`: computing the CID
 * - `sending`, `paused`
 * - `offline`: cannot reach Berth, and resumes once it can
 * - `done`, `failed`
 */
type State = 'waiting' | 'packing' | 'sending' | 'paused' | 'offline' | 'done' | 'failed'

export interface UploadView extends Target {
  key: number
  name: string
  isFolder: boolean
  files: number
  /** The size of the content. */
  bytes: number
  state: State
  /** The progress of this step, from 0 to 1. */
  share: number
  cid: string | undefined
  fileId: string | undefined
  error: Error | undefined
}

interface Job {
  view: UploadView
  chosen: Chosen
  body?: Blob
  upload?: Upload
  stop?: () => void
}

let jobs: Job[] = []
let views: UploadView[] = []
let keys = 0
const listeners = new Set<() => void>()
const active = new Set<State>(['waiting', 'packing', 'sending', 'offline', 'paused'])

/** The uploads, in the order chosen. */
export const useUploads = (): UploadView[] =>
  useSyncExternalStore(
    (changed) => {
      listeners.add(changed)
      return () => listeners.delete(changed)
    },
    () => views,
  )

export const isActive = ({ state }: UploadView): boolean => active.has(state)

/** Adds uploads, and starts them. */
export function add(chosen: Chosen[], target: Target): void {
  for (const one of chosen) {
    const bytes = one.files.reduce((sum, { file }) => sum + file.size, 0)
    const { name, isFolder, files } = one
    const state = { state: 'waiting' as const, share: 0, cid: undefined, fileId: undefined, error: undefined }
    const view = { ...target, ...state, key: keys++, name, isFolder, files: files.length, bytes }
    jobs.push({ view, chosen: one })
  }
  show()
  next()
}

export function pause(key: number): void {
  const job = jobOf(key)
  if (!job || !isActive(job.view)) return
  halt(job)
  change(job, { state: 'paused' })
  next()
}

/** Resumes a paused upload, or retries a failed one. */
export function resume(key: number): void {
  const job = jobOf(key)
  if (!job) return
  change(job, { state: 'waiting', error: undefined })
  next()
}

/** Cancels an upload, or removes an ended one from the list. */
export function dismiss(key: number): void {
  const job = jobOf(key)
  if (!job) return
  halt(job)
  // Berth drops the bytes that have arrived. If this request fails, they expire.
  if (job.view.state !== 'done') void job.upload?.abort(true).catch(() => {})
  jobs = jobs.filter((one) => one !== job)
  show()
  next()
}

function halt(job: Job): void {
  job.stop?.()
  void job.upload?.abort().catch(() => {})
}

const jobOf = (key: number) => jobs.find(({ view }) => view.key === key)

function change(job: Job, changes: Partial<UploadView>): void {
  Object.assign(job, { view: { ...job.view, ...changes } })
  show()
}

function show(): void {
  views = jobs.map(({ view }) => view)
  for (const listener of listeners) listener()
}

const countOf = (state: State) => jobs.filter(({ view }) => view.state === state).length

/** Starts waiting uploads: one is packed at a time, several are sent. */
function next(): void {
  const waiting = jobs.filter(({ view }) => view.state === 'waiting')
  const packed = waiting.find(({ body }) => body)
  const unpacked = waiting.find(({ body }) => !body)
  if (packed && countOf('sending') < AT_ONCE) begin(packed, 'sending', send)
  else if (unpacked && countOf('packing') === 0) begin(unpacked, 'packing', pack)
}

function begin(job: Job, state: State, work: (job: Job) => Promise<void>): void {
  change(job, { state })
  work(job)
    .catch((error) => change(job, { state: 'failed', error }))
    .finally(next)
  next()
}

async function pack(job: Job): Promise<void> {
  // Browsers offer the hashes that packing needs only on secure pages.
  if (!globalThis.isSecureContext) throw new Error(texts.files.upload.insecure)
  const { files, isFolder } = job.chosen
  const worker = new Worker(new URL('./pack.worker.ts', import.meta.url), { type: 'module' })
  const answer = await new Promise<PackAnswer | undefined>((resolve, reject) => {
    job.stop = () => resolve(undefined)
    worker.onerror = ({ message }) => reject(new Error(message || texts.failed))
    worker.onmessage = ({ data }: MessageEvent<PackAnswer>) => {
      if (data.state === 'working') change(job, { share: data.bytes / Math.max(job.view.bytes, 1) })
      else resolve(data)
    }
    worker.postMessage({ files, isFolder } satisfies PackRequest)
  }).finally(() => worker.terminate())
  if (!answer) return
  if (answer.state !== 'done') throw new Error(answer.state === 'failed' ? answer.reason : texts.failed)
  job.body = answer.body
  change(job, { state: 'waiting', share: 0, cid: answer.cid })
}

async function send(job: Job): Promise<void> {
  const { body, view } = job
  if (!body || !view.cid) return
  const type = view.isFolder ? '' : (job.chosen.files[0]?.file.type ?? '')
  await new Promise<void>((resolve) => {
    job.stop = resolve
    const told = {
      onSent: (bytes: number) => change(job, { share: bytes / Math.max(body.size, 1) }),
      onDone(fileId: string) {
        change(job, { state: 'done', share: 1, fileId })
        resolve()
      },
      onFailed(error: Error, isOffline: boolean) {
        if (job.view.state === 'sending')
          change(job, isOffline ? { state: 'offline' } : { state: 'failed', error })
        if (isOffline) setTimeout(goOn, OFFLINE_MS)
        resolve()
      },
    }
    const sending = { ...view, cid: view.cid ?? '', type, body }
    // Loaded by the first upload: every page imports this module.
    const upload = import('./send.ts').then(({ prepare }) => prepare(sending, told))
    upload.then(
      (upload) => {
        job.upload = upload
        if (job.view.state === 'sending') upload.start()
      },
      (error) => told.onFailed(error, false),
    )
  })
}

function goOn(): void {
  for (const job of jobs) if (job.view.state === 'offline') change(job, { state: 'waiting' })
  next()
}

addEventListener('online', goOn)
addEventListener('beforeunload', (event) => {
  if (views.some(isActive)) event.preventDefault()
})
