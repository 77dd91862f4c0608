import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { directory, file, operation } from '../converge/test/desired.ts';
import { useAgent } from '../converge/test/harness.ts';

const h = useAgent();

/**
 * Cases in which an object of a different type replaces the declared one. The drift check reports the new type,
 * although an apply may refuse to replace it.
 */
const cases: {
  name: string;
  before?: (path: string) => void;
  declared: (path: string) => ResolvedResource;
  happens: (path: string) => void;
  change: { field: string; from: string; to: string };
}[] = [
  {
    name: 'a link where only the permissions of a file are declared',
    before: (path) => writeFileSync(path, ''),
    declared: (path) => file(path, { mode: '0600' }),
    happens: (path) => symlinkSync('/nowhere', path),
    change: { field: 'type', from: 'symlink', to: 'file' },
  },
  {
    name: 'a directory where a link is declared',
    declared: (path) => file(path, { symlink: '/nowhere' }),
    happens: (path) => mkdirSync(path),
    change: { field: 'type', from: 'directory', to: 'symlink' },
  },
  {
    name: 'a directory where no file may be',
    declared: (path) => file(path, { ensure: 'absent' }),
    happens: (path) => mkdirSync(path),
    change: { field: 'ensure', from: 'present', to: 'absent' },
  },
  {
    name: 'a file where no directory may be',
    declared: (path) => directory(path, { ensure: 'absent' }),
    happens: (path) => writeFileSync(path, ''),
    change: { field: 'ensure', from: 'present', to: 'absent' },
  },
  {
    name: 'a directory with something in it where none may be',
    declared: (path) => directory(path, { ensure: 'absent' }),
    happens: (path) => mkdirSync(`${path}/in`, { recursive: true }),
    change: { field: 'ensure', from: 'present', to: 'absent' },
  },
];

test.each(cases)(
  'reports an object of a different type in a drift check: $name',
  async ({ before, declared, happens, change }) => {
    const path = `${h.root}/f`;
    before?.(path);
    await h.agent.run(operation('apply', [declared(path)]));
    rmSync(path, { recursive: true, force: true });
    happens(path);
    const outcome = await h.agent.run(operation('drift'));
    expect(outcome.results).toMatchObject([{ status: 'would_change', changes: [change] }]);
    expect(outcome.finished.status).toBe('succeeded');
    expect(outcome.finished.summary.failed).toBe(0);
  },
);
