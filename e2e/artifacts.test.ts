import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Built, built } from '../packaging/built.ts';

const isBuilder = process.platform === 'linux' && process.arch === 'x64' && existsSync('/usr/bin/dpkg-deb');

describe.skipIf(!isBuilder)('a release', () => {
  let made: Built;
  beforeAll(async () => {
    made = await built();
  });
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: made.folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

  test('the release contains exactly the files listed in SHA256SUMS', () => {
    const { version } = made.build;
    const names = readFileSync(join(made.folder, 'SHA256SUMS'), 'utf8').match(/(?<= {2}).+$/gm);
    expect(names).toEqual(
      [
        ...['Containerfile', 'LICENSE', 'THIRD-PARTY-LICENCES', 'muster', `muster-${version}.cdx.json`],
        ...[made.tarball, made.debs.muster, made.debs.agent, made.debs.orchestrator].map((path) => basename(path)),
      ].sort(),
    );
    run('sha256sum', '--check', '--strict', 'SHA256SUMS');
  });

  test('the release contains stripped executables, and third-party licenses in each package format', () => {
    expect(run('readelf', '--section-headers', 'muster')).not.toMatch(/\.(symtab|debug_info)/);
    const licences = readFileSync(join(made.folder, 'THIRD-PARTY-LICENCES'), 'utf8');
    for (const other of ['fastify', 'react-dom']) expect(licences).toContain(`\n${other} `);
    const inPackage = run(
      'sh',
      '-c',
      `dpkg-deb --fsys-tarfile ${basename(made.debs.muster)} | tar -xO ./usr/share/doc/muster/THIRD-PARTY-LICENCES.gz | gzip -d`,
    );
    expect(inPackage).toBe(licences);
    expect(run('tar', '-xOzf', made.tarball, `${basename(made.tarball, '.tar.gz')}/THIRD-PARTY-LICENCES`)).toBe(
      licences,
    );
  });

  test('the release contains a bill of materials that omits build and test dependencies', () => {
    const text = readFileSync(join(made.folder, `muster-${made.build.version}.cdx.json`), 'utf8');
    const { components } = JSON.parse(text) as { components: { name: string; licenses: object[] }[] };
    const names = components.map(({ name }) => name);
    for (const shipped of ['node', 'fastify', 'zod', '@lydell/node-pty-linux-x64', 'react', 'tailwindcss'])
      expect(names).toContain(shipped);
    for (const tool of ['vitest', 'typescript', 'esbuild', 'postject', 'fast-check', 'vite'])
      expect(names).not.toContain(tool);
    expect(components.filter(({ licenses }) => licenses.length === 0)).toEqual([]);
  });
});
