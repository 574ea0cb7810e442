/** How a body names the repository of a template. */
import { z } from 'zod'
import { withExample } from '../../../http/fields.ts'
import { text } from '../../../http/shapes.ts'
import { trimSlashes } from '../../../lib/slashes.ts'
import type { GitOrigin } from './hosts.ts'

/** Names that are not valid branches or tags (git-check-ref-format), or that git would treat as an option. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: git refuses them
const NO_REF = /^[-/+]|[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|\.lock(\/|$)|[/.]$/

const gitRef = text(255)
  .min(1)
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

/** The fields of a body that replace an agent. */
export const repository = {
  gitUrl: gitUrl
    .nullish()
    .describe('Instead of `agentId`: the https address of a public repository, as for `git clone`.'),
  branch: gitRef.nullish().describe('Default: the repository’s default branch.'),
  ref: gitRef.nullish().describe('Instead of `branch`: `refs/heads/main`, a tag, or a commit.'),
  path: folder
    .nullish()
    .describe('The folder of the repository that contains the template. Default: the whole repository.'),
}
export const ofRepository = z.object({
  gitUrl: withExample(gitUrl, 'https://git.example/librarian.git').describe(
    'The https address of a public repository, as for `git clone`.',
  ),
})

type Named = z.output<z.ZodObject<typeof repository>>

/**
 * The repository that a body names; undefined if it names none.
 * @param before the template's current origin, for fields that the body omits.
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

/** Reports a faulty source in a body. */
export function checkSource(
  body: Named & { agentId?: string | undefined },
  context: Pick<z.core.$RefinementCtx, 'addIssue'>,
): void {
  const refuse = (field: string, message: string) =>
    context.addIssue({ code: 'custom', path: [field], message, input: body })
  if (body.agentId && namesRepository(body)) refuse('gitUrl', 'cannot be given with agentId')
  if (body.branch && body.ref) refuse('ref', 'cannot be given with branch')
}

/** Checks a source as {@link checkSource} does, and requires one of the two. */
export function requireSource(...[body, context]: Parameters<typeof checkSource>): void {
  checkSource(body, context)
  if (body.agentId || body.gitUrl) return
  const field = namesRepository(body) ? 'gitUrl' : 'agentId'
  const message = field === 'gitUrl' ? 'must be given with branch, ref or path' : 'must be given, or gitUrl'
  context.addIssue({ code: 'custom', path: [field], message, input: body })
}
