/**
 * Metrics that alerts and the dashboard query: a running role exports each of them, with its labels. The table in
 * `docs/alerts.md` repeats the help texts of the roles; `npm run docs:metrics` writes it.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { until } from '../support/processes.ts'
import { readMetrics } from '../support/stack.ts'
import { inlineCid, openContext } from './context.ts'

const { env, workspace } = await openContext()

const ROLES = ['web', 'worker', 'agent-proxy'] as const
const PAGE = new URL('../../docs/alerts.md', import.meta.url)
const PLACE = /(?<=<!-- Made by `npm run docs:metrics`\. -->\n)[\s\S]*(?=<!-- End of what is made\. -->)/

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')
const rules: { alert: string; expr: string; annotations: Record<string, string> }[] = parse(
  await read('deploy/prometheus/alerts.yml'),
).groups.flatMap((group: { rules: unknown[] }) => group.rules)
const dashboard: { panels: { title: string; targets?: { expr: string }[] }[] } = JSON.parse(
  await read('deploy/grafana/berth.json'),
)
const queries = [
  ...rules.map(({ alert, expr }) => ({ name: alert, expr })),
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ name: title, expr })),
  ),
]

/** Series that Prometheus creates itself. */
const OF_PROMETHEUS = ['up', 'ALERTS']
/** Labels that Prometheus adds to what it scrapes. */
const OF_THE_SCRAPE = ['job', 'instance']
/** Series that appear with the first event they count. */
const NOT_YET = ['berth_tunnels_total', 'berth_egress_exchanges_total']

/** The metrics of an expression, with the labels that its selectors name. */
function metricsOf(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/\b((?:berth|nodejs|process)_\w+|up|ALERTS)\b(?:\{([^}]*)\})?/g)].map(
    ([, name = '', selector = '']) => ({
      name,
      labels: [...selector.matchAll(/(\w+)\s*(?:=~|!=|!~|=)/g)].map(([, label = '']) => label),
    }),
  )
}

describe('metrics in alerts and the dashboard', () => {
  /** The labels of the series of all roles by metric name; empty if a metric has a type but no series yet. */
  const known = new Map<string, Set<string>>()
  const readAll = async () => {
    for (const role of ROLES)
      for (const line of (await (await readMetrics(env, role)).text()).split('\n')) {
        const [, type] = /^# TYPE (\S+)/.exec(line) ?? []
        if (type) known.set(type, known.get(type) ?? new Set())
        const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? []
        if (!name) continue
        const all = known.get(name) ?? new Set()
        for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) all.add(label)
        known.set(name, all)
      }
  }

  it('all metrics in alerts and the dashboard exist once operations have ended', async () => {
    const { api } = await workspace()
    await api.pin({ cid: `${inlineCid('alerts')}` }, { wait: 120 })
    await until('an attempt is counted, and the database was queried in time', async () => {
      await readAll()
      // The last metrics that come from the database.
      const isRead = known.get('berth_reconcile_repairs_total')?.has('reason')
      return isRead && known.get('berth_operation_attempts_total')?.has('state')
    })
  })
  for (const { name, expr } of queries)
    it(`the metrics of ${name} exist: ${expr.replaceAll(/\s+/g, ' ').trim()}`, () => {
      const used = metricsOf(expr)
      assert.ok(used.length > 0, 'names a metric')
      for (const metric of used) {
        if (OF_PROMETHEUS.includes(metric.name)) continue
        const labels = known.get(metric.name)
        assert.ok(labels, `no role has ${metric.name}`)
        if (NOT_YET.includes(metric.name)) continue
        for (const label of metric.labels)
          assert.ok(
            labels.has(label) || OF_THE_SCRAPE.includes(label),
            `${metric.name} has no label ${label}`,
          )
      }
    })
})

/** Berth's own metrics with their roles and help texts, by role. */
async function table(): Promise<string> {
  const found = new Map<string, { help: string; type: string; roles: string[] }>()
  for (const role of ROLES) {
    const metrics = await (await readMetrics(env, role)).text()
    for (const [, name = '', help = '', type = ''] of metrics.matchAll(
      /^# HELP (berth_\w+) (.+)\n# TYPE \S+ (\w+)$/gm,
    )) {
      const { roles } = found.get(name) ?? { roles: [] }
      found.set(name, { help, type, roles: [...roles, role] })
    }
  }
  const rows = [...found].map(
    ([name, { help, type, roles }]) =>
      `| ${roles.map((role) => `\`${role}\``).join(', ')} | \`${name}\` | ${type} | ${help} |\n`,
  )
  return `| role | metric | type | what it is |\n|---|---|---|---|\n${rows.sort().join('')}`
}

it('the table of metrics in docs/alerts.md matches the help texts of the roles', async () => {
  const page = await readFile(PAGE, 'utf8')
  const [written] = PLACE.exec(page) ?? []
  assert.ok(written, 'docs/alerts.md has no place for the table')
  const made = `\n${await table()}\n`
  const right = page.replace(PLACE, () => made)
  if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, right)
  else assert.equal(written, made, 'run `npm run docs:metrics`')
})

describe('alerts', async () => {
  const page = await read('docs/alerts.md')
  const headings = [...page.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading)
  for (const { alert, annotations } of rules)
    it(`docs/alerts.md explains the alert ${alert}`, () => {
      assert.equal(annotations.runbook, `docs/alerts.md#${alert.toLowerCase()}`)
      assert.ok(headings.includes(alert), `docs/alerts.md has no heading ${alert}`)
    })
  it('docs/alerts.md explains no alert that was removed', () => {
    const names = rules.map(({ alert }) => alert)
    assert.deepEqual(
      headings.filter((heading) => heading.startsWith('Berth') && !names.includes(heading)),
      [],
    )
  })
})
