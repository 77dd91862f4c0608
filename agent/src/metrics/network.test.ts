import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countedInterfaces, type InterfaceRelations, parseTraffic, relationsOf, sumTraffic } from './network.ts';

const head = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
`;
const line = (name: string, received: number | string, sent: number | string) =>
  `${name.padStart(6)}: ${received} 1 0 0 0 0 0 0 ${sent} 2 0 0 0 0 0 0\n`;

describe('traffic', () => {
  test('reads the bytes received and sent by each interface except loopback', () => {
    const text = `${head}${line('lo', 9, 9)}${line('eth0', 19345900413, 47958828)}${line('wlan0', 1, 0)}`;
    expect([...parseTraffic(text)]).toEqual([
      ['eth0', { received: 19345900413, sent: 47958828 }],
      ['wlan0', { received: 1, sent: 0 }],
    ]);
    // Names may contain colons, and older kernels print no space after the name.
    expect(parseTraffic('eth0:1:5 0 0 0 0 0 0 0 6 0 0 0 0 0 0 0').get('eth0:1')).toEqual({ received: 5, sent: 6 });
  });

  test('skips malformed lines', () => {
    const text = `${head}${line('eth0', 'x', 1)}${line('eth1', 1, '-1')}${line('eth2', 2 ** 60, 1)}   eth3: 1 2\n${line('eth4', 3, 4)}`;
    expect([...parseTraffic(text).keys()]).toEqual(['eth4']);
    fc.assert(
      fc.property(fc.string(), fc.nat(200), (inserted, at) => {
        const mangled = `${text.slice(0, at)}${inserted}${text.slice(at)}`;
        const sum = sumTraffic(parseTraffic(mangled), [...parseTraffic(mangled).keys()]);
        expect(sum === null || (Number.isSafeInteger(sum.received) && sum.sent >= 0)).toBe(true);
      }),
    );
  });
});

describe('counted interfaces', () => {
  const card = relationsOf(true, ['mtu', 'device']);
  const on = (lower: string, hasDevice = false) => relationsOf(hasDevice, ['mtu', `lower_${lower}`]);
  const upper = on('eth0');
  const loose = relationsOf(false, ['mtu']);
  const owned = (upper: string) => relationsOf(true, ['mtu', 'master', `upper_${upper}`]);
  const counted = (interfaces: Record<string, InterfaceRelations>) =>
    countedInterfaces(Object.keys(interfaces), (name) => interfaces[name]!);

  test('counts network cards, but not the interfaces on top of them', () => {
    const docker = { eth0: card, docker0: upper, veth1: loose, veth2: loose, wg0: loose, 'eth0.7': upper };
    expect(counted(docker)).toEqual(['eth0']);
    expect(counted({ bond0: upper, eth0: owned('bond0'), eth1: owned('bond0'), br0: on('bond0') })).toEqual([
      'eth0',
      'eth1',
    ]);
    // A port of a switch. The counters of its card include the port's traffic.
    expect(counted({ eth0: relationsOf(true, ['upper_lan1']), lan1: on('eth0', true) })).toEqual(['eth0']);
    // A port without a known lower interface.
    expect(counted({ eth0: card, lan1: on('gone', true) })).toEqual(['eth0']);
  });

  test('counts a card, but not its fast path, which may appear and disappear', () => {
    const hyperV = { eth0: on('enP1s1', true), enP1s1: owned('eth0'), 'eth0.7': upper, br0: on('eth0') };
    expect(counted(hyperV)).toEqual(['eth0']);
    expect(counted({ eth0: card })).toEqual(['eth0']);
    expect(counted({ bond0: on('eth0'), eth0: on('enP1s1', true), enP1s1: owned('eth0') })).toEqual(['eth0']);
  });

  test('counts interfaces without a lower interface if there is no card', () => {
    expect(counted({ eth0: loose, br0: upper, tun0: loose })).toEqual(['eth0', 'tun0']);
    expect(counted({})).toEqual([]);
  });

  test('returns null if there are no interfaces, or if the sum is not a safe integer', () => {
    const traffic = new Map([
      ['eth0', { received: 5, sent: 7 }],
      ['eth1', { received: 1, sent: 2 }],
      ['eth2', { received: Number.MAX_SAFE_INTEGER, sent: 0 }],
    ]);
    expect(sumTraffic(traffic, ['eth0', 'eth1', 'gone'])).toEqual({ received: 6, sent: 9 });
    expect(sumTraffic(traffic, ['eth0', 'eth2'])).toBeNull();
    expect(sumTraffic(traffic, ['gone'])).toBeNull();
    expect(sumTraffic(traffic, [])).toBeNull();
  });
});
