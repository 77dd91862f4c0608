import { getKind, type KindField } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { kindFieldValues } from './kind-text.ts';

test('describes the allowed values of a field', () => {
  const [key, , ensure] = getKind.example.answer.fields as [KindField, KindField, KindField];
  expect(kindFieldValues(key)).toBe('text');
  expect(kindFieldValues(ensure)).toBe('present, absent');
  expect(kindFieldValues({ ...key, type: 'any' })).toBe('any value except null');
  expect(kindFieldValues({ ...key, type: 'ids' })).toBe('list of ids');
  expect(kindFieldValues({ ...key, type: 'integer', minimum: 0, maximum: 65_535 })).toBe('whole number, 0 to 65535');
});
