import { executableKinds, resourceTypes } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { providerOf } from './registry.ts';

test('the agent has a provider for each kind that the protocol calls supported', () => {
  expect(resourceTypes.filter((type) => providerOf(type) !== null).sort()).toEqual([...executableKinds].sort());
});
