import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { resultOf } from './result.ts';
import { file, operation, script } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

const h = useAgent();
const secret = { sensitive_fields: ['content'] };
const all = () => JSON.stringify([...h.agent.engine.spool.pending(0)]);
const both = async (resource: ResolvedResource) => {
  await h.agent.run(operation('plan', [resource]));
  return h.agent.run(operation('apply', [resource]));
};

test('hides the old value of a secret that is replaced or removed', async () => {
  const path = `${h.root}/f`;
  for (const next of [{ content: 'plain\n' }, { ensure: 'absent' as const }]) {
    await both(file(path, { content: 'password=hunter2\n' }, secret));
    const outcome = await both(file(path, next));
    expect(outcome.results).toMatchObject([{ status: 'changed', diff: null, sensitive: true }]);
    expect(all()).not.toContain('hunter2');
    // The replaced value is no longer a secret.
    const later = await both(file(path, { content: 'open\n' }));
    expect(later.results[0]?.diff).toContain('+open');
  }
});

test('hides the old value of a secret even after failed applies', async () => {
  const path = `${h.root}/f`;
  await both(file(path, { content: 'password=hunter2\n' }, secret));
  await both(file(path, { content: 'plain\n', validate: 'false' }));
  await both(file(path, { content: 'plain\n', validate: 'false' }));
  await both(file(path, { content: 'plain\n' }));
  expect(all()).not.toContain('hunter2');
});

test('does not name an unknown owner that is sensitive', async () => {
  const outcome = await both(file(`${h.root}/f`, { owner: 'hunter2' }, { sensitive_fields: ['owner'] }));
  expect(outcome.results).toMatchObject([{ status: 'failed', message: expect.stringContaining('does not exist') }]);
  expect(all()).not.toContain('hunter2');
});

test('hides the output of a script in the apply that removes the script’s secret', async () => {
  await both(script('s', { apply: 'echo hunter2' }, { sensitive_fields: ['apply'] }));
  await both(script('s', { apply: 'echo hunter2 again; exit 1' }));
  await both(script('s', { apply: 'echo hunter2 again' }));
  expect(all()).not.toContain('hunter2');
});

test('hides the persisted value of a kernel parameter that was a secret', () => {
  const parameter = (value: string, sensitive_fields: string[]): ResolvedResource => ({
    ...file('/x', {}, { sensitive_fields }),
    type: 'sysctl',
    body: { key: 'kernel.it', value },
  });
  const change = (field: string) => ({ field, from: 'hunter2', to: 'plain' });
  const outcome = resultOf(
    {
      position: 0,
      kind: 'apply',
      resource: parameter('plain', []),
      record: { resource: parameter('hunter2', ['value']), succeeded: null, before: null, ordinal: 0 },
    },
    {
      verdict: 'act',
      difference: { action: 'update', changes: ['value', 'persisted'].map(change), diff: null },
      triggeredBy: [],
      corrective: false,
    },
    'changed',
    0,
  );
  expect(outcome.changes).toHaveLength(2);
  expect(JSON.stringify(outcome)).not.toContain('hunter2');
});
