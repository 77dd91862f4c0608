/**
 * Query keys. The first element is a noun, the second an id. Pages share cached responses through these keys, and
 * events mark them as stale.
 */
export const keys = {
  agents: ['agents'],
  firstAgents: (sort: string) => ['agents', 'first', sort],
  agent: (id: string) => ['agent', id],
  attributes: (id: string) => ['attributes', id],
  tags: ['tags'],
  matches: (selector: string) => ['matches', selector],
  metrics: (id: string, ...range: unknown[]) => ['metrics', id, ...range],
  latestMetrics: ['latest-metrics'],
  overview: ['overview'],
  reconcile: ['reconcile'],
  modules: ['modules'],
  module: (name: string, revision?: number) => (revision === undefined ? ['module', name] : ['module', name, revision]),
  revisions: (name: string) => ['revisions', name],
  assignments: ['assignments'],
  assignment: (name: string) => ['assignment', name],
  runs: ['runs'],
  /** Separate from `runs`, because each operation of a run changes the lists of runs. */
  lastApplies: ['last-applies'],
  run: (id: string) => ['run', id],
  /** Prefix of all operation list keys. One agent's list key continues with its node id. */
  operations: ['operations'],
  operation: (id: string) => ['operation', id],
  output: (id: string) => ['output', id],
  state: (id: string) => ['state', id],
  values: (id: string) => ['values', id],
  drift: ['drift'],
  driftRecord: (id: string) => ['drift-record', id],
  secrets: ['secrets'],
  channels: ['channels'],
  kinds: ['kinds'],
  kind: (name: string) => ['kind', name],
  windows: ['windows'],
  notifications: ['notifications'],
  operators: ['operators'],
  sessions: ['sessions'],
  enrolmentTokens: ['enrolment-tokens'],
  audit: ['audit'],
  retention: ['retention'],
  settings: ['settings'],
  health: ['health'],
  status: ['status'],
  replicas: ['replicas'],
  terminals: ['terminals'],
  terminal: (id: string) => ['terminal', id],
} as const;

export type Key = readonly unknown[];
