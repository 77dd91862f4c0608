import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import { announcementSigned, readAnnouncement } from '@muster/protocol/wire';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, openDomain } from '../../../test/domain.ts';
import { MemoryAnnouncer } from '../../../test/memory-announcer.ts';
import { rawPublicKey } from '../../identity/ed25519-key.ts';
import { listAudit } from '../audit/audit.ts';
import { createDiscovery, parseTarget } from './discovery.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');

async function open(fixture: Parameters<typeof openDomain>[0], host: string | null = null) {
  const domain = await openDomain(fixture);
  const { actor } = await newAdmin(domain);
  const announcer = new MemoryAnnouncer();
  const discover = createDiscovery(domain.context, {
    announcer,
    port: 4747,
    agents: () => ({ host, port: 14_747 }),
    publicKey: rawPublicKey(privateKey) as Buffer,
    sign: (encoded) => sign(null, announcementSigned(encoded), privateKey),
  });
  const sentEvents = async () => (await listAudit(domain.context, { event_type: 'discovery.sent' })).events;
  return { domain, actor, announcer, discover, sentEvents };
}

const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: unknown) => (error instanceof MusterError ? error : Promise.reject(error)),
  );

describeAnyDatabase('discovery', (fixture) => {
  test('sends a signed announcement on each network, and records an event', async () => {
    const { domain, actor, announcer, discover, sentEvents } = await open(fixture);
    const answer = await discover(actor);
    expect(answer).toEqual({ sent_to: ['192.0.2.255:4747', '198.51.100.255:4747'] });
    const read = announcer.sent.map(({ datagram }) => readAnnouncement(datagram)!);
    for (const announcement of read) {
      expect(announcement).toMatchObject({ host: '192.0.2.1', port: 14_747, sentAt: domain.now() });
      expect(Buffer.from(announcement.orchestratorKey)).toEqual(rawPublicKey(privateKey));
      expect(verify(null, announcement.signed, publicKey, announcement.signature)).toBe(true);
    }
    expect(new Set(read.map(({ nonce }) => Buffer.from(nonce).toString('hex'))).size).toBe(2);
    expect(await sentEvents()).toMatchObject([
      { actor: { id: actor.id }, metadata: { sent_to: answer.sent_to, failed: [] } },
    ]);
  });

  test('announces the advertised host if it is configured', async () => {
    const { actor, announcer, discover } = await open(fixture, 'muster.example');
    expect(await discover(actor, '[2001:db8::40]:4749')).toEqual({ sent_to: ['2001:db8::40:4749'] });
    expect(readAnnouncement(announcer.sent[0]!.datagram)?.host).toBe('muster.example');
  });

  test('lists the deliveries that succeeded, and fails if none did', async () => {
    const { actor, announcer, discover, sentEvents } = await open(fixture);
    announcer.failing.set('192.0.2.255:4747', 'network is unreachable');
    expect(await discover(actor)).toEqual({ sent_to: ['198.51.100.255:4747'] });
    expect((await sentEvents())[0]?.metadata).toMatchObject({
      failed: [{ to: '192.0.2.255:4747', error: 'network is unreachable' }],
    });
    announcer.failing.set('198.51.100.255:4747', 'network is down');
    const failed = await refusal(discover(actor));
    expect(failed?.code).toBe('discovery_failed');
    expect(failed?.message).toContain('network is down');
    announcer.networks = [];
    expect((await refusal(discover(actor)))?.message).toContain('no network to broadcast on');
    expect(await sentEvents()).toHaveLength(1);
  });

  test('refuses an unknown target host, and includes the field in the error', async () => {
    const { actor, discover, sentEvents } = await open(fixture);
    for (const target of ['nowhere.example:4747', 'x', 'a:0', 'a:65536', '[::1]', '::1:4747', '[a]:1', 'a b:1', ':1'])
      expect(await refusal(discover(actor, target)), target).toMatchObject({
        code: 'invalid_input',
        errors: [{ path: '/target' }],
      });
    expect(await sentEvents()).toEqual([]);
  });
});

describe('discovery target', () => {
  test('parses a target as host and port, with IPv6 in brackets', () => {
    expect(parseTarget('web-1.example:4747')).toEqual({ host: 'web-1.example', port: 4747 });
    expect(parseTarget('192.0.2.40:1')).toEqual({ host: '192.0.2.40', port: 1 });
    expect(parseTarget('[2001:db8::40]:65535')).toEqual({ host: '2001:db8::40', port: 65_535 });
    expect(parseTarget('[fe80::1%eth0]:4747')).toEqual({ host: 'fe80::1%eth0', port: 4747 });
  });

  test('refuses a target that is not a host and a port', () => {
    const nearly = fc.stringMatching(/^[[\]:%.a0 ]{0,20}:?\d{0,7}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearly), (text) => {
        try {
          const { host, port } = parseTarget(text);
          expect([`${host}:${port}`, `[${host}]:${port}`]).toContain(text.replace(/:0*(?=\d+$)/, ':'));
        } catch (error) {
          expect((error as MusterError).code).toBe('invalid_input');
        }
      }),
      { numRuns: 500 },
    );
  });
});
