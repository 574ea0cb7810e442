/** Compares the bytes that a gateway serves with the bytes that Berth was given. */

/** Bytes that were compared so far, over all comparisons. */
export class Comparison {
  bytes = 0

  /**
   * Reads a URL to its end.
   * @throws Error if the status is not 200 or the bytes differ.
   */
  async same(url: string, expected: Blob, signal: AbortSignal): Promise<void> {
    const response = await fetch(url, { signal })
    if (response.status !== 200) throw new Error(`${url}: ${response.status} ${await response.text()}`)
    let offset = 0
    for await (const chunk of response.body ?? []) {
      const slice = await expected.slice(offset, offset + chunk.length).arrayBuffer()
      if (!Buffer.from(slice).equals(chunk)) {
        throw new Error(`${url} differs within the ${chunk.length} bytes from ${offset}`)
      }
      offset += chunk.length
      this.bytes += chunk.length
    }
    if (offset !== expected.size) throw new Error(`${url} has ${offset} bytes, not ${expected.size}`)
  }
}

/** @throws Error if the URL returns content. @returns the status of the refusal. */
export async function refused(url: string, signal: AbortSignal): Promise<number> {
  const response = await fetch(url, { signal })
  await response.body?.cancel()
  if (![401, 403, 404].includes(response.status)) throw new Error(`${url}: ${response.status}`)
  return response.status
}
