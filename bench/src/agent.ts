import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { applyAgent, openTerminal, uploadModule } from '@muster/protocol/http';
import { WebSocket } from 'ws';
import { root } from '../../tools/suite/cli.ts';
import { endingWithStarter } from '../../tools/suite/program.ts';
import { RealAgent, type RealAgentOptions } from './load/real-agent.ts';
import { conclude } from './run/conclude.ts';
import { type Figure, notJudged } from './run/judge.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median } from './run/quantiles.ts';
import { table } from './run/report.ts';
import { scratchDirectory } from './run/scratch.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';
import { preciseUsageOf } from './servers/server-process.ts';

/**
 * Measures the resources that an idle agent uses, compared with an idle Node.js process in the same interval. Starts
 * bundled agents on this machine, which send samples to a real orchestrator: a default agent, an agent after a terminal
 * session, an agent that watches many applied files, and the executable if it has been built.
 *
 *     node bench/src/agent.ts [--settle 180] [--secs 120] [--files 3000] [--json]
 *
 * `--settle`: seconds before the measurement. `--secs`: duration of the measurement in seconds. `--files`: number of
 * watched files; 0 omits that agent.
 */
const { settle, secs, files } = benchOptions({ numbers: { settle: [180, 0], secs: [120, 0.2], files: [3000, 1010] } });
const filesOfFolder = 10;
/** A module may contain at most 10,000 values; each file needs six. */
const filesOfModule = 1_000;
const lookMs = 5_000;
const executable = join(root, 'dist/muster');

/** Returns the environment variables that the systemd unit sets. The launcher sets the same ones. */
function environmentOfUnit(): Record<string, string> {
  const unit = readFileSync(join(root, 'packaging/systemd/muster-agent.service'), 'utf8');
  const variables = /^Environment=(.*)$/m.exec(unit)?.[1] ?? '';
  return Object.fromEntries(variables.split(' ').map((pair) => pair.split('=')));
}

interface Idler {
  name: string;
  pid: number;
  end(): Promise<void> | void;
}

function idleNode(): Idler {
  const child = spawn(...endingWithStarter(process.execPath, ['-e', 'setInterval(() => {}, 1e9)']), {
    stdio: 'ignore',
  });
  return { name: 'bare node', pid: child.pid!, end: () => void child.kill() };
}

async function agent(
  orchestrator: OrchestratorProcess,
  name: string,
  start: RealAgentOptions = {},
  work: (agent: RealAgent) => Promise<void> = async () => {},
): Promise<Idler> {
  const real = await RealAgent.start(orchestrator, name.replaceAll(/\W+/g, '-'), start);
  await work(real);
  printProgress(`${name}: ready to measure`);
  return { name, pid: real.pid, end: () => real.stop() };
}

/** Opens a terminal, reads 600 kB of output, and closes it. */
async function useTerminal(orchestrator: OrchestratorProcess, { nodeId }: RealAgent): Promise<void> {
  const { ws_url } = await orchestrator.call(openTerminal, { params: { node_id: nodeId } });
  const ws = new WebSocket(new URL(ws_url, orchestrator.url), {
    ca: orchestrator.certificate,
    perMessageDeflate: false,
  });
  await new Promise((resolve, reject) => {
    ws.once('open', () => ws.send(Buffer.from('seq 1 100000; exit\n')));
    ws.once('close', resolve);
    ws.once('error', reject);
  });
}

/** Applies files in many directories, which the agent then watches. */
async function applyFiles(orchestrator: OrchestratorProcess, { nodeId }: RealAgent): Promise<void> {
  const folder = scratchDirectory('files');
  const resources = Array.from({ length: files }, (_, at) => {
    const directory = join(folder, `folder-${Math.floor(at / filesOfFolder)}`);
    mkdirSync(directory, { recursive: true });
    return { resource: { 'file-unix': { path: `${directory}/file-${at}`, content: `file ${at}\n`, mode: '0644' } } };
  });
  const modules: string[] = [];
  for (let at = 0; at < resources.length; at += filesOfModule) {
    const name = `files-${at}`;
    const of = resources.slice(at, at + filesOfModule);
    const content = JSON.stringify({ name, supports: [{ platform: 'linux' }], resources: of });
    await orchestrator.call(uploadModule, { body: { name, content } });
    modules.push(name);
  }
  const applied = await orchestrator.call(applyAgent, { params: { node_id: nodeId }, body: { modules } });
  if (applied.status !== 'succeeded') throw new Error(`the apply of the files ended with status ${applied.status}`);
}

interface Figures {
  rss: number;
  pss: number;
  maxRss: number;
  /** CPU time as a share of one core. */
  cpu: number;
}

/** Measures all processes in the same interval. */
async function idle(idlers: readonly Idler[]): Promise<Map<Idler, Figures>> {
  const look = () => new Map(idlers.map((idler) => [idler, preciseUsageOf(idler.pid)]));
  const looks = [look()];
  const began = performance.now();
  while (performance.now() - began < secs * 1000) {
    await sleep(Math.min(lookMs, secs * 1000));
    looks.push(look());
  }
  const took = (performance.now() - began) / 1000;
  return new Map(
    idlers.map((idler) => {
      const of = looks.map((at) => at.get(idler)!);
      const rss = of.map((usage) => usage.rss);
      return [
        idler,
        {
          rss: median(rss),
          pss: median(of.map((usage) => usage.pss)),
          maxRss: Math.max(...rss),
          cpu: (of.at(-1)!.cpuSecs - of[0]!.cpuSecs) / took,
        },
      ];
    }),
  );
}

const outOfTheBox: RealAgentOptions = { config: null };
const orchestrator = await OrchestratorProcess.start();
const bare = idleNode();
const idleAgent = await agent(orchestrator, 'agent', outOfTheBox);
const afterTerminal = await agent(orchestrator, 'after a terminal session', {}, (real) =>
  useTerminal(orchestrator, real),
);
const watching =
  files > 0
    ? await agent(orchestrator, `watching ${files} files`, outOfTheBox, (real) => applyFiles(orchestrator, real))
    : null;
const ofExecutable = existsSync(executable)
  ? await agent(orchestrator, 'executable', {
      ...outOfTheBox,
      command: executable,
      environment: environmentOfUnit(),
    })
  : null;
const agents = [idleAgent, afterTerminal, watching, ofExecutable].filter((idler) => idler !== null);

try {
  console.log(`measured for ${secs} s, starting ${settle} s after the last connection; Node ${process.version}\n`);
  await sleep(settle * 1000);
  const found = await idle([bare, ...agents]);
  const base = found.get(bare)!;
  const mb = (bytes: number) => bytes / 1e6;
  console.log(
    table(
      ['process', 'MB RSS', '× bare', 'MB PSS', '× bare', 'max MB RSS', '% of a core'],
      [bare, ...agents].map((idler) => {
        const { rss, pss, maxRss, cpu } = found.get(idler)!;
        return [idler.name, mb(rss), rss / base.rss, mb(pss), pss / base.pss, mb(maxRss), 100 * cpu];
      }),
    ),
  );
  console.log('');
  const memory = (idler: Idler | null, reason = ''): Figure =>
    idler === null ? notJudged(reason) : found.get(idler)!.rss / base.rss;
  const cpu = (idler: Idler | null, reason = ''): Figure =>
    idler === null ? notJudged(reason) : 100 * found.get(idler)!.cpu;
  const noFiles = 'omitted by --files 0';
  const noExecutable = 'dist/muster does not exist; run `npm run build`';
  process.exitCode = conclude('agent', {
    sizes: `${secs} s after ${settle} s, ${files} watched files`,
    figures: {
      memory: memory(idleAgent),
      cpu: cpu(idleAgent),
      memoryAfterTerminal: memory(afterTerminal),
      cpuAfterTerminal: cpu(afterTerminal),
      memoryWatching: memory(watching, noFiles),
      cpuWatching: cpu(watching, noFiles),
      memoryExecutable: memory(ofExecutable, noExecutable),
      cpuExecutable: cpu(ofExecutable, noExecutable),
    },
  });
} finally {
  await bare.end();
  await Promise.all(agents.map((idler) => idler.end()));
  await orchestrator.stop();
}
