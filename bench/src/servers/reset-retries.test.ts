import type { Transport } from '@muster/protocol/client';
import { expect, test } from 'vitest';
import { retryingResets } from './reset-retries.ts';

const request = { method: 'GET', url: 'https://127.0.0.1/x', headers: {}, body: undefined, signal: undefined };
const failure = (code: string) => Object.assign(new Error(`read ${code}`), { code });

/** Returns a transport that fails with the given codes in sequence and then responds. */
function failing(codes: string[]): Transport {
  const left = [...codes];
  return async () => {
    const code = left.shift();
    if (code !== undefined) throw failure(code);
    return { status: 200, header: () => null, text: async () => 'answer' };
  };
}

async function send(codes: string[]): Promise<{ status: number | null; error: string | null; resets: number }> {
  let resets = 0;
  const transport = retryingResets(failing(codes), () => resets++);
  return transport(request).then(
    ({ status }) => ({ status, error: null, resets }),
    (error: Error) => ({ status: null, error: error.message, resets }),
  );
}

test('retries a request whose connection is reset up to three times, and counts each reset', async () => {
  expect(await send(['ECONNRESET', 'ECONNRESET', 'ECONNRESET'])).toEqual({ status: 200, error: null, resets: 3 });
});

test('fails the request on the fourth reset and on any other error', async () => {
  const resets = Array.from({ length: 4 }, () => 'ECONNRESET');
  expect(await send(resets)).toEqual({ status: null, error: 'read ECONNRESET', resets: 3 });
  expect(await send(['ECONNREFUSED'])).toEqual({ status: null, error: 'read ECONNREFUSED', resets: 0 });
});
