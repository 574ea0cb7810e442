import { StringDecoder } from 'node:string_decoder'
import { AgentdError } from '../agentd-client.ts'

/**
 * The lines of a stream of newline-delimited JSON.
 * @throws AgentdError `bad_answer` for a line that is no JSON, or longer than `maxBytes`.
 */
export async function* jsonLines(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<unknown> {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.write(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') yield parseLine(line)
    if (rest.length > maxBytes) throw new AgentdError('bad_answer', 'agentd sent a line without an end')
  }
  if (rest !== '') yield parseLine(rest)
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (error) {
    throw new AgentdError('bad_answer', 'agentd sent a line that is no JSON', 0, { cause: error })
  }
}
