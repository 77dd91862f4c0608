import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { HostFailure } from '../../host/failure.ts';
import type { FileContents } from '../../host/packages/package-file.ts';
import type { DownloadSource, Machine } from '../provider/provider.ts';
import { checkFile, type FileFormat, fileVersion, withFiles } from './package-file.ts';

const hashOf = (digit: string) => digit.repeat(64);
type Declared = ResolvedResource<'package-apt'>;
const resource = (body: Partial<Declared['body']>, rest: object = {}): Declared =>
  ({
    type: 'package-apt',
    sensitive_fields: [],
    body: { name: 'foo', url: 'https://u:p@host/foo.deb', sha256: hashOf('a'), ...body },
    ...rest,
  }) as unknown as Declared;

/** A machine that offers files by hash, and records which ones are fetched. */
function machineWith(files: Readonly<Record<string, FileContents>>, epochs: 'optional' | 'exact' = 'exact') {
  const kept = new Map<string, string>();
  const fetched: string[] = [];
  const content = (sha256: string) => ({ path: sha256, read: async () => Buffer.alloc(0), named: () => sha256 });
  const machine = {
    privateFiles: { read: (name: string) => kept.get(name) ?? null, write: kept.set.bind(kept) },
    async useDownload({ sha256 }: DownloadSource, action: (content: unknown) => unknown) {
      fetched.push(sha256);
      if (files[sha256] === undefined) throw new HostFailure('the server answers 404');
      return action(content(sha256));
    },
    async useContent({ sha256 }: { sha256: string }, action: (content: unknown) => unknown) {
      fetched.push(sha256);
      return action(content(sha256));
    },
  } as unknown as Machine;
  const format: FileFormat = {
    suffix: '.deb',
    read: async (path) => files[path] as FileContents,
    misfit: async (name, contents) => (contents.name === name ? null : `it is ${contents.name}`),
    isVersion: (declared, version) => version.replace(/^\d+:/, '').startsWith(declared),
    isPartial: () => epochs === 'optional',
  };
  const version = (declared: Declared, installed: string | null, purpose: 'plan' | 'apply' | 'drift' = 'plan') =>
    fileVersion(declared, installed, { purpose }, format, machine);
  return { machine, format, fetched, kept, version };
}
const foo = (version: string): FileContents => ({ name: 'foo', version, architecture: 'all' });

test('reads an unknown file only if the package is installed, and records its content', async () => {
  const { version, fetched } = machineWith({ [hashOf('a')]: foo('1-1') });
  expect(await version(resource({}), null)).toBeNull();
  expect(await version(resource({}), '1-1', 'drift')).toBeNull();
  expect(fetched).toEqual([]);
  expect(await version(resource({}), '1-1')).toBe('1-1');
  expect(await version(resource({}), '0-1')).toBe('1-1');
  expect(await version(resource({}), '0-1', 'drift')).toBe('1-1');
  expect(await version(resource({}), null)).toBeNull();
  expect(fetched).toEqual([hashOf('a')]);
});

test('does not read the file if the declared version is enough to decide', async () => {
  const { version, fetched } = machineWith({ [hashOf('a')]: foo('1-1') });
  expect(await version(resource({ version: '1-1' }), '1-1')).toBe('1-1');
  expect(await version(resource({ version: '1' }), null)).toBe('1');
  expect(await version(resource({ version: '1' }), '0-1')).toBe('1');
  expect(await version(resource({ version: '1' }), '1-2', 'drift')).toBeNull();
  expect(fetched).toEqual([]);
  // The installed version may be another release of the declared version, so the file must be read.
  expect(await version(resource({ version: '1' }), '1-2')).toBe('1-1');
  expect(fetched).toEqual([hashOf('a')]);
  expect(await version(resource({ version: '1' }), null)).toBe('1');
  expect(await version(resource({ version: '1' }), '0-1')).toBe('1');
});

test('reads a file that may have another epoch than the installed package', async () => {
  const { version, fetched } = machineWith({ [hashOf('a')]: foo('1:1-1') }, 'optional');
  const declared = resource({ version: '1-1' });
  expect(await version(declared, '1-1', 'drift')).toBeNull();
  for (let i = 0; i < 2; i++) expect(await version(declared, '1-1')).toBe('1:1-1');
  expect(fetched).toEqual([hashOf('a')]);
});

test('refuses a file of another package or version, even if it was already read', async () => {
  const { version, fetched } = machineWith({ [hashOf('a')]: { ...foo('2'), name: 'bar' }, [hashOf('b')]: foo('2') });
  for (let i = 0; i < 2; i++) {
    await expect(version(resource({}), '1')).rejects.toThrow('it is bar; nothing was installed');
    const other = resource({ sha256: hashOf('b'), version: '1' });
    await expect(version(other, '1-1')).rejects.toThrow('the file has version 2, not the declared 1');
  }
  expect(fetched).toEqual([hashOf('a'), hashOf('b')]);
});

test('ignores a damaged record of files', async () => {
  for (const text of ['{', '[]', 'null', `{"${hashOf('a')}":{"version":1}}`]) {
    const { version, kept } = machineWith({ [hashOf('a')]: foo('1') });
    kept.set('package-files.json', text);
    expect(await version(resource({}), '1')).toBe('1');
    expect(JSON.parse(kept.get('package-files.json') ?? '')).toEqual({ [hashOf('a')]: foo('1') });
  }
});

test('discards the oldest records if there are too many files', async () => {
  const { version, kept, fetched } = machineWith({ [hashOf('a')]: foo('1') });
  const known = Array.from({ length: 500 }, (_, i) => [i.toString(16).padStart(64, '0'), foo('1')] as const);
  kept.set('package-files.json', JSON.stringify(Object.fromEntries(known)));
  await version(resource({ sha256: hashOf('a') }), '1');
  const hashes = Object.keys(JSON.parse(kept.get('package-files.json') ?? ''));
  expect([hashes.length, hashes.at(-1), hashes.includes(hashOf('0'))]).toEqual([500, hashOf('a'), false]);
  expect(fetched).toEqual([hashOf('a')]);
});

test('fails only the package whose file cannot be used', async () => {
  const { machine, format } = machineWith({ [hashOf('a')]: foo('1'), [hashOf('b')]: { ...foo('1'), name: 'bar' } });
  const items = ['a', 'b', 'c'].map((digit) => ({ resource: resource({ sha256: hashOf(digit) }) }));
  const results = await withFiles(items, format, machine, async (files) =>
    items.map((item) => {
      const file = files.get(item);
      return file instanceof HostFailure ? file.message : file?.contents;
    }),
  );
  expect(results).toEqual([
    foo('1'),
    'it is bar; nothing was installed',
    'cannot download from https://host/foo.deb: the server answers 404',
  ]);
});

test('passes on a failure of the installation, instead of reporting an unusable file', async () => {
  const { machine, format } = machineWith({ [hashOf('a')]: foo('1') });
  let calls = 0;
  const installing = withFiles([{ resource: resource({}) }], format, machine, async () => {
    calls++;
    throw new HostFailure('apt-get was left running');
  });
  await expect(installing).rejects.toThrow('apt-get was left running');
  expect(calls).toBe(1);
});

test('uses the content of a file in the module folder', async () => {
  const { version } = machineWith({ [hashOf('b')]: foo('3') });
  const declared = resource({ url: null, sha256: null, source: 'foo.deb' } as object, {
    source: { sha256: hashOf('b'), size: 7 },
  });
  expect(() => checkFile(declared)).not.toThrow();
  expect(await version(declared, '1')).toBe('3');
});

test('refuses an incomplete declaration of a file, and a range of versions', () => {
  const refused = (body: object, rest?: object) => expect(() => checkFile(resource(body, rest)));
  refused({ sha256: null }).toThrow('`url` requires `sha256`');
  refused({ sha256: '../../etc/passwd' }).toThrow('`url` requires `sha256`');
  refused({ source: 'foo.deb', url: null, sha256: null }).toThrow('sent no content for the source foo.deb');
  for (const version of ['latest', '>=1', '1.*']) refused({ version }).toThrow(`must be one version, not ${version}`);
  refused({ version: '1' }).not.toThrow();
  refused({ sha256: null, ensure: 'absent', version: 'latest' }).not.toThrow();
});
