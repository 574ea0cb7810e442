import { RequestError } from '../../../api/client.ts'

/**
 * Asks a gateway for the first bytes of a file.
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
  // Nothing has no range.
  if (answer.status === 416) return null
  if (!answer.ok) throw new RequestError(answer.status, answer.statusText)
  return answer
}

/** How many bytes the whole file has. */
export const totalOf = ({ headers }: Response): number =>
  Number(headers.get('content-range')?.split('/')[1] ?? headers.get('content-length'))
