// Sets up and runs an orchestrator and an agent for this machine, for `npm start`.
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { isName } from '@muster/protocol';
import { builtConsole } from '../build/build-console.ts';
import { CliFailure, muster, root } from '../suite/cli.ts';
import { type Program, ProgramError } from '../suite/program.ts';
import { announcement } from './announcement.ts';
import { makeFolder } from './folder.ts';
import { approvedAgent, enrolmentToken, nameProfile, operatorKey } from './local.ts';
import { informativeLines } from './log-lines.ts';
import { nameFrom } from './names.ts';
import { portMessage, whyNotListen } from './ports.ts';
import { ProgramGroup, StoppedWhileStarting } from './program-group.ts';
import { readStartOptions, type StartOptions, StartUsageError, startHelp } from './start-options.ts';

/** An error for the user, printed without a stack trace. */
class StartError extends Error {}

/** Returns the log files of this run. Renames the log files of the previous run, with the suffix `.1`. */
function logFiles(dataDir: string): { orchestrator: string; agent: string } {
  const folder = join(dataDir, 'log');
  makeFolder(folder);
  const fresh = (name: string) => {
    const path = join(folder, `${name}.log`);
    if (existsSync(path)) renameSync(path, `${path}.1`);
    return path;
  };
  return { orchestrator: fresh('orchestrator'), agent: fresh('agent') };
}

const agentConfig = `# Configuration of this machine's agent, which reads it again after each change. docs/operations.md describes every key.
#
# A shell on this machine for operators, as the user who runs "npm start":
#
# remote_terminal:
#   enabled: true
`;

/**
 * Creates the data directory.
 * @returns paths of the log files and of the agent's configuration file, which the user may edit
 */
function makeDataDirectory(dataDir: string): { logs: ReturnType<typeof logFiles>; configFile: string } {
  try {
    makeFolder(dataDir);
    const configFile = join(dataDir, 'agent.yml');
    if (!existsSync(configFile)) writeFileSync(configFile, agentConfig, { mode: 0o600 });
    return { logs: logFiles(dataDir), configFile };
  } catch (error) {
    throw new StartError(`The data directory ${dataDir} cannot be created: ${(error as Error).message}`);
  }
}

async function requirePorts({ apiPort, agentHost, agentPort }: StartOptions): Promise<void> {
  if (apiPort !== 0 && apiPort === agentPort)
    throw new StartUsageError('The API and the agents need different ports; change --api-port or --agent-port.');
  const requested = [
    { host: '127.0.0.1', port: apiPort },
    { host: agentHost, port: agentPort },
  ];
  for (const { host, port } of requested) {
    const reason = port === 0 && host === '127.0.0.1' ? null : await whyNotListen(host, port);
    if (reason === 'EADDRNOTAVAIL' || reason === 'ENOTFOUND')
      throw new StartError(`This machine has no address ${host} that agents could connect to; see --agent-host.`);
    if (reason !== null) throw new StartError(portMessage(reason, port, { apiPort, agentPort }));
  }
}

/**
 * Returns the address at which the local agent connects to the port. Replaces a wildcard address, which is not a
 * destination.
 */
function ownAddress(agentHost: string): string {
  if (agentHost === '0.0.0.0' || agentHost === '::') return '127.0.0.1';
  return agentHost.includes(':') ? `[${agentHost}]` : agentHost;
}

/**
 * Builds the console. A failed build does not prevent startup, because everything else works and `/` reports the
 * failure.
 */
async function prepareConsole(): Promise<void> {
  try {
    await builtConsole(() => console.log('Building the console (only when its sources change) ...'));
  } catch (error) {
    console.error(
      `warning: could not build the console; starting without its latest changes: ${(error as Error).message}`,
    );
  }
}

/** Returns the path relative to the working directory if the path is inside that directory. */
function shownPath(path: string): string {
  const inside = relative(process.cwd(), path);
  return inside === '' || inside.startsWith('..') ? path : inside;
}

function print(lines: string[]): void {
  console.log(lines.join('\n'));
}

async function start(options: StartOptions): Promise<void> {
  const dataDir = resolve(root, options.dataDir);
  const name = options.name ?? nameFrom(hostname(), 'machine');
  if (!isName(name))
    throw new StartUsageError(
      `${JSON.stringify(name)} is not a valid agent name. Use up to 64 letters, digits, - and _, and begin with a letter.`,
    );
  await requirePorts(options);
  const { logs, configFile } = makeDataDirectory(dataDir);
  await prepareConsole();
  const orchestratorDir = join(dataDir, 'orchestrator');
  const agentDir = join(dataDir, 'agent');
  const { publicKey, made } = await operatorKey();
  const username = nameFrom(userInfo().username, 'admin');

  const programs = new ProgramGroup();
  const run = (what: 'orchestrator' | 'agent', args: string[]): Program =>
    programs.run({ name: `The ${what}`, command: muster, args: [what, ...args], cwd: root, logFile: logs[what] });

  const bringUp = async () => {
    const orchestrator = run('orchestrator', [
      ...['--data-dir', orchestratorDir, '--log-format', 'json'],
      ...['--api-port', String(options.apiPort)],
      ...['--agent-host', options.agentHost, '--agent-port', String(options.agentPort)],
      ...['--bootstrap-key', publicKey, '--bootstrap-username', username],
    ]);
    const ready = (await orchestrator.event('ready')) as {
      api_url: string;
      agent_port: number;
      public_key: string;
      fingerprint?: string;
    };
    const { profile, suffix } = await nameProfile(ready.api_url, ready.fingerprint ?? null);

    const known = existsSync(agentDir);
    const token = known ? null : await enrolmentToken(profile, name);
    const agent = run('agent', [
      ...['--data-dir', agentDir, '--config', configFile, '--log-format', 'json'],
      ...['connect', `${ownAddress(options.agentHost)}:${ready.agent_port}`, '--orchestrator-key', ready.public_key],
      ...(token === null ? [] : ['--token', token]),
    ]);
    const connected = await agent.event('connected', { timeoutMs: 90_000 });
    const self = await approvedAgent(profile, String(connected.node_id), name);
    return { ready, suffix, self };
  };

  try {
    const up = await Promise.race([bringUp(), programs.stopRequested, programs.failure]);
    if (up) {
      const isRoot = process.getuid?.() === 0;
      print(
        announcement({
          apiUrl: up.ready.api_url,
          agentPort: up.ready.agent_port,
          fingerprint: up.ready.fingerprint ?? null,
          agent: up.self,
          suffix: up.suffix,
          user: isRoot ? null : userInfo().username,
          operator: username,
          newKey: made,
          dataDir: shownPath(dataDir),
          agentHost: options.agentHost,
        }),
      );
      await Promise.race([programs.stopRequested, programs.failure]);
    }
    print(['', 'Stopping …']);
    if (!(await programs.stop())) throw new StartError(`A program did not stop cleanly; see ${join(dataDir, 'log')}`);
    print(['Stopped.']);
  } catch (error) {
    await programs.stop();
    throw error;
  }
}

function explain(error: unknown): string {
  if (error instanceof ProgramError) {
    const lines = informativeLines(error.program.lastLines(50))
      .slice(-12)
      .map((line) => `  ${line}`);
    const wasUp = ['ready', 'connected'].some((name) => error.program.events(name).length > 0);
    const remedy = wasUp ? ' To restart: npm start. No acknowledged request is lost.' : '';
    return [`${error.message}.${remedy}`, ...(lines.length > 0 ? ['Its last log lines:', ...lines] : [])].join('\n');
  }
  if (
    error instanceof StartError ||
    error instanceof StartUsageError ||
    error instanceof StoppedWhileStarting ||
    error instanceof CliFailure
  )
    return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

try {
  const options = readStartOptions(process.argv.slice(2), process.env);
  if (options === null) process.stdout.write(startHelp);
  else await start(options);
  process.exit(0);
} catch (error) {
  console.error(`\n${explain(error)}`);
  process.exit(error instanceof StartUsageError ? 2 : 1);
}
