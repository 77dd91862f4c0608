import { isIP } from 'node:net';
import { maxAgentAddresses, parseAgentAddress } from '@muster/protocol/agent-address';
import { z } from 'zod';
import { DatabaseUrl, isDatabaseUrl } from './database-url.ts';

/** Creates the schema of a section whose keys are all optional. */
function section<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const object = z.strictObject(shape);
  return object.default(object.parse({}) as z.core.util.NoUndefined<z.output<typeof object>>);
}

const port = z.number().int().min(0).max(65_535).describe('0 chooses a free port');
const secs = (fallback: number) => z.number().int().min(1).max(315_360_000).default(fallback);

/** Reports whether the text is an IP address or a network such as `10.0.0.0/8`. */
const isNetwork = (text: string): boolean => {
  const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  // A network that contains all addresses would allow every client to spoof its address.
  return family !== 0 && (prefix === undefined || (Number(prefix) >= 1 && Number(prefix) <= (family === 4 ? 32 : 128)));
};

function isHttpUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.hash === '';
}

const isServer = (text: string): boolean => isOrigin(text) || /^tls:[0-9a-f]{64}$/.test(text);

/** Reports whether the text consists of a scheme, a host, and a port, such as `https://muster.example:4748`. */
function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return (url?.protocol === 'http:' || url?.protocol === 'https:') && url.origin === text.toLowerCase();
}

/** Reports whether the text is an HTTPS URL without credentials, query, and fragment. A proxy may add a path. */
function isPublicUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return (
    url?.protocol === 'https:' && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  );
}

/** Reports whether the text is a URL of a NATS server with a host and an optional port. */
function isNatsUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return (
    (url?.protocol === 'nats:' || url?.protocol === 'tls:') &&
    url.hostname !== '' &&
    /^\/?$/.test(url.pathname) &&
    `${url.username}${url.password}${url.search}${url.hash}` === ''
  );
}

const remoteWrite = section({
  url: z
    .string()
    // The message does not repeat the value, which may contain a password.
    .refine(isHttpUrl, 'must look like https://prometheus.example/api/v1/write')
    .nullable()
    .default(null)
    .describe('URL that samples are forwarded to with the Prometheus remote write protocol; null: none'),
  bearer_token_file: z.string().min(1).nullable().default(null).describe('file with a bearer token for the URL'),
  username: z.string().min(1).max(256).nullable().default(null),
  password_file: z.string().min(1).nullable().default(null),
  deny_private: z.boolean().default(false).describe('refuse loopback and private addresses'),
  queue: z.number().int().min(1000).max(10_000_000).default(100_000).describe('maximum queued samples'),
}).describe('forwarding of samples to a remote time-series database');

export const configSchema = z.strictObject({
  api_host: z.string().min(1).default('127.0.0.1').describe('address of the API port'),
  api_port: port.default(4748),
  agent_host: z.string().min(1).nullable().default(null).describe('address of the agents’ port; null: all'),
  agent_port: port.default(4747),
  advertised_host: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('name or address at which agents and operators reach this orchestrator; null: the hostname'),
  advertised_agents: z
    .array(
      z
        .string()
        .refine(
          (text) => parseAgentAddress(text) !== null,
          'must be HOST:PORT, such as muster-1.example:4747 or [2001:db8::1]:4747',
        ),
    )
    .max(maxAgentAddresses)
    .default([])
    .describe(
      'further addresses of the agents’ port, such as one for each replica; agents dial them in turn if one does not answer',
    ),
  bootstrap_key: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'must be 64 hexadecimal characters, as `muster operator init` prints them')
    .nullable()
    .default(null)
    .describe('public key of the first admin; ignored once an operator exists'),
  bootstrap_username: z.string().nullable().default(null),
  console: z.boolean().default(true).describe('serve the web console at /'),
  pending_capacity: z.number().int().min(1).max(1_000_000).default(100).describe('maximum pending agents'),
  packages_dir: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('folder with the agent’s installation files; null: the files of this release'),
  public_url: z
    .string()
    .refine(isPublicUrl, 'must look like https://muster.example')
    .nullable()
    .default(null)
    .describe('https URL of a proxy in front of the API, as clients reach it'),
  session_token_expiry_secs: secs(3600),
  tls_enabled: z.boolean().default(true),
  tls_cert: z.string().nullable().default(null).describe('PEM file; null: a generated certificate'),
  tls_key: z.string().nullable().default(null),
  trust_proxy_tls: z.boolean().default(false).describe('a proxy terminates TLS for the clients'),
  database_url: z
    .string()
    // The message does not repeat the value, which may contain a password.
    .refine(isDatabaseUrl, 'must look like postgres://user:password@host:5432/database')
    .transform((url) => new DatabaseUrl(url))
    .nullable()
    .default(null)
    .describe('PostgreSQL database; null: SQLite in the data directory'),
  database_url_file: z.string().min(1).nullable().default(null).describe('file that contains database_url'),
  database_pool_size: z
    .number()
    .int()
    .min(1)
    .max(500)
    .default(8)
    .describe('maximum write connections to PostgreSQL, and maximum read connections'),
  database_statement_timeout: z
    .number()
    .int()
    .min(1)
    .max(3600)
    .default(30)
    .describe('seconds after which PostgreSQL cancels a statement'),
  replica: section({
    name: z
      .string()
      .regex(/^[a-z0-9]([a-z0-9.-]{0,30}[a-z0-9])?$/, 'must be 1 to 32 lowercase letters, digits, dots, or hyphens')
      .nullable()
      .default(null)
      .describe(
        'unique name of this orchestrator among those that share the PostgreSQL database; null: no other orchestrator shares it',
      ),
  }),
  nats: section({
    url: z
      .string()
      // The message does not repeat the value, which may contain a password.
      .refine(isNatsUrl, 'must look like tls://nats.example:4222, without a user and a password')
      .nullable()
      .default(null)
      .describe('NATS server through which replicas notify each other; null: replicas only poll the database'),
    credentials_file: z
      .string()
      .min(1)
      .nullable()
      .default(null)
      .describe('file with USER:PASSWORD, the seed of an nkey, or the content of a .creds file; null: no sign-in'),
    ca_file: z
      .string()
      .min(1)
      .nullable()
      .default(null)
      .describe('PEM file of the certificate authorities for the NATS server; null: those of Node.js'),
  }),
  drain: section({
    links_per_second: z
      .number()
      .int()
      .min(1)
      .max(100_000)
      .default(400)
      .describe('agents that a replica releases per second while it is drained or has lost the database'),
  }),
  disk: section({
    reserve: z
      .number()
      .int()
      .min(0)
      .max(2 ** 50)
      .nullable()
      .default(null)
      .describe('bytes kept free on the disk of the data directory; null: 256 MiB, or 2 % of a small disk; 0: none'),
  }),
  agents: section({
    lost_after_secs: z
      .number()
      .int()
      .min(10)
      .max(86_400)
      .default(120)
      .describe('seconds offline after which an agent is lost'),
    daily_bytes: z
      .number()
      .int()
      .min(1_048_576)
      .max(2 ** 50)
      .default(268_435_456)
      .describe(
        'maximum bytes per day of one agent’s reports and samples; above it, reports lose their details, and samples are dropped',
      ),
  }),
  trusted_proxies: z
    .array(z.string().refine(isNetwork, 'must be an IP address or a network like 10.0.0.0/8'))
    .max(256)
    .default([])
    .describe('addresses and networks of proxies whose X-Forwarded-For, -Proto, and -Host headers are trusted'),
  proxy_protocol: section({
    networks: z
      .array(z.string().refine(isNetwork, 'must be an IP address or a network like 10.0.0.0/8'))
      .max(256)
      .default([])
      .describe(
        'addresses and networks of TCP balancers; each of their connections must begin with a PROXY protocol header of version 2',
      ),
  }),
  rates: section({
    sign_in_per_minute: z.number().int().min(1).max(1_000_000).default(60),
    sign_in_burst: z.number().int().min(1).max(1_000_000).default(30),
    session_per_second: z.number().int().min(1).max(1_000_000).default(1000),
  }),
  sign_in: section({
    require_bound: z
      .boolean()
      .default(false)
      .describe('refuse sign-ins whose signed challenge does not name this server'),
    origins: z
      .array(
        z
          .string()
          .refine(
            isServer,
            'must be an origin like https://muster.example:4748, without a path, or tls: followed by 64 hexadecimal characters',
          ),
      )
      .max(64)
      .default([])
      .describe(
        'additional origins of this orchestrator for sign-ins, and public keys of proxies, each as tls: followed by the SHA-256 of the key',
      ),
    console_idle_secs: z
      .number()
      .int()
      .min(60)
      .max(31_536_000)
      .default(43_200)
      .describe('seconds without an open console after which the session of a browser ends'),
    console_life_secs: z
      .number()
      .int()
      .min(60)
      .max(31_536_000)
      .default(604_800)
      .describe('seconds from the sign-in until the session of a browser ends'),
  }),
  discovery: section({
    port: z
      .number()
      .int()
      .min(1)
      .max(65_535)
      .default(4747)
      .describe('UDP port on which agents listen for announcements'),
  }),
  metrics_token: z
    .string()
    .regex(/^[A-Za-z0-9._~+/-]{16,256}$/, 'must be 16 to 256 letters, digits, or . _ ~ + / -')
    .nullable()
    .default(null)
    .describe('token that allows reading /metrics without a sign-in session; null: none'),
  secrets_key_file: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('file with the secrets keys; null: a file in the data directory'),
  secrets_expiry_notice_days: z
    .number()
    .int()
    .min(0)
    .max(3650)
    .default(14)
    .describe('days in advance to announce the expiry of a secret; 0: at its expiry'),
  metrics: section({
    poll_interval: secs(60),
    retention: secs(86_400),
    remote_write: remoteWrite,
  }),
  audit: section({ retention_days: z.number().int().min(0).max(36_500).default(90) }),
  notifications: section({
    deny_private: z.boolean().default(false).describe('refuse loopback and private addresses'),
    give_up_after: z.number().int().min(60).max(2_592_000).default(86_400),
    retention_days: z.number().int().min(0).max(36_500).default(30),
  }),
  operations: section({ retention_days: z.number().int().min(0).max(36_500).default(0) }).describe(
    '0 keeps them forever',
  ),
  runs: section({
    max_concurrent: z
      .number()
      .int()
      .min(1)
      .max(100_000)
      .default(1000)
      .describe('maximum agents of one run at the same time; a run may set fewer'),
  }),
  terminals: section({
    retention_days: z
      .number()
      .int()
      .min(0)
      .max(36_500)
      .default(90)
      .describe('days that ended terminal sessions and their transcripts are kept; 0: forever'),
    reattach_secs: z
      .number()
      .int()
      .min(1)
      .max(86_400)
      .default(60)
      .describe('seconds that a shell waits for its operator to reconnect'),
    idle_limit: z
      .number()
      .int()
      .min(0)
      .max(31_536_000)
      .default(43_200)
      .describe('seconds without input after which a terminal session ends; 0: never'),
    transcript_limit: z
      .number()
      .int()
      .min(65_536)
      .max(1_099_511_627_776)
      .default(268_435_456)
      .describe('maximum bytes of one transcript; the terminal session ends at this size'),
    record_input: z.boolean().default(false).describe('record input as well, passwords included'),
  }),
  drift: section({
    enabled: z.boolean().default(true),
    interval: secs(3600),
    max_concurrent: z.number().int().min(1).max(10_000).default(8),
    skip_recently_applied: z.number().int().min(0).max(315_360_000).default(300),
    retention_days: z.number().int().min(0).max(36_500).default(30),
  }),
});
export type Config = z.infer<typeof configSchema>;

/** Path of the configuration file's JSON Schema, for editors. */
export const configSchemaId = '/schemas/orchestrator.json';
export function configJsonSchema(): object {
  const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' });
  return { ...schema, $id: configSchemaId, title: 'Configuration of a Muster orchestrator' };
}

/** @returns the keys of a section; null if the schema is not a section */
export function sectionOf(schema: unknown): Readonly<Record<string, unknown>> | null {
  const inner = schema instanceof z.ZodDefault ? schema.unwrap() : schema;
  return inner instanceof z.ZodObject ? inner.shape : null;
}

/**
 * Reports whether sign-in tokens would be sent unencrypted: the API serves plain HTTP to other machines, and no proxy
 * is declared to terminate TLS.
 */
export const exposesTokens = ({ tls_enabled, api_host, trust_proxy_tls }: Config): boolean =>
  !tls_enabled && !trust_proxy_tls && !/^(127(\.\d+){3}|::1|localhost)$/i.test(api_host);
