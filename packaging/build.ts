// `npm run build`: writes all release artifacts to dist/. With `--fast`, compresses the artifacts lightly, for tests.
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
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
import { buildPackages, type Packages, packagesIn } from './deb/packages.ts';
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
  /** An archive of all files, for machines whose package manager Muster does not support. */
  readonly tarball: string;
  readonly debs: Packages;
}

/**
 * Builds all release artifacts.
 * @param folder output folder, which is emptied first
 * @param fast whether to compress lightly, which takes less time but makes the files larger
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

  const artifacts = artifactsIn(folder, build);
  writeTarballOf({ program, build, licences, bill, path: artifacts.tarball, level: fast ? 1 : 9 });

  const compression = fast ? 'quick' : 'xz';
  const options = { executable: program, version, architecture: 'amd64', out: folder, epoch, licences } as const;
  const debs = buildPackages({ ...options, compression, completions: completions(program) });
  writeSums(folder);
  // An orchestrator that runs from this clone serves this folder.
  writeInstallFolder(installFolder(version, program, [debs.muster, debs.agent]), join(folder, 'install'));
  linkSync(program, join(folder, 'install', 'muster'));
  return artifacts;
}

/** Returns the paths of all artifacts of a build in a folder. */
export function artifactsIn(folder: string, build: Build): Artifacts {
  const tarball = join(folder, `${tarballName(build)}.tar.gz`);
  return { folder, build, tarball, debs: packagesIn(folder, build.version, 'amd64') };
}

const tarballName = ({ version }: Build): string => `muster-${version}-linux-x64`;

function writeTarballOf(parts: {
  program: string;
  build: Build;
  licences: string;
  bill: string;
  path: string;
  /** Gzip level, 1 to 9. */
  level: number;
}): void {
  const { program, build, licences, bill, path, level } = parts;
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
  writeTarball({ name: tarballName(build), files, epoch: Date.parse(build.date) / 1000, level }, path);
}

/** Returns the completions that the program prints, by shell. */
function completions(program: string): Record<'bash' | 'zsh' | 'fish', string> {
  const of = (shell: string) => execFileSync(program, ['completion', shell], { encoding: 'utf8' });
  return { bash: of('bash'), zsh: of('zsh'), fish: of('fish') };
}

/** Writes the checksums of all files in a folder, in the format that `sha256sum --check` reads. */
function writeSums(folder: string): void {
  const lines = readdirSync(folder)
    .sort()
    .map((name) => `${hash('sha256', readFileSync(join(folder, name)))}  ${name}\n`);
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { fast: { type: 'boolean', default: false }, out: { type: 'string' } } });
  const { folder } = await buildAll(resolve(values.out ?? join(root, 'dist')), { fast: values.fast });
  for (const name of readdirSync(folder).sort()) console.log(join(folder, name));
}
