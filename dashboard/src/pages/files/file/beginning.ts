import { RequestError } from '../../../api/client.ts'

/**
 * Fetches the first bytes of a file from a gateway.
 * @returns null if the file is empty. @throws RequestError
 */
export async function fetchBeginning(
  address: string,
  bytes: number,
  signal: AbortSignal,
): Promise<Response | null> {
  const answer = await fetch(address, {
    signal,
    headers: { range: `bytes=0-${bytes - 1}` },
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  })
  // An empty file has no valid range.
  if (answer.status === 416) return null
  if (!answer.ok) throw new RequestError(answer.status, answer.statusText)
  return answer
}

/** The size of the whole file in bytes. */
export const totalOf = ({ headers }: Response): number =>
  Number(headers.get('content-range')?.split('/')[1] ?? headers.get('content-length'))
