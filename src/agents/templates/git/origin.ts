/** How a body names the repository that a template is made of. */
import { z } from 'zod'
import { text } from '../../../http/shapes.ts'
import { trimSlashes } from '../../../lib/slashes.ts'
import type { GitOrigin } from './hosts.ts'

/** Names that are no branch or tag (git-check-ref-format), or that git would take for an option. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: git refuses them
const NO_REF = /^[-/+]|[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|\.lock(\/|$)|[/.]$/

const gitRef = text(255)
  .min(1, 'must not be empty')
  .refine((name) => !NO_REF.test(name), 'must be the name of a branch, tag or commit')
  .meta({ format: 'git-ref' })
const folder = text(1000)
  .transform((path) => trimSlashes(path.replace(/^\/+/, '')))
  .refine(
    (path) => path === '' || !path.split('/').some((name) => ['', '.', '..'].includes(name)),
    'must be a folder of the repository',
  )
  .meta({ format: 'folder' })
const gitUrl = text(2048).meta({ format: 'git-url' })

/** In place of an agent, the fields of a body. */
export const repository = {
  gitUrl: gitUrl
    .nullish()
    .describe('In place of `agentId`: the https address of a public repository, as `git clone` takes it.'),
  branch: gitRef.nullish().describe('Not given: the repository’s default branch.'),
  ref: gitRef.nullish().describe('In place of `branch`: `refs/heads/main`, a tag, or a commit.'),
  path: folder.nullish().describe('The folder of the repository that is the template. Not given: all of it.'),
}
export const ofRepository = z.object({
  gitUrl: gitUrl.describe('The https address of a public repository, as `git clone` takes it.'),
})

type Named = z.output<z.ZodObject<typeof repository>>

/**
 * The repository that a body names; undefined where it names none.
 * @param before where the template came from until now, for what the body leaves out.
 */
export function originOf(body: Named, before?: GitOrigin | null): GitOrigin | undefined {
  const url = body.gitUrl ?? before?.url
  if (!url) return undefined
  const isSame = url === before?.url
  const branch = body.branch?.replace(/^(?!refs\/)/, 'refs/heads/')
  return {
    url,
    ref: branch ?? body.ref ?? (isSame ? before.ref : null),
    path: body.path ?? (isSame ? before.path : ''),
  }
}

/** True for a body with any field that describes a repository. */
export const namesRepository = ({ gitUrl, branch, ref, path }: Named): boolean =>
  [gitUrl, branch, ref, path].some((value) => value != null)

/** The fault of a repository that a body names. */
export function checkSource(
  body: Named & { agentId?: string | undefined },
  context: Pick<z.core.$RefinementCtx, 'addIssue'>,
): void {
  const refuse = (field: string, message: string) =>
    context.addIssue({ code: 'custom', path: [field], message, input: body })
  if (body.agentId && namesRepository(body)) refuse('gitUrl', 'cannot be given with agentId')
  if (body.branch && body.ref) refuse('ref', 'cannot be given with branch')
}

/** Checks a source as {@link checkSource} does, where one of the two must be named. */
export function requireSource(...[body, context]: Parameters<typeof checkSource>): void {
  checkSource(body, context)
  if (body.agentId || body.gitUrl) return
  const field = namesRepository(body) ? 'gitUrl' : 'agentId'
  const message = field === 'gitUrl' ? 'must be given with branch, ref or path' : 'must be given, or gitUrl'
  context.addIssue({ code: 'custom', path: [field], message, input: body })
}
