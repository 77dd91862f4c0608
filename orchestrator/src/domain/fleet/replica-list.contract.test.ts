import { expect, test } from 'vitest';
import { describePostgres } from '../../../test/databases/databases.ts';
import { openDomain } from '../../../test/domain.ts';
import { insertReplica, raiseBeat } from '../../store/replicas.ts';
import { Leases } from '../shared/leases.ts';
import { listReplicas } from './replica-list.ts';

describePostgres('the list of replicas', (fixture) => {
  async function open() {
    const { context } = await openDomain(fixture);
    const ages = new Map<string, number>();
    const parts = {
      context,
      replica: { incarnation: 'of b', heartbeatAge: (incarnation: string) => ages.get(incarnation) ?? 0 },
      connectedTo: (incarnation: string) => (incarnation === 'of a' ? 7 : 0),
    };
    /** Registers a replica. @param ready null for a release that does not store it */
    const join = async (name: string, ready: 0 | 1 | null) => {
      const incarnation = `of ${name}`;
      await context.db.alone(insertReplica, { incarnation, name, version: '1.2.3', started_at: 1_700_000_000 });
      if (ready !== null) await context.db.alone(raiseBeat, { incarnation, ready, config_digest: 'digest' });
    };
    return { context, ages, parts, join };
  }

  test('shows each replica with its leases, agents, and last heartbeat', async () => {
    const { context, ages, parts, join } = await open();
    await join('b', 1);
    await join('a', null);
    ages.set('of a', 3_449);
    for (const name of ['upkeep', 'audit']) await new Leases({ ...context, incarnation: 'of b' }).lease(name).hold();
    await new Leases({ ...context, incarnation: 'closed' }).lease('outbox').hold();
    const common = { version: '1.2.3', started_at: 1_700_000_000, draining: false };
    expect(await listReplicas(parts)).toEqual([
      {
        ...{ ...common, name: 'a', incarnation: 'of a', this_replica: false, heartbeat_age_secs: 3.4 },
        ...{ ready: false, connected_agents: 7, leases: [], config_digest: null },
      },
      {
        ...{ ...common, name: 'b', incarnation: 'of b', this_replica: true, heartbeat_age_secs: 0 },
        ...{ ready: true, connected_agents: 0, leases: ['audit', 'upkeep'], config_digest: 'digest' },
      },
    ]);
  });
});
