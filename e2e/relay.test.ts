import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { listAudit } from '@muster/protocol/http';
import { expect } from 'vitest';
import { type Stage, test } from './harness.ts';
import { operatorEnvironment } from './person.ts';
import { type Relay, startRelay } from './relay.ts';
import type { Orchestrator } from './stage.ts';

/** Tests sign-ins through an attacker's server that relays the requests to the orchestrator. */

async function login(stage: Stage, orchestrator: Orchestrator, relay: Relay, env: NodeJS.ProcessEnv) {
  const { MUSTER_FINGERPRINT: _, ...rest } = operatorEnvironment(stage, orchestrator);
  const program = stage.run('login', ['login'], { ...rest, MUSTER_URL: relay.url, ...env });
  const { code } = await program.ended;
  relay.close();
  return { code, said: program.lastLines(40).join('\n') };
}

async function startForward(target: number) {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const onward = connect(target, '127.0.0.1');
    for (const [from, to] of [
      [client, onward],
      [onward, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => to.destroy()).pipe(to);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.for([
  ['whose certificate the client pins', (relay: Relay) => ({ MUSTER_FINGERPRINT: relay.fingerprint })],
  ['whose certificate the client does not check', () => ({ MUSTER_INSECURE_SKIP_VERIFY: '1' })],
] as const)('the orchestrator opens no session through a relay %s', async ([, trust], { stage }) => {
  const orchestrator = await stage.orchestrator();
  const relay = await startRelay(orchestrator.url);
  const { code, said } = await login(stage, orchestrator, relay, trust(relay));
  expect(relay.tokens).toEqual([]);
  expect(code).not.toBe(0);
  expect(said).toContain('which is not this orchestrator');
  // The audit log names the operator whose key signed, and the server to which the signature is bound.
  const { events } = await orchestrator.call(listAudit, { query: { event_type: 'auth.refused' } });
  expect(events[0]?.actor.name).toBe('ada');
  expect(events[0]?.summary).toMatch(/the signature is for (tls:[0-9a-f]{64}|origin:https:\/\/127\.0\.0\.1:\d+)/);
});

test("a relay at the orchestrator's address gets neither a token nor a session", async ({ stage }) => {
  // Operators reach the orchestrator through a forwarded port, which a relay later takes over.
  const orchestrator = await stage.orchestrator();
  const forward = await startForward(orchestrator.apiPort);
  const url = `https://127.0.0.1:${forward.port}`;
  orchestrator.set({ MUSTER_PUBLIC_URL: url });
  await orchestrator.stop();
  await orchestrator.start();
  const { MUSTER_FINGERPRINT: fingerprint = '', ...withoutFingerprint } = operatorEnvironment(stage, orchestrator);
  const env = { ...withoutFingerprint, MUSTER_URL: url };
  const muster = async (...words: string[]) => {
    const program = stage.run(words.join(' '), words, env);
    const { code } = await program.ended;
    return { code, said: program.lastLines(40).join('\n') };
  };
  expect(await muster('login', '--fingerprint', fingerprint)).toMatchObject({ code: 0 });
  await forward.close();

  const relay = await startRelay(orchestrator.url, { port: forward.port });
  const refused = await muster('agents', 'list');
  expect(refused.code).not.toBe(0);
  expect(refused.said).toContain('is not the trusted one');
  // The relay obtains no session even if the operator trusts its certificate, because its key is not the
  // orchestrator's.
  for (const trust of [['--insecure-skip-verify'], ['--fingerprint', relay.fingerprint]]) {
    const trusted = await muster('agents', 'list', ...trust);
    expect(trusted.code).not.toBe(0);
    expect(trusted.said).toContain('which is not this orchestrator');
  }
  expect(relay.tokens).toEqual([]);
  expect(relay.authorizations).toEqual([]);
  relay.close();
});

test('the CLI signs nothing for a relay that requests a signature without a server identity', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const relay = await startRelay(orchestrator.url, { downgrade: true });
  const { code, said } = await login(stage, orchestrator, relay, { MUSTER_FINGERPRINT: relay.fingerprint });
  expect(relay.tokens).toEqual([]);
  expect(code).not.toBe(0);
  expect(said).toContain('nothing was signed');
});
