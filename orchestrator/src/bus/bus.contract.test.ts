import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { NatsFleet } from '../../test/nats/nats-fleet.ts';
import { natsMissing } from '../../test/nats/nats-server.ts';
import type { Bus, Hint } from './bus.ts';
import { createInProcessBus } from './in-process.ts';

const work = (node_id: string): Hint => ({ type: 'work', node_id });
/** A bus to publish on, and a bus to subscribe to. */
interface Ends {
  readonly from: Bus;
  readonly bus: Bus;
  end(): Promise<void>;
}

/** The implementations under test. `complaints` collects listener errors. */
const implementations: Record<string, (complaints: unknown[]) => Promise<Ends>> = {
  'in one process': async (complaints) => {
    const bus = createInProcessBus((error) => complaints.push(error));
    return { from: bus, bus, end: () => bus.close() };
  },
  'at one replica with NATS': async (complaints) => {
    const fleet = await NatsFleet.start();
    const bus = fleet.join({ complaints });
    return { from: bus, bus, end: () => fleet.end() };
  },
  'from one replica to another through NATS': async (complaints) => {
    const fleet = await NatsFleet.start();
    const [from, bus] = [fleet.join(), fleet.join({ complaints })];
    await fleet.isComplete();
    return { from, bus, end: () => fleet.end() };
  },
};

/** Collects hints. Resolves once `count` hints have arrived. */
function collect(bus: Bus, count: number): Promise<Hint[]> {
  const seen: Hint[] = [];
  return new Promise((resolve) => {
    const end = bus.subscribe((hint) => {
      seen.push(hint);
      if (seen.length === count) {
        end();
        resolve(seen);
      }
    });
  });
}

describe.each(Object.entries(implementations))('a bus, %s', (name, create) => {
  let ends: Ends | null = null;
  let from: Bus;
  let bus: Bus;
  let complaints: unknown[];
  beforeEach(async ({ skip }) => {
    const reason = name.includes('NATS') ? natsMissing() : null;
    if (reason !== null) skip(reason);
    complaints = [];
    ends = await create(complaints);
    ({ from, bus } = ends);
  });
  afterEach(async () => {
    await ends?.end();
    ends = null;
  });

  test('delivers every hint to every subscriber, in publication order', async () => {
    const both = Promise.all([collect(bus, 3), collect(bus, 3)]);
    const hints = [work('a'), work('b'), { type: 'cancel', node_id: 'a', operation_id: 'o' } as const];
    for (const hint of hints) from.publish(hint);
    expect(await both).toEqual([hints, hints]);
  });

  test('calls listeners after `publish` has returned', async () => {
    let called = false;
    const seen = collect(bus, 1);
    bus.subscribe(() => {
      called = true;
    });
    from.publish(work('a'));
    expect(called).toBe(false);
    await seen;
    expect(called).toBe(true);
  });

  test('calls the other listeners if one throws, and reports the error', async () => {
    bus.subscribe(() => {
      throw new Error('mine alone');
    });
    const seen = collect(bus, 2);
    from.publish(work('a'));
    from.publish(work('b'));
    expect(await seen).toHaveLength(2);
    expect(complaints).toHaveLength(2);
  });

  test('calls no listener after it has unsubscribed, even for a pending hint', async () => {
    const received: Hint[] = [];
    const end = bus.subscribe((hint) => received.push(hint));
    const seen = collect(bus, 2);
    from.publish(work('a'));
    end();
    from.publish(work('b'));
    await seen;
    expect(received).toEqual([]);
  });

  test('delivers a hint from a listener in a later event-loop turn', async () => {
    const end = bus.subscribe((hint) => {
      if (hint.type === 'work' && hint.node_id === 'a') bus.publish(work('b'));
    });
    const seen = collect(bus, 2);
    from.publish(work('a'));
    expect(await seen).toEqual([work('a'), work('b')]);
    end();
  });

  test('ignores calls after `close`', async () => {
    const received: Hint[] = [];
    bus.subscribe((hint) => received.push(hint));
    from.publish(work('a'));
    await bus.close();
    from.publish(work('b'));
    await bus.close();
    await from.close();
    from.publish(work('c'));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(received).toEqual([]);
  });
});
