/** The names of secrets, and the names that an agent cannot have together. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { conflictTable, describeConflict, providerOf } from './conflicts.ts'
import { RESERVED_NAMES } from './reserved.ts'
import { nameFault } from './secret-schema.ts'

const envName = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,30}$/)

describe('secret names', () => {
  it('a secret name must be a valid environment variable name', () => {
    for (const name of ['A', '_', 'A1_B2', 'GOOGLE_API_KEY', 'NODE_ENV', 'X'.repeat(128)])
      assert.equal(nameFault(name), undefined, name)
    for (const name of ['a', '1A', 'A-B', 'A B', 'A=B', 'Ä', '', 'A\n', '\nA', 'X'.repeat(129)])
      assert.match(
        nameFault(name) ?? '',
        /^name must be a valid environment variable name: /,
        JSON.stringify(name),
      )
  })
  it('a secret name that the sandbox needs is reserved', () => {
    for (const reserved of RESERVED_NAMES) {
      const name = reserved.replace('*', 'X')
      assert.equal(nameFault(name), `name: ${name} is reserved, the agent's own programs need it`)
    }
  })
  it('a secret name that loads code into programs is reserved [report: env names]', () => {
    for (const name of [
      ...['GIT_SSH_COMMAND', 'GIT_SSH', 'GIT_EXTERNAL_DIFF', 'GIT_CONFIG_COUNT', 'GIT_ASKPASS', 'GIT_PAGER'],
      ...[
        'PYTHONSTARTUP',
        'PYTHONPATH',
        'PERL5OPT',
        'PERL5LIB',
        'RUBYOPT',
        'JAVA_TOOL_OPTIONS',
        '_JAVA_OPTIONS',
      ],
      ...[
        'PROMPT_COMMAND',
        'BASH_ENV',
        'ENV',
        'PS4',
        'LD_PRELOAD',
        'LD_AUDIT',
        'LESSOPEN',
        'EDITOR',
        'PAGER',
      ],
      ...[
        'NPM_CONFIG_SCRIPT_SHELL',
        'NPM_CONFIG_NODE_OPTIONS',
        'NODE_OPTIONS',
        'MAKEFLAGS',
        'GOFLAGS',
        'TAR_OPTIONS',
      ],
    ])
      assert.equal(nameFault(name), `name: ${name} is reserved, the agent's own programs need it`)
  })
  it('a secret name has no lower-case letters, which npm reads too [report: env names]', () => {
    for (const name of ['npm_config_script_shell', 'Npm_Config_Registry', 'npm_config_node_options'])
      assert.match(nameFault(name) ?? '', /^name must be a valid environment variable name: capital letters/)
  })
  it('common credential names are allowed [report: env names]', () => {
    for (const name of [
      'GIT_TOKEN',
      'GIT_AUTHOR_NAME',
      'NPM_TOKEN',
      'PYTHONUNBUFFERED',
      'PGPASSWORD',
      'YARN_NPM_AUTH_TOKEN',
    ])
      assert.equal(nameFault(name), undefined, name)
  })
  it('any other secret name is allowed', () => {
    const known = RESERVED_NAMES.map((name) => name.replace('*', ''))
    fc.assert(
      fc.property(envName, (name) => {
        fc.pre(!known.some((start) => name.startsWith(start)))
        assert.equal(nameFault(name), undefined)
      }),
    )
  })
})

describe('credentials', () => {
  const two = fc.constantFrom(...conflictTable).chain(([provider, names]) =>
    fc.record({
      provider: fc.constant(provider),
      names: fc.shuffledSubarray([...names], { minLength: 2 }),
    }),
  )
  const others = fc.array(envName.filter((name) => providerOf(name) === undefined))

  it('credentials of one provider conflict, in any order and company', () => {
    fc.assert(
      fc.property(two, others, others, ({ provider, names }, before, between) => {
        const [first = '', second = ''] = names
        const all = [...before, first, ...between, ...names.slice(1)]
        assert.equal(describeConflict(all), `${first} and ${second} are both credentials of ${provider}`)
      }),
    )
  })
  it('credentials of several providers do not conflict', () => {
    assert.equal(describeConflict(conflictTable.map(([, names]) => names[0] ?? '')), undefined)
    assert.equal(describeConflict([]), undefined)
  })
  it('each credential belongs to one provider, and can be attached', () => {
    const names = conflictTable.flatMap(([, names]) => names)
    assert.equal(new Set(names).size, names.length)
    for (const name of names) assert.equal(nameFault(name), undefined, name)
  })
  it('the credentials of the best-known providers are listed', () => {
    for (const pair of [
      ['OPENAI_API_KEY', 'CODEX_API_KEY'],
      ['ANTHROPIC_API_KEY', 'ANTHROPIC_OAUTH_TOKEN'],
      ['ANTHROPIC_API_KEY', 'CLAUDE_CODE_OAUTH_TOKEN'],
      ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    ])
      assert.ok(describeConflict(pair), pair.join())
  })
})
