import { expect, test } from 'vitest';
import { pickerMatches } from './picker.tsx';

const options = [
  { value: 'a1', label: 'db-web', detail: 'debian' },
  { value: 'a2', label: 'web-1', detail: 'fedora' },
  { value: 'a3', label: 'WEB-2', detail: 'debian' },
];
const found = (text: string) => pickerMatches(options, text).map(({ value }) => value);

test('finds options that contain every word, and lists labels that start with the first word first', () => {
  expect(found('')).toEqual(['a1', 'a2', 'a3']);
  expect(found('web')).toEqual(['a2', 'a3', 'a1']);
  expect(found('web debian')).toEqual(['a3', 'a1']);
  expect(found('a2')).toEqual(['a2']);
  expect(found('mail')).toEqual([]);
});
