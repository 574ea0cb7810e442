/** Access to the roles of the chart: network policies, the hosts of the ingress, and the port for a TLS proxy. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { environmentOf, find, made, namesOf, policyOf } from '../../support/chart.ts'
import { withoutHelm } from '../../support/helm.ts'

describe('the network of the chart', { skip: withoutHelm }, () => {
  it('the network policies let in only necessary traffic, and the proxy out only to agents', async () => {
    const model = [{ ipBlock: { cidr: '10.1.2.3/32' } }]
    const monitors = [{ namespaceSelector: { matchLabels: { name: 'monitors' } } }]
    const dns = [{ ipBlock: { cidr: '169.254.20.10/32' } }]
    const all = await made({
      networkPolicy: { agentProxyAllow: model, metrics: monitors, web: monitors, dns },
    })
    const ports = (rules: any[]) => rules.map((rule) => rule.ports?.map((one: any) => one.port))
    assert.deepEqual(ports(policyOf(all, 'web').ingress), [[3000], [9464]])
    assert.deepEqual(policyOf(all, 'web').ingress[0].from, monitors)
    assert.deepEqual(ports(policyOf(all, 'worker').ingress), [[9464]])
    assert.deepEqual(ports(policyOf(all, 'agent-proxy').ingress), [[3130], [3128], [9464]])
    const { egress } = policyOf(all, 'agent-proxy')
    assert.deepEqual(ports(egress), [[7700], [53, 53, 5353, 5353], [3000], undefined, undefined])
    assert.deepEqual(egress[1].to, dns)
    assert.ok(egress[3].to[0].ipBlock.except.includes('10.0.0.0/8'))
    assert.deepEqual(egress[4].to, model)
    const bare = await made()
    assert.equal(policyOf(bare, 'worker').ingress, null)
    assert.equal(policyOf(bare, 'web').ingress[0].from, undefined, 'anybody')
    const none = await made({ networkPolicy: { enabled: false } })
    assert.deepEqual(namesOf(none, 'NetworkPolicy'), ['berth-nothing'])
  })

  it('the ingress routes each host of Berth to web, with a certificate for each', async () => {
    const domains = {
      BERTH_GATEWAY_DOMAIN: 'gateway.example.org',
      BERTH_AGENT_DOMAIN: 'agents.example.org',
      BERTH_APP_DOMAIN: 'apps.example.net',
    }
    assert.deepEqual(namesOf(await made({ settings: domains }), 'Ingress'), [])
    const all = await made({
      settings: domains,
      ingress: {
        enabled: true,
        className: 'nginx',
        extraHosts: ['shop.example.com'],
        tls: { clusterIssuer: 'letsencrypt' },
        annotations: { 'nginx.ingress.kubernetes.io/proxy-body-size': '0' },
      },
    })
    const { spec, metadata } = find(all, 'Ingress', 'berth')
    const hosts = [
      'berth.example.org',
      '*.gateway.example.org',
      'agents.example.org',
      '*.agents.example.org',
      '*.apps.example.net',
      'shop.example.com',
    ]
    assert.deepEqual(
      spec.rules.map((rule: any) => rule.host),
      hosts,
    )
    for (const { http } of spec.rules)
      assert.deepEqual(http.paths[0].backend.service, { name: 'berth-web', port: { name: 'http' } })
    assert.equal(spec.ingressClassName, 'nginx')
    assert.deepEqual(metadata.annotations, {
      'cert-manager.io/cluster-issuer': 'letsencrypt',
      'nginx.ingress.kubernetes.io/proxy-body-size': '0',
    })
    assert.equal(spec.tls.length, hosts.length)
    assert.deepEqual(spec.tls[1], {
      secretName: 'berth-tls-any-gateway-example-org',
      hosts: ['*.gateway.example.org'],
    })
    const own = await made({ ingress: { enabled: true, tls: { existingSecret: 'mine' } } })
    assert.deepEqual(find(own, 'Ingress', 'berth').spec.tls, [
      { secretName: 'mine', hosts: ['berth.example.org'] },
    ])
    const plain = await made({ ingress: { enabled: true, tls: { enabled: false } } })
    assert.equal(find(plain, 'Ingress', 'berth').spec.tls, undefined)
  })

  it('a TLS proxy with on-demand certificates asks at a separate Service', async () => {
    assert.equal(environmentOf(await made(), 'web').BERTH_TLS_ASK, '')
    const caddy = [{ podSelector: { matchLabels: { app: 'caddy' } } }]
    const all = await made({ tlsAsk: { enabled: true }, networkPolicy: { tlsAsk: caddy } })
    assert.equal(environmentOf(all, 'web').BERTH_TLS_ASK, '0.0.0.0:3131')
    assert.equal(find(all, 'Service', 'berth-tls-ask').spec.ports[0].port, 3131)
    assert.deepEqual(policyOf(all, 'web').ingress[1], { from: caddy, ports: [{ port: 3131 }] })
  })
})
