import { Client, type ClientConfig } from 'pg';

/** How connections to PostgreSQL are made, whoever makes them. */

export const connectTimeoutMs = 10_000;

/** Name our connections to whoever looks at the server; each process adds a part of its own. */
export const workPrefix = 'muster-orchestrator:';
export const lockPrefix = 'muster-lock:';

export interface ConnectionWishes {
  readonly url: string;
  /** Seconds after which the server gives a statement up; null: never. */
  readonly statementTimeout?: number | null | undefined;
  /** Server settings of this kind of connection. */
  readonly server?: Readonly<Record<string, string>>;
  readonly applicationName?: string | undefined;
}

/**
 * Settings for the driver. Options that the URL itself carries are kept, and come first: ours decide.
 */
export function connectionSettings(wishes: ConnectionWishes): ClientConfig {
  const url = new URL(wishes.url);
  const own = url.searchParams.get('options') ?? '';
  url.searchParams.delete('options');
  const { statementTimeout } = wishes;
  const server: Record<string, string> = {
    ...(statementTimeout ? { statement_timeout: `${statementTimeout}s` } : {}),
    ...wishes.server,
  };
  const options = [own, ...Object.entries(server).map(([name, value]) => `-c ${name}=${value}`)];
  return {
    connectionString: url.href,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    options: options.filter((option) => option !== '').join(' '),
    // The server may be gone without a word: then nobody but us ends the waiting.
    ...(statementTimeout ? { query_timeout: (statementTimeout + 10) * 1000 } : {}),
    ...(wishes.applicationName === undefined ? {} : { application_name: wishes.applicationName }),
  };
}

/** One connection, made. An end that nobody awaits does not end the process: the query under way rejects anyway. */
export async function connect(settings: ClientConfig): Promise<Client> {
  const client = new Client(settings);
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
  return client;
}
