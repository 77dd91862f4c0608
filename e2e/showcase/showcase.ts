import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  addOperator,
  applyAgent,
  applyAssignment,
  closeTerminal,
  createAssignment,
  createChannel,
  createEnrolmentToken,
  createSecret,
  createWindow,
  openTerminal,
  planAgent,
  planAssignment,
  type Run,
  removeOperator,
  setAgentStatus,
  uploadModule,
} from '@muster/protocol/http';
import { newOperator } from '../client.ts';
import type { AgentProcess, Orchestrator, Stage } from '../stage.ts';
import { TerminalScreen } from '../terminal-client.ts';
import { ShowcaseAgent } from './agent.ts';
import { lastDay, lastHour, type ShowcaseMachine, samplesOf, showcaseMachines } from './machines.ts';
import { showcaseModules, webToCome, workshop } from './modules.ts';

const day = 86_400;
/** Selects all simulated agents. Excludes the real one, because an apply would change the machine that runs the tests. */
const allSimulated = 'role in (web, database, build, training, kiosk, edge)';

/** A fleet with data for every page of the console. */
export class Showcase {
  readonly orchestrator: Orchestrator;
  /** Simulated agents by name, or by hostname if they have no name. */
  readonly agents: ReadonlyMap<string, ShowcaseAgent>;
  /** A real agent with files and terminals. */
  readonly workshop: AgentProcess;
  readonly runs: Readonly<Record<'applied' | 'halted' | 'planned' | 'running', string>>;
  /** ID of a closed terminal session with a transcript. */
  readonly recording: string;
  readonly #target: Server;

  private constructor(
    made: Pick<Showcase, 'orchestrator' | 'agents' | 'workshop' | 'runs' | 'recording'>,
    target: Server,
  ) {
    this.orchestrator = made.orchestrator;
    this.agents = made.agents;
    this.workshop = made.workshop;
    this.runs = made.runs;
    this.recording = made.recording;
    this.#target = target;
  }

  static async open(stage: Stage, orchestrator: Orchestrator): Promise<Showcase> {
    const target = await startReceiver();
    await createRecords(orchestrator, (target.address() as AddressInfo).port);
    await writeModules(orchestrator);
    const [agents, real] = await Promise.all([connectAll(orchestrator), openWorkshop(stage, orchestrator)]);
    const runs = await createRuns(orchestrator, agents);
    return new Showcase({ orchestrator, agents, runs, ...real }, target);
  }

  agent(name: string): ShowcaseAgent {
    const agent = this.agents.get(name);
    if (agent === undefined) throw new Error(`the showcase has no agent "${name}"`);
    return agent;
  }

  async end(): Promise<void> {
    for (const agent of this.agents.values()) agent.disconnect();
    this.#target.closeAllConnections();
    await new Promise((resolve) => this.#target.close(resolve));
  }
}

/** Starts an HTTP server for notification channels that accepts every request. */
async function startReceiver(): Promise<Server> {
  const server = createServer((request, response) => request.resume().on('end', () => response.writeHead(204).end()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

/** Creates all data that needs no agent: operators, secrets, channels, windows, and tokens. */
async function createRecords({ call }: Orchestrator, port: number): Promise<void> {
  const now = Math.floor(Date.now() / 1000);
  const at = (days: number) => new Date((now + days * day) * 1000).toISOString();
  const url = `http://127.0.0.1:${port}`;
  const someone = (username: string, role: 'admin' | 'operator') =>
    call(addOperator, { body: { public_key: newOperator().publicKey, username, role } });
  await someone('grace', 'admin');
  await someone('linus', 'operator');
  await someone('margaret', 'operator');
  const { operator_id } = await someone('former-colleague', 'operator');
  await call(removeOperator, { params: { operator_id } });

  const secrets = [
    {
      name: 'shop_db_password',
      description: 'password of the shop’s database',
      restriction: { tags: 'role=database' },
    },
    { name: 'tls_key', description: 'of *.example.net', expires_at: at(3), restriction: { tags: 'role=web' } },
    { name: 'restic_password', description: 'password of the backups', expires_at: at(200) },
    { name: 'registry_token', expires_at: at(25), restriction: { tags: 'role in (build, training)' } },
    { name: 'smtp_password', description: null },
  ];
  for (const secret of secrets) await call(createSecret, { body: { ...secret, value: `value of ${secret.name}` } });

  await call(createChannel, {
    body: { name: 'on-call', channel_type: 'webhook', config: { url: `${url}/hooks/muster`, secret: 'correct horse' } },
  });
  await call(createChannel, {
    body: { name: 'operations', channel_type: 'slack', config: { webhook_url: `${url}/services/T0/B0/x` } },
  });
  await call(createChannel, {
    body: { name: 'phones', channel_type: 'ntfy', config: { url, topic: 'fleet', token: 'tk_example' } },
  });

  const windows = [
    { from: -6, hours: 3, reason: 'new switches in Berlin', selector: 'site=berlin' },
    { from: -0.02, hours: 2, reason: 'kernel updates on the kiosks', selector: 'role=kiosk' },
    { from: 2, hours: 4, reason: 'PostgreSQL 16', selector: 'role=database' },
    { from: 9, hours: 8, reason: 'work on the power supply of the factory', selector: 'site=factory' },
    { from: 16, hours: 2, reason: 'monthly updates' },
  ];
  for (const { from, hours, ...rest } of windows) {
    const starts_at = now + Math.floor(from * day);
    await call(createWindow, { body: { ...rest, starts_at, ends_at: starts_at + hours * 3600 } });
  }
  await call(createEnrolmentToken, { body: { uses: 20, tags: { role: 'kiosk', site: 'factory' }, approve: true } });
  await call(createEnrolmentToken, { body: { uses: 1, name: 'web-paris-11', approve: true, expires_in: 3600 } });
}

async function writeModules({ call }: Orchestrator): Promise<void> {
  for (const { name, revisions } of showcaseModules)
    for (const content of revisions) await call(uploadModule, { body: { name, content } });
  const assignments = [
    { name: 'base', modules: ['base'], selector: allSimulated, description: 'settings of every machine' },
    {
      name: 'databases',
      modules: ['database', 'backup'],
      selector: 'role=database',
      description: 'the shop’s databases',
    },
    { name: 'kiosks', modules: ['kiosk'], selector: 'role=kiosk', window_only: true },
    { name: 'web', modules: ['web'], selector: 'role=web env=production', description: 'the shop' },
    { name: 'web-staging', modules: ['web'], selector: 'role=web env=staging', mode: 'audit' as const },
  ];
  for (const body of assignments) await call(createAssignment, { body });
}

async function connectAll(orchestrator: Orchestrator): Promise<Map<string, ShowcaseAgent>> {
  const agents = new Map<string, ShowcaseAgent>();
  const now = Math.floor(Date.now() / 1000);
  const connect = async (machine: ShowcaseMachine, index: number) => {
    const agent = await ShowcaseAgent.create(machine);
    agents.set(machine.name ?? machine.hostname, agent);
    await agent.connect(orchestrator.agentPort, await orchestrator.token(machine.name, machine.tags));
    if (machine.name === null) return;
    const span = machine.name === 'web-paris-1' || machine.name === 'db-paris-1' ? lastDay : lastHour;
    await agent.measured(samplesOf(machine, index, span, now));
  };
  for (let at = 0; at < showcaseMachines.length; at += 8)
    await Promise.all(showcaseMachines.slice(at, at + 8).map((machine, index) => connect(machine, at + index)));
  for (const { name, hostname, fate } of showcaseMachines) {
    const agent = agents.get(name ?? hostname) as ShowcaseAgent;
    if (fate === 'rejected')
      await orchestrator.call(setAgentStatus, { params: { node_id: agent.nodeId }, body: { status: 'rejected' } });
  }
  return agents;
}

/** Starts a real agent on this machine, applies a module, and records a terminal session. */
async function openWorkshop(
  stage: Stage,
  orchestrator: Orchestrator,
): Promise<Pick<Showcase, 'workshop' | 'recording'>> {
  const { call } = orchestrator;
  const config = join(stage.dir, 'workshop.yaml');
  writeFileSync(config, 'remote_terminal: { enabled: true, shell: /bin/sh }\n');
  const tags = { role: 'workshop', site: 'paris' };
  const agent = await stage.agent(orchestrator, 'workshop', { tags, flags: ['--config', config] });
  const params = { node_id: agent.nodeId };
  const folder = join(stage.dir, 'workshop');
  const upload = (greeting: string) =>
    call(uploadModule, { body: { name: 'workshop', content: workshop(folder, greeting) } });
  await upload('good morning');
  await call(createAssignment, { body: { name: 'workshop', modules: ['workshop'], selector: 'role=workshop' } });
  await call(applyAgent, { params, body: { modules: [] } });
  await upload('good evening');
  await call(applyAgent, { params, body: { modules: [] } });
  await upload('good night');
  await call(planAgent, { params, body: { modules: [] } });
  writeFileSync(join(folder, 'greeting.txt'), 'someone was here\nthis line stays\nso does this one\n');

  const query = { cols: '100', rows: '28' };
  const session = await call(openTerminal, { params, query });
  const screen = await TerminalScreen.connect(orchestrator, session.ws_url);
  for (const [line, shows] of [
    [`cd ${folder}\n`, /workshop/],
    ['ls -la\n', /greeting\.txt/],
    ['cat greeting.txt; uname -sr\n', /Linux/],
    ['for n in 1 2 3 4 5; do printf "\\033[3${n}mstep $n of 5\\033[0m\\n"; sleep 0.2; done\n', /step 5 of 5/],
  ] as const) {
    screen.type(line);
    await screen.shows(shows);
  }
  await call(closeTerminal, { params: { session_id: session.session_id } });
  return { workshop: agent, recording: session.session_id };
}

/** Creates runs with various outcomes, drift on some agents, and lost agents. */
async function createRuns(
  orchestrator: Orchestrator,
  agents: ReadonlyMap<string, ShowcaseAgent>,
): Promise<Showcase['runs']> {
  const { call } = orchestrator;
  const agent = (name: string) => agents.get(name) as ShowcaseAgent;
  const apply = (name: string, body = {}): Promise<Run> => call(applyAssignment, { params: { name }, body });
  // Makes the last agent in the run fail. It is not a canary, so its failure does not halt the run at the start.
  const kiosks = [...agents.values()].filter(({ description }) => description.hostname.startsWith('kiosk-'));
  const last = kiosks.toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1)).at(-1);
  last?.machine.fault('chrony', 'apt-get exited with 100: Unable to locate package chrony');
  const applied = await apply('base', { canary: 2, batch: '25%', max_failures: 3 });
  await apply('web', { canary: 1, batch: 5 });
  await apply('databases');

  // Plans and applies a new revision. The plan has the same result on most agents; the canary in the apply fails.
  await call(uploadModule, { body: { name: 'web', content: webToCome } });
  agent('web-paris-4').tamper('/etc/nginx/nginx.conf', { content: 'worker_processes 1;\nevents {}\n' });
  const planned = await call(planAssignment, { params: { name: 'web' }, body: {} });
  // The run starts with the first agent of the plan.
  const canary = planned.results[0]?.name as string;
  agent(canary).machine.fault('/etc/nginx/sites-enabled/shop', 'nginx -t: host not found in "listen"');
  const halted = await apply('web', { canary: 1, max_failures: 0 });
  for (const name of ['web-paris-7', 'web-berlin-3'])
    agent(name).tamper('/etc/ssh/sshd_config.d/50-base.conf', {
      content: 'PermitRootLogin yes\nPasswordAuthentication no\nX11Forwarding no\n',
    });
  agent('db-berlin-2').tamper('postgresql', { running: false });
  agent('edge-2').tamper('/etc/motd', { mode: '0666' });

  for (const { name, hostname, fate } of showcaseMachines) if (fate === 'lost') agent(name ?? hostname).disconnect();
  // Starts a run that is slow enough to be still running when the pages are opened.
  for (const [name, each] of agents) if (name.startsWith('db-')) each.delayMs = 2500;
  const running = await call(applyAssignment, {
    params: { name: 'databases' },
    body: { batch: 2 },
    respondAsync: true,
  });
  return { applied: applied.run_id, halted: halted.run_id, planned: planned.run_id, running: running.run_id };
}
