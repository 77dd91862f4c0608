import { getState, type State } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { agentNaming, chooseAgent } from '../../execution/choose-agents.ts';
import { agentLabel } from '../../text/agent-label.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted, when } from '../../text/style.ts';
import type { Column } from '../../text/table.ts';

export const register: Register = (command, act) => {
  command
    .command('show')
    .description('Show the resources of a machine; also pending removals, and resources that were not applied')
    .argument('<agent>', agentNaming)
    .addHelpText('after', '\nExample:\n  $ muster state show web-1')
    .action(act(show));
};

type Entry = State['applied'][number];

async function show(context: Context, nameOrId: string): Promise<undefined> {
  const { out } = context;
  const { style } = out;
  const { color } = style;
  const { call } = await context.connect();
  const agent = await chooseAgent(call, nameOrId);
  const state = await call(getState, { params: { node_id: agent.node_id } });
  if (out.json) return out.data(state);
  const name = sanitiseLine(agentLabel(agent));
  const { applied, pending_removals, unapplied, snapshot_operation_id } = state;
  if (applied.length + pending_removals.length + unapplied.length === 0)
    return out.note(`Nothing was applied on ${name} yet. To see what would be: muster plan ${name} -m MODULE`);
  out.print(
    `${color.bold(name)}  ${counted(applied.length, 'resource')} applied${snapshot_operation_id === null ? '' : color.dim(`, last by ${sanitiseLine(snapshot_operation_id)}`)}`,
  );
  const section = (title: string, entries: readonly Entry[], paint: (text: string) => string) => {
    if (entries.length === 0) return;
    const columns: Column<Entry>[] = [
      { heading: 'RESOURCE', text: ({ module, id }) => (id === null ? module : `${module}/${id}`), flexible: true },
      { heading: 'TYPE', text: ({ type }) => type, extra: true },
      { heading: 'IDENTITY', text: ({ identity }) => identity, flexible: true },
      { heading: 'SINCE', text: ({ since }) => when(since, style) },
      ...(entries.some(({ reason }) => reason !== null)
        ? [{ heading: 'REASON', text: ({ reason }: Entry) => reason, flexible: true }]
        : []),
    ];
    out.print(`\n${paint(title)}`);
    out.table(columns, entries);
  };
  section('Applied', applied, color.green);
  section('Removed by the next apply', pending_removals, color.yellow);
  section('Desired but not applied', unapplied, color.red);
}
