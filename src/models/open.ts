/** Opens the feature: budgets, prices and spending of models, and what agent proxies need to enforce them. */
import type { RequestHandler } from 'express'
import { loadAgentProxyKey } from '../config.ts'
import type { Core } from '../core.ts'
import type { Route } from '../http/route.ts'
import { budgetRoutes } from './budget-routes.ts'
import { modelControl } from './control.ts'
import { Ledger } from './ledger.ts'
import { llmRoutes } from './llm-routes.ts'
import { OwnPrices } from './own-prices.ts'
import { priceRoutes } from './price-routes.ts'
import { Sessions } from './sessions.ts'
import { spendingRoutes } from './spending-routes.ts'

/** `control` answers agent proxies. */
export function openModels(core: Core): { routes: Route[]; control: RequestHandler } {
  const prices = new OwnPrices(core)
  const sessions = new Sessions({ ...core, prices })
  const key = loadAgentProxyKey(core.config)
  const control = modelControl({ pool: core.pool, sessions, ledger: new Ledger(core.pool), key })
  const routes = [
    ...budgetRoutes(core, sessions),
    ...priceRoutes(core, prices),
    ...spendingRoutes(core),
    ...llmRoutes(core, sessions),
  ]
  return { routes, control }
}
