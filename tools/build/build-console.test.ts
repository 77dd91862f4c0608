import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { segmentsOf } from './build-console.ts';

test('finds the first segments of all console routes', () => {
  const routes = "page('/', a); page('/agents', b);\npage(\n  '/agents/$agent', c); page('/runs/$run', d); other('/x')";
  expect(segmentsOf(routes)).toEqual(['agents', 'runs']);
  const own = segmentsOf(readFileSync(join(import.meta.dirname, '../../console/src/app/routes.tsx'), 'utf8'));
  expect(own).toEqual(expect.arrayContaining(['agents', 'login', 'settings']));
  expect(() => segmentsOf('createRoute({})')).toThrow('contains no call');
});
