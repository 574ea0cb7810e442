import type { Section } from '../rows.ts'

/** Contract 8 and 9. */
export const limits: Section[] = [
  {
    title: '8 Limits',
    rows: [
      [
        'the name of an agent has at most 100 characters: 400',
        'openclaw/lifecycle > a starting agent > an agent may have a name of 100 characters at most',
      ],
      [
        'an agent has at most 10 skills: 400',
        'agents/attached-skills > attaching skills > attaching skills is limited to ten skills',
        'agents/attached-skills > attaching skills > attaching skills concurrently is limited to ten skills',
      ],
      [
        'an agent has at most 5 domains: 400',
        'agents/domains > invalid domains > the sixth domain of an agent returns 400, even if twenty are added at once',
      ],
      [
        'a workspace has as many agents as its plan allows: 403 `Agent limit reached`',
        'agents/plans > the free plan > the free plan allows one agent',
        "openclaw/lifecycle > creating an agent > creating agents concurrently stops at the plan's limit",
      ],
      [
        'an upload has at most 8 MiB unless the operator says otherwise: 413 `File too large`',
        'openclaw/files > uploading a file > uploading a file is limited to the largest size',
      ],
      [
        'an agent takes some time to start, and its chat is offline until then',
        'openclaw/lifecycle > a starting agent > the chat of an agent is offline while it starts',
      ],
    ],
  },
  {
    title: '9 Versioning',
    rows: [
      [
        'the file API is served under `/v3`',
        'health > /openapi.json > /openapi.json has every route of the service once, with a unique operation id',
        'pin-by-cid > a pin > a pin returns exactly the fields of the contract',
      ],
      [
        'the agents API is served under `/v0`',
        'health > /openapi.json > /openapi.json has every route of the service once, with a unique operation id',
        'openclaw/lifecycle > an agent > an agent is listed, and returned with its process',
      ],
      [
        'a restart accepts an engine version, and an unknown one returns 400 `Invalid version`',
        'openclaw/lifecycle > an agent > an agent lists the versions that it can run',
        'openclaw/lifecycle > an agent > an agent is not restarted with version "2020.1.1"',
      ],
    ],
  },
]
