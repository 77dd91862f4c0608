import { readsEnvironmentFiles } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { inspect } from '../../host/files/inspect.ts';
import { expectTrustedFile, folderOf, trustedPath } from '../archive/place.ts';
import type { Machine } from '../provider/provider.ts';
import { type Declared, dotenvOf } from './declared.ts';

/** Keeps other users from redirecting Compose, which runs as root, and keeps the text of its files out of messages. */

/**
 * Checks what Compose reads by itself. Call this before each run of Compose.
 * @param path path of the Compose file
 * @throws HostFailure if a user other than root can create or change files in its directory, even one that does not
 *   exist yet
 */
export function expectTrusted(path: string, { walk }: Pick<Machine, 'walk'>): void {
  let folder = folderOf(path);
  while (trustedPath(walk, folder, 'null') === null) folder = folderOf(folder);
  expectTrustedFile(walk, dotenvOf(path), 'Compose');
}

/** Returns why the messages of Compose may contain secrets; null if they do not. */
function whySilent(resource: Declared, text: string | null, { walk }: Pick<Machine, 'walk'>): string | null {
  if (resource.sensitive_fields.includes('content')) return 'the Compose file contains a secret';
  // Compose may quote a part of a value, or escape it.
  if (resource.sensitive_fields.includes('environment')) return '`environment` contains a secret';
  const dotenv = dotenvOf(resource.body.path);
  if (inspect(walk, dotenv, false).type !== 'absent') return `${dotenv} may contain secrets`;
  if (text === null || readsEnvironmentFiles(text)) return 'an env_file may contain secrets';
  return null;
}

/**
 * Runs Compose if other users cannot redirect it. Hides its output if that may quote a secret.
 * @param text the Compose file; null if it is not known
 */
export async function runTrusted<T>(
  resource: Declared,
  text: string | null,
  machine: Pick<Machine, 'walk'>,
  run: () => Promise<T>,
): Promise<T> {
  expectTrusted(resource.body.path, machine);
  const reason = whySilent(resource, text, machine);
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof HostFailure) || reason === null) throw error;
    const [doing] = error.message.split(':');
    throw new HostFailure(
      `${doing}: the message of Compose is not shown, because ${reason}; run \`docker-compose --file ${resource.body.path} config\` on the machine`,
    );
  }
}
