import { expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { defaultGatewayLimits } from './limits.ts';
import type { Link } from './link.ts';
import { LinkRegistry } from './presence.ts';

const open = () => {
  const pings: string[] = [];
  const link = { state: 'open', probe: null, ping: (payload: string) => pings.push(payload) } as unknown as Link;
  const clock = new ManualClock();
  return { clock, link, pings, registry: new LinkRegistry(clock, defaultGatewayLimits) };
};

test('answers two concurrent probes of a link with one ping', async () => {
  const { clock, link, pings, registry } = open();
  const outcomes = [registry.probe(link), registry.probe(link)];
  for (const payload of pings) if (link.probe?.payload === payload) link.probe.answered();
  clock.advance(defaultGatewayLimits.cloneProbeMs);
  expect(await Promise.all(outcomes)).toEqual(['answered', 'answered']);
  expect(pings).toHaveLength(1);
});

test('probes a link again after a probe without an answer', async () => {
  const { clock, link, pings, registry } = open();
  const first = registry.probe(link);
  clock.advance(defaultGatewayLimits.cloneProbeMs);
  expect(await first).toBe('silent');
  const second = registry.probe(link);
  link.probe?.answered();
  expect(await second).toBe('answered');
  expect(pings).toHaveLength(2);
});
