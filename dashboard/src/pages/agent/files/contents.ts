import { api, RequestError } from '../../../api/client.ts'

/** The size limit for text in the editor. Longer text can only be downloaded. */
const MAX_TEXT = 1_000_000
/** Only types that cannot run scripts. SVG and HTML are shown as text. */
const IMAGES: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
}

export type Contents =
  | { kind: 'text'; text: string; etag: string }
  | { kind: 'image'; url: string }
  | { kind: 'large' | 'binary'; size: number }

/** The bytes of a file, and their version. @throws RequestError */
export async function readBytes(agentId: string, path: string) {
  const { data, error, response } = await api.GET('/v0/agents/{agentId}/files', {
    params: { path: { agentId }, query: { path } },
    parseAs: 'blob',
  })
  if (!response.ok) throw new RequestError(response.status, error?.error ?? response.statusText)
  // The client returns no data for an empty body.
  return {
    blob: (data as unknown as Blob | undefined) ?? new Blob([]),
    etag: response.headers.get('etag') ?? '',
  }
}

/** Reads a file: its type, and its content if it can be shown. @throws RequestError */
export async function readContents(agentId: string, path: string): Promise<Contents> {
  const { blob, etag } = await readBytes(agentId, path)
  const type = IMAGES[path.split('.').at(-1)?.toLowerCase() ?? '']
  if (type) return { kind: 'image', url: await dataUrl(new Blob([blob], { type })) }
  if (blob.size > MAX_TEXT) return { kind: 'large', size: blob.size }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await blob.arrayBuffer())
    if (!text.includes('\0')) return { kind: 'text', text, etag }
  } catch {
    // Not text.
  }
  return { kind: 'binary', size: blob.size }
}

/** The page's policy allows images from `data:` URLs, but not from `blob:` URLs. */
const dataUrl = (blob: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(reader.result as string)
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(blob)
  })

/** Writes a file. @param etag the version that was read; null if the file must not exist. @throws RequestError */
export async function writeContents(
  agentId: string,
  path: string,
  content: Blob | string,
  etag: string | null | undefined,
): Promise<string> {
  const { data, error, response } = await api.PUT('/v0/agents/{agentId}/files', {
    params: { path: { agentId }, query: { path } },
    body: content as string,
    bodySerializer: (body) => body,
    headers: {
      'content-type': 'application/octet-stream',
      ...(etag === null ? { 'if-none-match': '*' } : etag !== undefined && { 'if-match': etag }),
    },
  })
  if (!data) throw new RequestError(response.status, error?.error ?? response.statusText)
  return data.version
}

/** Downloads a file. */
export async function save(agentId: string, path: string): Promise<void> {
  const { blob } = await readBytes(agentId, path)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([blob], { type: 'application/octet-stream' }))
  link.download = path.split('/').at(-1) ?? 'file'
  link.click()
  URL.revokeObjectURL(link.href)
}
