/** Models for agents: the ones that the instance offers, and the secrets with the keys of providers. */
import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'

/** Providers that need only a key, by the name of its secret. */
export const PROVIDERS: Record<string, string> = {
  ANTHROPIC_API_KEY: 'Anthropic',
  OPENAI_API_KEY: 'OpenAI',
  GEMINI_API_KEY: 'Google Gemini',
  OPENROUTER_API_KEY: 'OpenRouter',
}

const readModels = () => unwrap(api.GET('/v0/agents/models'))
export type LocalServer = Awaited<ReturnType<typeof readModels>>['data']['local'][number]

/** The models that agents can use without a key. No event reports that a local model server started or stopped. */
export const useModels = (isOn = true) =>
  useQuery({ queryKey: ['models'], queryFn: readModels, enabled: isOn }).data?.data

/** True if the status reason of a running agent says that it has no model. */
export const lacksModel = ({ statusReason }: { statusReason: string | null }): boolean =>
  /(^|; )No model: /.test(statusReason ?? '')

/** The owner's choice of model for a new agent. The name of a secret identifies its provider. */
export type ModelChoice =
  | { by: 'local'; server: LocalServer['server']; model: string }
  | { by: 'key'; secret: string; value: string }
  | { by: 'later' }
