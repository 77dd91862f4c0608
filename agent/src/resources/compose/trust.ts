import { readsEnvironmentFiles } from '@muster/protocol/module';
import { pathOfCompose } from '../../host/containers/compose-program.ts';
import { HostFailure } from '../../host/failure.ts';
import { inspect } from '../../host/files/inspect.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import { expectTrustedFile, folderOf, trustedPath } from '../archive/place.ts';
import type { Machine } from '../provider/provider.ts';
import { type Declared, dotenvOf, inputsOf } from './declared.ts';

/** Keeps other users from redirecting Compose, which runs as root, and keeps the text of its files out of messages. */

/**
 * Checks where Compose gets its definitions.
 * @param path path of the Compose file
 * @throws HostFailure if a user other than root can create or change files in its directory, even one that does not
 *   exist yet
 */
export function expectTrusted(path: string, { walk }: Pick<Machine, 'walk'>): void {
  expectTrustedFolder(path, walk);
  expectTrustedFile(walk, dotenvOf(path), 'Compose');
}

function expectTrustedFolder(path: string, walk: PathWalk): void {
  let folder = folderOf(path);
  while (trustedPath(walk, folder, 'null') === null) folder = folderOf(folder);
}

/** Checks all files that Compose reads, wherever they are. */
function expectTrustedInputs(resource: Declared, text: string | null, { walk }: Pick<Machine, 'walk'>): void {
  expectTrustedFolder(resource.body.path, walk);
  for (const file of inputsOf(resource, text ?? '')) {
    expectTrustedFolder(file, walk);
    expectTrustedFile(walk, file, 'Compose');
  }
}

/** Returns the Compose file on the machine; null if it cannot be read as a regular file. */
function textAt(path: string, { walk }: Pick<Machine, 'walk'>): string | null {
  const found = inspect(walk, path, true);
  return found.type === 'file' ? (found.content?.bytes?.toString('utf8') ?? null) : null;
}

/** Returns why the messages of Compose may contain secrets; null if they do not. */
function whySilent(resource: Declared, text: string | null, { walk }: Pick<Machine, 'walk'>): string | null {
  // Compose may quote a part of a value, or escape it.
  if (resource.sensitive_fields.includes('environment')) return '`environment` contains a secret';
  const dotenv = dotenvOf(resource.body.path);
  if (inspect(walk, dotenv, false).type !== 'absent') return `${dotenv} may contain secrets`;
  if (text === null || readsEnvironmentFiles(text)) return 'an env_file may contain secrets';
  return null;
}

/**
 * Runs Compose if other users cannot redirect it. Hides its output if that may quote a secret.
 * @param declared the Compose file; null if it is the one on the machine
 */
export async function runTrusted<T>(
  resource: Declared,
  declared: string | null,
  machine: Pick<Machine, 'walk'>,
  run: () => Promise<T>,
): Promise<T> {
  const text = declared ?? textAt(resource.body.path, machine);
  expectTrustedInputs(resource, text, machine);
  const reason = whySilent(resource, text, machine);
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof HostFailure) || reason === null) throw error;
    const [doing] = error.message.split(':');
    throw new HostFailure(
      `${doing}: the message of Compose is not shown, because ${reason}; run \`${pathOfCompose() ?? 'docker-compose'} --file ${resource.body.path} config\` on the machine`,
    );
  }
}
