import { z } from 'zod'
import { planRecord, toPlanRecord } from '../accounts/plans.ts'
import { notFound } from '../errors.ts'
import { withExample } from '../http/fields.ts'
import { pageOf } from '../http/pages.ts'
import type { Route } from '../http/route.ts'
import { text } from '../http/shapes.ts'
import { ceilingsChange, changeCeilings } from '../models/ceilings.ts'
import { type AdminServices, route } from './services.ts'

/** Plans and their limits. */
export function planRoutes({ prisma }: AdminServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/v0/admin/plans',
      id: 'listPlans',
      summary: 'List plans with their limits',
      description: 'All plans, by name. They are rows of the database, where the operator changes them.',
      scope: 'instance:read',
      success: { description: 'The plans.', body: pageOf('plans', planRecord) },
      async handle() {
        const plans = await prisma.plan.findMany({ orderBy: { name: 'asc' } })
        return { body: { data: { plans: plans.map(toPlanRecord), next_page_token: '' } } }
      },
    }),
    route({
      method: 'patch',
      path: '/v0/admin/plans/:name',
      id: 'changePlan',
      summary: 'Change what a plan lets a workspace spend on models',
      description:
        'Omitted limits stay unchanged. The change applies to each workspace on the plan within about a second. The ' +
        'other limits change in the database only.',
      scope: 'instance:write',
      params: z.object({ name: withExample(text(255), 'pro').describe('The name of the plan.') }),
      body: ceilingsChange,
      success: { description: 'The changed plan.', body: z.object({ data: planRecord }) },
      errors: [404],
      async handle({ params: { name }, body }) {
        const plan = await changeCeilings(prisma, name, body)
        if (!plan) throw notFound('There is no such plan')
        return { body: { data: toPlanRecord(plan) } }
      },
    }),
  ]
}
