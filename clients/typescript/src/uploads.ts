/** Uploads: a form for small files and folders, and pieces that survive a lost connection (tus 1.0.0) for large files. */
import type { Berth } from './client.ts'
import { errorOf, RequestError, unwrap } from './errors.ts'
import { pause } from './retries.ts'
import type { paths } from './schema.ts'

export type UploadedFile = paths['/v3/files']['post']['responses'][200]['content']['application/json']['data']
/** The part of the record that a resumable upload also returns, whose key may not be allowed to read. */
type Stored = Pick<UploadedFile, 'id' | 'cid' | 'name' | 'size' | 'network'>

/** Larger files are resumable uploads. */
const FORM_BYTES = 16 * 1024 * 1024
const PIECE_BYTES = 8 * 1024 * 1024
const TUS = { 'tus-resumable': '1.0.0' }
/** Another request works on the upload, or Berth is busy. Other 5xx mean that a piece was not written. */
const RETRIED = new Set([409, 423, 429, 500, 502, 503, 504])
const TRIES = 6

export interface UploadOptions {
  name?: string | undefined
  /** Private files are on no network. Default: private. */
  network?: 'public' | 'private' | undefined
  groupId?: string | undefined
  /** At most ten pairs that describe the file. */
  keyvalues?: Record<string, string> | undefined
  /** Receives how many bytes Berth has. */
  onProgress?: ((sent: number, total: number) => void) | undefined
  signal?: AbortSignal | undefined
}

/** Uploads a file or a `Blob`. Above 16 MiB, a lost connection does not start over. */
export async function upload(berth: Berth, content: Blob, options: UploadOptions = {}): Promise<Stored> {
  if (content.size > FORM_BYTES) return uploadInPieces(berth, content, options)
  options.onProgress?.(0, content.size)
  const file = await sendForm(berth, [[options.name ?? nameOf(content), content]], options)
  options.onProgress?.(content.size, content.size)
  return file
}

/**
 * Uploads files as one folder.
 * @param files their paths within the folder, with `/` between names.
 */
export function uploadFolder(
  berth: Berth,
  name: string,
  files: Iterable<[path: string, content: Blob]>,
  options: Omit<UploadOptions, 'name' | 'onProgress'> = {},
): Promise<UploadedFile> {
  const parts = Array.from(files, ([path, content]): [string, Blob] => [`${name}/${path}`, content])
  return sendForm(berth, parts, options)
}

async function sendForm(
  berth: Berth,
  files: [string, Blob][],
  { name, network = 'private', groupId, keyvalues, signal }: UploadOptions,
): Promise<UploadedFile> {
  const form = new FormData()
  // Before the files, so that their bytes go straight into the store.
  form.set('network', network)
  if (name) form.set('name', name)
  if (groupId) form.set('group_id', groupId)
  if (keyvalues) form.set('keyvalues', JSON.stringify(keyvalues))
  for (const [path, content] of files) form.append('file', content, path)
  const body = await unwrap(
    berth.POST('/v3/files', {
      body: form as never,
      bodySerializer: () => form,
      ...(signal && { signal }),
    }),
  )
  return (body as { data: UploadedFile }).data
}

/** Uploads piece by piece. After a failure it continues from where Berth has the bytes. */
async function uploadInPieces(
  berth: Berth,
  content: Blob,
  { name, network = 'private', groupId, keyvalues, onProgress, signal }: UploadOptions,
): Promise<Stored> {
  const filename = name ?? nameOf(content)
  const { response, error } = await berth.POST('/v3/files', {
    headers: {
      ...TUS,
      'upload-length': `${content.size}`,
      'upload-metadata': encodeMetadata({
        filename,
        filetype: content.type,
        network,
        group_id: groupId,
        keyvalues: keyvalues && JSON.stringify(keyvalues),
      }),
    },
    ...(signal && { signal }),
  } as never)
  if (response.status !== 201) throw errorOf(response, error)
  const [id = '', token = ''] = (response.headers.get('location') ?? '').split('/').slice(-2)
  const params = { path: { id, token } }
  let cid: string | null = null
  for (let offset = 0, failures = 0; offset < content.size; ) {
    onProgress?.(offset, content.size)
    try {
      const piece = content.slice(offset, offset + PIECE_BYTES)
      const sent = await berth.PATCH('/v3/files/tus/{id}/{token}', {
        params,
        headers: {
          ...TUS,
          'upload-offset': `${offset}`,
          'content-type': 'application/offset+octet-stream',
        },
        body: piece as never,
        bodySerializer: () => piece,
        ...(signal && { signal }),
      } as never)
      if (sent.response.status !== 204) throw errorOf(sent.response, sent.error)
      offset = Number(sent.response.headers.get('upload-offset'))
      cid = sent.response.headers.get('upload-cid')
      failures = 0
    } catch (failure) {
      if (signal?.aborted || !isRetried(failure) || ++failures >= TRIES) throw failure
      await pause(500 * 2 ** failures, signal)
      const asked = await berth
        .HEAD('/v3/files/tus/{id}/{token}', { params, headers: TUS } as never)
        .catch(() => undefined)
      if (!asked?.response.ok) continue
      offset = Number(asked.response.headers.get('upload-offset'))
      cid = asked.response.headers.get('upload-cid')
    }
  }
  onProgress?.(content.size, content.size)
  // If the workspace already had the content, its file stays. A key that may only upload cannot read which one.
  const query = { cid: cid ?? '', limit: 1 }
  const { data } = await berth.GET('/v3/files/{network}', { params: { path: { network }, query } })
  const known = data?.data.files[0]
  return { id: known?.id ?? id, cid: cid ?? '', name: known?.name ?? filename, size: content.size, network }
}

/** `fetch` rejects with another error if the connection was lost. */
const isRetried = (failure: unknown): boolean =>
  !(failure instanceof RequestError) || RETRIED.has(failure.status)

const nameOf = (content: Blob): string => (content as Partial<File>).name ?? 'file'

function encodeMetadata(pairs: Record<string, string | undefined>): string {
  return Object.entries(pairs)
    .filter(([, value]) => value)
    .map(([key, value]) => `${key} ${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}`)
    .join(',')
}
