import type { Client } from '@muster/protocol/client';
import { checkDrift, type DriftRecord, getOperation } from '@muster/protocol/http';
import type { Context } from '../context.ts';
import { renderDrift } from '../drift-text.ts';
import { type Exit, exits } from '../exit.ts';
import { agentLabel, findAgent } from '../find-agent.ts';
import { applyLine } from '../operation.ts';
import type { Register } from '../verb.ts';

export const register: Register = (command, act) => {
  command
    .argument('<agent>', 'name, node id, or the beginning of either if only one agent fits')
    .option('--exit-code', 'exit with 3 when the machine has drifted')
    .addHelpText('after', '\nExample:\n  $ muster drift web-1')
    .action(act(drift));
};

async function drift(context: Context, wanted: string, options: { exitCode?: boolean }): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const agent = await findAgent(call, wanted);
  const name = agentLabel(agent);
  const progress = out.progress(`${name}: comparing with what was applied`);
  const record = await call(checkDrift, { params: { node_id: agent.node_id } }).finally(progress.end);
  if (out.json) out.data(record);
  else out.print(renderDrift(record, name, out.style));
  if (record.status === 'in_sync') return exits.done;
  if (record.status !== 'drifted') return exits.failed;
  if (!out.json) out.note(out.noteColor.dim(`To mend it: ${await mendingLine(call, name, record)}`));
  return options.exitCode ? exits.pending : exits.done;
}

/** The apply that wants what the one wanted that drift was measured against: one with fewer modules would remove theirs. */
async function mendingLine(call: Client, agent: string, record: DriftRecord): Promise<string> {
  const { modules } = await call(getOperation, { params: { operation_id: record.snapshot_operation_id } });
  return applyLine(agent, modules);
}
