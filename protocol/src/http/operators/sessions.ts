import { z } from 'zod';
import { serverPattern } from '../../sign-in.ts';
import { hex, optional, pageQuery, unixSeconds } from '../definition/fields.ts';
import { route } from '../definition/route.ts';
import { operatorId, operatorKey, roles } from './operators.ts';

const nonce = '00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff';

export const tokenSchema = z.strictObject({ token: z.string(), expires_at: unixSeconds }).meta({ id: 'Token' });
export const sessionSchema = z
  .strictObject({ operator_id: z.string(), username: z.string(), role: z.enum(roles) })
  .meta({ id: 'Session' });
/** A new sign-in session. Includes the operator, to save the client a request. */
export const signedInSchema = tokenSchema.extend({ operator: sessionSchema }).meta({ id: 'SignedIn' });
const operatorExample = { operator_id: operatorId, username: 'ada', role: 'admin' } as const;
const tokenExample = { token: 'qT3Zr0qkUu3ZVwYzN2m1yJ8w5v4b7c9d0e1f2g3h4i5', expires_at: 1795003600 };
const signedInExample = {
  ...tokenExample,
  operator: operatorExample,
};

export const challenge = route({
  id: 'challenge',
  method: 'POST',
  path: '/auth/challenge',
  tag: 'Sign-in',
  summary: 'Request a nonce to sign',
  description:
    'A nonce is valid once, for 60 seconds. With `form: 2`, the signature is bound to the server, and the response repeats `form`. Without it, up to eight nonces are valid at the same time for a key and a network.',
  access: 'anyone',
  body: z.strictObject({
    public_key: z.string().describe('Ed25519 public key, 64 hexadecimal characters'),
    form: optional(z.literal(2)).describe('2 if the signature will name the server'),
  }),
  answers: {
    200: z.strictObject({ nonce: hex(32), form: z.literal(2).optional().describe('the requested form') }),
  },
  errors: ['key_invalid', 'operator_unknown', 'sign_in_unbound'],
  example: {
    body: { public_key: operatorKey, form: 2 },
    answer: { nonce, form: 2 },
  },
});

export const verify = route({
  id: 'verify',
  method: 'POST',
  path: '/auth/verify',
  tag: 'Sign-in',
  summary: 'Answer a challenge, and receive a session token',
  description:
    'With `form: 2`, the signature covers four lines that each end with a newline: the text "muster sign-in 2", `server`, `public_key`, and `nonce`, both in lower-case hexadecimal. `server` names the server that the client sees: `tls:` and the SHA-256 of the SubjectPublicKeyInfo of the certificate, or `origin:` and the origin of the address. Without `server`, the signature covers only the 32 bytes of the nonce. Another server can relay such a signature, so `sign_in.require_bound` refuses it.',
  access: 'anyone',
  body: z.strictObject({
    public_key: z.string(),
    signature: z.string().describe('128 hexadecimal characters'),
    server: optional(z.string().regex(serverPattern)).describe('server that the signature names'),
    nonce: optional(z.string().regex(/^[0-9a-f]{64}$/)).describe('nonce that was signed; required with `server`'),
  }),
  answers: { 200: signedInSchema },
  errors: ['key_invalid', 'signature_malformed', 'signature_invalid', 'sign_in_unbound', 'sign_in_server_unknown'],
  example: {
    body: {
      public_key: operatorKey,
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
  summary: 'Exchange a valid token for a new token',
  description: 'Possible until 12 hours after the sign-in. The old token becomes invalid.',
  access: 'operator',
  answers: { 200: tokenSchema },
  errors: ['session_token_required'],
  example: { answer: tokenExample },
});

export const getSession = route({
  id: 'getSession',
  method: 'GET',
  path: '/auth/session',
  tag: 'Sign-in',
  summary: 'Show the operator of this session',
  description: 'For clients that have only a token. A sign-in returns the operator with the token.',
  access: 'operator',
  answers: { 200: sessionSchema },
  errors: [],
  example: { answer: operatorExample },
});

const webCodeExample = 'w5Hq2m9ZkUu3ZVwYzN2m1yJ8w5v4b7c9d0e1f2g3h4i';

export const webLogin = route({
  id: 'webLogin',
  method: 'POST',
  path: '/auth/web-login',
  tag: 'Sign-in',
  summary: 'Create a code to sign in to a browser as the requesting operator',
  description:
    'The code is valid once, for 60 seconds, and not longer than this session. `url` is the link to open. Its fragment contains the code, because browsers do not send fragments to servers.',
  access: 'operator',
  answers: { 200: z.strictObject({ code: z.string(), url: z.string() }).meta({ id: 'WebLogin' }) },
  errors: ['session_token_required'],
  example: {
    answer: { code: webCodeExample, url: `https://muster.example:4748/login#code=${webCodeExample}` },
  },
});

export const redeemWebLogin = route({
  id: 'redeemWebLogin',
  method: 'POST',
  path: '/auth/web-login/redeem',
  tag: 'Sign-in',
  summary: 'Exchange the code of a web login for a session token',
  access: 'anyone',
  body: z.strictObject({ code: z.string().max(256) }),
  answers: { 200: signedInSchema },
  errors: ['login_code_invalid'],
  example: { body: { code: webCodeExample }, answer: signedInExample },
});

/**
 * Header with the page key of a console session. The console keeps this key in the storage of its origin, because a
 * browser sends cookies to every port of a host.
 */
export const pageKeyHeader = 'muster-page-key';

export const consoleSessionSchema = z
  .strictObject({
    page_key: z
      .string()
      .describe('to be sent in the header `Muster-Page-Key` of every request that the cookie authenticates'),
    expires_at: unixSeconds.describe('latest time at which the session ends; it ends earlier if it is not used'),
    operator: sessionSchema,
  })
  .meta({ id: 'ConsoleSession' });

const pageKeyExample = 'Zr0qkUu3ZVwYzN2m1yJ8w5v4b7c9d0e1f2g3h4i5qT3';

export const openConsoleSession = route({
  id: 'openConsoleSession',
  method: 'POST',
  path: '/auth/cookie',
  tag: 'Sign-in',
  summary: 'Exchange a session token for the cookie of a console session',
  description:
    'For the console. The token becomes invalid. The response sets a cookie that scripts cannot read. The cookie is accepted only with the page key, and only from the console’s own pages: the browser must send `Sec-Fetch-Site: same-origin` and an `Origin`, with this request too. The session ends after `sign_in.console_idle_secs` without a request, and at the latest after `sign_in.console_life_secs`. A console session cannot be exchanged for a token.',
  access: 'operator',
  answers: { 200: consoleSessionSchema },
  errors: ['session_token_required', 'origin_refused'],
  example: {
    answer: {
      page_key: pageKeyExample,
      expires_at: 1795604800,
      operator: operatorExample,
    },
  },
});

export const signInSessionSchema = z
  .strictObject({
    id: z.string(),
    kind: z.enum(['token', 'console']).describe('`console` is a browser with a cookie'),
    current: z.boolean().describe('whether this request belongs to the session'),
    signed_in_at: unixSeconds,
    last_used_at: unixSeconds
      .nullable()
      .describe('accurate to five minutes; null if the session was not used after its first minutes'),
    expires_at: unixSeconds.describe(
      'time at which the session ends; a console session is extended if it is used before then',
    ),
    user_agent: z.string().nullable().describe('`User-Agent` of the client that signed in'),
    address: z.string().nullable().describe('address of the client that signed in'),
  })
  .meta({ id: 'SignInSession' });

const sessionExample: z.output<typeof signInSessionSchema> = {
  id: '01JD1XM3Z3T8Y4E2W6R5Q7P9AB',
  kind: 'console',
  current: true,
  signed_in_at: 1795000000,
  last_used_at: 1795000600,
  expires_at: 1795043800,
  user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
  address: '192.0.2.7',
};

export const listSessions = route({
  id: 'listSessions',
  method: 'GET',
  path: '/auth/sessions',
  tag: 'Sign-in',
  summary: 'List your sign-in sessions, newest first',
  access: 'operator',
  query: z.strictObject(pageQuery(1000, 1000)),
  paged: true,
  answers: { 200: z.array(signInSessionSchema) },
  errors: [],
  example: { answer: [sessionExample] },
});

export const endSession = route({
  id: 'endSession',
  method: 'DELETE',
  path: '/auth/sessions/{id}',
  tag: 'Sign-in',
  summary: 'End one of your sign-in sessions',
  description: 'Also ends its event streams and terminal connections, before the response.',
  access: 'operator',
  params: z.strictObject({ id: z.string() }),
  answers: { 204: null },
  errors: ['session_not_found'],
  example: { params: { id: sessionExample.id } },
});

export const endSessions = route({
  id: 'endSessions',
  method: 'DELETE',
  path: '/auth/sessions',
  tag: 'Sign-in',
  summary: 'End all your sign-in sessions, including this one',
  description: 'Also revokes your web login codes.',
  access: 'operator',
  answers: { 200: z.strictObject({ ended: z.int() }).meta({ id: 'EndedSessions' }) },
  errors: [],
  example: { answer: { ended: 3 } },
});
