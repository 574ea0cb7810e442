/** Examples for the routes that make an agent's pages reachable; see `examples.ts`. */
import type { Example } from './example.ts'

const mappings = [
  { port: 3000, pathPrefix: '/', protected: false },
  { port: 8080, pathPrefix: '/admin', protected: true },
]

const domain = {
  id: '0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2',
  agentId: 'x7f3k2ab',
  userId: '0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60',
  subdomain: null,
  customDomain: 'shop.example.com',
  targetPort: 3000,
  protected: false,
  status: 'pending_ownership',
  url: 'https://shop.example.com',
  cnameTarget: 'x7f3k2ab.apps.example',
  txtName: '_service-verify.shop.example.com',
  txtValue: 'berth-verify=ZBLC4vDC_FLhKqZxvHkc7gBjEWZ3yMGdGkq5TQ0yB1s',
  createdAt: '2026-11-21T11:20:04.310Z',
  updatedAt: '2026-11-21T11:20:04.310Z',
}
const verified = { ...domain, status: 'verified', txtName: null, txtValue: null }

export const domainExamples: Record<string, Example> = {
  listPortForwarding: { response: { mappings } },
  setPortForwarding: { request: { mappings }, response: { success: true, mappings } },
  listDomains: { response: { domains: [verified] } },
  addDomain: {
    request: { customDomain: 'shop.example.com', targetPort: 3000 },
    response: { success: true, domain },
  },
  getDomainChallenge: {
    request: { customDomain: 'shop.example.com' },
    response: {
      success: true,
      customDomain: domain.customDomain,
      type: 'TXT',
      name: domain.txtName,
      value: domain.txtValue,
      cnameTarget: domain.cnameTarget,
    },
  },
  updateDomain: {
    request: { targetPort: 8080, protected: true },
    response: { success: true, domain: { ...verified, targetPort: 8080, protected: true } },
  },
  deleteDomain: { response: { success: true, message: 'Domain deleted' } },
  verifyDomain: {
    response: { success: true, verified: true, message: 'The domain is verified', domain: verified },
  },
}
