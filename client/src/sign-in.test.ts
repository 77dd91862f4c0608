import { ApiError, type Client } from '@muster/protocol/client';
import { expect, test } from 'vitest';
import { signIn, UnboundSignIn, UnknownKey } from './sign-in.ts';

const publicKey = 'a'.repeat(64);
const nonce = 'b'.repeat(64);
const origin = 'origin:https://muster.example';
const tls = `tls:${'c'.repeat(64)}`;
const refusal = (code: string, errors?: { path: string; message: string }[]) =>
  new ApiError({ type: 'about:blank', title: '', status: 400, code, detail: code, errors } as never);

/** @param answers responses in order: first to the challenge, then to each signature */
function rig(...answers: unknown[]) {
  const bodies: Record<string, unknown>[] = [];
  const signed: string[] = [];
  const call = (async (_route: unknown, { body }: { body: Record<string, unknown> }) => {
    bodies.push(body);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  }) as unknown as Client;
  const sign = async (message: Uint8Array) => {
    signed.push(new TextDecoder().decode(message));
    return Uint8Array.of(1, 2);
  };
  return { bodies, signed, run: () => signIn({ call, publicKey, servers: () => [tls, origin], sign }) };
}

test("signs a message that contains the server's name", async () => {
  const { run, bodies, signed } = rig({ nonce, form: 2 }, { token: 't', expires_at: 1 });
  expect(await run()).toEqual({ token: 't', expires_at: 1 });
  expect(signed).toEqual([expect.stringContaining(`${tls}\n${publicKey}\n${nonce}\n`)]);
  expect(bodies[1]).toEqual({ public_key: publicKey, signature: '0102', server: tls, nonce });
});

test('tries the next name if the orchestrator does not recognize the first one', async () => {
  const { run, bodies } = rig({ nonce, form: 2 }, refusal('sign_in_server_unknown'), { token: 't' });
  expect(await run()).toEqual({ token: 't' });
  expect(bodies.slice(1).map(({ server }) => server)).toEqual([tls, origin]);
});

test.each([
  ['an unbound challenge', { nonce }],
  ['a malformed nonce', { nonce: 'short', form: 2 }],
  ['a refusal of the form', refusal('invalid_input', [{ path: '/form', message: 'unknown' }])],
])('signs nothing after %s', async (_, challenge) => {
  const { run, signed } = rig(challenge);
  await expect(run()).rejects.toThrow(UnboundSignIn);
  expect(signed).toEqual([]);
});

test('includes the public key in the error if the orchestrator does not recognize the key', async () => {
  await expect(rig(refusal('operator_unknown')).run()).rejects.toMatchObject({ name: UnknownKey.name, publicKey });
  await expect(rig({ nonce, form: 2 }, refusal('sign_in_failed')).run()).rejects.toMatchObject({
    problem: { code: 'sign_in_failed' },
  });
});
