/** Plans faults from a seed: the same seed gives the same faults. */

/** A connection between two programs that can be cut. */
export type Edge =
  | { from: 'balancer'; to: 'agents' | 'api'; replica: number }
  | { from: 'replica'; to: 'postgres' | 'nats'; replica: number };

export type Fault =
  /** SIGKILL, and a restart after the duration of the fault. */
  | { kind: 'kill-replica'; replica: number }
  /** SIGSTOP, and SIGCONT after the duration. A replica that was closed in the meantime exits, and is restarted. */
  | { kind: 'stop-replica'; replica: number }
  | { kind: 'kill-nats' }
  | { kind: 'kill-postgres' }
  /** `reset` ends connections and refuses new ones; `silent` drops all bytes, as a firewall does. */
  | { kind: 'cut'; edge: Edge; how: 'reset' | 'silent' }
  | { kind: 'shift-clock'; replica: number; byMs: number };

export type PlannedFault = Fault & {
  /** Milliseconds after the start of the loop. */
  readonly at: number;
  /** Milliseconds until the fault is repaired. */
  readonly lasts: number;
};

export interface PlanOptions {
  readonly seed: number;
  readonly faults: number;
  readonly replicas: number;
  /** Mean time between the starts of two faults, in milliseconds. */
  readonly everyMs: number;
}

/** Shortest and longest duration of each kind of fault in milliseconds, and its weight in the random choice. */
const kinds = {
  'kill-replica': { shortest: 200, longest: 8_000, weight: 5 },
  // The range includes the ten seconds after which a replica is closed.
  'stop-replica': { shortest: 500, longest: 16_000, weight: 4 },
  'kill-nats': { shortest: 100, longest: 6_000, weight: 2 },
  'kill-postgres': { shortest: 100, longest: 3_000, weight: 2 },
  cut: { shortest: 200, longest: 14_000, weight: 6 },
  'shift-clock': { shortest: 1_000, longest: 10_000, weight: 2 },
} as const satisfies Record<Fault['kind'], { shortest: number; longest: number; weight: number }>;
const names = Object.keys(kinds) as Fault['kind'][];
const maxShiftMs = 3_600_000;

/** Returns the part of the fleet that a fault disturbs. Two faults never disturb the same part at the same time. */
export function subjectOf(fault: Fault): string {
  switch (fault.kind) {
    case 'kill-nats':
      return 'nats';
    case 'kill-postgres':
      return 'postgres';
    case 'cut':
      return `${fault.edge.from} to ${fault.edge.to} of replica ${fault.edge.replica}`;
    default:
      return `replica ${fault.replica}`;
  }
}

/**
 * Returns faults in the order of their starts. Faults overlap, but at least one replica is always neither killed, nor
 * stopped, nor cut off, so that the fleet is served. Each kind occurs if there are enough faults.
 */
export function planFaults({ seed, faults, replicas, everyMs }: PlanOptions): PlannedFault[] {
  const random = randomFrom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const between = (from: number, to: number) => Math.round(from + random() * (to - from));
  const planned: PlannedFault[] = [];
  const pool: Fault['kind'][] = [];
  let at = 0;
  while (planned.length < faults) {
    // Draws each kind once in random order, and further kinds by weight.
    if (pool.length === 0 && planned.length < names.length) pool.push(...shuffled(names, below));
    const kind = pool.pop() ?? byWeight(random);
    const { shortest, longest } = kinds[kind];
    // Short times are as likely as long ones of the same magnitude.
    const lasts = Math.round(shortest * (longest / shortest) ** random());
    const fault = { ...faultOf(kind, { below, replicas, between }), lasts };
    at += between(0, 2 * everyMs);
    at = Math.max(at, earliest(planned, fault, replicas, at));
    planned.push({ ...fault, at });
  }
  return planned;
}

interface Dice {
  below: (limit: number) => number;
  between: (from: number, to: number) => number;
  replicas: number;
}

function faultOf(kind: Fault['kind'], { below, between, replicas }: Dice): Fault {
  const replica = below(replicas);
  switch (kind) {
    case 'cut': {
      const edges: readonly Edge[] = [
        { from: 'balancer', to: 'agents', replica },
        { from: 'balancer', to: 'api', replica },
        { from: 'replica', to: 'postgres', replica },
        { from: 'replica', to: 'nats', replica },
      ];
      return { kind, edge: edges[below(edges.length)]!, how: below(2) === 0 ? 'reset' : 'silent' };
    }
    case 'shift-clock':
      return { kind, replica, byMs: between(-maxShiftMs, maxShiftMs) };
    case 'kill-nats':
    case 'kill-postgres':
      return { kind };
    default:
      return { kind, replica };
  }
}

/** Milliseconds after the end of a fault for which its replica still counts as disabled, because it may be starting. */
const startMs = 8_000;

/** Returns the replica that the fault disables; null if there is none. */
export function disabledBy(fault: Fault): number | null {
  if (fault.kind === 'kill-replica' || fault.kind === 'stop-replica') return fault.replica;
  if (fault.kind === 'cut' && fault.edge.to !== 'nats') return fault.edge.replica;
  return null;
}

/** Returns the earliest time, from `at` on, at which the fault may start together with the planned ones. */
function earliest(
  planned: readonly PlannedFault[],
  fault: Fault & { lasts: number },
  replicas: number,
  at: number,
): number {
  const ends = [at, ...planned.map((other) => other.at + other.lasts + startMs)].filter((time) => time >= at);
  return ends.sort((one, other) => one - other).find((time) => mayStart(planned, fault, replicas, time))!;
}

function mayStart(
  planned: readonly PlannedFault[],
  fault: Fault & { lasts: number },
  replicas: number,
  at: number,
): boolean {
  const together = planned.filter((other) => other.at + other.lasts + startMs > at);
  if (together.some((other) => subjectOf(other) === subjectOf(fault))) return false;
  const disabled = new Set([...together, fault].flatMap((other) => disabledBy(other) ?? []));
  return disabled.size < replicas;
}

function byWeight(random: () => number): Fault['kind'] {
  let left = random() * names.reduce((sum, name) => sum + kinds[name].weight, 0);
  for (const name of names) {
    left -= kinds[name].weight;
    if (left < 0) return name;
  }
  return names[0]!;
}

function shuffled<T>(values: readonly T[], below: (limit: number) => number): T[] {
  const left = [...values];
  return values.map(() => left.splice(below(left.length), 1)[0]!);
}

/** Returns a function that returns numbers in [0, 1): the generator mulberry32 of Tommy Ettinger. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
