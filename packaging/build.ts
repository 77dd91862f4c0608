// `npm run build`: everything that is released, in dist/. --fast: weakly compressed, for tests.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Build } from '@muster/protocol/executable';
import { buildPackages } from './deb/packages.ts';
import { describeBuild, executable } from './executable.ts';
import { installFolder, writeInstallFolder } from './install/folder.ts';
import { billOfMaterials, licencesOfOthers } from './papers.ts';
import { shippedComponents } from './shipped.ts';
import { writeTarball } from './tarball.ts';

const here = import.meta.dirname;
const root = join(here, '..');

export interface Artifacts {
  readonly folder: string;
  readonly build: Build;
  /** All in one archive, for machines without packages. */
  readonly tarball: string;
  readonly debs: { readonly muster: string; readonly agent: string; readonly orchestrator: string };
}

/**
 * Builds everything.
 * @param folder is emptied first
 * @param fast less time for larger files
 */
export async function buildAll(folder: string, { fast = false, env = process.env } = {}): Promise<Artifacts> {
  const build = describeBuild(env);
  const { version } = build;
  const epoch = Date.parse(build.date) / 1000;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const program = join(folder, 'muster');
  copyFileSync(await executable(build), program);
  chmodSync(program, 0o755);

  const components = await shippedComponents();
  const licences = licencesOfOthers(components);
  const bill = billOfMaterials(components, build);
  writeFileSync(join(folder, 'THIRD-PARTY-LICENCES'), licences);
  writeFileSync(join(folder, `muster-${version}.cdx.json`), bill);
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  copyFileSync(join(here, 'Containerfile'), join(folder, 'Containerfile'));

  const tarball = buildTarball({ program, build, licences, bill, folder, level: fast ? 1 : 9 });

  const compression = fast ? 'gzip' : 'xz';
  const wish = { executable: program, version, architecture: 'amd64', out: folder, epoch } as const;
  const debs = buildPackages({ ...wish, compression, completions: completions(program) });
  writeSums(folder);
  // What an orchestrator of this clone serves.
  writeInstallFolder(installFolder(version, program, [debs.muster, debs.agent]), join(folder, 'install'));
  linkSync(program, join(folder, 'install', 'muster'));
  return { folder, build, tarball, debs };
}

/**
 * Builds the archive for machines without packages.
 * @returns its path
 */
export function buildTarball(parts: {
  program: string;
  build: Build;
  licences: string;
  bill: string;
  folder: string;
  /** Of gzip, 1 to 9. */
  level: number;
}): string {
  const { program, build, licences, bill, folder, level } = parts;
  const name = `muster-${build.version}-linux-x64`;
  const path = join(folder, `${name}.tar.gz`);
  const copies = Object.fromEntries(
    ['agent', 'orchestrator'].flatMap((role) => [
      [`systemd/muster-${role}.service`, { copy: join(here, `systemd/muster-${role}.service`) }],
      [`etc/${role}.yml`, { copy: join(here, `deb/${role}.yml`) }],
    ]),
  );
  const files = {
    muster: { copy: program, mode: 0o755 },
    LICENSE: { copy: join(root, 'LICENSE') },
    'README.md': { copy: join(root, 'README.md') },
    'THIRD-PARTY-LICENCES': { content: licences },
    'sbom.cdx.json': { content: bill },
    ...copies,
  };
  writeTarball({ name, files, epoch: Date.parse(build.date) / 1000, level }, path);
  return path;
}

/** What a shell completes, as the program itself writes it. */
function completions(program: string): Record<'bash' | 'zsh' | 'fish', string> {
  const of = (shell: string) => execFileSync(program, ['completion', shell], { encoding: 'utf8' });
  return { bash: of('bash'), zsh: of('zsh'), fish: of('fish') };
}

/** As `sha256sum --check` reads it. */
function writeSums(folder: string): void {
  const lines = readdirSync(folder)
    .sort()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex')}  ${name}\n`,
    );
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { fast: { type: 'boolean', default: false }, out: { type: 'string' } } });
  const { folder } = await buildAll(resolve(values.out ?? join(root, 'dist')), { fast: values.fast });
  for (const name of readdirSync(folder).sort()) console.log(join(folder, name));
}
