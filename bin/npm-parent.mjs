const LOOK_MS = 500

/**
 * Ends this process as SIGTERM does when the npm that runs `npm run <event>` is gone. npm passes SIGTERM and SIGINT on
 * to the program of a script, and dies by SIGHUP and SIGKILL without a word to it.
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
  }, LOOK_MS)
  watch.unref()
}
