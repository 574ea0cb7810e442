/** Names of images, as Docker and Kubernetes read them: `registry.example.org/berth/openclaw:2026.9.6`. */
import { EngineError } from '../engine-error.ts'
import { requireEngineVersion } from '../install.ts'

export interface ImageReference {
  /** Host, with a port where it has one. */
  registry: string
  repository: string
  /** A tag, or a digest (`sha256:…`). */
  tag: string
}

const HOST = /^(localhost|[a-z\d.-]+\.[a-z\d-]+|\[[\da-f:]+\]|[a-z\d-]+(?=:))(:\d+)?$/i
const REPOSITORY = /^[a-z\d]+((\/|\.|__?|-+)[a-z\d]+)*$/
const TAG = /^[\w][\w.-]{0,127}$/
const DIGEST = /^sha256:[\da-f]{64}$/

/** Reads the name of an image: without a host it is of Docker Hub, and without a tag `latest`. @throws EngineError */
export function parseReference(text: string): ImageReference {
  const [name = '', digest] = text.split('@')
  const [first = '', ...rest] = name.split('/')
  const isHost = rest.length > 0 && HOST.test(first)
  const registry = isHost ? first : 'docker.io'
  const [, path = '', tag = 'latest'] = /^(.*?)(?::([^/:]*))?$/.exec(isHost ? rest.join('/') : name) ?? []
  const repository = registry === 'docker.io' && !path.includes('/') ? `library/${path}` : path
  if (!REPOSITORY.test(repository) || !(digest === undefined ? TAG.test(tag) : DIGEST.test(digest)))
    throw new EngineError('failed', `${text} is no name of an image`)
  return { registry, repository, tag: digest ?? tag }
}

/** The name in full. */
export function formatReference({ registry, repository, tag }: ImageReference): string {
  return `${registry}/${repository}${tag.includes(':') ? '@' : ':'}${tag}`
}

/**
 * The image of a version that agents of a cluster run, in full: BERTH_ENGINE_IMAGE with the version in it.
 * @throws EngineError where it is no version, or the setting no image.
 */
export function engineImageReference(template: string, version: string): string {
  requireEngineVersion(version)
  return formatReference(parseReference(template.replaceAll('{version}', version)))
}
