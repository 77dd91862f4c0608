import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Bus, Hint } from './bus.ts';
import { createInProcessBus } from './in-process.ts';

const work = (node_id: string): Hint => ({ type: 'work', node_id });
/** The implementations under test. `complaints` collects listener errors. */
const implementations: Record<string, (complaints: unknown[]) => Promise<Bus>> = {
  'in one process': async (complaints) => createInProcessBus((error) => complaints.push(error)),
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

describe.each(Object.entries(implementations))('a bus, %s', (_, create) => {
  let bus: Bus;
  let complaints: unknown[];
  beforeEach(async () => {
    complaints = [];
    bus = await create(complaints);
  });
  afterEach(() => bus.close());

  test('delivers every hint to every subscriber, in publication order', async () => {
    const both = Promise.all([collect(bus, 3), collect(bus, 3)]);
    const hints = [work('a'), work('b'), { type: 'cancel', node_id: 'a', operation_id: 'o' } as const];
    for (const hint of hints) bus.publish(hint);
    expect(await both).toEqual([hints, hints]);
  });

  test('calls listeners after `publish` has returned', async () => {
    let called = false;
    const seen = collect(bus, 1);
    bus.subscribe(() => {
      called = true;
    });
    bus.publish(work('a'));
    expect(called).toBe(false);
    await seen;
    expect(called).toBe(true);
  });

  test('calls the other listeners if one throws, and reports the error', async () => {
    bus.subscribe(() => {
      throw new Error('mine alone');
    });
    const seen = collect(bus, 2);
    bus.publish(work('a'));
    bus.publish(work('b'));
    expect(await seen).toHaveLength(2);
    expect(complaints).toHaveLength(2);
  });

  test('calls no listener after it has unsubscribed, even for a pending hint', async () => {
    const received: Hint[] = [];
    const end = bus.subscribe((hint) => received.push(hint));
    const seen = collect(bus, 2);
    bus.publish(work('a'));
    end();
    bus.publish(work('b'));
    await seen;
    expect(received).toEqual([]);
  });

  test('delivers a hint from a listener in a later event-loop turn', async () => {
    const end = bus.subscribe((hint) => {
      if (hint.type === 'work' && hint.node_id === 'a') bus.publish(work('b'));
    });
    const seen = collect(bus, 2);
    bus.publish(work('a'));
    expect(await seen).toEqual([work('a'), work('b')]);
    end();
  });

  test('ignores calls after `close`', async () => {
    const received: Hint[] = [];
    bus.subscribe((hint) => received.push(hint));
    bus.publish(work('a'));
    await bus.close();
    bus.publish(work('b'));
    await bus.close();
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(received).toEqual([]);
  });
});
