/** A limit for one figure of a bench. */
export interface Bar {
  what: string;
  compare: '≤' | '≥' | '<';
  limit: number;
  /** Unit of the figure and the limit. `× NOUN` means the ratio to the baseline NOUN in the same run. */
  unit: string;
}

const atMost = (what: string, limit: number, unit: string): Bar => ({ what, compare: '≤', limit, unit });
const atLeast = (what: string, limit: number, unit: string): Bar => ({ what, compare: '≥', limit, unit });

/** Names of the tools that `converge` compares with Muster. */
export const convergePeers = ['CFEngine', 'Puppet', 'Ansible'] as const;
const workloads = { files: '200 files, 20 directories', machine: '50 packages, 50 units' };
const converge = Object.fromEntries(
  Object.entries(workloads).flatMap(([workload, title]) =>
    ['first', 'second'].flatMap((run) =>
      convergePeers.map((peer): [string, Bar] => [
        `${workload} ${run} ${peer}`,
        { what: `${title}, ${run} run, against ${peer}`, compare: '<', limit: 1, unit: `× ${peer}` },
      ]),
    ),
  ),
);

/** The bars of each bench, by bench name and figure name. */
export const bars = {
  agent: {
    memory: atMost('memory of an idle agent', 2, '× bare Node'),
    cpu: atMost('CPU time of an idle agent', 0.3, '% of a core'),
    memoryAfterTerminal: atMost('memory after a terminal session', 2, '× bare Node'),
    cpuAfterTerminal: atMost('CPU time after a terminal session', 0.3, '% of a core'),
    memoryWatching: atMost('memory while watching applied files', 2, '× bare Node'),
    cpuWatching: atMost('CPU time while watching applied files', 0.3, '% of a core'),
    memoryExecutable: atMost('memory of the executable', 2, '× bare Node'),
    cpuExecutable: atMost('CPU time of the executable', 0.3, '% of a core'),
  },
  api: {
    record: atLeast('reads of one agent’s record per CPU second', 0.5, '× bare fastify'),
    page: atMost('p99 of a page of 500 agents', 2, '× bare fastify'),
    tag: atLeast('writes of a tag per CPU second', 0.4, '× bare fastify'),
  },
  connect: {
    idle: atMost('memory of an idle agent', 1.4, '× bare ws'),
    afterSending: atMost('memory of an agent after 64 KiB', 1.4, '× bare ws'),
    enroll: atMost('CPU time to enroll new agents', 1.5, '× bare ws'),
    idleGateway: atMost('memory of an idle agent, gateway alone', 1.4, '× bare ws'),
    afterSendingGateway: atMost('memory of an agent after 64 KiB, gateway alone', 1.4, '× bare ws'),
    acceptGateway: atMost('CPU time to accept agents, gateway alone', 1.5, '× bare ws'),
  },
  console: {
    firstLoad: atMost('first load', 200, 'kB compressed'),
    rows: atMost('rows of the agents page painted', 1, 's'),
    interactive: atMost('agents page reacts to a click', 1, 's'),
    dropped: atMost('frames dropped beyond those of a static page', 5, '%'),
    heapOverview: atMost('memory of the overview under events', 1.1, '× after a tenth of the time'),
    heapAgents: atMost('memory of the agents page under events', 1.1, '× after a tenth of the time'),
  },
  converge,
  'fan-out': {
    time: atMost('time of an apply that changes nothing', 3, '× bare ws'),
    growth: atMost('CPU time of ten times as many agents', 10, '×'),
  },
  fleet: {
    cpu: atMost('CPU time of the orchestrator', 10, '% of a core'),
    p99: atMost('API p99', 2, '× without agents'),
    growthCpu: atMost('CPU time of ten times as many agents', 10, '×'),
    growthMemory: atMost('memory of ten times as many agents', 10, '×'),
    growthAccept: atMost('CPU time to accept ten times as many agents', 10, '×'),
  },
  'hostile-agent': {
    p99: atMost('API p99', 1, 's'),
    memory: atMost('resident memory', 600, 'MiB'),
    disk: atMost('disk growth by hostile agents', 1, '× their budget'),
    // Room for 8,000 pages between two checkpoints, one transaction of 32 MiB, and the same amount again during the
    // checkpoint.
    log: atMost('write-ahead log', 128, 'MiB'),
    apply: atMost('apply on other agents, median', 1.5, '× without hostile agents'),
  },
  metrics: {
    stored: atLeast('samples stored per second', 0.5, '× raw inserts'),
  },
  // This bench has no bars; its figures help to size a machine.
  'metrics-day': {},
  plan: {
    cpu: atMost('CPU time to plan 100 resources of kinds that call other programs', 1.5, 's'),
  },
  replicas: {
    agent: atMost('CPU time of an agent that sends samples', 1.3, '× one process'),
    operation: atMost('CPU time of an operation in an apply', 1.3, '× one process'),
    event: atMost('CPU time of an event', 1.3, '× one process'),
  },
  resolve: {
    cel: atMost('CPU time to resolve a resource, with conditions and loops', 20, 'µs'),
    plain: atMost('CPU time to resolve a resource, without CEL', 10, 'µs'),
  },
  return: {
    all: atMost('time until all agents are connected after restarts', 120, 's'),
  },
  // This bench has no bars; its figures are compared with those of other products.
  'side-by-side': {},
  'soak-fleet': {
    memory: atMost('resident memory', 1.1, '× after the warm-up'),
    p99: atMost('API p99', 1.25, '× after the warm-up'),
    database: atMost('database growth by an apply', 1.1, '× in the first half'),
    samples: atMost('size of the samples', 1.1, '× of 128 bytes a sample'),
    lost: atMost('reads without an answer', 0.1, '%'),
    applies: atMost('applies that did not succeed on all agents', 0, 'applies'),
  },
  'start-up': {
    help: atMost('CPU time of muster --help', 2, '× node -e 0'),
    status: atMost('CPU time of muster status', 1.5, '× bare HTTPS request'),
    helpExecutable: atMost('CPU time of muster --help, executable', 2, '× node -e 0'),
    statusExecutable: atMost('CPU time of muster status, executable', 1.5, '× bare HTTPS request'),
  },
  terminal: {
    orchestratorGrowth: atMost('memory growth of the orchestrator', 32, 'MB'),
    agentGrowth: atMost('memory growth of the agent', 32, 'MB'),
    apply: atMost('apply on another agent during output', 1.2, '× without output'),
    echoP50: atMost('time added to an echo, p50', 30, 'ms'),
    echoP99: atMost('time added to an echo, p99', 30, 'ms'),
  },
  writes: {
    loop: atMost('p99 of the loop delay with slow syncs', 20, 'ms'),
  },
} satisfies Record<string, Record<string, Bar>>;

export type Judged = keyof typeof bars;
