import { z } from 'zod';
import { secretName } from '../secret-name.ts';
import { maximumSelectorLength } from '../selector.ts';
import { tagKeySchema, tagValueSchema } from '../tag.ts';
import { nameParams, optional, pageQuery } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operatorId } from './operators/operators.ts';

/** Maximum length of a secret, in UTF-8 bytes. */
export const maximumSecretBytes = 64 * 1024;
/** Maximum number of secrets per page of the list. */
const maxSecrets = 1000;

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;

/**
 * Returns the Unix milliseconds of an RFC 3339 time; NaN for invalid text and for dates that do not exist, such as
 * February 31.
 */
function instantOf(text: string): number {
  if (!rfc3339.test(text)) return Number.NaN;
  // JavaScript parses February 31 as a date in March.
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text.slice(0, 10)) return Number.NaN;
  return Date.parse(text.toUpperCase());
}

const time = z.string().describe('RFC 3339');
const instant = z
  .string()
  .max(64)
  .refine((text) => !Number.isNaN(instantOf(text)), 'must be a time such as 2027-01-31T08:00:00Z')
  .transform(instantOf)
  .meta({ override: { type: 'string', format: 'date-time' } });

const secretNameSchema = z
  .string()
  .regex(secretName, 'must be 1 to 64 letters, digits, "_", or "-", and begin with a letter or "_"');

const value = z
  .string()
  .min(1, 'must not be empty')
  .refine((text) => new TextEncoder().encode(text).length <= maximumSecretBytes, 'must be at most 64 KiB of UTF-8')
  .meta({ maxLength: maximumSecretBytes })
  .describe('text, which may contain line breaks and control characters except U+0000');

const description = z
  .string()
  .max(1024)
  .refine((text) => !/\p{Cc}/u.test(text), 'must not contain control characters');

export const restrictionSchema = z
  .strictObject({
    node_ids: z.array(z.string()).nullable(),
    tags: z.string().nullable().describe('selector of the agents'),
  })
  .meta({ id: 'SecretRestriction' });
export type SecretRestriction = z.infer<typeof restrictionSchema>;

const givenRestriction = z.strictObject({
  node_ids: optional(
    z
      .array(
        z
          .string()
          .regex(/^[0-9a-fA-F]{32}$/, 'must be a node id: 32 hexadecimal characters')
          .transform((id) => id.toLowerCase()),
      )
      .max(10_000)
      .describe('ids of the agents; an empty list matches no agent'),
  ),
  tags: optional(
    z
      .union([
        z.string().max(maximumSelectorLength),
        z
          .record(tagKeySchema, tagValueSchema)
          .refine((tags) => Object.keys(tags).length <= 64, 'must have at most 64 tags'),
      ])
      .describe('selector, or tags that must all match; an empty selector or map matches no agent'),
  ),
});

export const secretSchema = z
  .strictObject({
    name: z.string(),
    description: z.string().nullable(),
    expires_at: time.nullable(),
    restriction: restrictionSchema.nullable(),
    created_at: time,
    created_by: z.string(),
    updated_at: time,
    updated_by: z.string(),
  })
  .meta({ id: 'Secret' });
export type Secret = z.infer<typeof secretSchema>;

const secretExample: Secret = {
  name: 'db_password',
  description: 'of the shop’s database',
  expires_at: '2027-01-31T08:00:00.000Z',
  restriction: { node_ids: null, tags: 'role=web' },
  created_at: '2026-11-18T11:06:40.000Z',
  created_by: operatorId,
  updated_at: '2026-11-18T11:06:40.000Z',
  updated_by: operatorId,
};

const restrictionText =
  'Only agents that satisfy all given parts of the restriction may use the value. Without a restriction, every approved agent may use it.';

export const listSecrets = route({
  id: 'listSecrets',
  method: 'GET',
  path: '/secrets',
  tag: 'Secrets',
  summary: 'List secrets by name, without their values',
  access: 'operator',
  query: z.strictObject(pageQuery(maxSecrets, maxSecrets)),
  paged: true,
  answers: { 200: z.array(secretSchema) },
  errors: [],
  example: { query: { limit: '100' }, answer: [secretExample] },
});

export const createSecret = route({
  id: 'createSecret',
  method: 'POST',
  path: '/secrets',
  tag: 'Secrets',
  summary: 'Create a secret',
  description: `The value is encrypted at rest and never returned. Modules use it as \`\${{ secrets.NAME }}\`. ${restrictionText}`,
  access: 'operator',
  confidential: true,
  body: z.strictObject({
    name: secretNameSchema,
    value,
    description: optional(description),
    expires_at: optional(instant),
    restriction: optional(givenRestriction),
  }),
  answers: { 201: secretSchema },
  errors: ['plaintext_refused', 'selector_invalid', 'name_taken', 'secrets_locked'],
  example: {
    body: {
      name: 'db_password',
      value: 'correct horse battery staple',
      description: 'of the shop’s database',
      expires_at: '2027-01-31T08:00:00Z',
      restriction: { tags: 'role=web' },
    },
    answer: secretExample,
  },
});

export const getSecret = route({
  id: 'getSecret',
  method: 'GET',
  path: '/secrets/{name}',
  tag: 'Secrets',
  summary: 'Show a secret, without its value',
  access: 'operator',
  params: nameParams,
  answers: { 200: secretSchema },
  errors: ['secret_not_found'],
  example: { params: { name: 'db_password' }, answer: secretExample },
});

export const updateSecret = route({
  id: 'updateSecret',
  method: 'PUT',
  path: '/secrets/{name}',
  tag: 'Secrets',
  summary: 'Change a secret',
  description: `Absent fields remain unchanged. \`expires_at: null\` removes the expiry, an empty \`description\` removes the description, and \`restriction: {}\` removes the restriction. ${restrictionText}`,
  access: 'operator',
  confidential: true,
  params: nameParams,
  body: z.strictObject({
    description: optional(description),
    value: optional(value),
    expires_at: instant.nullish().describe('null removes the expiry'),
    restriction: optional(givenRestriction),
  }),
  bodyOptional: true,
  answers: { 200: secretSchema },
  errors: ['plaintext_refused', 'selector_invalid', 'secret_not_found', 'secret_changed', 'secrets_locked'],
  example: {
    params: { name: 'db_password' },
    body: { value: 'incorrect horse battery staple', expires_at: '2027-01-31T08:00:00Z' },
    answer: secretExample,
  },
});

export const removeSecret = route({
  id: 'removeSecret',
  method: 'DELETE',
  path: '/secrets/{name}',
  tag: 'Secrets',
  summary: 'Remove a secret',
  description:
    'Machines keep files that contain its value. A queued operation that needs the secret fails when it is dispatched.',
  access: 'operator',
  params: nameParams,
  answers: { 204: null },
  errors: ['secret_not_found'],
  example: { params: { name: 'db_password' } },
});

export const rotateSecretsKey = route({
  id: 'rotateSecretsKey',
  method: 'POST',
  path: '/secrets/rotate-key',
  tag: 'Secrets',
  summary: 'Re-encrypt all secrets with a new key',
  description:
    'If the keys are in the orchestrator’s own file, creates a key, re-encrypts all values with it, and removes the old keys from the file. If the keys are provided from outside, re-encrypts all values with the first key. `retired` then lists keys to remove. Values remain readable throughout. After a crash, repeat the request.',
  access: 'admin',
  answers: {
    200: z.strictObject({
      key_id: z.string().describe('id of the key that encrypts all values'),
      reencrypted: z.number().int().describe('number of re-encrypted secrets and channel configurations'),
      retired: z.array(z.string()).describe('keys that are no longer needed'),
      unreadable: z
        .array(z.string())
        .describe('secrets and channels (`channel NAME`) whose key is missing, so that they remain unchanged'),
    }),
  },
  errors: ['secrets_locked'],
  example: {
    answer: { key_id: '5d41402abc4b2a76', reencrypted: 12, retired: ['7d793037a0760186'], unreadable: [] },
  },
});
