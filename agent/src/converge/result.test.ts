import type { ResourceResult } from '@muster/protocol';
import { expect, test } from 'vitest';
import { failureSummary } from './result.ts';

const failed = (id: string, message: string | null) => ({ id, message, status: 'failed' }) as ResourceResult;

test('summarizes failures in one line, without the output of programs', () => {
  const words = 'Started x.service.\nx.service: Failed';
  const results = [
    failed('unit', `x.service did not start: it ended with status 1; last in the journal:\n${words}`),
    failed('file', 'the new content of /f was refused: bad\nworse'),
    failed('other', null),
    failed('last', 'no'),
  ];
  expect(failureSummary(results)).toBe(
    '4 of 4 resources failed. unit: x.service did not start: it ended with status 1; ' +
      'file: the new content of /f was refused: bad; other: no reason given; and 1 more',
  );
});
