import type { Register } from '../context/verb.ts';

/** A noun on the command line. The code of its subcommands is imported on demand, so that help is fast. */
export interface Noun {
  readonly name: string;
  readonly summary: string;
  readonly group: string;
  /** Loads the code of the subcommands; null for a separate program, which the launcher starts. */
  readonly load: (() => Promise<{ register: Register }>) | null;
  /** Only for a separate program, which prints the rest of its help. */
  readonly example?: string;
}

const fleet = 'Fleet:';
const desired = 'Desired state:';
const access = 'Access:';
const monitoring = 'Monitoring:';
const administration = 'Administration:';
const local = 'This machine:';
const roles = 'Running Muster:';

/** The nouns, in the order of the help. */
export const nouns: readonly Noun[] = [
  {
    name: 'status',
    group: fleet,
    summary: 'Show whether the orchestrator is healthy',
    load: () => import('../verbs/fleet/status.ts'),
  },
  {
    name: 'overview',
    group: fleet,
    summary: 'Show the fleet at a glance',
    load: () => import('../verbs/fleet/overview.ts'),
  },
  {
    name: 'agents',
    group: fleet,
    summary: 'List, show, approve, tag, and enroll agents',
    load: () => import('../verbs/agents/agents.ts'),
  },
  {
    name: 'tags',
    group: fleet,
    summary: 'List, set, and remove tags of agents',
    load: () => import('../verbs/agents/tags.ts'),
  },
  {
    name: 'selectors',
    group: fleet,
    summary: 'Show which agents a selector matches',
    load: () => import('../verbs/agents/selectors.ts'),
  },
  {
    name: 'discover',
    group: fleet,
    summary: 'Announce this orchestrator to agents',
    load: () => import('../verbs/agents/discovery.ts'),
  },
  {
    name: 'terminal',
    group: fleet,
    summary: 'Open shells on agents, and replay their sessions',
    load: () => import('../verbs/terminals/terminals.ts'),
  },
  {
    name: 'modules',
    group: desired,
    summary: 'Upload, check, compare, and show modules',
    load: () => import('../verbs/modules/modules.ts'),
  },
  {
    name: 'kinds',
    group: desired,
    summary: 'List and show the resource kinds of modules',
    load: () => import('../verbs/kinds/kinds.ts'),
  },
  {
    name: 'assignments',
    group: desired,
    summary: 'Assign modules to agents, and apply them',
    load: () => import('../verbs/modules/assignments.ts'),
  },
  {
    name: 'plan',
    group: desired,
    summary: 'Show what an apply would do',
    load: () => import('../verbs/operations/plan.ts'),
  },
  {
    name: 'apply',
    group: desired,
    summary: 'Bring an agent to its desired state',
    load: () => import('../verbs/operations/apply.ts'),
  },
  {
    name: 'operations',
    group: desired,
    summary: 'List, show, follow, and cancel operations',
    load: () => import('../verbs/operations/operations.ts'),
  },
  {
    name: 'runs',
    group: desired,
    summary: 'List, show, follow, cancel, and retry runs',
    load: () => import('../verbs/operations/runs.ts'),
  },
  {
    name: 'drift',
    group: desired,
    summary: 'Compare machines with their applied state',
    load: () => import('../verbs/drift/drift.ts'),
  },
  {
    name: 'out-of-sync',
    group: desired,
    summary: 'List the agents that are out of sync, the worst first',
    load: () => import('../verbs/drift/reconcile.ts'),
  },
  {
    name: 'state',
    group: desired,
    summary: 'Show the applied state of a machine',
    load: () => import('../verbs/operations/state.ts'),
  },
  {
    name: 'maintenance',
    group: desired,
    summary: 'Manage maintenance windows',
    load: () => import('../verbs/fleet/windows.ts'),
  },
  {
    name: 'secrets',
    group: desired,
    summary: 'Manage encrypted values that modules use',
    load: () => import('../verbs/fleet/secrets.ts'),
  },
  {
    name: 'operator',
    group: access,
    summary: 'Create your key, and manage operators',
    load: () => import('../verbs/operators/operators.ts'),
  },
  {
    name: 'sessions',
    group: access,
    summary: 'List and end your sign-in sessions',
    load: () => import('../verbs/operators/sessions.ts'),
  },
  {
    name: 'enrollment-tokens',
    group: access,
    summary: 'Create, list, and revoke enrollment tokens',
    load: () => import('../verbs/agents/enrollment.ts'),
  },
  {
    name: 'metrics',
    group: monitoring,
    summary: 'Show CPU, memory, disk, load, and network of agents',
    load: () => import('../verbs/agents/metrics.ts'),
  },
  {
    name: 'events',
    group: monitoring,
    summary: 'Show events as they happen',
    load: () => import('../verbs/fleet/events.ts'),
  },
  {
    name: 'notifications',
    group: monitoring,
    summary: 'List notifications, and mark them as read',
    load: () => import('../verbs/fleet/notifications.ts'),
  },
  {
    name: 'channels',
    group: monitoring,
    summary: 'Manage the destinations of notifications',
    load: () => import('../verbs/fleet/channels.ts'),
  },
  {
    name: 'audit',
    group: monitoring,
    summary: 'Follow, verify, export, and prune the audit log',
    load: () => import('../verbs/fleet/audit.ts'),
  },
  {
    name: 'settings',
    group: administration,
    summary: 'Show the configuration of the orchestrator',
    load: () => import('../verbs/fleet/settings.ts'),
  },
  {
    name: 'replicas',
    group: administration,
    summary: 'List and drain replicas',
    load: () => import('../verbs/fleet/replicas.ts'),
  },
  { name: 'login', group: local, summary: 'Sign in now', load: () => import('../verbs/operators/login.ts') },
  { name: 'logout', group: local, summary: 'Sign out', load: () => import('../verbs/operators/logout.ts') },
  {
    name: 'web-login',
    group: local,
    summary: 'Print a link that signs in to the console as you',
    load: () => import('../verbs/operators/web-login.ts'),
  },
  {
    name: 'profile',
    group: local,
    summary: 'Manage named orchestrators',
    load: () => import('../verbs/operators/profile.ts'),
  },
  {
    name: 'doctor',
    group: local,
    summary: 'Find problems and their solutions',
    load: () => import('../verbs/fleet/doctor.ts'),
  },
  {
    name: 'completion',
    group: local,
    summary: 'Print the completion script of a shell',
    load: () => import('../verbs/fleet/completion.ts'),
  },
  {
    name: 'schema',
    group: local,
    summary: 'Print the JSON Schemas of the --json output',
    load: () => import('../verbs/modules/schema.ts'),
  },
  { name: 'orchestrator', group: roles, summary: 'Run an orchestrator', load: null },
  { name: 'agent', group: roles, summary: 'Run an agent on this machine', load: null },
  {
    name: 'migrate',
    group: roles,
    summary: 'Migrate the schema of a database',
    load: null,
    example: 'muster migrate --data-dir /var/lib/muster-orchestrator',
  },
  {
    name: 'export',
    group: roles,
    summary: 'Write a whole database to a file',
    load: null,
    example: 'muster export --data-dir /var/lib/muster-orchestrator muster.export',
  },
  {
    name: 'import',
    group: roles,
    summary: 'Read an export into an empty database',
    load: null,
    example: 'muster import --database-url-file /etc/muster/database-url muster.export',
  },
  {
    name: 'backup',
    group: roles,
    summary: 'Write or verify a backup',
    load: null,
    example: 'muster backup --data-dir /var/lib/muster-orchestrator --encrypt muster.backup',
  },
  {
    name: 'restore',
    group: roles,
    summary: 'Restore an orchestrator from a backup',
    load: null,
    example: 'muster restore --data-dir /var/lib/muster-orchestrator muster.backup',
  },
];

export const isNoun = (word: string): boolean => nouns.some(({ name }) => name === word);

/** Names of the separate programs that the launcher starts. */
export const launched: ReadonlySet<string> = new Set(nouns.filter(({ load }) => load === null).map(({ name }) => name));
