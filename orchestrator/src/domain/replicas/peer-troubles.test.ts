import { describe, expect, test } from 'vitest';
import { MissingPeers, peerTroubles } from './peer-troubles.ts';

const peer = (name: string, draining: 0 | 1 = 0) => ({
  name,
  incarnation: `of ${name}`,
  draining,
  version: '1',
  config_digest: 'same',
});

describe('missing replicas', () => {
  test('reports each replica that ended without being stopped, until a replica with the same name starts', () => {
    const missing = new MissingPeers();
    missing.read([peer('b'), peer('c')], 0);
    missing.read([peer('b'), peer('c', 1)], 2_000);
    missing.read([peer('b')], 4_000);
    expect(missing.names).toEqual([]);
    missing.read([], 6_000);
    expect(missing.names).toEqual(['b']);
    missing.read([{ ...peer('b'), incarnation: 'another' }], 8_000);
    expect(missing.names).toEqual([]);
  });

  test('reports no missing replica for longer than a day', () => {
    const missing = new MissingPeers();
    missing.read([peer('b')], 0);
    missing.read([], 1_000);
    missing.read([], 24 * 3_600_000);
    expect(missing.names).toEqual(['b']);
    missing.read([], 24 * 3_600_000 + 1_000);
    expect(missing.names).toEqual([]);
  });
});

test('reports replicas of other releases, and replicas of the same release with a different configuration', () => {
  const own = peer('a');
  const others = [
    peer('b'),
    { ...peer('c'), version: '2', config_digest: 'other' },
    { ...peer('d'), config_digest: 'other' },
    { ...peer('e'), config_digest: null },
  ];
  expect(peerTroubles(own, others, ['f'])).toEqual([
    { name: 'f', trouble: 'missing' },
    { name: 'c', trouble: 'version' },
    { name: 'd', trouble: 'configuration' },
  ]);
});
