import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Manifest } from '../../../agentd/manifest-check.ts'
import { check } from '../../../src/agents/config/config-schema.ts'
import { parseJson } from '../../../src/lib/read.ts'
import { DEFAULT_MODEL } from '../../../src/openclaw/models.ts'
import type { Applying, PartResult } from './part.ts'

/** The engine may check a config in a separate process. */
const WRITE_MS = 60_000
/** A config of 1 MiB with every byte escaped. */
const CONFIG_BYTES = 8_388_608

const configText = z.object({ text: z.string() })
/** The part of openclaw.json needed here; a text is short for a model without fallbacks. */
const config = z.looseObject({
  agents: z
    .looseObject({
      defaults: z
        .looseObject({
          model: z
            .union([
              z.string(),
              z.looseObject({ primary: z.string().optional(), fallbacks: z.unknown().optional() }),
            ])
            .optional(),
        })
        .optional(),
    })
    .optional(),
})

/**
 * Sets the agent's own model in its engine's config, and keeps the rest. If the operator has a model, the engine falls
 * back to it, unless the owner has named other fallbacks.
 */
export async function applyModel(
  { services, run, target }: Applying,
  model: NonNullable<Manifest['model']>,
): Promise<PartResult> {
  const { agentd } = services
  const { signal } = run
  const primary = typeof model === 'string' ? model : model.primary
  const answer = await agentd.json(target, { path: '/v1/config', maxBytes: CONFIG_BYTES, signal })
  const stored = config.safeParse(parseJson(configText.safeParse(answer).data?.text ?? ''))
  if (!stored.success) return { problems: ['the engine’s config cannot be read'] }
  const { agents } = stored.data
  const before = agents?.defaults?.model
  const known = typeof before === 'string' ? { primary: before } : before
  const fallbacks = services.config.BERTH_MODEL_URL && primary !== DEFAULT_MODEL ? [DEFAULT_MODEL] : undefined
  const after = { ...(fallbacks && { fallbacks }), ...known, primary }
  if (isDeepStrictEqual(before, after)) return {}
  const changed = {
    ...stored.data,
    agents: { ...agents, defaults: { ...agents?.defaults, model: after } },
  }
  const written = check.safeParse(
    await agentd.json(target, {
      method: 'PUT',
      path: '/v1/config',
      json: { text: JSON.stringify(changed) },
      timeoutMs: WRITE_MS,
      signal,
    }),
  )
  if (written.data?.valid) return {}
  return { problems: [`the engine refuses ${primary}: ${written.data?.output.slice(0, 500)}`] }
}
