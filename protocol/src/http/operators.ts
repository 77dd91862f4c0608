import { z } from 'zod';
import { serverPattern } from '../sign-in.ts';
import { hex, optional, pageQuery, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';

const key = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
const nonce = '00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff';

/** Example of an operator's id. */
export const operatorId = '21fe31dfa154a261626bf854046fd227';

export const roles = ['admin', 'operator'] as const;
export type Role = (typeof roles)[number];

export const operatorSchema = z
  .strictObject({
    operator_id: z.string(),
    username: z.string(),
    role: z.enum(roles),
    added_at: unixSeconds,
    added_by: z.string().describe('operator_id, or `bootstrap`'),
    bootstrap: z.boolean(),
    removed_at: unixSeconds.nullable(),
    removed_by: z.string().nullable(),
  })
  .meta({ id: 'Operator' });
export type Operator = z.infer<typeof operatorSchema>;

const operatorExample: Operator = {
  operator_id: operatorId,
  username: 'ada',
  role: 'admin',
  added_at: 1795000000,
  added_by: 'bootstrap',
  bootstrap: true,
  removed_at: null,
  removed_by: null,
};

export const tokenSchema = z.strictObject({ token: z.string(), expires_at: unixSeconds }).meta({ id: 'Token' });
export const sessionSchema = z
  .strictObject({ operator_id: z.string(), username: z.string(), role: z.enum(roles) })
  .meta({ id: 'Session' });
/** A new sign-in session with its operator, which saves the client a request. */
export const signedInSchema = tokenSchema.extend({ operator: sessionSchema }).meta({ id: 'SignedIn' });
const tokenExample = { token: 'qT3Zr0qkUu3ZVwYzN2m1yJ8w5v4b7c9d0e1f2g3h4i5', expires_at: 1795003600 };
const signedInExample = {
  ...tokenExample,
  operator: {
    operator_id: operatorExample.operator_id,
    username: operatorExample.username,
    role: operatorExample.role,
  },
};

export const challenge = route({
  id: 'challenge',
  method: 'POST',
  path: '/auth/challenge',
  tag: 'Sign-in',
  summary: 'Request a nonce to sign',
  description:
    'A nonce is valid once, for 60 seconds. With `form: 2` the signature is bound to the server; the answer repeats `form`. Otherwise up to eight nonces are valid for a key and a network; any of them may be answered.',
  access: 'anyone',
  body: z.strictObject({
    public_key: z.string().describe('Ed25519 public key, 64 hexadecimal characters'),
    form: optional(z.literal(2)).describe('2: the signature will name the server'),
  }),
  answers: {
    200: z.strictObject({ nonce: hex(32), form: z.literal(2).optional().describe('the requested form') }),
  },
  errors: ['key_invalid', 'operator_unknown', 'sign_in_unbound'],
  example: {
    body: { public_key: key, form: 2 },
    answer: { nonce, form: 2 },
  },
});

export const verify = route({
  id: 'verify',
  method: 'POST',
  path: '/auth/verify',
  tag: 'Sign-in',
  summary: 'Answer the challenge and get a session token',
  description:
    'Bound (`form: 2`): the signature is over four lines, each ended by a newline: the text "muster sign-in 2", `server`, `public_key` and `nonce` in lower-case hexadecimal. `server` is what the client itself sees: `tls:` and the SHA-256 of the SubjectPublicKeyInfo of the certificate, or `origin:` and the origin of the address. Without `server` the signature is over the 32 bytes of the nonce themselves; another server can relay such a signature, so `sign_in.require_bound` refuses it.',
  access: 'anyone',
  body: z.strictObject({
    public_key: z.string(),
    signature: z.string().describe('128 hexadecimal characters'),
    server: optional(z.string().regex(serverPattern)).describe('the server that the signature names'),
    nonce: optional(z.string().regex(/^[0-9a-f]{64}$/)).describe('the nonce that was signed; with `server`'),
  }),
  answers: { 200: signedInSchema },
  errors: ['key_invalid', 'signature_malformed', 'signature_invalid', 'sign_in_unbound', 'sign_in_server_unknown'],
  example: {
    body: {
      public_key: key,
      signature: '5f'.repeat(64),
      server: 'origin:https://muster.example:4748',
      nonce,
    },
    answer: signedInExample,
  },
});

export const logout = route({
  id: 'logout',
  method: 'POST',
  path: '/auth/logout',
  tag: 'Sign-in',
  summary: 'End this session',
  access: 'operator',
  answers: { 204: null },
  errors: [],
  example: {},
});

export const renew = route({
  id: 'renew',
  method: 'POST',
  path: '/auth/renew',
  tag: 'Sign-in',
  summary: 'Exchange a valid token for a new one',
  description: 'Possible up to 12 hours after the sign-in; the old token becomes invalid.',
  access: 'operator',
  answers: { 200: tokenSchema },
  errors: [],
  example: { answer: tokenExample },
});

export const getSession = route({
  id: 'getSession',
  method: 'GET',
  path: '/auth/session',
  tag: 'Sign-in',
  summary: 'Show the operator of this session',
  description: 'For a client that has only a token; a sign-in returns the operator with the token.',
  access: 'operator',
  answers: { 200: sessionSchema },
  errors: [],
  example: { answer: { operator_id: operatorExample.operator_id, username: 'ada', role: 'admin' } },
});

const webCodeExample = 'w5Hq2m9ZkUu3ZVwYzN2m1yJ8w5v4b7c9d0e1f2g3h4i';

export const webLogin = route({
  id: 'webLogin',
  method: 'POST',
  path: '/auth/web-login',
  tag: 'Sign-in',
  summary: 'Create a code that signs a browser in as you',
  description:
    'The code is valid once, for 60 seconds, and no longer than this session. `url` is the link to open; the code is in its fragment, which is not sent to servers.',
  access: 'operator',
  answers: { 200: z.strictObject({ code: z.string(), url: z.string() }).meta({ id: 'WebLogin' }) },
  errors: [],
  example: {
    answer: { code: webCodeExample, url: `https://muster.example:4748/login#code=${webCodeExample}` },
  },
});

export const redeemWebLogin = route({
  id: 'redeemWebLogin',
  method: 'POST',
  path: '/auth/web-login/redeem',
  tag: 'Sign-in',
  summary: 'Exchange the code of a web sign-in for a session token',
  access: 'anyone',
  body: z.strictObject({ code: z.string().max(256) }),
  answers: { 200: signedInSchema },
  errors: ['login_code_invalid'],
  example: { body: { code: webCodeExample }, answer: signedInExample },
});

export const listOperators = route({
  id: 'listOperators',
  method: 'GET',
  path: '/operators',
  tag: 'Operators',
  summary: 'List operators',
  access: 'operator',
  query: z.strictObject({ ...pageQuery(1000, 1000), include_removed: z.enum(['true', 'false']).optional() }),
  paged: true,
  answers: { 200: z.array(operatorSchema) },
  errors: [],
  example: { answer: [operatorExample] },
});

export const addOperator = route({
  id: 'addOperator',
  method: 'POST',
  path: '/operators',
  tag: 'Operators',
  summary: 'Add an operator',
  access: 'admin',
  body: z.strictObject({ public_key: z.string(), username: z.string(), role: optional(z.enum(roles)) }),
  answers: { 201: operatorSchema },
  errors: ['key_invalid', 'name_taken', 'key_taken'],
  example: { body: { public_key: key, username: 'ada', role: 'admin' }, answer: operatorExample },
});

const operatorParams = z.strictObject({ operator_id: z.string() });

export const getOperator = route({
  id: 'getOperator',
  method: 'GET',
  path: '/operators/{operator_id}',
  tag: 'Operators',
  summary: 'Show an operator, including a removed one',
  access: 'operator',
  params: operatorParams,
  answers: { 200: operatorSchema },
  errors: ['operator_not_found'],
  example: { params: { operator_id: operatorExample.operator_id }, answer: operatorExample },
});

export const removeOperator = route({
  id: 'removeOperator',
  method: 'DELETE',
  path: '/operators/{operator_id}',
  tag: 'Operators',
  summary: 'Remove an operator',
  description:
    'The record stays. From the answer on, the operator’s sessions, streams and terminals have no effect, and its codes for web sign-ins and its valid enrollment tokens are void. `POST /operators/{operator_id}/remove` does the same and lists them.',
  access: 'admin',
  params: operatorParams,
  answers: { 204: null },
  errors: ['operator_not_found', 'last_admin'],
  example: { params: { operator_id: operatorExample.operator_id } },
});

export const removedOperatorSchema = z
  .strictObject({
    operator: operatorSchema,
    ended: z
      .strictObject({
        sessions: z.int().describe('sign-in sessions, with their streams'),
        web_logins: z.int().describe('codes for a web sign-in'),
        enrolment_tokens: z
          .array(z.strictObject({ id: z.string(), name: z.string().nullable() }))
          .describe('valid tokens that the operator created; the oldest 500, the event has the total number'),
        terminals: z.array(z.string()).describe('session_id of each terminal that was open'),
      })
      .describe('what the removal ended; empty if the operator was removed before'),
    operators_added: z
      .array(z.strictObject({ operator_id: z.string(), username: z.string() }))
      .describe(
        'operators that this one added and who can still sign in; also those added by removed operators that it had added',
      ),
    left: z
      .strictObject({
        modules: z.array(z.string()).describe('names of modules whose newest revision it uploaded'),
        assignments: z.array(z.string()).describe('names'),
        channels: z.array(z.strictObject({ id: z.string(), name: z.string() })),
        runs: z.array(z.string()).describe('run_id of each run that continues'),
        operations: z
          .array(z.string())
          .describe(
            'operation_id of each operation that continues or waits for its agent, outside of runs; the oldest 500',
          ),
      })
      .describe('objects that stay, created by this operator or by removed operators that it had added: review them'),
  })
  .meta({ id: 'RemovedOperator' });

export const removeOperatorReporting = route({
  id: 'removeOperatorReporting',
  method: 'POST',
  path: '/operators/{operator_id}/remove',
  tag: 'Operators',
  summary: 'Remove an operator, and list what ended with it',
  description: 'Like `DELETE /operators/{operator_id}`, and lists what ended.',
  access: 'admin',
  params: operatorParams,
  answers: { 200: removedOperatorSchema },
  errors: ['operator_not_found', 'last_admin'],
  example: {
    params: { operator_id: operatorExample.operator_id },
    answer: {
      operator: { ...operatorExample, removed_at: 1795000600, removed_by: '0a0b0c0d0e0f00010203040506070809' },
      ended: {
        sessions: 1,
        web_logins: 0,
        enrolment_tokens: [{ id: '01JD1XM3Z3T8Y4E2W6R5Q7P9AB', name: null }],
        terminals: [],
      },
      operators_added: [],
      left: { modules: [], assignments: ['web'], channels: [], runs: [], operations: [] },
    },
  },
});
