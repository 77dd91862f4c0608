import type { Client } from '@muster/protocol/client';
import { type Agent, discover as discoverRoute, listAgents } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted } from '../../text/style.ts';
import { parseDuration } from '../../text/values.ts';

export const register: Register = (command, act) => {
  command
    .argument('[target]', 'Host:port of one machine, or the broadcast address of another network')
    .option('--wait <duration>', 'How long to wait for agents to connect', '5s')
    .addHelpText(
      'after',
      '\nReaches agents that were started without an address and accept discovery (UDP port 4747). Without a target, the\norchestrator announces itself on every network of its machine. Agents that connect are then pending.\n\nExample:\n  $ muster discover\n  $ muster discover 192.0.2.40:4747',
    )
    .action(act(discover));
};

const pollMs = 500;
/** Higher than an orchestrator's maximum number of pending agents. */
const maxPending = 10_000;

const pendingAgents = (call: Client): Promise<Agent[]> =>
  call(listAgents, { query: { status: 'pending', limit: String(maxPending) } });

async function discover(context: Context, target: string | undefined, options: { wait: string }): Promise<undefined> {
  const { out, sleep } = context;
  const waitMs = parseDuration(options.wait) * 1000;
  const { call } = await context.connect();
  const before = new Set((await pendingAgents(call)).map(({ node_id }) => node_id));
  const { sent_to } = await call(discoverRoute, { body: target === undefined ? {} : { target } });
  out.note(`Announced to ${sent_to.map(sanitiseLine).join(', ')}.`);
  const progress = out.progress('waiting for agents');
  let found: Agent[] = [];
  try {
    for (let waited = 0; waited < waitMs; waited += pollMs) {
      await sleep(Math.min(pollMs, waitMs - waited));
      found = (await pendingAgents(call)).filter(({ node_id }) => !before.has(node_id));
      progress.update(`waiting for agents: ${found.length} connected`);
    }
  } finally {
    progress.end();
  }
  if (out.json) return out.data({ sent_to, pending: found });
  if (found.length === 0) {
    if (waitMs > 0) out.note('No new agent has connected. To see later ones: muster agents list --status pending');
    return undefined;
  }
  out.table(
    [
      { heading: 'NODE ID', text: ({ node_id }) => node_id },
      { heading: 'HOSTNAME', text: ({ initial_hostname }) => initial_hostname, flexible: true },
      { heading: 'ADDRESS', text: ({ initial_ip }) => initial_ip },
    ],
    found,
  );
  out.note(
    `\n${counted(found.length, 'agent waits', 'agents wait')} for approval: muster agents approve NODE_ID --name NAME`,
  );
}
