import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Command, command, parse } from './command.ts'
import { COMMANDS } from './commands.ts'

const entry = (more: Partial<Command>): Command => ({
  ...command({ name: 'try', summary: '', run: async () => undefined }),
  ...more,
})

describe('the arguments of a command', () => {
  const options = {
    many: { about: '', value: 'x', many: true },
    one: { about: '', value: 'x', short: 'o', choices: ['a', 'b'] },
    on: { about: '' },
  }
  it('options have values, switches and lists, and global ones', () => {
    const parsed = parse(entry({ options, usage: '<x>' }), [
      '--on',
      'y',
      '--many=1',
      '--many',
      '2',
      '-o',
      'a',
      '--json',
    ])
    assert.deepEqual(parsed.args, ['y'])
    assert.deepEqual(
      { ...parsed.options },
      { many: ['1', '2'], one: 'a', on: true, json: true, profile: undefined, help: false },
    )
  })
  it('options after the first argument of an open-ended command belong to its program', () => {
    const open = entry({ options, usage: '<x> <y...>', isOpenEnded: true })
    for (const words of [
      ['--on', '-o', 'a', 'agent', 'ls', '-la', '--on'],
      ['--on', '-o', 'a', 'agent', '--', 'ls', '-la', '--on'],
    ]) {
      const parsed = parse(open, words)
      assert.deepEqual(parsed.args, ['agent', 'ls', '-la', '--on'])
      assert.equal(parsed.options.one, 'a')
    }
  })
  const refused: [string, Partial<Command>, string[], RegExp][] = [
    ['a missing argument', { usage: '<agent> <path>' }, ['a'], /^path is missing$/],
    ['an argument too many', { usage: '[path]' }, ['a', 'b c'], /^"b c" is one argument too many$/],
    ['an unknown option', {}, ['--all'], /^Unknown option '--all'$/],
    ['an option without its value', { options }, ['--one'], /--one.*argument missing/],
    ['a value that is no choice', { options }, ['--one', 'c'], /^--one: c is none of a, b$/],
  ]
  for (const [what, more, words, message] of refused)
    it(`${what} is refused`, () => assert.throws(() => parse(entry(more), words), { message }))
  it('a request for help needs no arguments', () => {
    assert.equal(parse(entry({ usage: '<agent>' }), ['-h']).options.help, true)
  })
})

describe('the table of commands', () => {
  it('every command has its own name, and none hides another', () => {
    const names = COMMANDS.map(({ name }) => name)
    assert.equal(new Set(names).size, names.length)
    for (const name of names)
      assert.deepEqual(
        names.filter((other) => other.startsWith(`${name} `)),
        [],
      )
  })
  it('optional arguments come last, and only the last may repeat', () => {
    for (const { usage } of COMMANDS)
      assert.match(usage, /^(<[\w-]+> ?)*(\[[\w-]+\] ?)*([<[][\w-]+\.\.\.[>\]])?$/)
  })
})
