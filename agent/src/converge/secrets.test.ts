import { writeFileSync } from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { resultOf } from './result.ts';
import { file, ini, operation, script, structured } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

const h = useAgent();
const secret = { sensitive_fields: ['content'] };
const value = { sensitive_fields: ['value'] };
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

test('hides the value of a setting in the diff', async () => {
  const places: ResolvedResource[] = [];
  for (const [name, make] of Object.entries({
    ini: (path: string) => ini(path, 'db', 'password', { value: 'hunter2' }, value),
    json: (path: string) => structured('json-unix', path, '/db/password', { value: 'hunter2' }, value),
  })) {
    const path = `${h.root}/${name}`;
    writeFileSync(path, name === 'json' ? '{"db": {"host": "one"}}\n' : '[db]\nhost = one\n');
    places.push(make(path));
  }
  const outcome = await h.agent.run(operation('apply', places));
  expect(outcome.results).toMatchObject(places.map(() => ({ status: 'changed', diff: null, sensitive: true })));
  expect(all()).not.toContain('hunter2');
});

test('hides the secret of another resource in the same file: in the output of a validation, on the same line, and in the same value', async () => {
  const path = `${h.root}/f`;
  writeFileSync(path, '{"db": {"host": "one"}}\n');
  const password = structured('json-unix', path, '/db/password', { value: 'hunter2' }, value);
  const host = (declared: string) => structured('json-unix', path, '/db/host', { value: declared });
  const refused = structured('json-unix', path, '/db/port', { value: 1, validate: 'cat %; false' });
  const results = [
    ...(await h.agent.run(operation('apply', [password, host('two')]))).results,
    ...(await h.agent.run(operation('plan', [password, host('three')]))).results,
    ...(await h.agent.run(operation('apply', [password, host('two'), refused]))).results,
    ...(await h.agent.run(operation('plan', [password, structured('json-unix', path, '/db', { ensure: 'absent' })])))
      .results,
  ];
  expect(results.map(({ status }) => status).join(' ')).toBe(
    'changed changed unchanged would_change unchanged unchanged failed unchanged would_change would_change',
  );
  expect(all()).not.toContain('hunter2');
});

test('hides the output of a validation while the file may contain a value that was a secret', async () => {
  const path = `${h.root}/f`;
  writeFileSync(path, '');
  await h.agent.run(operation('apply', [ini(path, 'db', 'password', { value: 'hunter2' }, value)]));
  const host = ini(path, 'db', 'host', { value: 'one', validate: 'cat %; false' });
  const open = ini(path, 'db', 'password', { value: 'open' });
  const first = await h.agent.run(operation('apply', [host, open]));
  expect(first.results).toMatchObject([{ status: 'failed' }, { status: 'changed' }]);
  expect(all()).not.toContain('hunter2');
  // The file no longer contains the secret.
  const second = await h.agent.run(operation('apply', [host, open]));
  expect(second.results).toMatchObject([{ message: expect.stringContaining('password = open') }, {}]);
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
