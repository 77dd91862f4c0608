import { visible } from '@muster/protocol';
import { systemClock } from '../../lib/src/clock.ts';
import type { Log } from '../../lib/src/log.ts';
import type { ServiceManager } from '../../lib/src/service-manager.ts';
import { help, parseArguments, UsageError } from './arguments.ts';
import { NoOrchestratorError, startAgent, version } from './compose/start.ts';
import { endProcess } from './host/processes/end-process.ts';
import { createLog } from './log.ts';

/** Time after which the process is killed, which is safe because of the journal. */
const stopLimitMs = 25_000;

function fail(message: string, exitCode: number): never {
  process.stderr.write(`muster agent: ${visible(message)}\n`);
  process.exit(exitCode);
}

function readArguments() {
  try {
    return parseArguments(process.argv.slice(2));
  } catch (error) {
    if (error instanceof UsageError) fail(`${error.message}\nSee: muster agent --help`, 2);
    throw error;
  }
}

/** Reads the token from standard input, because other users can see arguments. */
async function readToken(): Promise<string> {
  let text = '';
  for await (const piece of process.stdin) {
    text += String(piece);
    if (text.length > 1024) break;
  }
  const token = text.trim();
  if (!/^[\x21-\x7e]{1,128}$/.test(token)) fail('--token -: standard input must contain one line with the token', 2);
  return token;
}

/**
 * Handles options that only print information. Loads their code on demand.
 * @returns whether it handled an option
 */
async function handledInfoOption(args: readonly string[]): Promise<boolean> {
  if (args.includes('--print-schema')) {
    const { agentConfigJsonSchema } = await import('@muster/protocol/agent-config');
    process.stdout.write(`${JSON.stringify(agentConfigJsonSchema(), null, 2)}\n`);
    return true;
  }
  const at = args.findIndex((arg) => arg === '--check-config' || arg.startsWith('--check-config='));
  if (at === -1) return false;
  const file = args[at]?.split('=').slice(1).join('=') || args[at + 1];
  if (file === undefined) return fail('--check-config requires a FILE', 2);
  const [{ faultsOfFile }, { readTextFile }] = await Promise.all([
    import('./config.ts'),
    import('./host/files/watch-file.ts'),
  ]);
  const text = await readTextFile(file).catch((error: Error) => fail(error.message, 2));
  const faults = faultsOfFile(text, file);
  for (const fault of faults) process.stderr.write(`${visible(fault)}\n`);
  if (faults.length === 0) process.stdout.write(`${file} is valid\n`);
  process.exitCode = faults.length === 0 ? 0 : 2;
  return true;
}

/**
 * Returns the token from its environment variable; null if there is none. Deletes the variable, so that started
 * programs do not inherit it.
 */
function takeToken(env: NodeJS.ProcessEnv): string | null {
  const token = env.MUSTER_TOKEN ?? '';
  delete env.MUSTER_TOKEN;
  if (token === '') return null;
  // The variable may contain an operator's session token, which must not be sent.
  if (!/^mt_[\x21-\x7e]{1,125}$/.test(token))
    fail('MUSTER_TOKEN is not an enrollment token, which starts with mt_; create one with "muster agents enroll"', 2);
  return token;
}

async function main(): Promise<void> {
  if (await handledInfoOption(process.argv.slice(2))) return;
  const options = readArguments();
  if (options === 'help' || options === 'version') {
    process.stdout.write(options === 'help' ? help : `${version}\n`);
    return;
  }
  if (options.connect) options.connect.token ??= takeToken(process.env);
  delete process.env.MUSTER_TOKEN;
  if (options.connect?.token === '-') options.connect.token = await readToken();
  // `rotate-key` sends SIGHUP to the process that holds the data directory. By default, SIGHUP would terminate that
  // process.
  process.on('SIGHUP', () => {});
  if (options.save && options.connect) {
    const { saveTarget } = await import('./connection/save-target.ts');
    const nodeId = await saveTarget(options.dataDir, options.connect).catch((error: Error) => fail(error.message, 1));
    process.stdout.write(
      `Agent ${nodeId} will connect to ${options.connect.host}:${options.connect.port} after its next start.\n`,
    );
    return;
  }
  if (options.rotateKey) {
    const { printRotation } = await import('./connection/rotate-key-output.ts');
    process.exitCode = await printRotation(options.dataDir, options.rotateKey).catch((error: Error) =>
      fail(error.message, 1),
    );
    return;
  }
  const log = createLog({
    format: options.logFormat,
    level: options.logLevel,
    now: Date.now,
    write: (line) => process.stdout.write(line),
  });
  // Replaces Node's default message, which would include the source line. In a bundle, that line is the whole program.
  process.on('uncaughtException', (error: unknown) => {
    log.error({ error, stack: error instanceof Error ? error.stack : undefined }, 'bug: uncaught exception; exiting');
    endProcess(1);
  });
  // Keeps the process alive between attempts to connect, because the agent's timers do not.
  const alive = setInterval(() => {}, 2 ** 30);
  // Without a handler, SIGHUP would terminate the agent, even during startup. The agent also detects a changed file
  // without SIGHUP, but on SIGHUP it reports immediately whether the file is valid.
  let reload = async () => {};
  process.on('SIGHUP', () => {
    void reload().then(
      () => log.info({}, 'configuration reloaded'),
      (error: Error) => log.error({ error }, 'failed to reload the configuration'),
    );
  });
  const agent = await startAgent(options, systemClock, log).catch((error: Error) => {
    log.debug({ stack: error.stack }, 'failed to start the agent');
    // Checks the name instead of the class, because the class is in a module with a parser that most agents never load.
    return fail(error.message, error instanceof NoOrchestratorError || error.name === 'ConfigError' ? 2 : 1);
  });
  reload = () => agent.reload();
  log.info({ node_id: agent.nodeId, version, data_dir: options.dataDir }, 'agent started');

  let manager: ServiceManager | null = null;
  let stopping = false;
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) endProcess(1);
    stopping = true;
    setTimeout(() => endProcess(1), stopLimitMs).unref();
    manager?.stopping();
    agent.stop(signal).then(
      () => {
        clearInterval(alive);
        // Fires only if a pending call, such as a query to a hanging disk, keeps the process alive.
        setTimeout(() => endProcess(0), 1_000).unref();
        log.info({}, 'agent stopped');
        process.exitCode = 0;
      },
      (error: Error) => {
        log.error({ error }, 'failed to stop the agent cleanly');
        endProcess(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  if (process.env.NOTIFY_SOCKET) manager = await notifyManager(log);
}

/** Loads the code only if a service manager is listening. */
async function notifyManager(log: Log): Promise<ServiceManager | null> {
  const { serviceManager } = await import('../../lib/src/service-manager.ts');
  const manager = serviceManager(process.env, 'agent', systemClock, (message) => log.warn({}, message));
  manager?.ready();
  return manager;
}

void main();
