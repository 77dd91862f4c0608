import { createHash, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { selfSigned } from '../../identity/certificate.ts';
import { isOwnServer, ownServers, type Served } from './own-servers.ts';

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const hosts = ['localhost', 'muster.example', '*.wild.example', '192.0.2.7', '2001:db8::7'];
const certificate = await selfSigned(privateKey, { commonName: 'muster api', hosts, days: 1 });
const spki = new X509Certificate(certificate).publicKey.export({ format: 'der', type: 'spki' });

const served = (over: Partial<Served> = {}): Served => ({
  certificate,
  apiHost: '0.0.0.0',
  apiPort: 4748,
  advertisedHost: null,
  publicUrl: null,
  origins: [],
  ...over,
});
const judge = (server: string, over: Partial<Served> = {}, loopback = false) =>
  isOwnServer(ownServers(served(over)), server, loopback);

test.each([
  `tls:${createHash('sha256').update(spki).digest('hex')}`,
  'origin:https://muster.example:4748',
  'origin:https://192.0.2.7:4748',
  'origin:https://[2001:db8::7]:4748',
])('accepts a name in the server’s certificate: %s', (server) => {
  expect(judge(server)).toBe(true);
});

test.each([
  `tls:${'ab'.repeat(32)}`,
  'origin:http://muster.example:4748',
  'origin:https://muster.example',
  'origin:https://muster.example:4749',
  'origin:https://a.wild.example:4748',
  'origin:https://0.0.0.0:4748',
  'origin:https://localhost:4748',
  'origin:https://127.0.0.1:4748',
])('refuses %s from another machine', (server) => {
  expect(judge(server)).toBe(false);
});

test('derives the server’s names from the configured addresses', () => {
  expect(judge('origin:https://fleet.example', { publicUrl: 'https://fleet.example/muster' })).toBe(true);
  expect(judge('origin:https://old.example:8443', { origins: ['https://old.example:8443'] })).toBe(true);
  expect(judge('origin:https://advertised.example:4748', { advertisedHost: 'advertised.example' })).toBe(true);
  expect(judge('origin:https://198.51.100.9:4748', { apiHost: '198.51.100.9' })).toBe(true);
});

test('accepts a proxy’s configured public key as a server name', () => {
  const key = `tls:${'cd'.repeat(32)}`;
  expect(judge(key)).toBe(false);
  expect(judge(key, { origins: [key] })).toBe(true);
});

test.each([
  'localhost',
  'localhost.',
  'box.localhost',
  'localhost.localdomain',
  'ip6-localhost',
  '127.0.1.1',
  '0.0.0.0',
  '::',
  '::ffff:127.0.0.1',
])('treats %s as loopback', (host) => {
  const { origin } = new URL(`https://${host.includes(':') ? `[${host}]` : host}:4748`);
  for (const over of [{ advertisedHost: host }, { origins: [origin] }, { publicUrl: origin }]) {
    expect(judge(`origin:${origin}`, over)).toBe(false);
    expect(judge(`origin:${origin}`, over, true)).toBe(true);
  }
});

test('accepts loopback names only from local clients, and only with the server’s own port', () => {
  for (const host of ['localhost', '127.0.0.1', '[::1]'])
    expect(judge(`origin:https://${host}:4748`, {}, true)).toBe(true);
  expect(judge('origin:https://localhost:9000', {}, true)).toBe(false);
  expect(judge('origin:https://localhost:9000', { origins: ['https://localhost:9000'] }, true)).toBe(true);
  expect(judge('origin:https://localhost:9000', { origins: ['https://localhost:9000'] })).toBe(false);
});

test('accepts plain HTTP origins if the server uses plain HTTP', () => {
  const plain = { certificate: null, advertisedHost: 'fleet.example' };
  expect(judge('origin:http://fleet.example:4748', plain)).toBe(true);
  expect(judge('origin:https://fleet.example:4748', plain)).toBe(false);
  expect(judge('origin:http://127.0.0.1:4748', plain, true)).toBe(true);
});
