/** Finds language model servers on this machine, at their default addresses, and the models that they offer. */
import { z } from 'zod'
import { parseJson, readWhole } from '../read.ts'

export interface ModelServer {
  name: string
  /** The URL of its OpenAI-compatible API. */
  baseUrl: string
}

/** Fixed addresses on loopback. No request, setting or response can add another address. */
export const LOCAL_SERVERS = {
  ollama: { name: 'Ollama', baseUrl: 'http://127.0.0.1:11434/v1' },
  'lm-studio': { name: 'LM Studio', baseUrl: 'http://127.0.0.1:1234/v1' },
  'llama.cpp': { name: 'llama.cpp', baseUrl: 'http://127.0.0.1:8080/v1' },
} as const satisfies Record<string, ModelServer>
export type LocalServerId = keyof typeof LOCAL_SERVERS
export const LOCAL_SERVER_IDS = Object.keys(LOCAL_SERVERS) as [LocalServerId, ...LocalServerId[]]

/** The model that an agent's owner chose. */
export interface LocalModel {
  server: LocalServerId
  model: string
}

const ANSWER_MS = 1000
const ANSWER_BYTES = 262_144
const MAX_MODELS = 200
const MAX_NAME = 200
/** Names of models that cannot chat. */
const NO_CHAT = /embed|rerank|whisper|minilm|paraphrase|\bbge-/i
/** Models of families that call tools, which agents do all the time. */
const CALLS_TOOLS =
  /gpt-oss|qwen-?(2\.5|3)|llama-?(3\.[1-3]|4)|mistral|devstral|granite|glm-?4|command-r|hermes/i
/** Models that Ollama offers, but runs in its cloud, for an account. */
const ELSEWHERE = /[:-]cloud$/i

/** The model names that Berth accepts from a server. */
export const modelName = z.string().regex(new RegExp(`^[\\x21-\\x7e]{1,${MAX_NAME}}$`), {
  error: `must be at most ${MAX_NAME} printable ASCII characters without blanks`,
})
const listing = z.object({ data: z.array(z.object({ id: modelName }).nullable().catch(null)).max(10_000) })

/**
 * Returns the servers that respond within a second and have a model, each with its models. Responses are untrusted, so
 * their size is limited and their contents are validated. A server with any other response is left out, such as another
 * program on the same port.
 */
export async function findLocalModels<Id extends string>(
  servers: Readonly<Record<Id, ModelServer>>,
): Promise<{ server: Id; name: string; models: string[] }[]> {
  const all = Object.entries(servers) as [Id, ModelServer][]
  const found = await Promise.all(
    all.map(async ([server, { name, baseUrl }]) => {
      const models = await readModels(baseUrl).catch(() => [])
      return { server, name, models }
    }),
  )
  return found.filter(({ models }) => models.length > 0)
}

async function readModels(baseUrl: string): Promise<string[]> {
  const response = await fetch(`${baseUrl}/models`, {
    redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  if (!response.ok) {
    await response.body?.cancel()
    return []
  }
  const tooLarge = () => new Error('the list of models is too long')
  const answer = parseJson(`${await readWhole(response.body ?? [], ANSWER_BYTES, tooLarge)}`)
  const names = (listing.safeParse(answer).data?.data ?? []).flatMap((model) => model?.id ?? [])
  return [...new Set(names)].filter((name) => !NO_CHAT.test(name)).slice(0, MAX_MODELS)
}

/**
 * The model that agents use if nobody has chosen one, on the first server in the order of `servers`. It is the first
 * name of a model that calls tools, or else of any that runs on this machine. The same models give the same choice.
 * @param wanted the only name to choose.
 */
export function chooseLocalModel<Server extends { models: string[] }>(
  servers: readonly Server[],
  wanted?: string,
): (Server & { model: string }) | undefined {
  for (const server of servers) {
    const names = server.models.filter((name) => (wanted ? name === wanted : !ELSEWHERE.test(name))).sort()
    const model = names.find((name) => CALLS_TOOLS.test(name)) ?? names[0]
    if (model) return { ...server, model }
  }
  return undefined
}
