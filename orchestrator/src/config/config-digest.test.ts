import { expect, test } from 'vitest';
import { configDigest } from './config-digest.ts';
import { configSchema } from './schema.ts';

const key = Buffer.alloc(32, 1);
const digest = (given: object) => configDigest(configSchema.parse(given), key);

test('ignores names, addresses, files, and the order of settings', () => {
  const expected = digest({ console: false, runs: { max_concurrent: 3 } });
  expect(expected).toMatch(/^[0-9a-f]{32}$/);
  expect(
    digest({
      runs: { max_concurrent: 3 },
      console: false,
      replica: { name: 'b' },
      database_url: 'postgres://other:password@host:5432/muster',
      api_host: '10.0.0.1',
      agent_port: 1,
      tls_cert: '/b.pem',
      tls_key: '/b.key',
      nats: { credentials_file: '/b/nats', ca_file: '/b/ca.crt' },
    }),
  ).toBe(expected);
});

test('returns a different digest for different settings or a different key', () => {
  expect(digest({ console: false })).not.toBe(digest({}));
  expect(digest({ nats: { url: 'tls://nats.example:4222' } })).not.toBe(digest({}));
  expect(digest({ drift: { interval: 60 } })).not.toBe(digest({}));
  expect(digest({ metrics_token: 'a'.repeat(32) })).not.toBe(digest({}));
  expect(configDigest(configSchema.parse({}), Buffer.alloc(32, 2))).not.toBe(digest({}));
});
