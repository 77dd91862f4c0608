import { stalePlanError } from '@muster/protocol/stale-plan';
import { expect, test } from 'vitest';
import { operationErrorText } from './operation-error.ts';

test.each([
  [stalePlanError('the machine has changed'), 'the plan is stale: the machine has changed'],
  [stalePlanError(''), 'the plan is stale'],
  ['the agent is offline', 'the agent is offline'],
])('describes the error %j as %j', (error, text) => {
  expect(operationErrorText(error)).toBe(text);
});
