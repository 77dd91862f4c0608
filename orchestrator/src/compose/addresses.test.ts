import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { configSchema } from '../config/schema.ts';
import { selfSigned } from '../identity/certificate.ts';
import { Addresses } from './addresses.ts';

async function newTls() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  return { key, cert: await selfSigned(createPrivateKey(key), { commonName: 'test', hosts: ['localhost'], days: 1 }) };
}

const config = configSchema.parse({ api_host: '::', advertised_host: '2001:db8::1', agent_host: '0.0.0.0' });

test('returns the actual ports once the servers are listening', async () => {
  const addresses = new Addresses(config, await newTls());
  addresses.apiPort = 8443;
  addresses.agentPort = 9000;
  expect(addresses.api).toBe('https://[2001:db8::1]:8443');
  expect(addresses.ownApi).toBe('https://127.0.0.1:8443');
  expect(addresses.agents).toEqual({ host: '2001:db8::1', port: 9000 });
  expect(addresses.enrollment('ab', true).agents).toBe('[2001:db8::1]:9000');
});

test('returns no agent host if agents are served on every address', () => {
  const addresses = new Addresses({ ...config, advertised_host: null }, null);
  expect(addresses.agents.host).toBeNull();
});

test('pins the new certificate after a reload', async () => {
  const addresses = new Addresses(config, await newTls());
  const before = addresses.enrollment('ab', true).install;
  const renewed = await newTls();
  addresses.certificate = renewed.cert;
  const after = addresses.enrollment('ab', true).install;
  expect(after).toMatchObject({ from: 'https://[2001:db8::1]:4748', pin: expect.stringMatching(/^sha256\/\/./) });
  expect(after).not.toEqual(before);
});
