/** Opens a page in the user's browser, if there is one. */
export async function openInBrowser(url: string): Promise<void> {
  const { spawn } = await import('node:child_process')
  const [program = '', ...args] =
    process.platform === 'darwin'
      ? ['open']
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler']
        : ['xdg-open']
  spawn(program, [...args, url], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref()
}
