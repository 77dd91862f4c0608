import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { describeSettings } from '../domain/fleet/settings.ts';
import { faultsOfFile, readInvocation } from './read.ts';
import { configJsonSchema, configSchema, exposesTokens } from './schema.ts';

const file = (text: string): string => {
  const path = join(mkdtempSync(join(tmpdir(), 'muster-config-')), 'muster.yml');
  writeFileSync(path, text);
  return path;
};
const read = (args: string[], env: NodeJS.ProcessEnv = {}) => readInvocation(args, env, '/var/lib/x');
const key = 'ab'.repeat(32);

describe('the configuration', () => {
  test('accepts a replica name only with PostgreSQL', () => {
    const named = { MUSTER_REPLICA_NAME: 'muster-1' };
    expect(() => read([], named)).toThrow('replica.name needs a PostgreSQL database: set database_url');
    const { config } = read([], { ...named, MUSTER_DATABASE_URL: 'postgres://m:p@db.example:5432/m' });
    expect(config.replica.name).toBe('muster-1');
    expect(() => read([], { MUSTER_REPLICA_NAME: 'Muster 1' })).toThrow(/replica.name: must be 1 to 32 lowercase/);
  });

  test('accepts NATS only for replicas, and other NATS settings only with its URL', () => {
    const replica = { MUSTER_REPLICA_NAME: 'a', MUSTER_DATABASE_URL: 'postgres://m:p@db.example:5432/m' };
    const url = 'tls://nats.example:4222';
    const files = { MUSTER_NATS_CREDENTIALS_FILE: '/credentials', MUSTER_NATS_CA_FILE: '/ca' };
    const { config } = read([], { ...replica, ...files, MUSTER_NATS_URL: url });
    expect(config.nats).toEqual({ url, credentials_file: '/credentials', ca_file: '/ca' });
    expect(() => read([], { MUSTER_NATS_URL: url })).toThrow('nats.url is for replicas: set replica.name as well');
    for (const [name, key] of Object.entries({ CREDENTIALS: 'credentials_file', CA: 'ca_file' }))
      expect(() => read([], { ...replica, [`MUSTER_NATS_${name}_FILE`]: '/file' })).toThrow(
        `nats.${key} needs nats.url: set it as well`,
      );
    const plain = (host: string, of: object) => read([], { ...replica, ...of, MUSTER_NATS_URL: `nats://${host}:4222` });
    const { MUSTER_NATS_CREDENTIALS_FILE, MUSTER_NATS_CA_FILE } = files;
    expect(() => plain('10.0.0.1', { MUSTER_NATS_CREDENTIALS_FILE })).toThrow('without encryption: use a URL');
    for (const host of ['127.0.0.1', '[::1]', 'localhost'])
      expect(plain(host, { MUSTER_NATS_CREDENTIALS_FILE }).config.nats.url).toBe(`nats://${host}:4222`);
    expect(() => plain('localhost', { MUSTER_NATS_CA_FILE })).toThrow(
      'nats.ca_file needs a URL that begins with tls://',
    );
  });

  test.each(['nats.example', 'http://nats.example', 'tls://u:secret@nats.example', 'tls://nats.example/path'])(
    'refuses %s as the URL of a NATS server without repeating it',
    (url) => {
      const env = { MUSTER_REPLICA_NAME: 'a', MUSTER_DATABASE_URL: 'postgres://m:p@db.example:5432/m' };
      expect(() => read([], { ...env, MUSTER_NATS_URL: url })).toThrow(
        /: nats\.url: must look like tls:\/\/nats\.example:4222, without a user and a password$/,
      );
    },
  );

  test('uses the documented defaults without a configuration', () => {
    expect(read([])).toEqual({
      help: false,
      file: null,
      dataDir: '/var/lib/x',
      logFormat: 'text',
      logLevel: 'info',
      sources: {},
      config: {
        api_host: '127.0.0.1',
        api_port: 4748,
        agent_host: null,
        agent_port: 4747,
        advertised_agents: [],
        advertised_host: null,
        bootstrap_key: null,
        bootstrap_username: null,
        console: true,
        packages_dir: null,
        pending_capacity: 100,
        proxy_protocol: { networks: [] },
        public_url: null,
        session_token_expiry_secs: 3600,
        tls_enabled: true,
        tls_cert: null,
        tls_key: null,
        metrics_token: null,
        trust_proxy_tls: false,
        database_url: null,
        database_url_file: null,
        database_pool_size: 8,
        database_statement_timeout: 30,
        agents: { lost_after_secs: 120, daily_bytes: 268_435_456 },
        trusted_proxies: [],
        runs: { max_concurrent: 1000 },
        rates: { sign_in_per_minute: 60, sign_in_burst: 30, session_per_second: 1000 },
        sign_in: {
          require_bound: false,
          origins: [],
          console_idle_secs: 43_200,
          console_life_secs: 604_800,
        },
        replica: { name: null },
        nats: { url: null, credentials_file: null, ca_file: null },
        drain: { links_per_second: 400 },
        disk: { reserve: null },
        discovery: { port: 4747 },
        secrets_key_file: null,
        secrets_expiry_notice_days: 14,
        metrics: {
          poll_interval: 60,
          retention: 86_400,
          remote_write: {
            url: null,
            bearer_token_file: null,
            username: null,
            password_file: null,
            deny_private: false,
            queue: 100_000,
          },
        },
        audit: { retention_days: 90 },
        notifications: { deny_private: false, give_up_after: 86_400, retention_days: 30 },
        operations: { retention_days: 0 },
        terminals: {
          retention_days: 90,
          reattach_secs: 60,
          idle_limit: 43_200,
          transcript_limit: 268_435_456,
          record_input: false,
        },
        drift: { enabled: true, interval: 3600, max_concurrent: 8, skip_recently_applied: 300, retention_days: 30 },
      },
    });
  });

  test('does not quote the content of an invalid file, which may contain a token or a password', () => {
    const messageOf = (text: string): string => {
      try {
        read(['--config', file(text)]);
      } catch (error) {
        return (error as Error).message.replace(/^.*muster\.yml: /, '');
      }
      throw new Error(`was taken: ${text}`);
    };
    for (const text of [
      'metrics_token: "canary0123456789\napi_port: 1\n',
      'metrics_token: canary0123456789 : x\n',
      'metrics_token: canary0123456789\n- x\n',
      'metrics_token: [canary0123456789, ]]\n',
      'api_port: 1\n} canary0123456789\n',
      'metrics_token: !!binary |\n  canary0123456789\n x\n',
      'metrics_token: "a\\canary0123456789"\n',
      'database_url: postgres://u:canary0123456789@h/x: y\n',
      'database_url: { url: "postgres://u:canary0123456789@h/x" }\n',
      'metrics_token: canary!0123456789\n',
      'metrics_token: @canary0123456789\n',
      'metrics_token: `canary0123456789\n',
      'metrics_token: %canary0123456789\n  x: "\n',
    ])
      expect(messageOf(text), text).not.toContain('anary');
    expect(messageOf('api_port: 1\nmetrics_token: "canary0123456789\n')).toMatch(/at line \d, column \d+$/);
  });

  test('overrides the file with variables, and both with flags', () => {
    const path = file('api_port: 1\nagent_port: 1\npending_capacity: 1\ndrift: { interval: 10 }\n');
    const env = { MUSTER_AGENT_PORT: '2', MUSTER_PENDING_CAPACITY: '2', MUSTER_DRIFT_ENABLED: 'false' };
    const { config } = read(['--config', path, '--api-port', '0', '--no-tls', '--agent-port=3'], env);
    expect(config).toMatchObject({ api_port: 0, agent_port: 3, pending_capacity: 2, tls_enabled: false });
    expect(config.drift).toMatchObject({ interval: 10, enabled: false, max_concurrent: 8 });
    expect(read([], { MUSTER_CONFIG: path }).config.api_port).toBe(1);
    expect(read(['--data-dir', '/d'], { MUSTER_DATA_DIR: '/e' }).dataDir).toBe('/d');
  });

  test('reads the database URL from a variable, a flag, or a file, and never shows its password', () => {
    const url = 'postgres://muster:s3cret@db.example/fleet';
    const path = file(`${url}\n`);
    for (const { config } of [
      read([], { MUSTER_DATABASE_URL: url }),
      read(['--database-url', url]),
      read([], { MUSTER_DATABASE_URL_FILE: path }),
      read(['--config', file(`database_url_file: ${path}\n`)]),
    ]) {
      expect(config.database_url?.reveal()).toBe(url);
      expect(JSON.stringify(config)).toContain('postgres://muster:••••@db.example/fleet');
      expect(JSON.stringify(config)).not.toContain('s3cret');
    }
    expect(() => read(['--database-url', url, '--database-url-file', path])).toThrow(/not both/);
    expect(() => read(['--database-url-file', '/nowhere/url'])).toThrow(/cannot be read/);
    for (const refused of [
      () => read(['--database-url', 'mysql://muster:s3cret@db']),
      () => read(['--database-url-file', file('muster:s3cret')]),
    ]) {
      expect(refused).toThrow(/must look like postgres:/);
      expect(refused).not.toThrow(/s3cret/);
    }
  });

  test('reads the remote-write settings from the file and from variables, and never shows the password', () => {
    const path = file('metrics: { remote_write: { url: "https://a.example/api/v1/write", queue: 5000 } }\n');
    const env = {
      MUSTER_METRICS_POLL_INTERVAL: '30',
      MUSTER_METRICS_REMOTE_WRITE_USERNAME: '123456',
      MUSTER_METRICS_REMOTE_WRITE_PASSWORD_FILE: '/p',
      MUSTER_METRICS_REMOTE_WRITE_DENY_PRIVATE: 'true',
    };
    const { config, sources } = read(['--config', path], env);
    expect(config.metrics).toEqual({
      poll_interval: 30,
      retention: 86_400,
      remote_write: {
        url: 'https://a.example/api/v1/write',
        bearer_token_file: null,
        username: '123456',
        password_file: '/p',
        deny_private: true,
        queue: 5000,
      },
    });
    expect(sources).toMatchObject({
      'metrics.remote_write.url': 'file',
      'metrics.remote_write.username': 'environment',
    });
    const withPassword = file('metrics: { remote_write: { url: "https://u:s3cret@a.example/w" } }\n');
    const settings = JSON.stringify(describeSettings(read(['--config', withPassword]).config, {}));
    expect(settings).toContain('https://u:••••@a.example/w');
    expect(settings).not.toContain('s3cret');
    const refused = (text: string) => () => read(['--config', file(`metrics: { remote_write: { ${text} } }\n`)]);
    const url = 'url: "https://a.example/w"';
    expect(refused('url: "ftp://u:s3cret@a.example"')).toThrow(/remote_write\.url: must look like https:/);
    expect(refused('url: "ftp://u:s3cret@a.example"')).not.toThrow(/s3cret/);
    expect(refused('urk: "x"')).toThrow(/metrics\.remote_write\.urk .* did you mean url/);
    expect(refused('username: ada, password_file: /p')).toThrow(/url is missing/);
    expect(refused(`${url}, username: ada`)).toThrow(/must be set together/);
    expect(refused(`${url}, username: ada, password_file: /p, bearer_token_file: /t`)).toThrow(/not both/);
    expect(refused('url: "https://u:p@a.example/w", bearer_token_file: /t')).toThrow(
      /either in url or in separate settings/,
    );
  });

  test('refuses unknown keys, and suggests the nearest known key', () => {
    expect(() => read(['--config', file('api_prot: 1\n')])).toThrow(
      /api_prot is not a known setting; did you mean api_port/,
    );
    expect(() => read(['--config', file('drift: { intervall: 1 }\n')])).toThrow(
      /drift\.intervall .* did you mean interval/,
    );
    expect(() => read(['--api-prot', '1'])).toThrow(/--api-port/);
    expect(() => read(['extra'])).toThrow(/extra/);
  });

  test('refuses invalid values, and includes their location in the error', () => {
    expect(() => read(['--api-port', 'x'])).toThrow(/--api-port must be a whole number/);
    expect(() => read(['--api-port', '70000'])).toThrow(/api_port/);
    expect(() => read([], { MUSTER_API_PORT: '-1' })).toThrow(/MUSTER_API_PORT/);
    expect(() => read(['--config', file('audit: { retention_days: no }\n')])).toThrow(/audit\.retention_days/);
    expect(() => read(['--config', file('- a\n')])).toThrow(/mapping/);
    expect(() => read(['--config', file('api_port: 1\napi_port: 2\n')])).toThrow(/unique/i);
    expect(() => read(['--config', '/nowhere/muster.yml'])).toThrow(/cannot be read/);
    expect(() => read(['--bootstrap-key', 'zz', '--bootstrap-username', 'ada'])).toThrow(/bootstrap_key/);
    expect(() => read(['--log-format', 'xml'])).toThrow(/text or json/);
  });

  test('refuses a key if another key that it requires is missing', () => {
    expect(() => read(['--bootstrap-key', key])).toThrow(/bootstrap_username/);
    expect(() => read(['--tls-cert', 'a.pem'])).toThrow(/tls_key/);
    expect(read(['--bootstrap-key', key, '--bootstrap-username', 'ada']).config.bootstrap_key).toBe(key);
  });

  test('detects that sign-in tokens would be sent unencrypted', () => {
    const exposed = (args: string[], env = {}) => exposesTokens(read(args, env).config);
    expect(exposed(['--no-tls', '--api-host', '0.0.0.0'])).toBe(true);
    expect(exposed(['--no-tls', '--api-host', '127.evil.example'])).toBe(true);
    expect(exposed(['--no-tls'])).toBe(false);
    expect(exposed(['--no-tls', '--api-host', '::1'])).toBe(false);
    expect(exposed(['--api-host', '0.0.0.0'])).toBe(false);
    expect(exposed(['--no-tls', '--api-host', '0.0.0.0'], { MUSTER_TRUST_PROXY_TLS: 'true' })).toBe(false);
  });

  test('reads lists from variables, and refuses proxies that are not addresses or networks', () => {
    const proxies = (text: string) => read([], { MUSTER_TRUSTED_PROXIES: text }).config.trusted_proxies;
    expect(proxies('10.0.0.0/8, ::1,192.0.2.7')).toEqual(['10.0.0.0/8', '::1', '192.0.2.7']);
    expect(proxies('')).toEqual([]);
    expect(read(['--config', file('trusted_proxies: [fd00::/8]\n')]).config.trusted_proxies).toEqual(['fd00::/8']);
    const balancers = (text: string) => read([], { MUSTER_PROXY_PROTOCOL_NETWORKS: text }).config.proxy_protocol;
    expect(balancers('192.0.2.2, fd00::/8')).toEqual({ networks: ['192.0.2.2', 'fd00::/8'] });
    const origins = 'https://muster.example:8443, https://muster.test';
    expect(read([], { MUSTER_SIGN_IN_ORIGINS: origins }).config.sign_in.origins).toEqual(origins.split(', '));
    expect(() => balancers('0.0.0.0/0')).toThrow(/proxy_protocol\.networks\.0: must be an IP address or a network/);
    for (const wrong of ['proxy.example', '10.0.0.0/33', '0.0.0.0/0', '::/129', '10.0.0.0/', '10.0.0/8', 'loopback'])
      expect(() => proxies(wrong), wrong).toThrow(/trusted_proxies\.0: must be an IP address or a network/);
  });

  test('records the source of each configured value', () => {
    const path = file('api_port: 1\nagent_port: 1\ndrift: { interval: 10, enabled: true }\n');
    const env = { MUSTER_AGENT_PORT: '2', MUSTER_DRIFT_INTERVAL: '20', MUSTER_RATES_SIGN_IN_BURST: '5', PATH: '/bin' };
    const { sources, config } = read(['--config', path, '--api-port', '0', '--no-tls'], env);
    expect(config.rates).toEqual({ sign_in_per_minute: 60, sign_in_burst: 5, session_per_second: 1000 });
    expect(sources).toEqual({
      api_port: 'flag',
      agent_port: 'environment',
      tls_enabled: 'flag',
      'drift.interval': 'environment',
      'drift.enabled': 'file',
      'rates.sign_in_burst': 'environment',
    });
  });

  test('reads names that consist of digits as strings', () => {
    expect(read([], { MUSTER_ADVERTISED_HOST: '10' }).config.advertised_host).toBe('10');
  });

  test('lists all errors in a file with their line numbers', () => {
    const faults = (text: string) => faultsOfFile(file(text)).map((fault) => fault.replace(/^.*muster\.yml/, ''));
    expect(
      faults('api_port: 1\ndrift:\n  intervall: 4\n  interval: no\ntrusted_proxies: [1.2.3.4, bad]\n').sort(),
    ).toEqual([
      ':3: drift.intervall is not a known setting; did you mean interval?',
      expect.stringMatching(/^:4: drift\.interval: /),
      expect.stringMatching(/^:5: trusted_proxies\.1: /),
    ]);
    expect(faults('api_port: 1\n\napi_port: 2\n')).toEqual([expect.stringMatching(/^:3: .*unique/)]);
    expect(faults('# nothing\n')).toEqual([]);
    // Errors in values from flags and variables contain no line number.
    expect(() => read(['--config', file('api_port: 1\n'), '--api-port', '70000'])).toThrow(/^configuration: api_port/);
  });

  test('exports a JSON Schema that accepts the same files as the program', () => {
    const schema = configJsonSchema() as { $id: string; properties: Record<string, object>; required?: string[] };
    expect(schema.$id).toBe('/schemas/orchestrator.json');
    expect(Object.keys(schema.properties)).toEqual(Object.keys(configSchema.shape));
    expect(schema.required ?? []).toEqual([]);
    expect(schema.properties.database_url).toMatchObject({ type: ['string', 'null'] });
  });
});
