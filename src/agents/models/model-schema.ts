import { z } from 'zod'
import { like } from '../../http/fields.ts'
import { LOCAL_SERVER_IDS, modelName } from '../../lib/net/local-models.ts'

const server = z.enum(LOCAL_SERVER_IDS, `must be one of ${LOCAL_SERVER_IDS.join(', ')}`)

/** The choice of a local model in the body of a new agent. */
export const localModel = z.strictObject({ server, model: modelName })

export const models = z.object({
  data: z.object({
    hasDefault: z
      .boolean()
      .describe(
        'Whether the operator has set a model (`BERTH_MODEL_URL`), which agents use unless they have another.',
      ),
    local: z
      .array(z.object({ server, name: like('Ollama'), models: z.array(z.string()) }))
      .describe(
        'Model servers found on the agents’ machine, with their models. Empty if agents cannot reach that machine.',
      ),
  }),
})
