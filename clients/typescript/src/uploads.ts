/** Uploads: a form for small files and folders, and pieces that survive a lost connection (tus 1.0.0) for large files. */
import type { Berth } from './client.ts'
import { errorOf, RequestError, unwrap } from './errors.ts'
import { pause } from './retries.ts'
import type { paths } from './schema.ts'

export type UploadedFile = paths['/v3/files']['post']['responses'][200]['content']['application/json']['data']
type StoredFile =
  paths['/v3/files/{network}/{id}']['get']['responses'][200]['content']['application/json']['data']

/** Files above this size are sent in pieces. */
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

/** Uploads a file or a `Blob`; above 16 MiB in pieces. */
export async function upload(berth: Berth, content: Blob, options: UploadOptions = {}): Promise<StoredFile> {
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

/** Uploads in pieces, each of which is sent again after a failure, from where Berth has the bytes. */
async function uploadInPieces(
  berth: Berth,
  content: Blob,
  { name, network = 'private', groupId, keyvalues, onProgress, signal }: UploadOptions,
): Promise<StoredFile> {
  const { response, error } = await berth.POST('/v3/files', {
    headers: {
      ...TUS,
      'upload-length': `${content.size}`,
      'upload-metadata': encodeMetadata({
        filename: name ?? nameOf(content),
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
      failures = 0
    } catch (failure) {
      if (signal?.aborted || !isRetried(failure) || ++failures >= TRIES) throw failure
      await pause(500 * 2 ** failures, signal)
      const asked = await berth
        .HEAD('/v3/files/tus/{id}/{token}', { params, headers: TUS } as never)
        .catch(() => undefined)
      if (asked?.response.ok) offset = Number(asked.response.headers.get('upload-offset'))
    }
  }
  onProgress?.(content.size, content.size)
  return (await unwrap(berth.GET('/v3/files/{network}/{id}', { params: { path: { network, id } } }))).data
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
