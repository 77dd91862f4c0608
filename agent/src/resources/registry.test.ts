import { executableKinds, resourceTypes } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { providerOf } from './registry.ts';

test('registers a provider for each kind that the protocol marks as supported', () => {
  expect(resourceTypes.filter((type) => providerOf(type) !== null).sort()).toEqual([...executableKinds].sort());
});
