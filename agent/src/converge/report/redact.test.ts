import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import type { ManagedRecord } from '../../journal/state.ts';
import { followsSecret } from './redact.ts';

const resource = (key: string, path: string, sensitive_fields: string[] = []) =>
  ({ key, body: { path }, sensitive_fields }) as unknown as ResolvedResource;
const plain = resource('path:/plain', '/plain');
const secret = resource('path:/secret', '/secret', ['content']);
const line = resource('line-unix:/secret:a', '/secret');

test.each([
  [plain, false],
  [secret, true],
  [line, true],
])(
  'detects whether a service depends on a secret, because a file that triggers it may contain one',
  (trigger, expected) => {
    for (const triggers of [
      { reload_on: [trigger.key], restart_on: [] },
      { reload_on: [], restart_on: [trigger.key] },
    ])
      expect(followsSecret(triggers, [plain, secret, line], new Map(), new Set(['/secret']))).toBe(expected);
  },
);

test('detects that a service depends on a secret that a file contained earlier', () => {
  const record = { resource: resource('path:/plain', '/plain', ['content']), succeeded: null } as ManagedRecord;
  const records = new Map([['path:/plain', record]]);
  expect(followsSecret({ reload_on: ['path:/plain'], restart_on: [] }, [plain], records, new Set())).toBe(true);
});
