/** Agents as their proxies know them: providers with their real keys, prices, and whether the agent may call models. */
import { createHash } from 'node:crypto'
import { type Price, type Provider, priceOf, type Session } from '../agent-proxy/model/protocol.ts'
import type { Config } from '../config.ts'
import type { Core } from '../core.ts'
import { findModelAgents } from '../db/statements/models.ts'
import type { Row } from '../db/statements/statement.ts'
import { LOCAL_SERVERS } from '../lib/net/local-models.ts'
import { isLocalUrl } from '../lib/net/local-url.ts'
import {
  FALLBACK_PROVIDER,
  LOCAL_PROVIDER,
  MODEL_PROVIDERS,
  type ModelProvider,
  OPERATOR_PROVIDER,
} from '../model-providers.ts'
import type { OwnPrice, OwnPrices } from './own-prices.ts'
import { pricesAt } from './prices.ts'
import { PAUSED } from './refusals.ts'

type ModelAgent = Row<typeof findModelAgents.definition.columns>
type Services = Pick<Core, 'config' | 'pool' | 'prisma' | 'encryption' | 'log'> & { prices: OwnPrices }

const SECRET_NAMES = MODEL_PROVIDERS.flatMap(({ secrets }) => secrets)
const FREE: Price = { input: 0, output: 0 }

/** The parts that all sessions have in common. */
interface Common {
  prices: Record<string, Price>
  /** Changes with the prices and the operator's model. */
  version: string
}

export class Sessions {
  readonly #services: Services
  /** The operator's model, and its fallback. */
  readonly #operators: Provider[]
  #common: (Common & { own: readonly OwnPrice[] }) | undefined

  constructor(services: Services) {
    this.#services = services
    this.#operators = operatorProviders(services.config)
  }

  /** The session of a key (SHA-256, hex); undefined for an unknown key. */
  async find(key: string): Promise<Session | undefined> {
    return (await this.findAll([key])).sessions[key]
  }

  /**
   * The sessions of keys, except those with a version that the caller knows.
   * @param known versions by key.
   */
  async findAll(
    keys: readonly string[],
    known: Record<string, string> = {},
  ): Promise<{ sessions: Record<string, Session>; unchanged: string[] }> {
    if (keys.length === 0) return { sessions: {}, unchanged: [] }
    const { rows } = await findModelAgents.run(this.#services.pool, [...keys], SECRET_NAMES)
    const common = await this.#readCommon()
    const versions = new Map(rows.map((row) => [row.key, hash([common.version, row])]))
    const changed = rows.filter(({ key }) => known[key] !== versions.get(key))
    const values = await this.#readKeys(changed)
    const sessions = changed.map((row) => [
      row.key,
      { version: versions.get(row.key), ...this.#toSession(row, common, values) },
    ])
    const unchanged = rows.filter((row) => !changed.includes(row)).map(({ key }) => key)
    return { sessions: Object.fromEntries(sessions), unchanged }
  }

  /** The providers of an agent, without their keys. */
  providersOf({ localModel, secrets }: Pick<ModelAgent, 'localModel' | 'secrets'>): Provider[] {
    const local = localModel && {
      id: LOCAL_PROVIDER,
      dialect: 'openai' as const,
      baseUrl: LOCAL_SERVERS[localModel.server].baseUrl,
    }
    const attached = MODEL_PROVIDERS.filter((provider) => secretOf(provider, secrets))
    const own = attached.map(({ id, dialect, baseUrl }) => ({ id, dialect, baseUrl }))
    return [this.#operators, local ?? [], own].flat()
  }

  /** The operator's models with their prices, for clients with an LLM key. */
  async operatorModels(): Promise<{ model: string; price: Price | undefined }[]> {
    const [operator] = this.#operators
    if (!operator) return []
    const { prices } = await this.#readCommon()
    const prefix = `${OPERATOR_PROVIDER}/`
    const priced = Object.keys(prices).flatMap((name) =>
      name.startsWith(prefix) && name !== `${prefix}*` ? name.slice(prefix.length) : [],
    )
    const models = [...new Set([...Object.values(operator.models ?? {}), ...priced])]
    return models.map((model) => ({ model, price: priceOf(prices, OPERATOR_PROVIDER, model) }))
  }

  async #readCommon(): Promise<Common> {
    const own = await this.#services.prices.read()
    if (this.#common?.own !== own) {
      const prices = this.#pricesOf(own)
      this.#common = { own, prices, version: hash([prices, this.#operators]) }
    }
    return this.#common
  }

  /** The operator's prices replace listed ones. */
  #pricesOf(own: readonly OwnPrice[]): Record<string, Price> {
    const listed = pricesAt(new Date())
    const ofOperators = this.#operators.flatMap(({ id, baseUrl }) => {
      const { host } = new URL(baseUrl)
      const known = MODEL_PROVIDERS.find((provider) => new URL(provider.baseUrl).host === host)
      const same = Object.entries(listed)
        .filter(([name]) => known && name.startsWith(`${known.id}/`))
        .map(([name, price]): [string, Price] => [name.replace(/^[^/]+/, id), price])
      return isLocalUrl(baseUrl) ? [...same, [`${id}/*`, FREE] as const] : same
    })
    return {
      ...listed,
      ...Object.fromEntries(ofOperators),
      [`${LOCAL_PROVIDER}/*`]: FREE,
      ...Object.fromEntries(own.map(({ provider, model, price }) => [`${provider}/${model}`, price])),
    }
  }

  /** The values of secrets, by their ids. Values that cannot be decrypted are left out. */
  async #readKeys(agents: readonly ModelAgent[]): Promise<Map<string, string>> {
    const ids = agents.flatMap(({ secrets }) => secrets.map(({ id }) => id))
    const { prisma, encryption, log } = this.#services
    if (ids.length === 0) return new Map()
    const rows = await prisma.secret.findMany({ where: { id: { in: [...new Set(ids)] } } })
    return new Map(
      rows.flatMap(({ id, workspaceId, ciphertext }) => {
        try {
          return [[id, encryption.decrypt(workspaceId, id, ciphertext)]]
        } catch (error) {
          log.warn({ err: error, secret: id }, 'a key of a model provider cannot be decrypted')
          return []
        }
      }),
    )
  }

  #toSession(agent: ModelAgent, { prices }: Common, values: Map<string, string>): Session {
    const providers = this.providersOf(agent).flatMap((provider) => {
      const declared = MODEL_PROVIDERS.find(({ id }) => id === provider.id)
      if (!declared) return [provider]
      const key = values.get(secretOf(declared, agent.secrets)?.id ?? '')
      return key === undefined ? [] : [{ ...provider, key }]
    })
    const ids = providers.map(({ id }) => `${id}/`)
    const ofProviders = Object.entries(prices).filter(([name]) => ids.some((id) => name.startsWith(id)))
    return {
      agentId: agent.agentId,
      credential: agent.credential,
      providers,
      prices: Object.fromEntries(ofProviders),
      limits: { usd: agent.limitsUsd, tokens: agent.limitsTokens, requests: agent.limitsRequests },
      refusal: agent.isPaused ? PAUSED : null,
    }
  }
}

function operatorProviders(config: Config): Provider[] {
  if (!config.BERTH_MODEL_URL) return []
  const provider = (id: string, baseUrl: string, model: string, key: string | undefined): Provider => ({
    ...{ id, dialect: 'openai', baseUrl, models: { default: model } },
    ...(key && { key }),
  })
  const { BERTH_MODEL_URL: url, BERTH_MODEL: model, BERTH_MODEL_KEY: key } = config
  const first = provider(OPERATOR_PROVIDER, url, model, key)
  const { BERTH_MODEL_FALLBACK_URL: fallback } = config
  if (!fallback) return [first]
  const { BERTH_MODEL_FALLBACK: name, BERTH_MODEL_FALLBACK_KEY: fallbackKey } = config
  return [
    { ...first, fallbacks: [FALLBACK_PROVIDER] },
    provider(FALLBACK_PROVIDER, fallback, name, fallbackKey),
  ]
}

/** The secret that has the key of a provider. */
const secretOf = ({ secrets }: ModelProvider, attached: ModelAgent['secrets']) =>
  secrets.map((name) => attached.find((secret) => secret.name === name)).find((secret) => secret)

const hash = (value: unknown) =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22)
