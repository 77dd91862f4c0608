// The real gateway in a separate process, with a domain that stores nothing, to measure the gateway alone.

import { systemClock } from '../../../lib/src/clock.ts';
import { createInProcessBus } from '../../../orchestrator/src/bus/in-process.ts';
import type { AgentLinks } from '../../../orchestrator/src/domain/agent-link/agent-link.ts';
import { createGateway } from '../../../orchestrator/src/gateway/gateway.ts';
import { idOfRawKey } from '../../../orchestrator/src/identity/ed25519-key.ts';
import { loadIdentity } from '../../../orchestrator/src/identity/identity.ts';
import { scratchDirectory } from '../run/scratch.ts';
import { answerParent } from './server-process.ts';

const standing = { status: 'approved' as const, name: null, tags: {} };
const links: AgentLinks = {
  keyOf: async ({ public_key }) => ({
    node_id: idOfRawKey(Buffer.from(public_key, 'hex')),
    valid_until: null,
    succession: null,
  }),
  admit: async () => ({ admitted: true, standing, acknowledged: 0, settled_operations: [] }),
  opened: () => {},
  attributesChanged: async () => {},
  reported: async () => null,
  nextOperation: async () => null,
  contentsOf: async () => null,
  readContent: async () => null,
  cancellations: async () => [],
  agentsWithWork: async () => [],
  standing: async () => standing,
  sampled: async () => {},
  printed: async () => {},
  driftHinted: async () => {},
  closed: async () => {},
  cloneSeen: async () => {},
  refused: async (refusal) => console.error('refused', refusal),
};
const ignore = () => {};
const complain = (fields: object, message: string) => console.error(message, fields);
const identity = await loadIdentity(scratchDirectory('gateway'));
const gateway = createGateway({
  identity,
  links,
  bus: createInProcessBus(ignore),
  clock: systemClock,
  log: { debug: ignore, info: ignore, warn: complain, error: complain },
  random: Math.random,
});
const port = await gateway.listen('127.0.0.1', 0);
answerParent({ port, orchestratorKey: identity.publicKey.toString('hex') });
