import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { hashLarge } from '../../host/files/inspect.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { placeFile, rememberFile } from '../file-unix/apply.ts';
import { broughtBy } from '../file-unix/brought.ts';
import { diffFile } from '../file-unix/diff.ts';
import { diffFileRemoval, observeFileForRemoval, removeOrRestoreFile } from '../file-unix/removal.ts';
import { type FileBefore, fileInBrief, fileWeight, isWritten, look, type SeenFile } from '../file-unix/seen.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Machine } from '../provider/provider.ts';
import { notDownloaded } from './shown-url.ts';
import { sumIn } from './sum.ts';

type Declared = ResolvedResource<'download'>;

export interface SeenDownload extends SeenFile {
  /** Required SHA-256 of the content; null if the file must not exist. */
  sha256: string | null;
}

/** Maximum size of the file at `sha256_url`, in bytes. */
const maxSums = 1024 * 1024;

/**
 * Returns the download as a file with a source, so that the agent compares, writes, and restores it like a declared
 * file.
 * @param size size of the content; if the content must be downloaded, a size that differs from that of the file
 */
function asFile(resource: Declared, sha256: string | null, size: number): ResolvedResource<'file-unix'> {
  const { path, owner, group, mode, ensure } = resource.body;
  const fields = Object.entries({ owner, group, mode, ensure }).filter(([, value]) => value != null);
  return {
    ...resource,
    type: 'file-unix',
    body: { path, ...(sha256 === null ? {} : { source: 'download' }), ...Object.fromEntries(fields) },
    ...(sha256 === null ? {} : { source: { sha256, size } }),
  };
}

const contentOf = ({ found }: SeenFile) => (found.type === 'file' ? found.content : null);

/** Returns the declared file with the fields that are known before the download. */
function declaredFile(resource: Declared, seen: SeenDownload): ResolvedResource<'file-unix'> {
  const content = contentOf(seen);
  return asFile(resource, seen.sha256, content?.sha256 === seen.sha256 ? (content?.size ?? -1) : -1);
}

/** A file whose content is downloaded. */
export const download = defineProvider<'download', SeenDownload, FileBefore>({
  type: 'download',
  fields: {
    path: 'text',
    url: 'text',
    sha256: 'text?',
    sha256_url: 'text?',
    owner: 'text?',
    group: 'text?',
    mode: 'text?',
    ensure: 'text?',
  },
  brings: ({ body }) => broughtBy(body.path),
  path: ({ body }) => body.path,
  check({ body }) {
    checkPath(body.path);
    if (body.ensure === 'absent') return;
    if (body.sha256 == null && body.sha256_url == null) throw new HostFailure('`sha256` or `sha256_url` is required');
    if (body.sha256 != null && !/^[0-9a-f]{64}$/.test(body.sha256)) throw new HostFailure('`sha256` is not a SHA-256');
  },
  async observe(resource, _circumstances, machine) {
    const { path } = resource.body;
    const sha256 = await declaredHash(resource, machine);
    const seen = await look(asFile(resource, sha256, -1), machine, true, []);
    const { found } = seen;
    const content = contentOf(seen);
    if (found.type !== 'file' || content === null || content.sha256 !== null || sha256 === null)
      return { ...seen, sha256 };
    const hashed = await hashLarge(machine.walk, path, found, content.size);
    return { ...seen, found: { ...found, content: { ...content, sha256: hashed } }, sha256 };
  },
  diff: (resource, seen, circumstances) => ({
    ...diffFile(declaredFile(resource, seen), seen, circumstances),
    diff: null,
  }),
  inBrief: (seen) => JSON.parse(JSON.stringify({ ...fileInBrief(seen), sha256: seen.sha256 })),
  weight: fileWeight,
  remember: (resource, seen, difference, before, machine) =>
    rememberFile(declaredFile(resource, seen), seen, difference, before, machine),
  async apply(resource, seen, difference, machine) {
    const { sha256 } = seen;
    const file = declaredFile(resource, seen);
    if (sha256 === null || !isWritten(file.body, seen, difference.changes))
      return placeFile(file, seen, difference, { bytes: Buffer.alloc(0) }, machine);
    const { url } = resource.body;
    const downloaded = machine.useDownload({ url, sha256 }, async ({ path, size }) => {
      const done = await placeFile(asFile(resource, sha256, size), seen, difference, { copyOf: path }, machine);
      return { done };
    });
    const { done } = await downloaded.catch((error: unknown) => {
      throw notDownloaded(resource, 'url', error);
    });
    return done;
  },
  observeForRemoval: async (resource, before, machine) => ({
    ...(await observeFileForRemoval(asFile(resource, null, 0), before, machine)),
    sha256: null,
  }),
  diffRemoval: (resource, before, seen, _circumstances, copies) =>
    diffFileRemoval(asFile(resource, null, 0), before, seen, copies),
  remove: (resource, before, seen, difference, machine) =>
    removeOrRestoreFile(asFile(resource, null, 0), before, seen, difference, machine),
});

async function declaredHash(resource: Declared, machine: Machine): Promise<string | null> {
  const { ensure, sha256, sha256_url: sums, url } = resource.body;
  if (ensure === 'absent') return null;
  if (sha256 != null) return sha256;
  try {
    return sumIn((await machine.readDownload(sums ?? '', maxSums)).toString('utf8'), url);
  } catch (error) {
    throw notDownloaded(resource, 'sha256_url', error);
  }
}
