import { expect, test } from 'vitest';
import { resourceTypes } from './kinds.ts';
import { suggestion } from './nearest.ts';

test.each([
  ['user', ': did you mean "user-unix" or "user-windows" or "mysql-user"?'],
  ['file', ': did you mean "file-unix" or "file-windows" or "certificate-file"?'],
  ['apt', ': did you mean "package-apt" or "apt-repository"?'],
  ['file-unx', ': did you mean "file-unix"?'],
  ['scrpt', ': did you mean "script"?'],
])('suggests the most similar kind names for %s', (name, said) => {
  expect(suggestion(name, resourceTypes)).toBe(said);
});

test.each(['package', 'service'])('suggests every kind that starts with %s', (name) => {
  const expected = resourceTypes.filter((type) => type.startsWith(`${name}-`));
  expect(expected.length).toBeGreaterThan(1);
  for (const type of expected) expect(suggestion(name, resourceTypes)).toContain(`"${type}"`);
});

test('suggests nothing if no name is similar', () => {
  expect(suggestion('xyzzyxyzzy', resourceTypes)).toBe('');
  expect(suggestion('', ['-a'])).not.toContain('mean ""');
});
