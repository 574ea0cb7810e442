/** Hosts of model providers, which agents reach only through the model gateway. */
import { MODEL_HOST } from '../../lib/net/host-machine.ts'
import { gatewayPath, MODEL_PROVIDERS } from '../../model-providers.ts'
import type { Destination } from '../destination.ts'
import { ProxyError } from '../dial.ts'

const PROVIDERS = MODEL_PROVIDERS.map((provider) => ({ provider, host: new URL(provider.baseUrl).host }))

/** @throws ProxyError 403 for the host of a model provider, and for names below it, such as those of regions. */
export function refuseProvider({ host }: Destination): void {
  const name = `.${host.replace(/\.$/, '')}`
  const { provider } = PROVIDERS.find(({ host }) => name.endsWith(`.${host}`)) ?? {}
  if (!provider) return
  const base = `http://${MODEL_HOST}${gatewayPath(provider)}`
  const inProcess = `or ${gatewayPath(provider)} on this proxy`
  throw new ProxyError(
    403,
    `${host} is reached through the model gateway: use the base URL ${base}, ${inProcess}`,
  )
}
