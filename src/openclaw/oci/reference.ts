/** Image names, as Docker and Kubernetes read them: `registry.example.org/berth/openclaw:2026.9.6`. */
import { SandboxError } from '../../errors.ts'
import { requireEngineVersion } from '../install.ts'

export interface ImageReference {
  /** Host, and port if given. */
  registry: string
  repository: string
  /** A tag, or a digest (`sha256:…`). */
  tag: string
}

const HOST = /^(localhost|[a-z\d.-]+\.[a-z\d-]+|\[[\da-f:]+\]|[a-z\d-]+(?=:))(:\d+)?$/i
const REPOSITORY = /^[a-z\d]+((\/|\.|__?|-+)[a-z\d]+)*$/
const TAG = /^[\w][\w.-]{0,127}$/
const DIGEST = /^sha256:[\da-f]{64}$/

/** Parses an image name: the default host is Docker Hub, the default tag `latest`. @throws SandboxError */
export function parseReference(text: string): ImageReference {
  const [name = '', digest] = text.split('@')
  const [first = '', ...rest] = name.split('/')
  const isHost = rest.length > 0 && HOST.test(first)
  const registry = isHost ? first : 'docker.io'
  const [, path = '', tag = 'latest'] = /^(.*?)(?::([^/:]*))?$/.exec(isHost ? rest.join('/') : name) ?? []
  const repository = registry === 'docker.io' && !path.includes('/') ? `library/${path}` : path
  if (!REPOSITORY.test(repository) || !(digest === undefined ? TAG.test(tag) : DIGEST.test(digest)))
    throw new SandboxError('internal', `${text} is not an image name`)
  return { registry, repository, tag: digest ?? tag }
}

/** The full name. */
export function formatReference({ registry, repository, tag }: ImageReference): string {
  return `${registry}/${repository}${tag.includes(':') ? '@' : ':'}${tag}`
}

/**
 * The full name of a version's image for agents in a cluster: BERTH_ENGINE_IMAGE with the version filled in.
 * @throws SandboxError if the version or the resulting image name is invalid.
 */
export function engineImageReference(template: string, version: string): string {
  requireEngineVersion(version)
  return formatReference(parseReference(template.replaceAll('{version}', version)))
}
