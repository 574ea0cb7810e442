/** The git of this machine as a client of an agent's repository. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'

const GIT_MS = 120_000

export interface GitResult {
  code: number
  stdout: string
  /** Git's output for its user. */
  stderr: string
}

export interface GitClient {
  /** Runs git, which prompts for nothing and has only this configuration. */
  git(cwd: string, ...args: string[]): Promise<GitResult>
  /** Runs git, which must succeed. @returns its output. */
  done(cwd: string, ...args: string[]): Promise<string>
}

/** @param home a folder that is git's HOME. */
export function gitClient(home: string): GitClient {
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_AUTHOR_NAME: 'Owner',
    GIT_AUTHOR_EMAIL: 'owner@example.org',
    GIT_COMMITTER_NAME: 'Owner',
    GIT_COMMITTER_EMAIL: 'owner@example.org',
  }
  const git = (cwd: string, ...args: string[]): Promise<GitResult> =>
    new Promise((resolve) => {
      execFile('git', args, { cwd, env, timeout: GIT_MS, maxBuffer: 1e7 }, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code ?? 255) : 0, stdout, stderr }),
      )
    })
  const done = async (cwd: string, ...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await git(cwd, ...args)
    assert.equal(code, 0, `git ${args.join(' ')}: ${stderr}`)
    return stdout
  }
  return { git, done }
}
