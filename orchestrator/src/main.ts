import { homedir } from 'node:os';
import { join } from 'node:path';
import { visible } from '@muster/protocol';
import { type Logger, pino } from 'pino';
import { systemClock } from '../../lib/src/clock.ts';
import { type ServiceManager, serviceManager } from '../../lib/src/service-manager.ts';
import type { Running } from './compose/start.ts';
import { ConfigError } from './config/faults.ts';
import { usage } from './config/flags.ts';
import { faultsOfFile, type Invocation, readInvocation } from './config/read.ts';
import { type Config, configJsonSchema, exposesTokens } from './config/schema.ts';
import { gatheringLines, logTo } from './log-stream.ts';

/** Maximum time for the shutdown. Service managers kill the process after 30 s. */
const stopTimeoutMs = 25_000;

const fail = (message: string, code: number): never => {
  process.stderr.write(`muster orchestrator: ${visible(message)}\n`);
  process.exit(code);
};

function findDefaultDataDir(): string {
  const ofService = '/var/lib/muster-orchestrator';
  if (process.getuid?.() === 0) return ofService;
  try {
    return join(homedir(), '.local/share/muster-orchestrator');
  } catch {
    // Evaluated only if needed, because service users may have no home directory.
    return ofService;
  }
}
const defaultDataDir = findDefaultDataDir();

function invocation(): Invocation {
  try {
    return readInvocation(process.argv.slice(2), process.env, defaultDataDir);
  } catch (error) {
    if (error instanceof ConfigError) return fail(`${error.message}\nSee: muster orchestrator --help`, 2);
    throw error;
  }
}

/** Creates a log that writes synchronously, so that no line is lost on exit. */
function createLog({ logFormat, logLevel }: Invocation): Logger {
  const color = process.stdout.isTTY === true && !process.env.NO_COLOR;
  const lines = gatheringLines(pino.destination({ fd: 1, sync: true }));
  process.once('exit', lines.flush);
  return logTo(lines, { format: logFormat, level: logLevel, color });
}

/** Describes why startup failed, and how to fix it. */
function explain(error: unknown, { config, dataDir }: Invocation): string {
  const { code, message, port, address } = error as NodeJS.ErrnoException & { port?: number; address?: string };
  if (code === 'EADDRINUSE') {
    const flag = port === config.api_port ? '--api-port' : '--agent-port';
    return `port ${port} is in use: is another orchestrator running? Stop it, or choose another port with ${flag}`;
  }
  if (code === 'EADDRNOTAVAIL') return `this machine has no address ${address}; see --api-host and --agent-host`;
  if (code === 'EACCES' && port !== undefined) return `port ${port} needs root; choose one above 1023`;
  if (code === 'EACCES' || code === 'EROFS') return `the data directory ${dataDir} cannot be used: ${message}`;
  return message;
}

/** Handles `--print-schema` and `--check-config`. @returns the exit code; null without these flags */
function answered(args: readonly string[]): number | null {
  if (args.includes('--print-schema')) {
    process.stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
    return 0;
  }
  const at = args.findIndex((arg) => arg === '--check-config' || arg.startsWith('--check-config='));
  if (at === -1) return null;
  const file = args[at]?.split('=').slice(1).join('=') || args[at + 1];
  if (file === undefined) return fail('--check-config needs a FILE', 2);
  const faults = faultsOfFile(file);
  for (const fault of faults) process.stderr.write(`${visible(fault)}\n`);
  if (faults.length === 0) process.stdout.write(`${file} is valid\n`);
  return faults.length === 0 ? 0 : 2;
}

async function serve(): Promise<void> {
  const done = answered(process.argv.slice(2));
  if (done !== null) process.exit(done);
  const given = invocation();
  if (given.help) {
    process.stdout.write(usage);
    process.exit(0);
  }
  const log = createLog(given);
  const running = await start(given, log);
  const manager = serviceManager(process.env, 'orchestrator', systemClock, (message) => log.warn({}, message));
  handleSignals(running, manager, log);
  warnOfSettings(given.config, running, log);
  announce(given.config, running, manager, log);
}

/** Starts the orchestrator, or exits with a message. */
async function start(given: Invocation, log: Logger): Promise<Running> {
  // Loaded on demand, so that other commands and flags start faster.
  const { startOrchestrator } = await import('./compose/start.ts');
  try {
    return await startOrchestrator(given.config, given.dataDir, {
      log,
      clock: systemClock,
      sources: given.sources,
      onFatal: (reason) => {
        log.fatal(
          { err: reason },
          'exiting because of a fatal error; writes could otherwise be acknowledged without being stored',
        );
        process.exit(1);
      },
    });
  } catch (error) {
    log.debug({ err: error }, 'failed to start');
    fail(explain(error, given), 1);
    throw error;
  }
}

/**
 * Reloads the configuration on SIGHUP, and shuts down on SIGTERM and SIGINT. A second SIGTERM or SIGINT exits
 * immediately.
 */
function handleSignals(running: Running, manager: ServiceManager | null, log: Logger): void {
  let stopping = false;
  const stop = (signal: string) => {
    if (stopping) process.exit(130);
    stopping = true;
    log.info({ signal }, 'stopping; waiting for requests and writes in progress');
    setTimeout(() => fail('stopping took too long; exiting', 1), stopTimeoutMs).unref();
    manager?.stopping();
    running.stop().then(
      () => {
        log.info({}, 'stopped');
        process.exit(0);
      },
      (error: unknown) => {
        log.error({ err: error }, 'failed to stop cleanly');
        process.exit(1);
      },
    );
  };
  let reloading: Promise<void> = Promise.resolve();
  process.on('SIGHUP', () => {
    reloading = reloading.then(() => reload(running, log));
  });
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
}

/** Reloads the configuration, and logs errors. An invalid configuration is ignored. */
async function reload(running: Running, log: Logger): Promise<void> {
  try {
    const next = readInvocation(process.argv.slice(2), process.env, defaultDataDir);
    const { now, atStart } = await running.reload(next.config, next.sources);
    log.info(
      { in_force: now },
      now.length === 0 ? 'configuration reloaded; no reloadable setting has changed' : 'configuration reloaded',
    );
    if (atStart.length > 0)
      log.warn({ keys: atStart }, 'some changed configuration settings take effect only after a restart');
  } catch (error) {
    log.error(
      error instanceof ConfigError ? {} : { err: error },
      `configuration reload failed; nothing was changed: ${(error as Error).message}`,
    );
  }
}

function warnOfSettings(config: Config, running: Running, log: Logger): void {
  if (running.bootstrapped)
    log.info({ username: config.bootstrap_username }, 'created the first operator from the configuration');
  if (exposesTokens(config))
    log.warn(
      { api_host: config.api_host },
      'the API serves plain HTTP to other machines: session tokens can be read on the network. Listen on 127.0.0.1 behind a TLS proxy, or remove --no-tls; if a proxy on another machine terminates TLS, set trust_proxy_tls',
    );
  if (!running.operators)
    log.warn(
      {},
      'no operator exists yet; start with --bootstrap-key and --bootstrap-username (see: muster operator init)',
    );
}

/** Logs that the orchestrator is ready, and notifies the service manager. */
function announce(config: Config, running: Running, manager: ServiceManager | null, log: Logger): void {
  log.info(
    {
      event: 'ready',
      api_url: running.apiUrl,
      api_port: running.apiPort,
      agent_port: running.agentPort,
      public_key: running.publicKey,
      ...(running.fingerprint === null ? {} : { fingerprint: running.fingerprint }),
    },
    `ready: API at ${running.apiUrl}, agents on port ${running.agentPort}`,
  );
  const people = running.bootstrapped
    ? `; created first operator ${config.bootstrap_username}`
    : running.operators
      ? ''
      : '; no operator exists yet';
  manager?.ready(`API at ${running.apiUrl}, agents on port ${running.agentPort}${people}`);
}

async function main(): Promise<void> {
  const [command = '', ...args] = process.argv.slice(2);
  if (['migrate', 'export', 'import', 'backup', 'restore'].includes(command)) {
    // Loaded on demand, so that these commands do not load the server.
    const { runOffline } = await import('./offline/run.ts');
    process.exit(await runOffline(command, args, defaultDataDir));
  }
  if (command === 'share' || command === 'join') {
    const { runOffline } = await import('./offline/run.ts');
    process.exit(await runOffline(`orchestrator ${command}`, args, defaultDataDir));
  }
  if (command === 'init') {
    const { initOrchestrator } = await import('./offline/first-admin.ts');
    process.exit(await initOrchestrator(args));
  }
  await serve();
}

void main();
