const POLL_MS = 500

/**
 * Sends this process SIGTERM when the npm that runs `npm run <event>` has exited. npm forwards SIGTERM and SIGINT to a
 * script's program, but neither SIGHUP nor SIGKILL.
 * @param {string} event the name of the script, up to a colon.
 */
export function stopWithNpm(event) {
  const { npm_lifecycle_event: running, npm_package_name: name } = process.env
  if (running?.split(':')[0] !== event || name !== 'berth') return
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, POLL_MS)
  watch.unref()
}
