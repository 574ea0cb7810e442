/** Signing in, and the Berths that this user is signed in to. */
import { createClient, unwrap } from '../../../typescript/src/index.ts'
import { signInByBrowser } from '../browser-sign-in.ts'
import { command } from '../command.ts'
import { AdvisedError, EXIT } from '../errors.ts'
import { details, table } from '../format.ts'
import { profilesPath, readProfiles, trim, writeProfiles } from '../profiles.ts'
import { readSecret } from '../prompt.ts'

export const profileCommands = [
  command({
    name: 'login',
    summary: 'sign in to a Berth, in the browser or with an API key',
    usage: '<url>',
    options: {
      key: { about: 'ask for an API key instead of opening the browser' },
      name: { about: 'name of the profile; by default the host', value: 'name' },
    },
    more: `You allow the sign-in in the dashboard, in a browser on any machine. Without a terminal, an API key
is read from stdin: create one with \`npx berth keys create\` where Berth runs, or in the dashboard,
under Operate, Keys. The key is stored in a file that only you can read.

  berth login https://berth.example.org
  pass show berth | berth login https://berth.example.org --name work`,
    async run({ args, options, profile: asked, signal }) {
      const url = trim(args[0] ?? '')
      const isInBrowser = process.stdin.isTTY && !options.key && (await hasDashboard(url))
      const key = isInBrowser ? await signInByBrowser(url, signal) : await readSecret(`API key for ${url}: `)
      const { data: me } = await unwrap(createClient({ url, key }).GET('/v0/me')).catch((error) => {
        if (error.status !== 401) throw error
        throw new AdvisedError(
          `${url} does not accept this key`,
          'is it whole, and not revoked?',
          EXIT.signIn,
        )
      })
      const name = options.name ?? asked ?? new URL(url).host
      const { profiles } = readProfiles()
      writeProfiles({ current: name, profiles: { ...profiles, [name]: { url, key } } })
      const data = { profile: name, url, user: me.user.name, workspace: me.workspace.name }
      return { data, text: `signed in as ${me.user.name}, workspace ${me.workspace.name} (profile ${name})` }
    },
  }),
  command({
    name: 'logout',
    summary: 'forget the key of a profile; it stays valid until it is revoked',
    usage: '[profile]',
    async run({ args, profile }) {
      const { current, profiles } = readProfiles()
      const name = args[0] ?? profile ?? current ?? ''
      if (!profiles[name]) throw unknownProfile(name)
      const { [name]: _, ...rest } = profiles
      const next = current === name ? Object.keys(rest)[0] : current
      writeProfiles({ current: next, profiles: rest })
      return { data: { removed: name, current: next ?? null }, text: `removed profile ${name}` }
    },
  }),
  command({
    name: 'whoami',
    summary: 'show the Berth, user, workspace and rights of the key',
    async run({ berth, target }) {
      const { data } = await unwrap(berth.GET('/v0/me'))
      const { user, workspace, role, scopes, plan } = data
      const fields = {
        url: target.url,
        user: user.name,
        workspace: workspace.name,
        role,
        scopes,
        plan: plan.name,
      }
      return { data: { url: target.url, ...data }, text: details(fields) }
    },
  }),
  command({
    name: 'profiles ls',
    summary: 'list the Berths that you are signed in to',
    async run() {
      const { current, profiles } = readProfiles()
      const rows = Object.entries(profiles).map(([name, { url }]) => ({
        name,
        url,
        current: name === current,
      }))
      const shown = rows.map(({ current, ...row }) => ({ '': current ? '*' : ' ', ...row }))
      return { data: rows, text: table(shown, `none; ${profilesPath()} would have them`) }
    },
  }),
  command({
    name: 'profiles use',
    summary: 'make a profile the current one',
    usage: '<profile>',
    async run({ args: [name = ''] }) {
      const all = readProfiles()
      if (!all.profiles[name]) throw unknownProfile(name)
      writeProfiles({ ...all, current: name })
      return { data: { current: name }, text: `${name} is the current profile` }
    },
  }),
]

const hasDashboard = async (url: string): Promise<boolean> =>
  (await unwrap(createClient({ url }).GET('/v0/login'))).data.program

const unknownProfile = (name: string) =>
  new AdvisedError(`there is no profile ${name}`, 'berth profiles ls lists them', EXIT.missing)
