import { setTimeout as sleep } from 'node:timers/promises';
import { applyAgent, closeTerminal, openTerminal, uploadModule } from '@muster/protocol/http';
import { WebSocket } from 'ws';
import { ownAccount } from '../../agent/src/host/accounts/login-account.ts';
import { startLoginShell } from '../../agent/src/host/accounts/login-shell.ts';
import { systemClock } from '../../lib/src/clock.ts';
import { AgentFleet } from './load/agent-fleet.ts';
import { RealAgent } from './load/real-agent.ts';
import { conclude, type Measured } from './run/conclude.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median, quantile } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import { scratchDirectory } from './run/scratch.ts';
import { benchDatabase } from './servers/bench-database.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';

/**
 * Prints a gigabyte in a shell whose client reads one megabyte per second. Measures memory and CPU time of the
 * orchestrator and the agent, and the duration of an apply on another agent. Then measures the latency from keystroke
 * to echo with many connected agents that send samples, compared with a local terminal. The orchestrator and the agents
 * with terminals are real.
 *
 *     node bench/src/terminal.ts [--secs 60] [--rate 1000000] [--applies 41] [--agents 1000] [--keys 600]
 *                                [--database sqlite|postgres] [--json]
 */
const { secs, rate, applies, agents, keys, ...options } = benchOptions({
  numbers: {
    secs: [60, 0.5],
    rate: [1_000_000, 1_000_000],
    applies: [41, 1],
    agents: [1000, 4],
    keys: [600, 3],
    'warm-up': [5, 0],
  },
  texts: { database: 'sqlite' },
});
type Figures = Measured<'terminal'>['figures'];
const files = 220;
const warmUpMs = options['warm-up'] * 1000;

/** A terminal client that reads at a limited rate, in bytes per second. */
class Reader {
  readonly #ws: WebSocket;
  #rate: number;
  #read = 0;
  #allowed = 0;
  #at = performance.now();
  onShown: (bytes: Buffer) => void = () => {};

  private constructor(ws: WebSocket, bytesPerSecond: number) {
    this.#ws = ws;
    this.#rate = bytesPerSecond;
    ws.on('message', (data: Buffer, isBinary) => {
      if (!isBinary) return;
      this.#read += data.length;
      this.onShown(data);
      this.#limitRate();
    });
  }

  static async open(orchestrator: OrchestratorProcess, nodeId: string, bytesPerSecond: number) {
    const { session_id, ws_url } = await orchestrator.call(openTerminal, { params: { node_id: nodeId } });
    const ws = new WebSocket(new URL(ws_url, orchestrator.url), {
      ca: orchestrator.certificate,
      perMessageDeflate: false,
    });
    const reader = new Reader(ws, bytesPerSecond);
    await new Promise((resolve, reject) => {
      ws.once('open', resolve);
      ws.once('error', reject);
    });
    return { reader, session_id };
  }

  get bytes(): number {
    return this.#read;
  }

  type(text: string): void {
    this.#ws.send(Buffer.from(text));
  }

  /** Sets the maximum bytes per second; 0 stops reading. */
  set rate(bytesPerSecond: number) {
    this.#allow();
    this.#rate = bytesPerSecond;
    this.#limitRate();
  }

  #allow(): void {
    const now = performance.now();
    // Limits the allowance to a tenth of a second, so that no burst follows a pause.
    if (Number.isFinite(this.#rate))
      this.#allowed = Math.min(this.#allowed + ((now - this.#at) / 1000) * this.#rate, this.#read + this.#rate / 10);
    this.#at = now;
  }

  #limitRate(): void {
    if (this.#rate === Number.POSITIVE_INFINITY || this.#ws.readyState !== WebSocket.OPEN) return;
    this.#allow();
    if (this.#read <= this.#allowed) {
      if (this.#ws.isPaused) this.#ws.resume();
      return;
    }
    if (!this.#ws.isPaused) this.#ws.pause();
    setTimeout(() => this.#limitRate(), 20);
  }

  end(): void {
    this.#ws.terminate();
  }
}

/** Measures the effect of endless output to a slow client on memory, and on an apply on another agent. */
async function flow(
  orchestrator: OrchestratorProcess,
): Promise<Pick<Figures, 'orchestratorGrowth' | 'agentGrowth' | 'apply'>> {
  const shown = await RealAgent.start(orchestrator, 'shown');
  const other = await RealAgent.start(orchestrator, 'other');
  const params = { node_id: other.nodeId };
  const folder = scratchDirectory('files');
  const resources = Array.from({ length: files }, (_, at) => ({
    resource: { 'file-unix': { path: `${folder}/file-${at}`, content: `file ${at}\n`, mode: '0644' } },
  }));
  const content = JSON.stringify({ name: 'files', supports: [{ platform: 'linux' }], resources });
  await orchestrator.call(uploadModule, { body: { name: 'files', content } });
  const apply = async () => {
    const began = performance.now();
    const { status } = await orchestrator.call(applyAgent, { params, body: { modules: ['files'] } });
    if (status !== 'succeeded') throw new Error(`the apply of the files ended with status ${status}`);
    return performance.now() - began;
  };
  const begin = async () => {
    const opened = await Reader.open(orchestrator, shown.nodeId, rate);
    opened.reader.type('yes | head -c 1G\n');
    return opened;
  };
  const close = async ({ reader, session_id }: Awaited<ReturnType<typeof begin>>) => {
    await orchestrator.call(closeTerminal, { params: { session_id } });
    reader.end();
  };

  await apply();
  const parts = { orchestrator, agent: shown };
  const atFirst = { orchestrator: (await orchestrator.settledUsage()).rss, agent: shown.usage.rss };
  // A warm-up, which triggers one-time allocations.
  const first = await begin();
  for (const end = performance.now() + warmUpMs; performance.now() < end; ) await apply();
  await close(first);
  await sleep(1_000);

  const before = { orchestrator: (await orchestrator.settledUsage()).rss, agent: shown.usage.rss };
  const max = { ...before };
  const cpu = { orchestrator: orchestrator.usage.cpuSecs, agent: shown.usage.cpuSecs };
  const running = await begin();
  const began = performance.now();
  while (performance.now() - began < secs * 1000) {
    await sleep(250);
    for (const part of ['orchestrator', 'agent'] as const) max[part] = Math.max(max[part], parts[part].usage.rss);
  }
  const took = (performance.now() - began) / 1000;
  const used = {
    orchestrator: orchestrator.usage.cpuSecs - cpu.orchestrator,
    agent: shown.usage.cpuSecs - cpu.agent,
  };
  printProgress('memory measured; measuring applies');
  const throughput = running.reader.bytes / took / 1e6;

  const times: { alone: number[]; during: number[] } = { alone: [], during: [] };
  for (let round = 0; round < applies; round++)
    for (const when of ['alone', 'during'] as const) {
      running.reader.rate = when === 'alone' ? 0 : rate;
      await sleep(300);
      times[when].push(await apply());
    }
  await close(running);
  await shown.stop();
  await other.stop();

  const row = (part: 'orchestrator' | 'agent') => [
    part,
    atFirst[part] / 1e6,
    before[part] / 1e6,
    max[part] / 1e6,
    (max[part] - before[part]) / 1e6,
    used[part] / took,
  ];
  console.log(`endless output of a shell, read at ${throughput.toFixed(2)} MB/s for ${took.toFixed(0)} s\n`);
  console.log(
    table(
      ['program', 'MB before warm-up', 'MB after warm-up', 'max MB', 'MB growth', 'cores'],
      [row('orchestrator'), row('agent')],
    ),
  );
  console.log(
    `\n${ratioLine(`apply of ${files} files on another agent, with output compared with without`, median(times.during), median(times.alone), 'ms')}\n`,
  );
  return {
    orchestratorGrowth: (max.orchestrator - before.orchestrator) / 1e6,
    agentGrowth: (max.agent - before.agent) / 1e6,
    apply: median(times.during) / median(times.alone),
  };
}

interface Keyboard {
  type(text: string): void;
  /** Called with each chunk of output. */
  onShown: (bytes: Buffer) => void;
}

/** Shell command after which the terminal shows only the echo of typed keys. */
const quiet = `exec cat > /dev/null\n`;

/** Types `count` keys. @returns milliseconds from each keystroke to its echo */
async function echoes(keyboard: Keyboard, count: number): Promise<number[]> {
  const times: number[] = [];
  let seen = '';
  let look = () => {};
  keyboard.onShown = (bytes) => {
    seen += bytes.toString('latin1');
    look();
  };
  const shows = (text: string) =>
    new Promise<void>((resolve) => {
      look = () => {
        if (seen.includes(text)) resolve();
      };
      look();
    });
  keyboard.type('echo "quiet $((1+1))"; stty -icanon; ');
  keyboard.type(quiet);
  await shows('quiet 2');
  await sleep(500);
  for (let at = 0; at < count; at++) {
    // Alternates between keys, so that a late echo of an earlier key does not count.
    const key = String.fromCharCode(97 + (at % 26));
    seen = '';
    const began = performance.now();
    keyboard.type(key);
    await shows(key);
    times.push(performance.now() - began);
    await sleep(50 + Math.random() * 50);
  }
  return times;
}

async function localKeyboard(): Promise<Keyboard & { end(): void }> {
  const keyboard: Keyboard & { end(): void } = { type: () => {}, onShown: () => {}, end: () => {} };
  const shell = await startLoginShell(
    { account: ownAccount(), shell: '/bin/sh', cols: 80, rows: 24, cancelled: new Promise(() => {}), warn: () => {} },
    {
      output: (bytes) => {
        keyboard.onShown(bytes);
        return true;
      },
      exited: () => {},
    },
    systemClock,
  );
  shell.resume();
  keyboard.type = (text) => void shell.write(Buffer.from(text));
  keyboard.end = () => shell.hangUp();
  return keyboard;
}

/** Measures the latency from keystroke to echo with many connected agents, and with a local terminal. */
async function echo(orchestrator: OrchestratorProcess): Promise<Pick<Figures, 'echoP50' | 'echoP99'>> {
  const agent = await RealAgent.start(orchestrator, 'typed');
  const fleet = new AgentFleet(agents);
  const came = await fleet.enroll(orchestrator, 64, true);
  printProgress(`${agents} agents connected; measuring echoes`);
  await sleep(2_000);
  const { reader, session_id } = await Reader.open(orchestrator, agent.nodeId, Number.POSITIVE_INFINITY);
  const local = await localKeyboard();
  // Measures both at the same time, so that other load on the machine affects both.
  const [far, near] = await Promise.all([echoes(reader, keys), echoes(local, keys)]);
  local.end();
  await orchestrator.call(closeTerminal, { params: { session_id } });
  reader.end();
  await agent.stop();
  await fleet.stop();

  console.log(`${agents} agents that send samples (connected within ${came.toFixed(0)} s), ${keys} keys\n`);
  const row = (name: string, times: readonly number[]) => [
    name,
    ...[0.5, 0.9, 0.99].map((part) => quantile(times, part)),
    Math.max(...times),
  ];
  console.log(
    table(
      ['time from keystroke to echo', 'p50 ms', 'p90 ms', 'p99 ms', 'max ms'],
      [row('over API and agent', far), row('local terminal', near)],
    ),
  );
  console.log('');
  const added = (part: number) => quantile(far, part) - quantile(near, part);
  return { echoP50: added(0.5), echoP99: added(0.99) };
}

const database = await benchDatabase(options.database);
const orchestrator = await OrchestratorProcess.start({ databaseUrl: database.url });
console.log(`database: ${database.url === null ? 'SQLite' : 'PostgreSQL'}\n`);
const figures = { ...(await flow(orchestrator)), ...(await echo(orchestrator)) };
await orchestrator.stop();
await database.stop();
const sizes = `${options.database}, ${secs} s of output, ${applies} applies, ${agents} agents, ${keys} keys`;
process.exitCode = conclude('terminal', { sizes, figures });
