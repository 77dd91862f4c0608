import { createHmac } from 'node:crypto';
import type { Config } from './schema.ts';

/** Settings that may differ between replicas: names, addresses, files, and settings that only the first start uses. */
const ownSettings: ReadonlySet<string> = new Set([
  'advertised_host',
  'agent_host',
  'agent_port',
  'api_host',
  'api_port',
  'bootstrap_key',
  'bootstrap_username',
  'database_pool_size',
  'database_url',
  'database_url_file',
  'disk',
  'packages_dir',
  'replica',
  'secrets_key_file',
  'tls_cert',
  'tls_key',
]);

/**
 * Returns 32 hexadecimal digits that are equal for replicas with the same configuration.
 * @param key a secret of the fleet, because settings may contain passwords that are easy to guess
 */
export function configDigest(config: Config, key: Uint8Array): string {
  const { credentials_file, ca_file, ...nats } = config.nats;
  const shared = Object.entries({ ...config, nats })
    .filter(([name]) => !ownSettings.has(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return createHmac('sha256', key).update(JSON.stringify(shared)).digest('hex').slice(0, 32);
}
