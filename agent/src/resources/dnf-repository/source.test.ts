import { expect, test } from 'vitest';
import { renderSource, sourceChanges, sourceFault } from './source.ts';

const key = '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nb25l\n-----END PGP PUBLIC KEY BLOCK-----';
const body = { name: 'extra', baseurl: ['https://example.org/$releasever'] };

test('writes a source in the format of dnf, and checks packages if there is a key', () => {
  const rest = {
    title: 'More packages',
    enabled: false,
    priority: 10,
    excludepkgs: ['a*', 'b'],
    module_hotfixes: true,
  };
  expect(renderSource({ ...body, ...rest, gpgkey: key })).toBe(
    [
      '# Written by Muster; a change by hand is undone by the next apply.',
      '[extra]',
      'name=More packages',
      'baseurl=https://example.org/$releasever',
      'enabled=0',
      'gpgcheck=1',
      'priority=10',
      'excludepkgs=a* b',
      'module_hotfixes=1',
      'gpgkey=file:///etc/yum.repos.d/extra.asc',
      '',
    ].join('\n'),
  );
  expect(renderSource({ ...body, gpgkey: key, gpgcheck: false })).toContain('gpgcheck=0\n');
  expect(renderSource(body)).not.toContain('gpg');
});

test('refuses a source that dnf would not accept, without showing its value', () => {
  expect(sourceFault({ ...body, gpgkey: key })).toBe(null);
  expect(sourceFault({ name: 'x' })).toContain('it needs `baseurl`, `metalink`, or `mirrorlist`');
  expect(sourceFault({ name: 'x', metalink: '//user:secret@example.org' })).toBe(
    'an address has no scheme; add one, such as https:',
  );
  expect(sourceFault({ ...body, gpgkey: 'b25l' })).toContain('gpg --armor --export');
});

test('reports the fields in which a source differs', () => {
  const text = renderSource({ ...body, gpgkey: key });
  expect(sourceChanges(text, text)).toEqual([]);
  expect(sourceChanges(null, renderSource(body)).map(({ field }) => field)).toEqual(['title', 'baseurl']);
  expect(sourceChanges(text.replace('gpgcheck=1', 'gpgcheck = 0'), text)).toEqual([
    { field: 'gpgcheck', from: '0', to: '1' },
  ]);
  expect(sourceChanges(`# mine\n${text}`, text)).toEqual([
    { field: 'source_file', from: 'changed by hand', to: 'as declared' },
  ]);
});
