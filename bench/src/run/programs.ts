/** A program that can be run by name. */
export interface NamedProgram {
  /** Description in the list of programs. */
  what: string;
  /** File in `bench/src`, without `.ts`. */
  program: string;
  /** Options to insert before the user's options. */
  options?: readonly string[];
}

const bench = (program: string, what: string): NamedProgram => ({ program, what });

/** Benches measure performance, usually compared with a baseline in the same run. */
export const benches: Readonly<Record<string, NamedProgram>> = {
  agent: bench('agent', 'memory and CPU time of an idle agent, against bare Node'),
  api: bench('api', 'reads and writes over the API, against the bare framework'),
  connect: bench('connect', 'memory and CPU time for each connected agent, against bare ws over TLS 1.3'),
  console: bench(
    'console',
    'the console with 10,000 agents: load size, time until it reacts, scrolling, memory under events',
  ),
  converge: bench('converge', 'files, packages, and units on a machine, against CFEngine, Puppet, and Ansible'),
  'fan-out': bench('fan-out', 'an apply that changes nothing on all agents, against bare ws that stores nothing'),
  fleet: bench('fleet', 'cost of agents that send samples, for a tenth and for all, and their effect on the API'),
  'hostile-agent': bench(
    'hostile-agent',
    'API, memory, disk, and applies with hostile agents for 10 minutes, against an orchestrator without them',
  ),
  metrics: bench('metrics', 'samples stored per second, against raw inserts in batches'),
  'metrics-day': bench('metrics-day', 'a day of samples of 1,000 agents: bytes on disk, and latency of reads'),
  plan: bench('plan', 'CPU time of a plan of 100 resources of kinds that call other programs, without changes'),
  replicas: bench(
    'replicas',
    'CPU time of agents, operations, and events on three replicas, against one process on PostgreSQL',
  ),
  resolve: bench('resolve', 'CPU time to resolve modules with conditions and loops, against modules without CEL'),
  return: bench('return', 'time until 50 %, 90 %, 99 %, and all agents are connected after several restarts'),
  'side-by-side': bench(
    'side-by-side',
    'cost of machine samples compared with Prometheus, and of idle agents compared with MeshCentral',
  ),
  'start-up': bench(
    'start-up',
    'start-up of muster --help and muster status, against bare Node and a bare HTTPS request',
  ),
  terminal: bench(
    'terminal',
    'effects of a shell with endless output, and latency of key echo with 1,000 agents, against a local terminal',
  ),
  writes: bench(
    'writes',
    'transactions per second, and the delay of the event loop, against one transaction for each write',
  ),
};

/** Soaks run for minutes or longer to find bugs that appear only over time. */
export const soaks: Readonly<Record<string, NamedProgram>> = {
  'configuration-files': {
    program: 'configuration-files',
    what: 'one changed value in each of 240 configuration files of Debian packages; `npm test` covers a sample of npm packages',
  },
  console: {
    program: 'console',
    what: 'the console with 50 events a second for an hour',
    options: ['--minutes', '60'],
  },
  fleet: {
    program: 'soak-fleet',
    what: '10,000 agents with samples, drift checks, applies, and reads for two hours: memory, file sizes, and latency over time',
  },
  fuzz: { program: 'fuzz', what: 'all parsers of untrusted input, with random mutations, for a minute each' },
  'hostile-agent': {
    program: 'hostile-agent',
    what: 'an orchestrator with hostile agents for 10 minutes',
    options: ['--minutes', '10'],
  },
  'kill-steps': {
    program: 'kill-steps',
    what: 'programs killed at every kill point, and all other cases of which `npm test` covers a sample',
  },
  replicas: {
    program: 'soaks/replicas',
    what: '500 faults of replicas, PostgreSQL, NATS, and connections, and a check of what clients saw; `npm test` covers 10',
  },
  roles: {
    program: 'soaks/roles',
    what: 'all modules of examples/roles except swapfile on Debian machines; `npm test` covers a sample',
  },
};
