import { expect, test } from 'vitest';
import { probeLink } from './link-rivals.ts';

test('ignores unknown fields in probes and answers, which newer replicas may send', () => {
  expect(probeLink.question.parse({ node_id: 'n', later: true })).toEqual({ node_id: 'n' });
  expect(probeLink.answer.parse({ answered: true, later: true })).toEqual({ answered: true });
});
