import { api, RequestError, serverEvents } from '../../../api/client.ts'

export interface End {
  exitCode: number
  truncated: boolean
  timedOut: boolean
}

/**
 * Runs a command in an agent, and passes on its output while it runs. Aborting `signal` ends it.
 * @throws RequestError if it cannot be run, or its end is unknown.
 */
export async function runCommand(
  agentId: string,
  command: { command: string; cwd: string },
  onOutput: (text: string) => void,
  signal: AbortSignal,
): Promise<End> {
  const { response, data, error } = await api.POST('/v0/agents/{agentId}/console/exec', {
    params: { path: { agentId } },
    body: command,
    headers: { accept: 'text/event-stream' },
    parseAs: 'stream',
    signal,
  })
  const body: unknown = data
  if (!(body instanceof ReadableStream)) {
    const detail = response.headers.get('error-detail')
    throw new RequestError(response.status, detail ?? error?.error ?? response.statusText)
  }
  for await (const { name, data } of serverEvents(body)) {
    const said = JSON.parse(data)
    if (name === 'exit') return said
    if (name === 'error') throw new RequestError(500, said.error)
    onOutput(said.text)
  }
  throw new RequestError(500, 'the answer ended too soon')
}
