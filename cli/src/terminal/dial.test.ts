import { Agent, createServer, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ApiError } from '@muster/protocol/client';
import { afterEach, expect, test } from 'vitest';
import { dialTerminal } from './dial.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const events = { bytes: () => {}, text: () => {}, alive: () => {}, answered: () => {}, closed: () => {} };

/** Returns the error from a connection attempt if the server refuses the upgrade with this response. */
async function dialled(status: number, body: string, headers: OutgoingHttpHeaders = {}): Promise<unknown> {
  const server = createServer((_request, response) => response.writeHead(status, headers).end(body));
  const agent = new Agent();
  closing.push(
    () => agent.destroy(),
    () => server.close(),
    () => server.closeAllConnections(),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/x?ticket=secret`);
  const refusal = await dialTerminal(url, () => agent, events).catch((error: unknown) => error);
  await expect.poll(() => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))).toBe(0);
  return refusal;
}

const problem = (status: number, code: string, detail: string) =>
  JSON.stringify({ type: `urn:muster:error:${code}`, title: code, status, detail, instance: '1', code });

test("reports a refusal with the orchestrator's message", async () => {
  const refusal = await dialled(429, problem(429, 'rate_limited', 'Too many of them.'), { 'retry-after': '3' });
  expect(refusal).toBeInstanceOf(ApiError);
  expect(refusal).toMatchObject({ message: 'Too many of them.', problem: { code: 'rate_limited' }, retryAfter: 3 });
});

test('reports only the status of a response that is not a problem document or is too large', async () => {
  for (const body of ['<h1>Bad gateway</h1>', '', problem(502, 'x', 'y'.repeat(200_000))]) {
    const refusal = await dialled(502, body);
    expect(refusal).toMatchObject({ problem: { status: 502, code: 'unexpected_answer' } });
    expect(String(refusal)).not.toContain('secret');
  }
});
