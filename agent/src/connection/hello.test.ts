import { agentMessageSchema, keyStatementLimits, limits, type PinSource } from '@muster/protocol/wire';
import { expect, test } from 'vitest';
import { keyOfPem, newKeyPem } from './agent-key.ts';
import { makeHello } from './hello.ts';
import type { Statement } from './next-key.ts';

test('builds a hello that fits into a frame, regardless of the amount of data', () => {
  const statement: Statement = {
    former_key: 'ab'.repeat(32),
    made_at: 1_800_000_000,
    former_until: 1_802_000_000,
    signature: 'cd'.repeat(64),
  };
  const attributes = Object.fromEntries(
    Array.from({ length: 600 }, (_, i) => [`fact_${i}`.padEnd(100, 'x'), 'y'.repeat(2_000)]),
  );
  const hello = makeHello(
    { key: keyOfPem(newKeyPem(), ''), statement, earlier: Array(keyStatementLimits.mostEarlier).fill(statement) },
    { agentVersion: '10.10.10-next.10', instanceId: 'ef'.repeat(16), hostname: 'h'.repeat(255) },
    { exporter: Buffer.alloc(32), nonce: Buffer.alloc(32), orchestratorKey: Buffer.alloc(32) },
    {
      pinSource: 'first_use' satisfies PinSource,
      token: 't'.repeat(128),
      attributes,
      openOperations: Array(64).fill({ operation_id: '0'.repeat(26), state: 'finished' }),
      clockMs: 1_800_000_000_000,
    },
  );
  expect(agentMessageSchema.safeParse(hello).success).toBe(true);
  expect(Buffer.byteLength(JSON.stringify(hello))).toBeLessThanOrEqual(limits.agentFrameBytes);
});
