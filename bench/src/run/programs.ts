/** A program with a name. `program` is a file in this folder, without `.ts`; `options` precede the caller's. */
export interface NamedProgram {
  what: string;
  program: string;
  options?: readonly string[];
}

const bench = (program: string, what: string): NamedProgram => ({ program, what });

/** Each bench compares with a baseline in the same run. */
export const benches: Readonly<Record<string, NamedProgram>> = {
  agent: bench('agent', 'an idle agent: memory and processor time, against a bare node'),
  api: bench('api', 'one agent’s record, lists and tags over the API, against the bare framework'),
  connect: bench('connect', 'agents connected: memory and CPU each, against bare ws over TLS 1.3'),
  console: bench(
    'console',
    'the console with 10,000 agents: first load, until rows answer, scrolling, memory under events',
  ),
  converge: bench('converge', '220 files, 50 packages and 50 units on a machine, against CFEngine, Puppet and Ansible'),
  'fan-out': bench('fan-out', 'an apply that changes nothing on every agent, against the same bytes with nothing kept'),
  fleet: bench('fleet', 'what agents cost that send samples, a tenth and all of them, and how the API slows with them'),
  'hostile-agent': bench(
    'hostile-agent',
    'hostile agents at full speed for 10 minutes: API, memory, disk, and applies of others against those with none',
  ),
  metrics: bench('metrics', 'samples stored a second, against raw batched inserts'),
  'metrics-day': bench('metrics-day', 'a day of samples of 1,000 agents: bytes on disk, and how fast they are read'),
  return: bench('return', 'agents that come back after restarts in a row: until half, nine in ten and all are back'),
  'start-up': bench('start-up', 'muster --help and muster status, against a bare node and a bare HTTPS request'),
  terminal: bench(
    'terminal',
    'a shell that prints without end, and the echo of keys under 1,000 agents, against a local terminal',
  ),
  writes: bench('writes', 'units committed a second, and the delay of the event loop meanwhile'),
};

/** Each soak runs for minutes to find faults that only appear over time. */
export const soaks: Readonly<Record<string, NamedProgram>> = {
  console: {
    program: 'console',
    what: 'the console under 50 events a second for an hour',
    options: ['--minutes', '60'],
  },
  fuzz: { program: 'fuzz', what: 'everything that takes what others send, with hostile inputs, a minute each' },
  'hostile-agent': {
    program: 'hostile-agent',
    what: 'hostile agents at full speed for 10 minutes',
    options: ['--minutes', '10'],
  },
  'kill-steps': {
    program: 'kill-steps',
    what: 'an agent killed at every step of its journal, of which tests try a sample',
  },
};
