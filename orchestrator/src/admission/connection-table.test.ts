import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConnectionTable } from './connection-table.ts';

const table = (connections: number, exposedOfNetwork = connections + 1) =>
  new ConnectionTable<string>({ connections, exposedOfNetwork });

describe('the per-network share', () => {
  test('drops the oldest silent connection from the same network', () => {
    const all = table(10, 2);
    expect(all.add('a1', 'A', false)).toBeNull();
    expect(all.add('a2', 'A', false)).toBeNull();
    expect(all.add('b1', 'B', false)).toBeNull();
    expect(all.add('a3', 'A', false)).toEqual({ connection: 'a1', reason: 'share' });
  });

  test('drops silent connections before idle ones, and then the connection that has been idle longest', () => {
    const all = table(10, 3);
    for (const name of ['idle', 'idle longest', 'silent']) all.add(name, 'A', false);
    for (const name of ['idle', 'idle longest']) all.requestReceived(name);
    for (const name of ['idle longest', 'idle']) all.ended(name);
    expect(all.add('n1', 'A', false)?.connection).toBe('silent');
    all.requestReceived('n1');
    expect(all.add('n2', 'A', false)?.connection).toBe('idle longest');
    all.requestReceived('n2');
    expect(all.add('n3', 'A', false)?.connection).toBe('idle');
  });

  test('refuses a new connection if all connections of its network are busy', () => {
    const all = table(10, 2);
    for (const name of ['a1', 'a2']) {
      all.add(name, 'A', false);
      all.requestReceived(name);
    }
    expect(all.add('a3', 'A', false)).toEqual({ connection: 'a3', reason: 'share' });
    expect(all.size).toBe(2);
  });

  test('counts neither signed-in connections nor connections of trusted proxies toward the per-network limit', () => {
    const all = table(100, 2);
    for (let at = 0; at < 50; at++) {
      expect(all.add(`signed in ${at}`, 'A', false)).toBeNull();
      all.requestReceived(`signed in ${at}`);
      all.signedIn(`signed in ${at}`);
      all.ended(`signed in ${at}`);
    }
    for (let at = 0; at < 40; at++) expect(all.add(`proxy ${at}`, 'P', true)).toBeNull();
    expect(all.size).toBe(90);
  });
});

describe('requests on a connection', () => {
  test('does not require an `ended` call once the connection is protected', () => {
    const all = table(2);
    all.add('a1', 'A', false);
    all.add('proxy', 'P', true);
    expect(all.requestReceived('a1')).toBe(true);
    all.signedIn('a1');
    all.ended('a1');
    for (const name of ['a1', 'proxy', 'closed']) expect(all.requestReceived(name), name).toBe(false);
  });
});

describe('a full port', () => {
  test('drops a silent connection from the network with the most connections', () => {
    const all = table(4);
    for (const [name, network] of [
      ['b1', 'B'],
      ['a1', 'A'],
      ['a2', 'A'],
      ['a3', 'A'],
    ] as const)
      all.add(name, network, false);
    expect(all.add('c1', 'C', false)).toEqual({ connection: 'a1', reason: 'full' });
  });

  test('drops a silent connection from a small network before an idle one from a large network', () => {
    const all = table(3);
    for (const name of ['a1', 'a2']) {
      all.add(name, 'A', false);
      all.requestReceived(name);
      all.ended(name);
    }
    all.add('b1', 'B', false);
    expect(all.add('c1', 'C', false)?.connection).toBe('b1');
  });

  test('drops a busy connection only to admit a connection from a network with fewer connections', () => {
    const all = table(3);
    for (const name of ['a1', 'a2', 'a3']) {
      all.add(name, 'A', false);
      all.requestReceived(name);
    }
    expect(all.add('a4', 'A', false)).toEqual({ connection: 'a4', reason: 'full' });
    expect(all.add('b1', 'B', false)).toEqual({ connection: 'a1', reason: 'full' });
    all.requestReceived('b1');
    expect(all.add('b2', 'B', false)).toEqual({ connection: 'b2', reason: 'full' });
  });

  test('keeps a silent connection from a small network while a large network fills the port', () => {
    const all = table(8, 4);
    for (let at = 0; at < 8; at++) {
      all.add(`attacker ${at}`, at < 4 ? 'A' : 'B', false);
      all.requestReceived(`attacker ${at}`);
    }
    expect(all.add('client', 'C', false)).toEqual({ connection: 'attacker 0', reason: 'full' });
    // The network whose connection was dropped reconnects immediately and is silent during the handshake.
    expect(all.add('attacker 8', 'A', false)).toEqual({ connection: 'attacker 8', reason: 'full' });
  });

  test('drops an idle connection from a large network before a silent one from a much smaller network', () => {
    const all = table(8, 8);
    for (let at = 0; at < 7; at++) {
      all.add(`idle ${at}`, 'A', false);
      all.requestReceived(`idle ${at}`);
      all.ended(`idle ${at}`);
    }
    all.add('client', 'C', false);
    expect(all.add('newcomer', 'D', false)).toEqual({ connection: 'idle 0', reason: 'full' });
  });

  test('accepts a connection from a new network when the port is full of networks with one idle connection each', () => {
    const all = table(3);
    for (const name of ['a', 'b', 'c']) {
      all.add(name, name, false);
      all.requestReceived(name);
      all.ended(name);
    }
    expect(all.add('d', 'd', false)).toEqual({ connection: 'a', reason: 'full' });
  });

  test('never drops a connection that has signed in', () => {
    const all = table(2);
    for (const name of ['a1', 'a2']) {
      all.add(name, 'A', false);
      all.requestReceived(name);
      all.signedIn(name);
      all.ended(name);
    }
    expect(all.add('b1', 'B', false)).toEqual({ connection: 'b1', reason: 'full' });
  });

  test('accepts new connections after other connections have closed', () => {
    const all = table(1);
    all.add('a1', 'A', false);
    all.delete('a1');
    all.delete('a1');
    expect(all.add('b1', 'B', false)).toBeNull();
  });
});

test('respects its limits and keeps signed-in connections for any sequence of events', () => {
  const names = fc.integer({ min: 0, max: 30 }).map(String);
  const step = fc.oneof(
    fc.record({ do: fc.constant('add' as const), name: names, network: fc.constantFrom('A', 'B', 'C') }),
    fc.record({ do: fc.constantFrom('requestReceived', 'ended', 'signedIn', 'delete'), name: names }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const all = table(8, 4);
      const there = new Map<string, { network: string; signedIn: boolean }>();
      for (const one of steps) {
        if (one.do === 'add') {
          if (there.has(one.name)) continue;
          const dropped = all.add(one.name, one.network, false);
          if (dropped?.connection !== one.name) there.set(one.name, { network: one.network, signedIn: false });
          if (dropped !== null && dropped.connection !== one.name) {
            expect(there.get(dropped.connection)?.signedIn).toBe(false);
            there.delete(dropped.connection);
          }
        } else {
          all[one.do](one.name);
          const entry = there.get(one.name);
          if (one.do === 'delete') there.delete(one.name);
          else if (one.do === 'signedIn' && entry) entry.signedIn = true;
        }
        expect(all.size).toBe(there.size);
        expect(all.size).toBeLessThanOrEqual(8);
        for (const network of ['A', 'B', 'C'])
          expect(
            [...there.values()].filter((entry) => entry.network === network && !entry.signedIn).length,
          ).toBeLessThanOrEqual(4);
      }
    }),
  );
});
