import type { ResourceResult } from '@muster/protocol';
import type { Operation } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { likenessOf } from './plan-likeness.ts';

const resource = (over: Partial<ResourceResult>): ResourceResult => ({
  ...{ module: 'web', id: null, type: 'file', identity: '/etc/x', action: 'update', status: 'would_change' },
  ...{ changes: [], diff: '+a', triggered_by: [], corrective: false, message: null, duration_ms: 1, sensitive: false },
  ...(over as object),
});
const operation = (over: Partial<Operation>) =>
  ({ status: 'succeeded', error: null, resources: [resource({})], ...over }) as Operation;

test('ignores durations and unchanged resources when it compares operations', () => {
  const one = operation({});
  const other = operation({
    resources: [resource({ duration_ms: 900 }), resource({ identity: '/etc/y', status: 'unchanged', action: 'none' })],
  });
  expect(likenessOf(one, 'web-1')).toBe(likenessOf(other, 'web-2'));
  expect(likenessOf(one, 'web-1')).not.toBe(likenessOf(operation({ resources: [resource({ diff: '+b' })] }), 'web-1'));
});

test('ignores the agent name in diffs when it compares operations', () => {
  const on = (name: string, line = `server_name ${name}.example.net`) =>
    likenessOf(
      operation({
        resources: [
          resource({
            diff: `@@ -1 +1,2 @@\n ${line}\n+more`,
            changes: [{ field: 'content', from: `sha256 with ${line.length}`, to: `sha256 of ${line}` }],
          }),
        ],
      }),
      name,
    );
  expect(on('web-1')).toBe(on('web-2'));
  expect(on('web-1')).not.toBe(on('web-2', 'server_name web-1.example.net'));
  expect(on('web-1')).toBe(on('web-10'));
  expect(on('web-1', 'server_name web-10')).not.toBe(on('web-10', 'server_name web-10'));
});
