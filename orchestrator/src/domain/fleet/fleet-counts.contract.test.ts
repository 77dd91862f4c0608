import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { connect, newAdmin, newAgent, newKey, openDomain } from '../../../test/domain.ts';
import { createCensus, takeCensus } from './fleet-counts.ts';

describeAnyDatabase('fleet census', (fixture) => {
  test('counts agents and operations at most every ten seconds', async () => {
    const domain = await openDomain(fixture);
    const census = createCensus(domain.context);
    const none = { pending: 0, approved: 0, rejected: 0 };
    expect(await census()).toEqual({
      agents: none,
      operations: { queued: 0, running: 0 },
      terminals: 0,
      deliveries: 0,
      unplacedEvents: 0,
    });
    const { actor } = await newAdmin(domain);
    await newAgent(domain, actor, 'web-1');
    await newAgent(domain, actor, 'web-2');
    await connect(domain, await newKey());
    expect((await takeCensus(domain.context)).agents).toEqual({ pending: 1, approved: 2, rejected: 0 });
    expect((await takeCensus(domain.context)).unplacedEvents).toBeGreaterThan(3);
    expect((await census())?.agents).toEqual(none);
    domain.clock.advance(10_000);
    const both = await Promise.all([census(), census()]);
    expect(both[0]).toBe(both[1]);
    expect(both[0]?.agents).toEqual({ pending: 1, approved: 2, rejected: 0 });
  });

  test('returns the last counts while the database fails', async () => {
    const domain = await openDomain(fixture);
    const census = createCensus(domain.context);
    const last = await census();
    await domain.db.close();
    domain.clock.advance(10_000);
    expect(await census()).toBe(last);
  });
});
