import { z } from 'zod'
import { MANIFEST_SCHEMA } from '../../../agentd/manifest-schema.ts'
import { type Route, route } from '../../http/route.ts'

/** What `manifest.json` in an agent's root may be (compatibility 3.6). Editors read it where `$schema` names it. */
export function manifestRoutes(): Route[] {
  return [
    route({
      method: 'get',
      path: '/schemas/manifest.v1.json',
      id: 'manifestSchema',
      tag: 'Git',
      summary: 'The JSON Schema of manifest.json',
      description:
        'A push is held against it. Beside it, no two entries of a list may have one name, path or CID.',
      scope: null,
      success: { status: 200, description: 'The schema.', body: z.looseObject({}) },
      handle: async () => ({ headers: { 'Access-Control-Allow-Origin': '*' }, body: MANIFEST_SCHEMA }),
    }),
  ]
}
