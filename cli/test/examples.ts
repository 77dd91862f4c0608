import type { ResourceResult } from '@muster/protocol';
import { summarise } from '@muster/protocol';
import type { Agent, DriftRecord, Operation } from '@muster/protocol/http';
import { agentExample } from '@muster/protocol/http';
import { colorsFor, type Style } from '../src/text/style.ts';

/** Current time in the examples, in Unix seconds: 2026-11-18 11:06:40 UTC. */
const now = 1_795_000_000;

export const style = (options: Partial<Style> & { colored?: boolean } = {}): Style => {
  const { colored = false, ...rest } = options;
  return { color: colorsFor(colored), width: 80, now, verbose: false, ...rest };
};

export const result = (fields: Partial<ResourceResult>): ResourceResult => ({
  module: 'site',
  id: 'motd',
  type: 'file-unix',
  identity: '/etc/motd',
  action: 'none',
  status: 'unchanged',
  changes: [],
  diff: null,
  triggered_by: [],
  corrective: false,
  message: null,
  duration_ms: 1,
  sensitive: false,
  ...fields,
});

export const operation = (resources: ResourceResult[], fields: Partial<Operation> = {}): Operation => ({
  operation_id: '01KAGZ4D3E5F6G7H8J9K0M1N2P',
  node_id: agentExample.node_id,
  kind: 'plan',
  status: 'succeeded',
  modules: ['site'],
  requested_by: '21fe31dfa154a261626bf854046fd227',
  run_id: null,
  plan_id: null,
  created_at: now - 60,
  started_at: now - 60,
  finished_at: now - 59,
  summary: summarise(resources),
  error: null,
  resources,
  ...fields,
});

/** A resource result in each form. */
export const variety: ResourceResult[] = [
  result({
    id: 'conf',
    identity: '/etc/site.conf',
    action: 'create',
    status: 'would_change',
    changes: [
      { field: 'ensure', from: 'absent', to: 'present' },
      { field: 'content', from: null, to: 'sha256:fcde2b2edba5' },
      { field: 'mode', from: null, to: '0644' },
    ],
    diff: '--- /dev/null\n+++ /etc/site.conf\n@@ -0,0 +1,2 @@\n+listen 80\n+root /srv\n',
  }),
  result({
    action: 'update',
    status: 'would_change',
    changes: [
      { field: 'content', from: 'sha256:2c26b46b68ff', to: 'sha256:fcde2b2edba5' },
      { field: 'owner', from: 'ada', to: 'root' },
      { field: 'mode', from: '0600', to: '0644' },
    ],
    diff: '--- /etc/motd\n+++ /etc/motd\n@@ -1,2 +1,2 @@\n Hello\n-from ada\n+from Muster\n',
    corrective: true,
  }),
  result({ id: 'dir', type: 'directory-unix', identity: '/srv', action: 'create', status: 'would_change' }),
  result({
    id: 'deploy',
    type: 'script',
    identity: 'deploy',
    action: 'run',
    status: 'would_change',
    triggered_by: ['conf', 'motd'],
  }),
  result({
    id: 'svc',
    type: 'service-systemd',
    identity: 'nginx',
    action: 'restart',
    status: 'would_change',
    triggered_by: ['conf'],
  }),
  result({
    id: 'token',
    identity: '/etc/site.token',
    action: 'update',
    status: 'would_change',
    changes: [{ field: 'content', from: '••••', to: '••••' }],
    sensitive: true,
  }),
  ...Array.from({ length: 20 }, (_, at) => result({ id: `same${at}`, identity: `/etc/same${at}` })),
  result({
    id: null,
    identity: '/etc/old',
    action: 'remove',
    status: 'would_change',
    message: 'existed before Muster: its original content is restored',
  }),
];

export const drift = (resources: ResourceResult[], fields: Partial<DriftRecord> = {}): DriftRecord => ({
  drift_id: '01KAGZ6R3E5F6G7H8J9K0M1N2P',
  node_id: agentExample.node_id,
  status: resources.length === 0 ? 'in_sync' : 'drifted',
  trigger: 'operator',
  checked_at: now,
  snapshot_operation_id: '01KAGZ4D3E5F6G7H8J9K0M1N2P',
  summary: { ...summarise(resources), total: 26 },
  resources,
  error: null,
  accepted: null,
  ...fields,
});

export const agent = (fields: Partial<Agent>): Agent => ({ ...agentExample, ...fields });
