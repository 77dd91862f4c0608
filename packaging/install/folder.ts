import { hash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/**
 * The install folder that an orchestrator serves to new machines: the packages if they were built, the systemd unit for
 * machines without dpkg, the checksums of these files, and the script, which contains the checksums. The folder does
 * not contain the program, because the orchestrator serves its own executable.
 */

export interface InstallFolder {
  /** Files by name: the content of a file, or the path of a file to copy. */
  files: Readonly<Record<string, { content: string } | { copy: string }>>;
}

/**
 * Returns the contents of the install folder.
 * @param packages paths of the `.deb` files; undefined if they could not be built
 */
export function installFolder(version: string, executable: string, packages: readonly string[]): InstallFolder {
  const unit = join(import.meta.dirname, '../systemd/muster-agent.service');
  const sums = [
    ...packages.map((path) => sumLine(path, basename(path))),
    sumLine(executable, 'muster'),
    sumLine(unit, 'muster-agent.service'),
  ];
  const copies = [...packages, unit].map((path) => [basename(path), { copy: path }] as const);
  return {
    files: {
      ...Object.fromEntries(copies),
      SHA256SUMS: { content: sums.map((line) => `${line}\n`).join('') },
      'agent.sh': { content: fillIn(version, sums) },
    },
  };
}

/** Writes the install folder. Replaces an existing folder. */
export function writeInstallFolder({ files }: InstallFolder, out: string): void {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const [name, file] of Object.entries(files))
    if ('content' in file) writeFileSync(join(out, name), file.content);
    else copyFileSync(file.copy, join(out, name));
}

function sumLine(path: string, name: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9.+~_-]*$/.test(name))
    throw new Error(`${name} cannot be served; use only letters, digits, and . + ~ _ - in the name`);
  return `${hash('sha256', readFileSync(path))}  ${name}`;
}

function fillIn(version: string, sums: readonly string[]): string {
  const script = readFileSync(join(import.meta.dirname, 'agent.sh'), 'utf8');
  if (!/^[A-Za-z0-9.+~-]+$/.test(version)) throw new Error(`${version} is not a valid version`);
  return script.replace('@VERSION@', version).replace('@SUMS@', sums.join('\n'));
}
