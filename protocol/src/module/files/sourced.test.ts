import { expect, test } from 'vitest';
import { parseModule } from '../parse.ts';
import { resolveDesiredSet } from '../resolve.ts';
import type { ModuleFile } from './module-file.ts';

const hash = (letter: string) => letter.repeat(64);
const folder = (...files: (Partial<ModuleFile> & { path: string })[]) => ({
  files: new Map(files.map((file) => [file.path, { sha256: hash('a'), size: 3, executable: false, ...file }])),
  textOf: () => null,
});
const agent = { id: 'x', name: 'web-1', hostname: 'h', attributes: { platform: 'linux' }, tags: {} } as never;
const text = (resources: string, name = 'm') =>
  `name: ${name}\nsupports: [{ platform: linux }]\nresources:\n${resources}`;

function module(resources: string, files: ReturnType<typeof folder>, name?: string) {
  const parsed = parseModule(text(resources, name), files);
  if (!parsed.ok) throw new Error(parsed.faults.map(({ message }) => message).join('\n'));
  return parsed.module;
}
const resolve = (...modules: ReturnType<typeof module>[]) => resolveDesiredSet({ modules, agent });
const faults = (resources: string, files: ReturnType<typeof folder>) => {
  const parsed = parseModule(text(resources), files);
  return [...(parsed.ok ? [] : parsed.faults), ...parsed.warnings].map(({ message }) => message);
};

test('resolves a source to the size and hash of the file', () => {
  const files = folder({ path: 'files/web-1.bin', size: 7 });
  const resolved = resolve(
    module('  - resource: { file-unix: { path: /a, source: "files/${{ agent.name }}.bin" } }\n', files),
  );
  expect(resolved.ok && resolved.resources.map(({ body, source }) => ({ body, source }))).toEqual([
    { body: { path: '/a', source: 'files/web-1.bin' }, source: { sha256: hash('a'), size: 7 } },
  ]);
});

test('makes an executable file executable unless a mode is declared', () => {
  const files = folder({ path: 'run', executable: true });
  const resolved = resolve(
    module(
      '  - resource: { file-unix: { path: /a, source: run } }\n  - resource: { file-unix: { path: /b, source: run, mode: "0700" } }\n',
      files,
    ),
  );
  expect(resolved.ok && resolved.resources.map(({ body }) => body.mode)).toEqual(['0755', '0700']);
});

test('resolves a directory to one resource for each directory and file in it', () => {
  const files = folder(
    { path: 'files/site/css/a.css' },
    { path: 'files/site/index.html', sha256: hash('b') },
    { path: 'files/site.conf' },
    { path: 'files/site/run', executable: true },
  );
  const resolved = resolve(
    module(
      '  - id: site\n    resource: { directory-unix: { path: /srv, source: files/site, purge: true, owner: web } }\n  - id: app\n    resource: { service-systemd: { name: app, reload_on: [site] } }\n  - resource: { file-unix: { path: /x, source: files/site.conf } }\n',
      files,
    ),
  );
  if (!resolved.ok) throw new Error(resolved.faults[0]?.message);
  expect(resolved.resources.map(({ id, body, source }) => [id, body, source?.sha256[0]])).toEqual([
    ['site', { path: '/srv', source: 'files/site', purge: true, owner: 'web' }, undefined],
    ['site[css]', { path: '/srv/css', owner: 'web' }, undefined],
    ['site[css/a.css]', { path: '/srv/css/a.css', source: 'files/site/css/a.css', mode: '0644', owner: 'web' }, 'a'],
    ['site[index.html]', { path: '/srv/index.html', source: 'files/site/index.html', mode: '0644', owner: 'web' }, 'b'],
    ['site[run]', { path: '/srv/run', source: 'files/site/run', mode: '0755', owner: 'web' }, 'a'],
    ['app', { name: 'app' }, undefined],
    [null, { path: '/x', source: 'files/site.conf' }, 'a'],
  ]);
  expect(resolved.resources[5]?.reload_on).toHaveLength(5);
});

test('gives the files of a directory the declared mode, and makes executable files executable for everyone who may read them', () => {
  const files = folder({ path: 'site/a' }, { path: 'site/run', executable: true });
  const modes = (mode: string) => {
    const fields = `path: /srv, source: site, mode: "0710", file_mode: "${mode}"`;
    const resolved = resolve(module(`  - resource: { directory-unix: { ${fields} } }\n`, files));
    return resolved.ok && resolved.resources.slice(1).map(({ body }) => body.mode);
  };
  expect(modes('0640')).toEqual(['0640', '0750']);
  expect(modes('u=rw,go=')).toEqual(['0600', '0700']);
});

test('refuses set-ID bits for the files of a directory', () => {
  const files = folder({ path: 'site/a' });
  const given = module('  - resource: { directory-unix: { path: /srv, source: site, file_mode: "4755" } }\n', files);
  const resolved = resolve(given);
  expect(!resolved.ok && resolved.faults[0]?.message).toContain('`file_mode` must not set a set-ID bit');
});

test('refuses sources that do not exist, and suggests existing ones', () => {
  const file = (source: string) => `  - resource: { file-unix: { path: /a, source: ${source} } }\n`;
  const directory = (source: string) => `  - resource: { directory-unix: { path: /a, source: ${source} } }\n`;
  const files = folder({ path: 'files/app.bin' });
  expect(faults(file('files/app.bni'), files)[0]).toBe(
    'there is no file "files/app.bni": did you mean "files/app.bin"?',
  );
  expect(faults(file('files'), files)[0]).toContain('is a directory');
  expect(faults(directory('files/app.bin'), files)[0]).toContain('is a file');
  expect(faults(directory('site'), files)[0]).toContain('no files below "site"');
  expect(faults(file('files/app.bin'), folder())[0]).toContain('upload the folder');
  expect(faults(file('../x'), files)[0]).toContain('must not contain ".."');
  expect(faults('  - resource: { file-unix: { path: /a, source: files/app.bin, content: x } }\n', files)[0]).toContain(
    'cannot be combined',
  );
  const unknown = resolve(module(file('"files/${{ agent.name }}"'), files));
  expect(!unknown.ok && unknown.faults[0]?.message).toBe(
    'module "m": there is no file "files/web-1": use one of files/app.bin',
  );
});

test('does not warn about files that an expression in `source` may refer to', () => {
  const files = folder({ path: 'files/a' }, { path: 'site/b' }, { path: 'c' });
  expect(
    faults(
      '  - resource: { file-unix: { path: /a, source: "files/${{ agent.name }}" } }\n  - resource: { directory-unix: { path: /b, source: site } }\n',
      files,
    ),
  ).toEqual(['no resource uses the file "c"']);
});

test('compares the contents of two declarations rather than their paths', () => {
  const declared = (name: string, sha256: string, source: string) =>
    module(`  - resource: { file-unix: { path: /a, source: ${source} } }\n`, folder({ path: source, sha256 }), name);
  expect(resolve(declared('m', hash('a'), 'files/a'), declared('n', hash('a'), 'files/b')).ok).toBe(true);
  expect(resolve(declared('m', hash('a'), 'files/a'), declared('n', hash('b'), 'files/a')).ok).toBe(false);
});
