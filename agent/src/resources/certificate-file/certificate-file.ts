import { posix } from 'node:path';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { inspect } from '../../host/files/inspect.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import {
  chainText,
  checkChain,
  expiresSoon,
  invalidNow,
  keyText,
  lifetimeOf,
  readChain,
  readPrivateKey,
  shownTime,
} from '../certificate/chain.ts';
import {
  diffFiles,
  diffFilesRemoval,
  type FilesBefore,
  filesInBrief,
  joinedDifference,
  lookAtFiles,
  lookAtFilesForRemoval,
  type PlacedFile,
  placeFiles,
  rememberFiles,
  restoreFiles,
  type SeenFiles,
} from '../certificate/placed-files.ts';
import { broughtBy } from '../file-unix/brought.ts';
import { fileWeight } from '../file-unix/seen.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { nothing } from '../provider/provider.ts';

type Declared = ResolvedResource<'certificate-file'>;

export interface SeenCertificateFile {
  files: SeenFiles;
  /** Whether the directory of the key exists. */
  hasKeyDirectory: boolean;
  /** Time of the observation, in milliseconds since the Unix epoch. */
  now: number;
}

const defaultWarnDays = 30;

/** Fields of changes that do not affect the contents. */
const attributes = ['owner', 'group', 'mode', 'key_owner', 'key_group', 'key_mode'];

const isAbsent = ({ body }: Declared): boolean => body.ensure === 'absent';

function filesOf(resource: Declared): PlacedFile[] {
  const { path, key_path, certificate, key, mode, key_mode } = resource.body;
  const gone = isAbsent(resource);
  return [
    {
      name: 'certificate',
      path,
      text: gone ? null : chainText(readChain(certificate ?? '')),
      mode: mode ?? '0644',
    },
    { name: 'key', path: key_path, text: gone ? null : keyText(key ?? ''), mode: key_mode ?? '0600' },
  ];
}

/** Returns the files without their declared contents, which a removal does not need. */
const withoutContent = (resource: Declared): PlacedFile[] =>
  filesOf({ ...resource, body: { ...resource.body, ensure: 'absent' } });

/** A certificate with its chain and its private key, which are checked before they are placed. */
export const certificateFile = defineProvider<'certificate-file', SeenCertificateFile, FilesBefore>({
  type: 'certificate-file',
  fields: {
    path: 'text',
    key_path: 'text',
    certificate: 'text?',
    key: 'text?',
    domains: 'list?',
    owner: 'text?',
    group: 'text?',
    mode: 'text?',
    key_mode: 'text?',
    warn_before: 'integer?',
    ensure: 'text?',
  },
  brings: ({ body }) => broughtBy(body.path),
  path: ({ body }) => body.path,
  makes: ({ body }) => [body.key_path],
  watched: ({ body }) => [body.path, body.key_path],

  check(resource) {
    const { path, key_path, certificate, key, domains } = resource.body;
    checkPath(path);
    checkPath(key_path);
    if (path === key_path)
      throw new HostFailure('`path` and `key_path` are the same file: the certificate and its key need a file each');
    if (isAbsent(resource)) return;
    if (certificate == null || key == null) throw new HostFailure('`certificate` and `key` are required');
    checkChain(readChain(certificate), readPrivateKey(key), domains ?? []);
  },

  observe(resource, _circumstances, machine) {
    const directory = posix.dirname(resource.body.key_path);
    return {
      files: lookAtFiles(resource, filesOf(resource), machine),
      hasKeyDirectory: directory === '/' || inspect(machine.walk, directory, false).type !== 'absent',
      now: machine.clock.now(),
    };
  },

  diff(resource, { files: seen, hasKeyDirectory, now }, circumstances) {
    const { purpose } = circumstances;
    const files = filesOf(resource);
    const difference = joinedDifference(files, seen, diffFiles(resource, files, seen, { purpose }));
    if (isAbsent(resource)) return difference;
    const { path, key_path, certificate, warn_before } = resource.body;
    const lifetime = lifetimeOf(readChain(certificate ?? ''));
    const days = warn_before ?? defaultWarnDays;
    const isLate = now >= lifetime.until || expiresSoon(lifetime, days, now);
    if (purpose === 'drift') {
      if (!isLate || difference.changes.some(({ field }) => field === 'not_after')) return difference;
      const late = { field: 'not_after', from: shownTime(lifetime.until), to: `more than ${days} days from now` };
      return {
        ...difference,
        action: difference.action === 'none' ? 'update' : difference.action,
        changes: [...difference.changes, late],
      };
    }
    const invalid = invalidNow(lifetime, now);
    const late = isLate ? `${lifetime.title} expires at ${shownTime(lifetime.until)}: declare a newer one` : null;
    if (difference.action === 'none') return nothing(invalid ?? late ?? undefined);
    // A file with another owner or other permissions is repaired, because the key may be exposed.
    const places = difference.changes.some(({ field }) => !attributes.includes(field));
    if (invalid !== null && places) throw new HostFailure(`${invalid}; nothing was changed`);
    const directory = posix.dirname(key_path);
    if (!hasKeyDirectory && directory !== posix.dirname(path) && !circumstances.willBeThere(directory))
      throw new HostFailure(
        `there is no directory ${directory} for the key: declare it with directory-unix, and let this resource depend on it`,
      );
    const warning = invalid ?? late;
    return warning === null ? difference : { ...difference, message: warning };
  },

  inBrief: ({ files, ...seen }) => ({ ...seen, files: filesInBrief(files) }),
  weight: ({ files }) => files.reduce((sum, file) => sum + fileWeight(file), 0),
  remember: (resource, { files }, _difference, before, machine) =>
    rememberFiles(resource, filesOf(resource), files, before, machine),

  async apply(resource, { files }, _difference, machine) {
    await placeFiles(resource, filesOf(resource), files, machine);
    return {};
  },

  async observeForRemoval(resource, before, machine) {
    const files = await lookAtFilesForRemoval(resource, withoutContent(resource), before, machine);
    return { files, hasKeyDirectory: true, now: machine.clock.now() };
  },
  diffRemoval: (resource, before, { files }, _circumstances, copies) =>
    diffFilesRemoval(resource, withoutContent(resource), before, files, copies),
  async remove(resource, before, { files }, _difference, machine) {
    await restoreFiles(resource, withoutContent(resource), before, files, machine);
    return {};
  },
});
