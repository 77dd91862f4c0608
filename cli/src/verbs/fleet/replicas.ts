import { listReplicas, type Replica } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { duration } from '../../text/style.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List the orchestrators that share the database')
    .addHelpText(
      'after',
      '\nThe replica that answered is marked with *. HEARTBEAT is the time since its last heartbeat: after 10 s without\none, the others close it and take over its work. CONFIG differs if the configuration of replicas differs.\n\nExample:\n  $ muster replicas list',
    )
    .action(act(list));
};

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const replicas = await call(listReplicas, {});
  if (out.json) {
    out.data(replicas);
    return undefined;
  }
  if (replicas.length === 0) {
    out.note('This orchestrator uses its database alone: replica.name is not set.');
    return undefined;
  }
  out.table(
    [
      { heading: 'REPLICA', text: ({ name, this_replica }) => (this_replica ? `${name} *` : name) },
      { heading: 'STATE', text: stateOf },
      { heading: 'AGENTS', text: ({ connected_agents }) => String(connected_agents) },
      { heading: 'LEASES', text: ({ leases }) => String(leases.length) },
      { heading: 'HEARTBEAT', text: ({ heartbeat_age_secs }) => `${heartbeat_age_secs.toFixed(1)}s` },
      { heading: 'UP', text: ({ started_at }) => duration(out.style.now - started_at) },
      { heading: 'VERSION', text: ({ version }) => version },
      { heading: 'CONFIG', text: ({ config_digest }) => config_digest?.slice(0, 8) ?? 'unknown' },
    ],
    replicas,
  );
  return undefined;
}

const stateOf = ({ draining, ready }: Replica): string => (draining ? 'draining' : ready ? 'ready' : 'not ready');
