import { Option } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import {
  type AgentOptions,
  chooseAgents,
  isOneNamed,
  selectorOption,
  severalNaming,
} from '../../execution/choose-agents.ts';
import { planFleet, showPlans } from '../../execution/fleet.ts';
import { applyLine, exitOfOperation, planThrough } from '../../execution/operation.ts';
import { runChanges } from '../../execution/run-text.ts';
import { exitOfRun } from '../../execution/run-through.ts';
import { type Exit, exits } from '../../exit.ts';
import { agentLabel } from '../../text/agent-label.ts';
import { hasChanges, removalsOf, renderOperation } from '../../text/plan-text.ts';
import { sanitiseLine } from '../../text/sanitize.ts';

/** Accepts `-m a -m b` and `-m a,b`. */
export const moduleOption = (description = 'Module besides the assigned ones; may be repeated'): Option =>
  new Option('-m, --module <name>', description).argParser((text, all: string[] | undefined) => [
    ...(all ?? []),
    ...text.split(',').filter(Boolean),
  ]);

export const register: Register = (command, act) => {
  command
    .argument('[agents...]', severalNaming)
    .addOption(selectorOption())
    .option('--all', 'Every approved agent')
    .addOption(moduleOption())
    .option('--exit-code', 'Exit with 3 when an apply would change something')
    .addHelpText(
      'after',
      '\nFor several agents, equal plans are shown once.\n\nExamples:\n  $ muster plan web-1 -m motd\n  $ muster plan web-1 --exit-code --json\n  $ muster plan -l role=web -m nginx\n  $ muster plan --all --exit-code',
    )
    .action(act(plan));
};

interface Options extends AgentOptions {
  module?: string[];
  exitCode?: boolean;
}

async function plan(context: Context, typed: string[], options: Options): Promise<Exit> {
  const { out } = context;
  const modules = options.module ?? [];
  const agents = await chooseAgents(context, typed, options);
  const { call } = await context.connect();
  const [agent] = agents;
  if (agent === undefined || !isOneNamed(typed, agents)) {
    const run = await planFleet(context, call, agents, modules);
    if (out.json) out.data(run);
    else await showPlans(context, call, run);
    out.note(out.noteColor.dim(`To see it again: muster runs show ${sanitiseLine(run.run_id)}`));
    const exit = exitOfRun(run);
    return exit === exits.done && options.exitCode && runChanges(run) ? exits.pending : exit;
  }
  const name = agentLabel(agent);
  const operation = await planThrough(context, call, agent, modules, 'plan');
  if (out.json) out.data(operation);
  else out.print(renderOperation(operation, name, out.style));
  const exit = exitOfOperation(operation);
  if (exit !== exits.done) return exit;
  const pending = hasChanges(operation);
  if (pending)
    out.note(
      out.noteColor.dim(
        `To apply it: ${applyLine(name, modules, ...(modules.length === 0 && removalsOf(operation).length > 0 ? ['--remove'] : []))}`,
      ),
    );
  return pending && options.exitCode ? exits.pending : exits.done;
}
