/**
 * A role for the supervisor's tests, selected by the first argument: `good` serves, and exits when asked or when its
 * parent is gone; `deaf` does neither; `patient` reports what it waits for, and exits when asked twice; `crashing`
 * exits at once; `misconfigured` exits with EX_CONFIG.
 */
const kind = process.argv[2]
console.log(`pid ${process.pid}`)
if (kind === 'crashing') process.exit(1)
if (kind === 'misconfigured') {
  console.error('PORT: must be a number')
  process.exit(78)
}

const end = () => {
  console.log('ending')
  process.exit(0)
}
let asked = false
const wait = () => {
  if (asked) end()
  asked = true
  process.send?.({ type: 'waiting', what: ['1 request'] })
}
process.on('SIGTERM', kind === 'deaf' ? () => {} : kind === 'patient' ? wait : end)
if (kind === 'good') process.on('disconnect', end)
setInterval(() => {}, 1000)
process.send?.({ type: 'ready', url: `http://127.0.0.1/${process.pid}` })
