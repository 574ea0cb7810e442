/** Names that no secret may have: the sandbox, the engine or Berth itself sets them, or would break by them. */

/** In words, for the documents: prefixes end with `*`. */
export const RESERVED_NAMES = [
  // The process and its shell.
  'BASH_ENV',
  'ENV',
  'HOME',
  'HOSTNAME',
  'IFS',
  'LOGNAME',
  'OLDPWD',
  'PATH',
  'PWD',
  'SHELL',
  'SHELLOPTS',
  'TMPDIR',
  'USER',
  // Variables that load code into every program, or into Node.
  'GCONV_PATH',
  'GLIBC_TUNABLES',
  'LD_*',
  'MALLOC_ARENA_MAX',
  'NODE_COMPILE_CACHE',
  'NODE_EXTRA_CA_CERTS',
  'NODE_OPTIONS',
  'NODE_PATH',
  'NODE_TLS_REJECT_UNAUTHORIZED',
  'NODE_USE_ENV_PROXY',
  'NODE_V8_COVERAGE',
  // The way out, which the operator decides.
  'ALL_PROXY',
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'NO_PROXY',
  'NPM_CONFIG_REGISTRY',
  'SSL_CERT_DIR',
  'SSL_CERT_FILE',
  // The repository that agentd keeps.
  'GIT_CONFIG*',
  'GIT_DIR',
  'GIT_EXEC_PATH',
  'GIT_INDEX_FILE',
  'GIT_WORK_TREE',
  // Names of Berth and of the engine.
  'AGENTD_*',
  'AGENTS_API_URL',
  'AGENT_*',
  'BERTH_*',
  'OPENCLAW_*',
  'USER_EMAIL',
  'USER_NAME',
] as const

const EXACT = new Set<string>(RESERVED_NAMES)
const PREFIXES = RESERVED_NAMES.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))

export function isReserved(name: string): boolean {
  return EXACT.has(name) || PREFIXES.some((prefix) => name.startsWith(prefix))
}
