import type { Section } from '../rows.ts'

/** Contract 8 and 9. */
export const limits: Section[] = [
  {
    title: '8 Limits',
    rows: [
      [
        'the name of an agent has at most 100 characters: 400',
        'openclaw/lifecycle > an agent that comes up > an agent may have a name of 100 characters, and of no more',
      ],
      [
        'an agent has at most 10 skills: 400',
        'agents/attached-skills > attaching skills > attaching skills takes ten, and no more',
        'agents/attached-skills > attaching skills > attaching skills takes ten also when all come at once',
      ],
      [
        'an agent has at most 5 domains: 400',
        'agents/domains > a domain is 400 > the sixth domain of an agent is 400, also where twenty are added at once',
      ],
      [
        'a workspace has as many agents as its plan says: 403 `Agent limit reached`',
        'agents/plans > the free plan > the free plan has one agent',
        'openclaw/lifecycle > creating an agent > creating an agent stops at the limit of the plan, however many ask at once',
      ],
      [
        'an upload has at most 8 MiB unless the operator says otherwise: 413 `File too large`',
        'openclaw/files > uploading a file > uploading a file takes the largest, and refuses one byte more',
      ],
      [
        'an agent takes its time to come up, and is offline meanwhile',
        'openclaw/lifecycle > an agent that comes up > an agent that comes up has its chat offline until then',
      ],
    ],
  },
  {
    title: '9 Versioning',
    rows: [
      [
        'the file API is served under `/v3`',
        'health > /openapi.json > /openapi.json has every route of the service once, under one name',
        'pin-by-cid > a pin > a pin is answered with exactly the fields of the contract',
      ],
      [
        'the agents API is served under `/v0`',
        'health > /openapi.json > /openapi.json has every route of the service once, under one name',
        'openclaw/lifecycle > an agent > an agent is listed, and read with its process',
      ],
      [
        'a restart takes a version of the engine, and an unknown one is 400 `Invalid version`',
        'openclaw/lifecycle > an agent > an agent knows the versions that it can run',
        'openclaw/lifecycle > an agent > an agent is not restarted on version "2020.1.1"',
      ],
    ],
  },
]
