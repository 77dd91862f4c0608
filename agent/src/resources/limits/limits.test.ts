import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { contentOf, type Inspected } from '../../host/files/inspect.ts';
import type { SeenFile } from '../file-unix/seen.ts';
import { diffLimit, limits } from './limits.ts';

const body: ResourceBodies['limits'] = { domain: '*', limit_type: 'both', item: 'nofile', value: '65536' };
const declared = (fields: Partial<typeof body> = {}) =>
  ({ type: 'limits', body: { ...body, ...fields }, sensitive_fields: [] }) as unknown as ResolvedResource<'limits'>;
const seenFile = (found: Inspected): SeenFile => ({
  found,
  ownership: { wantedUid: 0, wantedGid: 0, ownerName: 'root', groupName: 'root' },
});
const text = (content: string, mode = 0o644): SeenFile =>
  seenFile({
    ...{ type: 'file', size: content.length, content: contentOf(Buffer.from(content)), stamp: '' },
    ...{ uid: 0, gid: 0, mode },
  });
const written = (value: string) => `# Written by Muster, which reverts changes.\n* - nofile ${value}\n`;
const apply = { purpose: 'apply' } as const;

test('writes each limit to its own file', () => {
  expect(limits.path(declared())).toBe('/etc/security/limits.d/90-muster-%2A-both-nofile.conf');
  expect(limits.path(declared({ domain: '@dba', limit_type: 'soft' }))).toBe(
    '/etc/security/limits.d/90-muster-@dba-soft-nofile.conf',
  );
});

test('finds no difference in the file that it writes', () => {
  expect(diffLimit(declared(), { file: text(written('65536')), value: '65536' }, apply).action).toBe('none');
});

test('reports the value if it differs; otherwise, the difference in the file', () => {
  expect(diffLimit(declared(), { file: text(written('10')), value: '10' }, apply)).toMatchObject({
    action: 'update',
    changes: [{ field: 'value', from: '10', to: '65536' }],
  });
  expect(diffLimit(declared(), { file: seenFile({ type: 'absent' }), value: null }, apply)).toMatchObject({
    action: 'create',
    changes: [{ field: 'value', from: null, to: '65536' }],
  });
  const { changes } = diffLimit(declared(), { file: text(written('65536'), 0o600), value: '65536' }, apply);
  expect(changes).toEqual([{ field: 'mode', from: '0600', to: '0644' }]);
});

test('removes the file of a limit that must be absent', () => {
  const absent = declared({ ensure: 'absent' });
  expect(diffLimit(absent, { file: text(written('65536')), value: '65536' }, apply).changes).toEqual([
    { field: 'ensure', from: 'present', to: 'absent' },
  ]);
});
