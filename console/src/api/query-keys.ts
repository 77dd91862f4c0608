/**
 * Under what each noun is kept, so that pages share answers and events can name them. What concerns one thing has its id
 * second: `['operations', agent]`.
 */
export const keys = {
  agents: ['agents'],
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
  run: (id: string) => ['run', id],
  /** All of them, or an agent's: `['operations', node_id]`. */
  operations: ['operations'],
  operation: (id: string) => ['operation', id],
  output: (id: string) => ['output', id],
  state: (id: string) => ['state', id],
  drift: ['drift'],
  driftRecord: (id: string) => ['drift-record', id],
  secrets: ['secrets'],
  channels: ['channels'],
  windows: ['windows'],
  notifications: ['notifications'],
  operators: ['operators'],
  enrolmentTokens: ['enrolment-tokens'],
  audit: ['audit'],
  retention: ['retention'],
  settings: ['settings'],
  health: ['health'],
  status: ['status'],
  terminals: ['terminals'],
  terminal: (id: string) => ['terminal', id],
} as const;

export type Key = readonly unknown[];
