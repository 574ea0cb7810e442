/** Models of agents: what an instance offers, and the keys by which providers are asked. */
import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'

/** Providers for which a key is enough, by the name of its secret. */
export const PROVIDERS: Record<string, string> = {
  ANTHROPIC_API_KEY: 'Anthropic',
  OPENAI_API_KEY: 'OpenAI',
  GEMINI_API_KEY: 'Google Gemini',
  OPENROUTER_API_KEY: 'OpenRouter',
}

const readModels = () => unwrap(api.GET('/v0/agents/models'))
export type LocalServer = Awaited<ReturnType<typeof readModels>>['data']['local'][number]

/** The models that agents have without a key. No event tells of a server that starts. */
export const useModels = (isOn = true) =>
  useQuery({ queryKey: ['models'], queryFn: readModels, enabled: isOn }).data?.data

/** Whether a running agent has said that it has no model. */
export const lacksModel = ({ statusReason }: { statusReason: string | null }): boolean =>
  /(^|; )No model: /.test(statusReason ?? '')

/** What the owner of a new agent chose; the name of a secret stands for its provider. */
export type ModelChoice =
  | { by: 'local'; server: LocalServer['server']; model: string }
  | { by: 'key'; secret: string; value: string }
  | { by: 'later' }
