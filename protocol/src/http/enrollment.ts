import { z } from 'zod';
import { optional, pageQuery, textMap, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operatorId } from './operators/operators.ts';

const enrolmentToken = z
  .strictObject({
    id: z.string(),
    name: z.string().nullable(),
    tags: textMap,
    approve: z.boolean(),
    uses_left: z.number().int(),
    created_at: unixSeconds,
    created_by: z.string(),
    expires_at: unixSeconds,
    revoked_at: unixSeconds.nullable(),
  })
  .meta({ id: 'EnrolmentToken' });
const enrolmentExample = {
  id: '01KAGZ3N8V5T1Q6W9X2Y4Z7B8C',
  name: 'web-2',
  tags: { role: 'web' },
  approve: true,
  uses_left: 1,
  created_at: 1795000000,
  created_by: operatorId,
  expires_at: 1795003600,
  revoked_at: null,
};

export const createEnrolmentToken = route({
  id: 'createEnrolmentToken',
  method: 'POST',
  path: '/enrolment-tokens',
  tag: 'Enrolment',
  summary: 'Create an enrollment token, and the command to run on the machine to enroll',
  description: 'Only this response contains the token. A token with a `name` must have a single use.',
  access: 'admin',
  bodyOptional: true,
  body: z.strictObject({
    expires_in: optional(z.number().int().min(60).max(31_536_000)).describe(
      'validity of the token in seconds; default: 3600',
    ),
    uses: optional(z.number().int().min(1).max(10_000)).describe(
      'maximum number of agents that the token enrolls; default: 1',
    ),
    name: optional(z.string()),
    tags: optional(textMap),
    approve: optional(z.boolean()).describe(
      'whether the agent is approved immediately, under `name` or its hostname; default: true',
    ),
  }),
  answers: {
    201: enrolmentToken
      .extend({
        token: z.string(),
        command: z
          .string()
          .describe('command to run on the machine, which installs the agent if possible and connects it'),
        connect_command: z.string().describe('command for a machine on which Muster is installed'),
        note: z.string().nullable().describe('remark on `command`, such as why it does not install the agent'),
      })
      .meta({ id: 'NewEnrolmentToken' }),
  },
  errors: ['name_taken'],
  example: {
    body: { name: 'web-2', tags: { role: 'web' } },
    answer: {
      ...enrolmentExample,
      token: 'mt_4Jq2k9wZr7',
      command: `(curl -fsSk --pinnedpubkey 'sha256//YhKJKSzoTt2b5FP18fvpHo7fJYqQCjAa3HWY3tvRMwE=' https://orchestrator.example:4748/install/agent.sh || echo exit 1) | MUSTER_TOKEN=mt_4Jq2k9wZr7 sh -s -- --from https://orchestrator.example:4748 --pin 'sha256//YhKJKSzoTt2b5FP18fvpHo7fJYqQCjAa3HWY3tvRMwE=' --to orchestrator.example:4747 --key ${'ab'.repeat(32)}`,
      connect_command: `MUSTER_TOKEN=mt_4Jq2k9wZr7 muster agent connect orchestrator.example:4747 --orchestrator-key ${'ab'.repeat(32)}`,
      note: null,
    },
  },
});

export const listEnrolmentTokens = route({
  id: 'listEnrolmentTokens',
  method: 'GET',
  path: '/enrolment-tokens',
  tag: 'Enrolment',
  summary: 'List enrollment tokens without their values, newest first',
  access: 'admin',
  query: z.strictObject({
    ...pageQuery(100, 1000),
    include_ended: z
      .enum(['true', 'false'])
      .optional()
      .describe('whether to include tokens that were used up, were revoked, or expired in the last 30 days'),
  }),
  paged: true,
  answers: { 200: z.array(enrolmentToken) },
  errors: [],
  example: { answer: [enrolmentExample] },
});

export const revokeEnrolmentToken = route({
  id: 'revokeEnrolmentToken',
  method: 'DELETE',
  path: '/enrolment-tokens/{id}',
  tag: 'Enrolment',
  summary: 'Revoke an enrollment token',
  access: 'admin',
  params: z.strictObject({ id: z.string() }),
  answers: { 204: null },
  errors: ['enrolment_token_not_found'],
  example: { params: { id: enrolmentExample.id } },
});
