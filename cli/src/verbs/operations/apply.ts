import type { Client } from '@muster/protocol/client';
import { type Agent, applyAgent, getOperation, type Operation } from '@muster/protocol/http';
import { Option } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import {
  type AgentOptions,
  chooseAgents,
  isOneNamed,
  requireAgents,
  selectorOption,
  severalNaming,
} from '../../execution/choose-agents.ts';
import { applyLine, applyThrough, exitOfOperation, planThrough, workRefused } from '../../execution/operation.ts';
import { removedModules } from '../../execution/removed-modules.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { agentLabel } from '../../text/agent-label.ts';
import { hasChanges, removalsOf, renderOperation } from '../../text/plan-text.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted } from '../../text/style.ts';
import { applyToMany } from './apply-many.ts';
import { type FanOutOptions, fanOutOf, fanOutOptions, waitOf } from './fan-out.ts';
import { findOperation } from './find-operation.ts';
import { moduleOption } from './plan.ts';

export const register: Register = (command, act) => {
  command
    .argument('[agents...]', severalNaming)
    .addOption(selectorOption())
    .option('--all', 'Every approved agent')
    .addOption(moduleOption())
    .option('-y, --yes', 'Apply without showing the plan or asking')
    .option('--remove', 'Without -m: allow removing unassigned resources')
    .option('--plan <operation>', 'Apply exactly this plan of the agent, or fail')
    .addOption(new Option('--plan-id <operation>', 'Same as --plan').hideHelp())
    .option('--queue', 'Queue the apply, even if the agent is offline')
    .option('--ttl <duration>', 'With --queue: how long to wait, e.g. 12h');
  fanOutOptions(command)
    .addHelpText(
      'after',
      '\nShows the plan, asks, and applies exactly that plan; if anything has changed since, nothing is applied.\nWithout a terminal it cannot ask and needs --yes.\n\nResources of an earlier apply that this one does not include are removed. Without -m that may be all of them, so such an\napply needs --remove.\n\nOn several agents the apply is a run, which continues without this program: see muster runs. If --max-failures or a canary\nhalts the run, the remaining agents are skipped.\n\nExamples:\n  $ muster apply web-1 -m motd\n  $ muster apply web-1 -m motd --yes --json\n  $ muster apply web-1 --remove\n  $ muster apply -l role=web -m nginx --canary 1 --batch 25% --max-failures 2\n  $ muster apply web-1 --plan 01KAGZ4D3E5F6G7H8J9K0M1N2P --yes',
    )
    .action(act(apply));
};

interface Options extends AgentOptions, FanOutOptions {
  module?: string[];
  yes?: boolean;
  remove?: boolean;
  queue?: boolean;
  plan?: string;
  planId?: string;
}

async function apply(context: Context, typed: string[], options: Options): Promise<Exit> {
  const { out, prompt } = context;
  requireAgents(typed, options);
  const modules = options.module ?? [];
  // Without -m, an apply removes the resources of modules that the operator forgot. With -m, the operator chose the
  // modules, and the plan lists the removals.
  const given = options.plan ?? options.planId;
  const guarded = modules.length === 0 && !options.remove && given === undefined;
  if (!options.yes && (!prompt.interactive || out.json || options.queue))
    throw usageError(
      options.queue
        ? '--queue shows no plan to confirm'
        : 'the plan needs confirmation, but there is no terminal to ask on',
      'To apply without asking: --yes. To see the plan first: muster plan',
    );
  if (given !== undefined && modules.length > 0)
    throw usageError('--plan cannot be combined with -m', 'The plan already contains its modules; omit -m.');
  const { ttl } = waitOf(options, options.queue === true);
  const fanOut = fanOutOf(options);
  if (options.queue && guarded)
    throw usageError(
      'with --queue and without -m, removals would not be shown',
      'Specify the modules with -m, or allow removals with --remove.',
    );
  const agents = await chooseAgents(context, typed, options);
  const { call } = await context.connect();
  const [agent] = agents;
  if (agent === undefined || !isOneNamed(typed, agents)) {
    if (given !== undefined) throw usageError('--plan works for one agent', 'Specify only the plan’s agent.');
    const { yes = false, remove = false, queue = false } = options;
    const isNamed = modules.length > 0;
    return await applyToMany(context, call, agents, { modules, isNamed, fanOut, yes, remove, queue, ttl });
  }
  if (Object.keys(fanOut).length > 0) throw usageError('--canary, --batch, and --max-failures need several agents');
  const name = agentLabel(agent);

  let bound = given === undefined ? undefined : await findOperation(call, given);
  let plan: Operation | undefined;
  if (bound !== undefined && !options.yes) {
    plan = await call(getOperation, { params: { operation_id: bound } });
    out.print(renderOperation(plan, name, out.style));
    if (!(await agreed(context, name, plan))) return exits.done;
  } else if (bound === undefined && (!options.yes || guarded)) {
    plan = await planThrough(context, call, agent, modules, 'apply');
    if (!options.yes) out.print(renderOperation(plan, name, out.style));
    if (guarded) await refuseRemovals(call, plan, name);
    if (options.yes) requireComplete(plan, name);
    else if (!(await agreed(context, name, plan))) return exits.done;
    // Binds the apply to the plan that was confirmed or checked, because the desired state may have changed since.
    bound = plan.operation_id;
  }
  if (options.queue) {
    const started = await queueApply(call, agent, { modules, ttl, bound });
    if (out.json) out.data(started);
    out.print(`Queued as ${started.operation_id}, ${started.status}.`);
    out.note(`To see the result: muster operations show ${started.operation_id}`);
    return exits.done;
  }
  const started = await applyThrough(context, call, agent, { modules, plan_id: bound, plan });
  if (out.json) out.data(started);
  else out.print(renderOperation(started, name, out.style, options.yes === true));
  if (exitOfOperation(started) !== exits.done && started.resources.some(({ type }) => type === 'script'))
    out.note(
      out.noteColor.dim(`To see the output of its scripts: muster operations show ${started.operation_id} --output`),
    );
  return exitOfOperation(started);
}

/** Refuses a plan that removes resources, and shows the two commands that the operator may have meant. */
async function refuseRemovals(call: Client, plan: Operation, agent: string): Promise<void> {
  const removals = removalsOf(plan);
  if (removals.length === 0) return;
  // Removals are in the reverse order of the applies.
  const modules = [...new Set(removals.map(({ module }) => module).reverse())];
  const removed = await removedModules(call, modules);
  throw new CliError(
    exits.failed,
    'removal_not_agreed',
    `without -m this would remove ${counted(removals.length, 'resource')}; nothing was changed`,
    `${removed.length === 0 ? `To keep them: ${applyLine(agent, modules)}` : `To keep them, upload ${sanitiseLine(removed.join(', '))} again, since removed modules cannot be applied`}\nTo remove them: ${applyLine(agent, [], '--remove')}`,
  );
}

/** Refuses a plan that failed, because it may have stopped before it found all resources to remove. @throws CliError */
function requireComplete({ status, operation_id, modules }: Operation, agent: string): void {
  if (status === 'succeeded') return;
  throw new CliError(
    exits.failed,
    'plan_failed',
    'the plan failed, so removals are not known; nothing was changed',
    `To see why: muster operations show ${operation_id}\nTo apply only some modules, name them with -m${modules.length === 0 ? '' : `: ${applyLine(agent, modules)}`}`,
  );
}

/**
 * Asks the operator to confirm a plan.
 * @returns false if the plan has no changes
 * @throws CliError if the operator declines
 */
async function agreed({ out, prompt }: Context, name: string, plan: Operation): Promise<boolean> {
  if (plan.status !== 'succeeded')
    throw new CliError(
      exits.failed,
      'plan_failed',
      'the plan failed, so nothing was applied',
      'Fix the errors above, or apply as far as possible with --yes.',
    );
  if (!hasChanges(plan)) return false;
  const removals = removalsOf(plan).length;
  const warning = removals === 0 ? '' : out.noteColor.red(` It removes ${counted(removals, 'resource')}.`);
  if (!(await prompt.confirm(`Apply this on ${name}?${warning}`)))
    throw new CliError(exits.failed, 'cancelled', 'canceled; nothing was changed');
  return true;
}

/** Queues an apply for an agent without waiting for it to finish. */
async function queueApply(
  call: Client,
  agent: Agent,
  { modules, ttl, bound }: { modules: string[]; ttl: number | undefined; bound: string | undefined },
): Promise<Operation> {
  return await call(applyAgent, {
    params: { node_id: agent.node_id },
    body: { modules, ...(ttl === undefined ? {} : { ttl }), ...(bound === undefined ? {} : { plan_id: bound }) },
    respondAsync: true,
  }).catch((error) => workRefused(call, agentLabel(agent), modules, 'apply', error));
}
