import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { compressJson } from './compression.ts';

test('compresses the same buffer only once', async () => {
  const [page, equalPage] = [Buffer.from('[{"name":"wéb"}]'), Buffer.from('[{"name":"wéb"}]')];
  const results = await Promise.all([page, page, equalPage, String(page)].map(compressJson));
  expect(results[1]).toBe(results[0]);
  expect(results[2]).not.toBe(results[0]);
  for (const result of results) expect(String(gunzipSync(result))).toBe('[{"name":"wéb"}]');
});
