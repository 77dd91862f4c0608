import { Client, type ClientConfig } from 'pg';

/** Connections to PostgreSQL and their settings. */

export const connectTimeoutMs = 10_000;

/** Prefixes of `application_name`. Each process appends a random part. */
export const workPrefix = 'muster-orchestrator:';
/** Begins with `workPrefix`, so that earlier releases also terminate these connections once they hold the lock. */
export const sharedWorkPrefix = `${workPrefix}replica:`;
export const lockPrefix = 'muster-lock:';

export interface ConnectionWishes {
  readonly url: string;
  /** Seconds after which the server cancels a statement; null for no limit. */
  readonly statementTimeout?: number | null | undefined;
  /** Server settings for each kind of connection. */
  readonly server?: Readonly<Record<string, string>>;
  readonly applicationName?: string | undefined;
}

/** Returns settings for the driver. They override options in the URL. */
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
    // Aborts a query if the server has become unreachable without closing the connection.
    ...(statementTimeout ? { query_timeout: (statementTimeout + 10) * 1000 } : {}),
    ...(wishes.applicationName === undefined ? {} : { application_name: wishes.applicationName }),
  };
}

/**
 * Opens a connection. Ignores its `error` events, which would otherwise crash the process. Queries on a lost connection
 * still reject.
 */
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
