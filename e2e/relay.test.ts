import { listAudit } from '@muster/protocol/http';
import { expect } from 'vitest';
import { type Stage, test } from './harness.ts';
import { operatorEnvironment } from './person.ts';
import { type Relay, startRelay } from './relay.ts';
import type { Orchestrator } from './stage.ts';

/** An operator signs in at a server that somebody else runs, with the key that is good at the orchestrator too. */

async function login(stage: Stage, orchestrator: Orchestrator, relay: Relay, env: NodeJS.ProcessEnv) {
  const { MUSTER_FINGERPRINT: _, ...rest } = operatorEnvironment(stage, orchestrator);
  const program = stage.run('login', ['login'], { ...rest, MUSTER_URL: relay.url, ...env });
  const { code } = await program.ended;
  relay.close();
  return { code, said: program.lastLines(40).join('\n') };
}

test.for([
  ['whose certificate the client pins', (relay: Relay) => ({ MUSTER_FINGERPRINT: relay.fingerprint })],
  ['whose certificate the client does not check', () => ({ MUSTER_INSECURE_SKIP_VERIFY: '1' })],
] as const)('gives no session to a relay %s', async ([, trust], { stage }) => {
  const orchestrator = await stage.orchestrator();
  const relay = await startRelay(orchestrator.url);
  const { code, said } = await login(stage, orchestrator, relay, trust(relay));
  expect(relay.tokens).toEqual([]);
  expect(code).not.toBe(0);
  expect(said).toContain('which is not this orchestrator');
  // The orchestrator tells whose key signed for which server.
  const { events } = await orchestrator.call(listAudit, { query: { event_type: 'auth.refused' } });
  expect(events[0]?.actor.name).toBe('ada');
  expect(events[0]?.summary).toMatch(/the signature is for (tls:[0-9a-f]{64}|origin:https:\/\/127\.0\.0\.1:\d+)/);
});

test('signs nothing for a relay that asks for the bare form', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const relay = await startRelay(orchestrator.url, { downgrade: true });
  const { code, said } = await login(stage, orchestrator, relay, { MUSTER_FINGERPRINT: relay.fingerprint });
  expect(relay.tokens).toEqual([]);
  expect(code).not.toBe(0);
  expect(said).toContain('nothing was signed');
});
