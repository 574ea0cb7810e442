/** The tables of docs/gateway-conformance.md, and the tests of the suite that Berth leaves out. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'

const PAGE = new URL('../../docs/gateway-conformance.md', import.meta.url)
const BEGIN = '<!-- made by `npm run gateway-conformance` -->'
const END = '<!-- end -->'

/** A test of the suite, or a check of a test, whose name extends the test's. */
export interface Case {
  name: string
  passed: boolean
}

const IPNS = 'IPNS: names that others sign and change'
const DNSLINK = 'DNSLink: names of the public DNS'

/** Tests that fail on purpose, by the beginnings of their names, with the reasons. */
const LEFT_OUT: [test: string, reason: string][] = [
  ['TestGatewayIPNSPath/', IPNS],
  ['TestGatewayIPNSRecord/', IPNS],
  ['TestGatewayIPNSRecordWithSubpath/', IPNS],
  ['TestGatewayJSONCborAndIPNS/', IPNS],
  ['TestGatewayCacheWithIPNS/', IPNS],
  ['TestGatewaySubdomainAndIPNS/', IPNS],
  ['TestRedirectCanonicalIPNS/', IPNS],
  ['TestDNSLinkGatewayIPNS/', DNSLINK],
  ['TestDNSLinkGatewayUnixFSDirectoryListing/', DNSLINK],
  ['TestDNSLinkGatewayWithSubpath/', DNSLINK],
  ['TestRedirectsFileSupportWithDNSLink/', DNSLINK],
  ['TestRedirectsFileWithIfNoneMatchHeader/DNSLinkGateway', DNSLINK],
  ['TestRedirectsFileWithIfNoneMatchHeader/SubdomainIPNS', DNSLINK],
  ['TestSubdomainGatewayDNSLinkInlining/', DNSLINK],
  ['TestProxyTunnelGatewaySubdomains/', '`CONNECT`: Berth opens no tunnels'],
  [
    'TestTar/GET_TAR_with_relative_paths_inside_root_works',
    'Names with a slash are invalid in a folder, wherever they lead: unpacking them could write outside the folder',
  ],
]

/** The specification of each of the suite's functions, by the beginnings of their names. */
const SPECIFICATIONS: [test: string, specification: string][] = [
  ['TestTrustlessCar', 'Trustless gateway, CAR'],
  ['TestTrustlessRaw', 'Trustless gateway, block'],
  ['TestGatewayIPNSRecord/', 'Trustless gateway, IPNS'],
  ['TestGatewayJSONCborAndIPNS', 'Path gateway, IPNS'],
  ['TestGatewayCacheWithIPNS', 'Path gateway, IPNS'],
  ['TestGatewayIPNS', 'Path gateway, IPNS'],
  ['TestRedirectCanonicalIPNS', 'Path gateway, IPNS'],
  ['TestGatewayJsonCbor', 'Path gateway, objects'],
  ['TestCodecMismatch', 'Path gateway, objects'],
  ['TestPlainCodec', 'Path gateway, objects'],
  ['TestPathing', 'Path gateway, objects'],
  ['TestNativeDag', 'Path gateway, objects'],
  ['TestTar', 'Path gateway, TAR'],
  ['TestGatewayBlock', 'Path gateway, block'],
  ['TestGatewaySubdomainAndIPNS', 'Subdomain gateway, IPNS and DNSLink'],
  ['TestSubdomainGatewayDNSLink', 'Subdomain gateway, IPNS and DNSLink'],
  ['TestGatewaySubdomains', 'Subdomain gateway'],
  ['TestUnixFSDirectoryListingOnSubdomain', 'Subdomain gateway'],
  ['TestProxy', 'Subdomain gateway as a proxy'],
  ['TestRedirectsFile', '`_redirects`'],
  ['TestDNSLink', 'DNSLink gateway'],
  ['Test', 'Path gateway, UnixFS'],
]

/** Asserts that only left-out tests fail, and that the page has the counts of the run; or writes them. */
export async function reportConformance(commit: string, all: Case[]): Promise<void> {
  const tests = all.filter(({ name }) => isTest(name))
  const failed = tests.filter(({ passed }) => !passed)
  const isLeftOut = ({ name }: Case) => LEFT_OUT.some(([test]) => name.startsWith(test))
  const unexpected = failed.filter((one) => !isLeftOut(one)).map(({ name }) => name)
  assert.deepEqual(unexpected, [], 'failing tests of the suite')
  const idle = LEFT_OUT.filter(([test]) => !failed.some(({ name }) => name.startsWith(test)))
  assert.deepEqual(idle, [], 'left-out tests that do not fail')

  const rows = [...Map.groupBy(tests, specificationOf)].sort(([a], [b]) => a.localeCompare(b))
  const sum = [...rows, ['**All**', tests] as const].map(
    ([name, some]) => `| ${name} | ${some.length} | ${some.filter(({ passed }) => passed).length} |`,
  )
  const counted = LEFT_OUT.map(([test, reason]) => {
    const count = failed.filter(({ name }) => name.startsWith(test)).length
    return `| \`${decodeURIComponent(test).replace(/\/$/, '')}\` | ${count} | ${reason} |`
  })
  const table = `Commit \`${commit}\` of the suite.

| Specification | Tests | Passed |
|---|---|---|
${sum.join('\n')}

| Left out | Tests | Why |
|---|---|---|
${counted.join('\n')}`
  const page = await readFile(PAGE, 'utf8')
  const [start, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  assert.ok(start >= 0 && end > start, 'docs/gateway-conformance.md has no place for the tables')
  const expected = `${page.slice(0, start)}${BEGIN}\n\n${table}\n\n${page.slice(end)}`
  if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, expected)
  else assert.equal(page, expected)
}

/** Whether the name is at the level of tests. Deeper names are checks; one function has an extra level of groups. */
function isTest(name: string): boolean {
  const depth = name.split('/').length
  return depth === (name.startsWith('TestRedirectsFileWithIfNoneMatchHeader/') ? 3 : 2)
}

const specificationOf = ({ name }: Case): string =>
  SPECIFICATIONS.find(([test]) => name.startsWith(test))?.[1] ?? ''
