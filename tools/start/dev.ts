// Runs an orchestrator, two agents, and the console with live reload on loopback, for `npm run dev`. Stores data in
// .cache/dev.
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { muster, root } from '../suite/cli.ts';
import { ProgramError } from '../suite/program.ts';
import { makeFolder } from './folder.ts';
import { approvedAgent, enrolmentToken, nameProfile, operatorKey } from './local.ts';
import { informativeLines } from './log-lines.ts';
import { ProgramGroup } from './program-group.ts';

/** Differs from the API port that `npm start` uses, so that both can run at the same time. */
const apiPort = '4758';
const agentPort = '4757';
const consolePort = '5173';
const agentNames = ['dev-1', 'dev-2'];

const dataDir = join(root, '.cache', 'dev');
const logDir = join(dataDir, 'log');
const logFile = (name: string) => join(logDir, `${name}.log`);

async function bringUp(programs: ProgramGroup): Promise<string[]> {
  const { publicKey } = await operatorKey();
  const orchestrator = programs.run({
    name: 'The orchestrator',
    command: muster,
    args: [
      ...['orchestrator', '--data-dir', join(dataDir, 'orchestrator'), '--log-format', 'json'],
      ...['--api-port', apiPort, '--agent-host', '127.0.0.1', '--agent-port', agentPort],
      ...['--bootstrap-key', publicKey, '--bootstrap-username', 'developer'],
    ],
    cwd: root,
    logFile: logFile('orchestrator'),
  });
  const ready = await orchestrator.event('ready');
  const apiUrl = String(ready.api_url);
  const { profile, suffix } = await nameProfile(apiUrl, (ready.fingerprint as string | undefined) ?? null);
  for (const name of agentNames) {
    const agentDir = join(dataDir, name);
    const token = existsSync(agentDir) ? null : await enrolmentToken(profile, name);
    const agent = programs.run({
      name: `The agent ${name}`,
      command: muster,
      args: [
        ...['agent', '--data-dir', agentDir, '--log-format', 'json'],
        ...['connect', `127.0.0.1:${agentPort}`, '--orchestrator-key', String(ready.public_key)],
        ...(token === null ? [] : ['--token', token]),
      ],
      cwd: root,
      logFile: logFile(name),
    });
    const { node_id } = await agent.event('connected', { timeoutMs: 90_000 });
    await approvedAgent(profile, String(node_id), name);
  }
  programs.run({
    name: 'The console',
    command: process.execPath,
    args: ['node_modules/vite/bin/vite.js', 'console', '--host', '127.0.0.1', '--port', consolePort, '--strictPort'],
    cwd: root,
    env: { ...process.env, MUSTER_URL: apiUrl },
    logFile: logFile('console'),
  });
  return [
    'Muster is running for development.',
    '',
    `  console       http://127.0.0.1:${consolePort}/, reloads when its sources change`,
    `  sign in       npx muster web-login${suffix}, replacing the orchestrator’s address with the one above`,
    `  orchestrator  ${apiUrl}; restart this command after you change its sources`,
    `  agents        ${agentNames.join(', ')}, both on this machine`,
    `  logs          ${relative(process.cwd(), logDir)}`,
    '',
    'Ctrl-C stops all of them.',
  ];
}

makeFolder(logDir);
const programs = new ProgramGroup();
try {
  const lines = await Promise.race([bringUp(programs), programs.stopRequested, programs.failure]);
  if (lines) {
    console.log(lines.join('\n'));
    await Promise.race([programs.stopRequested, programs.failure]);
  }
} catch (error) {
  const lastLines = error instanceof ProgramError ? informativeLines(error.program.lastLines(50)).slice(-12) : [];
  console.error([error instanceof Error ? error.message : String(error), ...lastLines].join('\n'));
  process.exitCode = 1;
}
await programs.stop();
process.exit();
