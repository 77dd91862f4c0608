import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canBuild } from './archive.ts';
import { maintainerScripts } from './maintainer-scripts.ts';
import { buildPackages } from './packages.ts';

describe.skipIf(!canBuild())('Debian packages', () => {
  let folder = '';
  let built: ReturnType<typeof buildPackages>;
  const build = (out: string) =>
    buildPackages({
      executable: join(folder, 'muster'),
      version: '1.2.3',
      architecture: 'amd64',
      out,
      epoch: 1_795_000_000,
      licences: 'of others',
      compression: 'gzip',
    });
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'muster-packages-'));
    writeFileSync(join(folder, 'muster'), '#!/bin/sh\necho a program\n');
    built = build(join(folder, 'one'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Returns the lines of `dpkg-deb --contents`: mode, owner, and path. */
  const contents = (path: string): string[] =>
    execFileSync('dpkg-deb', ['--contents', path], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('d'))
      .map((line) => line.replace(/\s+\d+ \d{4}-\d\d-\d\d \d\d:\d\d /, ' '));
  const field = (path: string, name: string): string =>
    execFileSync('dpkg-deb', ['--field', path, name], { encoding: 'utf8' }).trim();

  test('packs the expected files, owned by root regardless of the builder', () => {
    expect(contents(built.muster)).toContain('-rwxr-xr-x root/root ./usr/bin/muster');
    expect(contents(built.muster)).toContain('-rw-r--r-- root/root ./usr/share/doc/muster/THIRD-PARTY-LICENCES.gz');
    expect(contents(built.agent)).toContain('-rw-r--r-- root/root ./lib/systemd/system/muster-agent.service');
    expect(contents(built.orchestrator)).toEqual(
      expect.arrayContaining([
        '-rw-r----- root/root ./etc/muster/orchestrator.yml',
        '-rw-r--r-- root/root ./lib/systemd/system/muster-backup.service',
        '-rw-r--r-- root/root ./lib/systemd/system/muster-backup.timer',
        '-rw-r--r-- root/root ./usr/share/muster/install/muster_1.2.3_amd64.deb',
        '-rw-r--r-- root/root ./usr/share/muster/install/muster-agent_1.2.3_all.deb',
      ]),
    );
    expect(field(built.agent, 'Depends')).toContain('muster (= 1.2.3)');
    expect(execFileSync('dpkg-deb', ['--info', built.agent, 'conffiles'], { encoding: 'utf8' })).toBe(
      '/etc/muster/agent.yml\n',
    );
  });

  test('restarts the orchestrator after every crash, and limits its memory', () => {
    const unit = readFileSync(join(import.meta.dirname, '../systemd/muster-orchestrator.service'), 'utf8');
    expect(unit).toMatch(/^StartLimitIntervalSec=0$/m);
    expect(unit).not.toMatch(/^StartLimitBurst=/m);
    expect(unit).toMatch(/^Restart=always$/m);
    expect(unit).toMatch(/^MemoryMax=75%$/m);
  });

  test('builds byte-identical packages in another folder with another umask', () => {
    const before = process.umask(0o077);
    try {
      const again = build(join(folder, 'two'));
      for (const name of ['muster', 'agent', 'orchestrator'] as const)
        expect(readFileSync(again[name]).equals(readFileSync(built[name])), name).toBe(true);
    } finally {
      process.umask(before);
    }
    expect(statSync(built.muster).size).toBeGreaterThan(0);
  });

  test('writes correct checksums of the files that the orchestrator serves', () => {
    const root = join(folder, 'root');
    execFileSync('dpkg-deb', ['--extract', built.orchestrator, root]);
    const served = join(root, 'usr/share/muster/install');
    const sums = readFileSync(join(served, 'SHA256SUMS'), 'utf8')
      .split('\n')
      .filter((line) => !line.endsWith('  muster'));
    const { status, stderr } = spawnSync('sha256sum', ['--check', '--strict'], { cwd: served, input: sums.join('\n') });
    expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: '' });
    expect(sums.filter((line) => line !== '')).toHaveLength(3);
  });
});

test('writes maintainer scripts that are valid shell and stop on errors', () => {
  const scripts = maintainerScripts({
    unit: 'muster-agent.service',
    welcome: "it's here",
    leftBehind: ['/var/lib/x'],
    closedConfig: { path: '/etc/x.yml', group: 'x' },
  });
  for (const text of Object.values(scripts)) {
    expect(text).toMatch(/^#!\/bin\/sh\nset -e\n/);
    expect(spawnSync('sh', ['-n'], { input: text }).status).toBe(0);
  }
});
