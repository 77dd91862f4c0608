import { planAgent } from '@muster/protocol/http';
import { Option } from 'commander';
import type { Context } from '../context.ts';
import { type Exit, exits } from '../exit.ts';
import { agentLabel, findAgent } from '../find-agent.ts';
import { applyLine, exitOfOperation, seeThrough } from '../operation.ts';
import { hasChanges, removalsOf, renderOperation } from '../plan-text.ts';
import type { Register } from '../verb.ts';

/** `-m a -m b`; also `-m a,b`. */
export const moduleOption = (description = 'a module besides those that assignments give; may be repeated'): Option =>
  new Option('-m, --module <name>', description).argParser((text, all: string[] | undefined) => [
    ...(all ?? []),
    ...text.split(',').filter(Boolean),
  ]);

export const register: Register = (command, act) => {
  command
    .argument('<agent>', 'name, node id, or the beginning of either if only one agent fits')
    .addOption(moduleOption())
    .option('--exit-code', 'exit with 3 when an apply would change something')
    .addHelpText('after', '\nExamples:\n  $ muster plan web-1 -m motd\n  $ muster plan web-1 --exit-code --json')
    .action(act(plan));
};

async function plan(
  context: Context,
  wanted: string,
  options: { module?: string[]; exitCode?: boolean },
): Promise<Exit> {
  const { out } = context;
  const modules = options.module ?? [];
  const { call } = await context.connect();
  const agent = await findAgent(call, wanted);
  const name = agentLabel(agent);
  const operation = await seeThrough(context, call, {
    agent: name,
    doing: 'planning',
    modules,
    begin: () => call(planAgent, { params: { node_id: agent.node_id }, body: { modules } }),
  });
  if (out.json) out.data(operation);
  else out.print(renderOperation(operation, name, out.style));
  const exit = exitOfOperation(operation);
  if (exit !== exits.done) return exit;
  const pending = hasChanges(operation);
  if (pending)
    out.note(
      out.noteColor.dim(
        `To do it: ${applyLine(name, modules, ...(modules.length === 0 && removalsOf(operation).length > 0 ? ['--remove'] : []))}`,
      ),
    );
  return pending && options.exitCode ? exits.pending : exits.done;
}
