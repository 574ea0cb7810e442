/** Bare repositories in a folder, for a git server. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

/** Files by path: a text, the target of a symbolic link, or the commit of a submodule. */
export type Files = Record<string, string | Buffer | { link: string } | { submodule: string }>

const ENV = {
  PATH: process.env.PATH,
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@example.test',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@example.test',
}

/**
 * Commits files to a branch of `<root>/<name>`, which is created if it does not exist. Its first branch is the default.
 * @param tag given to the commit.
 * @returns the commit.
 */
export async function commitTo(
  root: string,
  name: string,
  files: Files,
  { branch = 'main', tag }: { branch?: string; tag?: string } = {},
): Promise<string> {
  const work = await mkdtemp(join(tmpdir(), 'berth-repository-'))
  const git = async (...args: string[]) =>
    (await promisify(execFile)('git', args, { cwd: work, env: ENV })).stdout.trim()
  try {
    await git('init', '--quiet', '-b', branch)
    for (const [path, content] of Object.entries(files)) {
      if (typeof content === 'object' && 'submodule' in content) continue
      await mkdir(dirname(join(work, path)), { recursive: true })
      if (typeof content === 'object' && 'link' in content) await symlink(content.link, join(work, path))
      else await writeFile(join(work, path), content, { mode: path.endsWith('.sh') ? 0o755 : 0o644 })
    }
    await git('add', '--all', '--force')
    for (const [path, content] of Object.entries(files))
      if (typeof content === 'object' && 'submodule' in content)
        await git('update-index', '--add', '--cacheinfo', `160000,${content.submodule},${path}`)
    await git('commit', '--quiet', '--allow-empty', '-m', 'test')
    const bare = join(root, name)
    await git('init', '--quiet', '--bare', '-b', branch, bare).catch(() => {})
    await git('push', '--quiet', '--force', bare, `HEAD:refs/heads/${branch}`)
    if (tag) await git('push', '--quiet', bare, `HEAD:refs/tags/${tag}`)
    return await git('rev-parse', 'HEAD')
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
