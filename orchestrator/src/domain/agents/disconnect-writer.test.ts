import { expect, test } from 'vitest';
import type { Hint } from '../../bus/bus.ts';
import type { Context } from '../shared/context.ts';
import { createDepartures } from './disconnect-writer.ts';

const depart = async (isReplica: boolean, isConnected: boolean) => {
  const hints: Hint[] = [];
  const context = {
    ...{ isReplica, incarnation: 'own' },
    db: { write: async () => ({}) },
    bus: { publish: (hint: Hint) => hints.push(hint) },
    presence: { isConnected: () => isConnected },
  } as unknown as Context;
  await createDepartures(context).departed('web-1', 5);
  return hints;
};

test('reports that an agent has disconnected, unless it is connected to another replica', async () => {
  const hint = { type: 'agent_departed', node_id: 'web-1', heard_at: 5 };
  expect(await depart(true, false)).toEqual([hint]);
  expect(await depart(true, true)).toEqual([]);
  expect(await depart(false, true)).toEqual([hint]);
});
