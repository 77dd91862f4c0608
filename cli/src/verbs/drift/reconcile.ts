import { listReconcile, type OffAgent, type OffReason, offReasons } from '@muster/protocol/http';
import { Option } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { selectorOption } from '../../execution/choose-agents.ts';
import { showingFault } from '../../execution/selector-fault.ts';
import { watchOption } from '../../execution/watch-option.ts';
import { type Exit, exits } from '../../exit.ts';
import { agentLabel, connectionColumn } from '../../text/agent-label.ts';
import { offLine } from '../../text/reconcile-text.ts';
import { parseCount } from '../../text/values.ts';

interface Options {
  selector?: string;
  reason?: OffReason;
  accepted?: boolean;
  outdated?: boolean;
  limit: string;
  exitCode?: boolean;
}

export const register: Register = (command, act) => {
  command
    .addOption(selectorOption())
    .addOption(new Option('--reason <reason>', 'Only agents with this issue').choices(offReasons))
    .option('--accepted', 'Include agents whose drift was accepted')
    .option('--outdated', 'Include agents with outdated modules')
    .option('--limit <n>', 'Maximum number', '50')
    .option('--exit-code', 'Exit with 3 when the list is not empty')
    .addOption(watchOption())
    .addHelpText(
      'after',
      `\nReasons: ${offReasons.join(', ')}.\n\nTo repair an agent: muster apply AGENT. To see its drift: muster drift AGENT --latest; to accept it: --accept.\n\nExamples:\n  $ muster out-of-sync\n  $ muster out-of-sync --reason apply_failed -l role=web`,
    )
    .action(act(list));
};

async function list(context: Context, options: Options): Promise<Exit> {
  const { out } = context;
  const { selector } = options;
  const query = {
    limit: String(parseCount('--limit', options.limit, 1, 500)),
    ...(selector === undefined ? {} : { filter: selector }),
    ...(options.reason === undefined ? {} : { reason: options.reason }),
    ...(options.accepted ? { include_accepted: 'true' as const } : {}),
    ...(options.outdated ? { include_outdated: 'true' as const } : {}),
  };
  const { call } = await context.connect();
  const found = await call(listReconcile, { query }).catch(showingFault(selector ?? ''));
  if (out.json) out.data(found);
  else if (found.length === 0) out.note('No issues.');
  else
    out.table<OffAgent>(
      [
        { heading: 'AGENT', text: agentLabel, flexible: true, paint: (text, _, { color }) => color.bold(text) },
        connectionColumn(out.style),
        { heading: 'ISSUES', text: offLine, flexible: true, wants: 30 },
      ],
      found,
    );
  const counts = ({ reasons, outdated }: OffAgent) =>
    reasons.length > 0 || (options.outdated === true && outdated !== undefined);
  return options.exitCode && found.some(counts) ? exits.pending : exits.done;
}
