import type { ResolvedResource, ResourceBodies, ResourceType } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { contentOf, type Inspected } from '../host/files/inspect.ts';
import type { SeenFile } from './file-unix/seen.ts';
import { diffHostname } from './hostname/hostname.ts';
import { diffParameter, type SeenParameter } from './sysctl/sysctl.ts';
import { diffTimezone, type SeenTimezone } from './timezone/timezone.ts';

/** Tests resources that have a running value and a persisted value. */

const declared = <T extends ResourceType>(
  type: T,
  body: ResourceBodies[T],
  sensitive: string[] = [],
): ResolvedResource<T> => ({
  key: `${type}:it`,
  module: 'site',
  id: null,
  name: null,
  type,
  identity: 'it',
  body,
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: sensitive,
});
const root = { uid: 0, gid: 0, mode: 0o644 };
const seenFile = (found: Inspected): SeenFile => ({
  found,
  ownership: { wantedUid: 0, wantedGid: 0, ownerName: 'root', groupName: 'root' },
});
const absent = seenFile({ type: 'absent' });
const text = (content: string, mode = 0o644): SeenFile =>
  seenFile({ type: 'file', size: content.length, content: contentOf(Buffer.from(content)), stamp: '', ...root, mode });
const link = (target: string): SeenFile => seenFile({ type: 'symlink', target, stamp: '', ...root });
const apply = { purpose: 'apply' } as const;

describe('a kernel parameter', () => {
  const written = (value: string) =>
    text(`# Written by Muster. What is changed here by hand is changed back.\nnet.core.x = ${value}\n`);
  const seen = (value: string | null, file: SeenFile, persisted: string | null): SeenParameter => ({
    value,
    file,
    persisted,
    overriddenBy: null,
  });
  const one = declared('sysctl', { key: 'net.core.x', value: ' 1\t2' });

  test('reports the running and the persisted value of a kernel parameter separately', () => {
    expect(diffParameter(one, seen('1 2', written('1 2'), '1 2'), apply).action).toBe('none');
    expect(diffParameter(one, seen('3', written('1 2'), '1 2'), apply)).toMatchObject({
      action: 'update',
      changes: [{ field: 'value', from: '3', to: '1 2' }],
    });
    expect(diffParameter(one, seen('1 2', absent, null), apply)).toMatchObject({
      action: 'create',
      changes: [{ field: 'persisted', from: null, to: '1 2' }],
    });
  });

  test('waits for a kernel parameter that an earlier resource may create', () => {
    expect(diffParameter(one, seen(null, absent, null), apply).awaits).toMatchObject([{ kind: 'programs' }]);
  });

  test('hides both the old and the new value of a secret kernel parameter', () => {
    const secret = declared('sysctl', { key: 'net.core.x', value: 's3cret' }, ['value']);
    const { changes } = diffParameter(secret, seen('s3cret', text('net.core.x = old', 0o600), 'old'), apply);
    expect(changes).toEqual([{ field: 'persisted', from: '(sensitive)', to: '(sensitive)' }]);
  });
});

describe('the name of the machine', () => {
  const web = declared('hostname', { name: 'web-1' });

  test('compares the running and the persisted host name, and ignores other lines of /etc/hostname', () => {
    const seen = (running: string, persisted: string | null) => ({
      running,
      persisted,
      file: text(`# x\n${persisted}`),
    });
    expect(diffHostname(web, seen('web-1', 'web-1'), apply).action).toBe('none');
    expect(diffHostname(web, seen('web-1', 'old'), apply).changes).toEqual([
      { field: 'persisted', from: 'old', to: 'web-1' },
    ]);
    expect(diffHostname(web, seen('old', 'web-1'), apply).changes).toEqual([
      { field: 'name', from: 'old', to: 'web-1' },
    ]);
  });
});

describe('the time zone', () => {
  const paris = declared('timezone', { name: 'Europe/Paris' });
  const seen = (zone: string | null, rest: Partial<SeenTimezone> = {}): SeenTimezone => ({
    link: link('/elsewhere'),
    zone,
    file: absent,
    named: null,
    known: true,
    ...rest,
  });

  test('changes /etc/localtime, and also changes /etc/timezone if it exists', () => {
    expect(diffTimezone(paris, seen('Europe/Paris'), apply).action).toBe('none');
    expect(diffTimezone(paris, seen('UTC', { file: text('UTC\n'), named: 'UTC' }), apply).changes).toEqual([
      { field: 'name', from: 'UTC', to: 'Europe/Paris' },
      { field: 'persisted', from: 'UTC', to: 'Europe/Paris' },
    ]);
  });

  test('suggests tzdata if the time zone does not exist', () => {
    expect(diffTimezone(paris, seen('UTC', { known: false }), apply).awaits?.[0]?.message).toMatch(/tzdata/);
  });

  test('refuses to replace a directory at /etc/localtime', () => {
    const odd = seen(null, { link: seenFile({ type: 'directory', stamp: '', ...root }) });
    expect(() => diffTimezone(paris, odd, apply)).toThrow(/neither a file nor a link/);
    expect(diffTimezone(paris, odd, { purpose: 'drift' }).changes).toEqual([
      { field: 'type', from: 'directory', to: 'file' },
    ]);
  });
});
