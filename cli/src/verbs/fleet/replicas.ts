import { drainReplica, listReplicas, type Replica, undrainReplica } from '@muster/protocol/http';
import type { Connection, Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { CliError, type Exit, exits } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { duration } from '../../text/style.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List the replicas of the orchestrator')
    .addHelpText(
      'after',
      '\nThe replica that answered is marked with *. HEARTBEAT is the time since its last heartbeat: after 10 s without\none, the other replicas treat it as stopped and take over its work. CONFIG differs if the configuration of replicas differs.\n\nExample:\n  $ muster replicas list',
    )
    .action(act(list));
  command
    .command('drain')
    .description('Move the agents and work of a replica to other replicas')
    .argument('<replica>')
    .option('--no-wait', 'Do not wait until its agents and work have moved')
    .addHelpText(
      'after',
      '\nThe replica stops being ready, disconnects its agents at drain.links_per_second, and passes its leases to other replicas.\nIt keeps running until you stop or restart it; after a restart, or after `muster replicas undrain`, it is used again.\n\nExample:\n  $ muster replicas drain muster-1',
    )
    .action(act(drain));
  command
    .command('undrain')
    .description('Use a drained replica again')
    .argument('<replica>')
    .option('--no-wait', 'Do not wait until it is ready')
    .addHelpText(
      'after',
      '\nThe replica accepts agents again and takes its share of the leases. Agents that have moved stay where they are.\n\nExample:\n  $ muster replicas undrain muster-1',
    )
    .action(act(undrain));
};

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const replicas = await call(listReplicas, {});
  if (out.json) return out.data(replicas);
  if (replicas.length === 0) return out.note('This orchestrator uses its database alone: replica.name is not set.');
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
}

/** Polling interval while a replica changes its state, in milliseconds. */
const pollMs = 1_000;
/** Polls without another ready replica after which waiting ends. A replica without heartbeats is closed after 10 s. */
const maxPollsAlone = 15;
/** Polls after which waiting ends if no agent and no lease has moved. */
const maxPollsWithoutProgress = 120;
/** Polls after which a replica that was undrained should be ready. */
const maxPollsUntilReady = 60;

async function drain(context: Context, name: string, { wait }: { wait: boolean }): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const replica = await call(drainReplica, { params: { name } });
  out.data(wait ? await drained(context, call, replica) : replica);
  out.print(
    wait
      ? `Drained ${sanitiseLine(name)}. Stop or restart it.`
      : `Draining ${sanitiseLine(name)}. See: muster replicas list`,
  );
  return exits.done;
}

/**
 * Waits until a replica has no agents and no leases left, or has ended.
 * @throws CliError if another request undrains the replica, or if the replica cannot move its agents or moves none
 */
async function drained({ out, sleep }: Context, call: Connection['call'], replica: Replica): Promise<Replica> {
  const name = sanitiseLine(replica.name);
  const progress = out.progress(`Draining ${name}`);
  let last = replica;
  let pollsAlone = 0;
  let pollsWithoutProgress = 0;
  try {
    while (leftIn(last) > 0) {
      const left = `${last.connected_agents} agents and ${last.leases.length} leases`;
      if (pollsAlone === maxPollsAlone)
        throw new CliError(
          exits.failed,
          'no_ready_replica',
          `${name} keeps ${left}, because no other replica is ready`,
          `Start another replica: then ${name} continues. Or use ${name} again: muster replicas undrain ${name}`,
        );
      if (pollsWithoutProgress === maxPollsWithoutProgress)
        throw new CliError(
          exits.failed,
          'drain_stalled',
          `${name} still has ${left}; none of them has moved for ${pollsWithoutProgress} s`,
          'It keeps draining. See its log, and: muster replicas list',
        );
      if (pollsAlone === 1) out.note(`Waiting until another replica is ready: ${name} keeps ${left}.`);
      progress.update(
        pollsAlone > 0 ? `Waiting until another replica is ready: ${left} left` : `Draining ${name}: ${left} left`,
      );
      await sleep(pollMs);
      const replicas = await call(listReplicas, {});
      const found = replicas.find(({ incarnation }) => incarnation === replica.incarnation);
      // The process has ended, so nothing is left to move.
      if (!found) return { ...last, connected_agents: 0, leases: [] };
      if (!found.draining) throw new CliError(exits.failed, 'drain_undone', `another request has undrained ${name}`);
      pollsAlone = replicas.some(({ ready, draining }) => ready && !draining) ? 0 : pollsAlone + 1;
      pollsWithoutProgress = leftIn(found) < leftIn(last) ? 0 : pollsWithoutProgress + 1;
      last = found;
    }
    return last;
  } finally {
    progress.end();
  }
}

const leftIn = ({ connected_agents, leases }: Replica): number => connected_agents + leases.length;

async function undrain(context: Context, name: string, { wait }: { wait: boolean }): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  let replica: Replica = await call(undrainReplica, { params: { name } });
  const { incarnation } = replica;
  const progress = out.progress(`Waiting until ${name} is ready`);
  try {
    for (let polls = 0; wait && !(replica.ready && !replica.draining); polls++) {
      if (polls === maxPollsUntilReady)
        throw new CliError(
          exits.failed,
          'not_ready',
          `${name} is not ready ${polls} s after it was undrained`,
          'See its log, and: muster replicas list',
        );
      await context.sleep(pollMs);
      const found = (await call(listReplicas, {})).find((one) => one.incarnation === incarnation);
      if (!found) throw new CliError(exits.failed, 'replica_ended', `${name} has ended`, 'Start it to use it again.');
      if (found.draining)
        throw new CliError(exits.failed, 'drained_again', `another request has drained or stopped ${name}`);
      replica = found;
    }
  } finally {
    progress.end();
  }
  out.data(replica);
  out.print(
    wait ? `${sanitiseLine(name)} is used again.` : `Undraining ${sanitiseLine(name)}. See: muster replicas list`,
  );
  return exits.done;
}

const stateOf = ({ draining, ready }: Replica): string => (draining ? 'draining' : ready ? 'ready' : 'not ready');
