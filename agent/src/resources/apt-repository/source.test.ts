import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { renderKey } from '../package-source/source-and-key.ts';
import { renderSource, sourceChanges, sourceFault } from './source.ts';

const key = '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nb25l\n-----END PGP PUBLIC KEY BLOCK-----';
const body = { name: 'extra', uris: ['https://example.org/debian'], suites: ['stable'], components: ['main'] };

describe('a source', () => {
  test('writes a source in the format of apt', () => {
    expect(renderSource({ ...body, components: ['main', 'contrib'], signed_by: key })).toBe(
      [
        '# Written by Muster; a change by hand is undone by the next apply.',
        'Types: deb',
        'URIs: https://example.org/debian',
        'Suites: stable',
        'Components: main contrib',
        'Signed-By: /etc/apt/keyrings/extra.asc',
        '',
      ].join('\n'),
    );
    expect(renderSource({ ...body, suites: ['./'], components: [] })).not.toMatch(/Components|Signed-By/);
    expect(renderKey(`\r\n${key.replaceAll('\n', '\r\n')}\r\n\r\n`)).toBe(`${key}\n`);
  });

  test('refuses a source that apt would not accept, without showing its value', () => {
    expect(sourceFault({ ...body, signed_by: key })).toBeNull();
    expect(sourceFault({ ...body, suites: ['./'], components: [] })).toBeNull();
    expect(sourceFault({ ...body, uris: ['//user:secret@example.org'] })).toBe(
      'a URI in `uris` has no scheme; add one, such as https:',
    );
    expect(sourceFault({ ...body, suites: ['./'] })).toMatch(/is a path, so `components` must not be declared$/);
    expect(sourceFault({ ...body, components: [] })).toMatch(/needs `components`/);
    expect(sourceFault({ ...body, signed_by: key.replaceAll('PUBLIC', 'PRIVATE') })).toMatch(/is a private key/);
    expect(sourceFault({ ...body, signed_by: 'b25l' })).toMatch(/gpg --armor --export$/);
  });

  test('reports the fields in which a source differs', () => {
    const text = renderSource({ ...body, signed_by: key });
    const without = renderSource(body);
    expect(sourceChanges(text, text)).toEqual([]);
    expect(sourceChanges(null, without).map(({ field }) => field)).toEqual(['uris', 'suites', 'components', 'types']);
    expect(sourceChanges(text, without)).toEqual([
      { field: 'signed_by', from: '/etc/apt/keyrings/extra.asc', to: null },
    ]);
    expect(sourceChanges(without.replace('stable', 'testing'), without)).toEqual([
      { field: 'suites', from: 'testing', to: 'stable' },
    ]);
    // A commented-out field is not a field.
    expect(sourceChanges(without.replace('Suites:', '# Trusted: yes\n#Suites: old\nSuites:'), without)).toEqual([
      { field: 'source_file', from: 'changed by hand', to: 'as declared' },
    ]);
    expect(sourceChanges(`# mine: all\n\n${without}`, without.replace('stable', 'new'))).toEqual([
      { field: 'suites', from: 'stable', to: 'new' },
    ]);
    expect(sourceChanges(`# mine\n${without}`, without)).toEqual([
      { field: 'source_file', from: 'changed by hand', to: 'as declared' },
    ]);
  });

  test('parses a rendered source back to its fields', () => {
    const words = fc.array(fc.stringMatching(/^[a-z][a-z0-9./-]{0,8}$/), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(words, words, words, (uris, suites, components) => {
        const written = renderSource({ ...body, uris, suites, components });
        expect(Object.fromEntries(sourceChanges(null, written).map(({ field, to }) => [field, to]))).toEqual({
          types: 'deb',
          uris: uris.join(' '),
          suites: suites.join(' '),
          components: components.join(' '),
        });
      }),
    );
  });
});
