import type { Client } from '@muster/protocol/client';
import { type Agent, applyAgent, getOperation, type Operation } from '@muster/protocol/http';
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
import { applyLine, applyThrough, exitOfOperation, planThrough, workRefused } from '../../execution/operation.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { agentLabel } from '../../text/agent-label.ts';
import { hasChanges, removalsOf, renderOperation } from '../../text/plan-text.ts';
import { counted } from '../../text/style.ts';
import { applyToMany } from './apply-many.ts';
import { findOperation } from './find-operation.ts';
import { type PaceOptions, paceOf, paceOptions, waitOf } from './pace.ts';
import { moduleOption } from './plan.ts';

export const register: Register = (command, act) => {
  command
    .argument('[agents...]', severalNaming)
    .addOption(selectorOption())
    .addOption(moduleOption())
    .option('-y, --yes', 'apply at once, without showing the plan and asking')
    .option('--remove', 'without -m: what is no longer wanted may be removed')
    .option('--plan <operation>', 'do exactly what this plan of the agent says, or nothing')
    .addOption(new Option('--plan-id <operation>', 'the same as --plan').hideHelp())
    .option('--queue', 'do not wait: hand it over, also to an agent that is not connected')
    .option('--ttl <duration>', 'how long it may wait for the agent, e.g. 12h; with --queue');
  paceOptions(command)
    .addHelpText(
      'after',
      '\nShows the plan and asks; what is applied then is that plan, and when something has changed since, nothing.\nWithout a terminal there is nobody to ask: it needs --yes.\n\nWhat an earlier apply put on the machine and this one does not want is removed. Without -m that may be everything,\nso such an apply needs --remove.\n\nOn several agents it goes on by itself as a run: see muster runs. Of a number of agents that are to fail at most, and of\ncanaries, what had no turn yet when it is halted is not tried.\n\nExamples:\n  $ muster apply web-1 -m motd\n  $ muster apply web-1 -m motd --yes --json\n  $ muster apply web-1 --remove\n  $ muster apply -l role=web -m nginx --canary 1 --batch 25% --max-failures 2\n  $ muster apply web-1 --plan 01KAGZ4D3E5F6G7H8J9K0M1N2P --yes',
    )
    .action(act(apply));
};

interface Options extends AgentOptions, PaceOptions {
  module?: string[];
  yes?: boolean;
  remove?: boolean;
  queue?: boolean;
  plan?: string;
  planId?: string;
}

async function apply(context: Context, typed: string[], options: Options): Promise<Exit> {
  const { out, prompt } = context;
  const modules = options.module ?? [];
  // Whoever names modules knows that the apply is about modules; who forgot to must not lose what they had.
  // A plan says itself what it removes.
  const given = options.plan ?? options.planId;
  const guarded = modules.length === 0 && !options.remove && given === undefined;
  if (!options.yes && (!prompt.interactive || out.json || options.queue))
    throw usageError(
      options.queue ? 'with --queue there is no plan to agree to' : 'there is nobody to agree to the plan',
      'Say that it may be applied at once: --yes. To see the plan first: muster plan',
    );
  if (given !== undefined && modules.length > 0)
    throw usageError('--plan and -m say different things', 'The plan has its modules: leave -m away.');
  const { ttl } = waitOf(options, options.queue === true);
  const pace = paceOf(options);
  if (options.queue && guarded)
    throw usageError(
      'with --queue and without -m nobody sees what would be removed',
      'Name the modules with -m, or say that what is no longer wanted may go: --remove',
    );
  const agents = await chooseAgents(context, typed, options);
  const { call } = await context.connect();
  const [agent] = agents;
  if (agent === undefined || !isOneNamed(typed, agents)) {
    if (given !== undefined) throw usageError('a plan is of one agent', 'Name that agent alone.');
    const { yes = false, remove = false, queue = false } = options;
    return await applyToMany(context, call, agents, { modules, pace, yes, remove, queue, ttl });
  }
  if (Object.keys(pace).length > 0) throw usageError('--canary, --batch and --max-failures are for several agents');
  const name = agentLabel(agent);

  let bound = given === undefined ? undefined : await findOperation(call, given);
  let plan: Operation | undefined;
  if (bound !== undefined && !options.yes) {
    plan = await call(getOperation, { params: { operation_id: bound } });
    out.print(renderOperation(plan, name, out.style));
    if (!(await agreed(context, name, plan))) return exits.done;
  } else if (bound === undefined && (!options.yes || guarded)) {
    plan = await planThrough(context, call, agent, modules);
    if (!options.yes) out.print(renderOperation(plan, name, out.style));
    if (guarded) refuseRemovals(plan, name, options.yes === true);
    if (options.yes) requireWhole(plan, name);
    else if (!(await agreed(context, name, plan))) return exits.done;
    // What was agreed to, or found to remove nothing, is what is done: what is wanted may change in between.
    bound = plan.operation_id;
  }
  if (options.queue) {
    const started = await handOver(call, agent, { modules, ttl, bound });
    if (out.json) out.data(started);
    out.print(`Handed over as ${started.operation_id}, ${started.status}.`);
    out.note(`See what became of it: muster operations show ${started.operation_id}`);
    return exits.done;
  }
  const started = await applyThrough(context, call, agent, { modules, plan_id: bound, plan });
  if (out.json) out.data(started);
  else out.print(renderOperation(started, name, out.style, options.yes === true));
  if (exitOfOperation(started) !== exits.done && started.resources.some(({ type }) => type === 'script'))
    out.note(out.noteColor.dim(`What its scripts printed: muster operations show ${started.operation_id} --output`));
  return exitOfOperation(started);
}

/** Refuses a plan that takes something away, and names the two lines of which one was probably meant. */
function refuseRemovals(plan: Operation, agent: string, yes: boolean): void {
  const removals = removalsOf(plan);
  if (removals.length === 0) return;
  // Removals run backwards: the other way round is the order in which they were applied.
  const modules = [...new Set(removals.map(({ module }) => module).reverse())];
  const flags = yes ? ['--yes'] : [];
  throw new CliError(
    exits.failed,
    'removal_not_agreed',
    `without -m this would remove ${counted(removals.length, 'resource')}; nothing was changed`,
    `To keep what is there: ${applyLine(agent, modules, ...flags)}\nTo remove it: ${applyLine(agent, [], '--remove', ...flags)}`,
  );
}

/** What a plan that did not get through would remove, nobody knows: it may not have got that far. */
function requireWhole({ status, operation_id, modules }: Operation, agent: string): void {
  if (status === 'succeeded') return;
  const whatCan = [...(modules.length === 0 ? [] : [applyLine(agent, modules, '--yes')])];
  throw new CliError(
    exits.failed,
    'plan_failed',
    'the plan did not succeed, so it is not sure that nothing would be removed; nothing was changed',
    `See why: muster operations show ${operation_id}\nTo apply what can be applied: ${[...whatCan, applyLine(agent, [], '--remove', '--yes')].join('\nor: ')}`,
  );
}

/** @returns true when the person agreed to the plan, false when there is nothing to do; throws when they did not */
async function agreed({ out, prompt }: Context, name: string, plan: Operation): Promise<boolean> {
  if (plan.status !== 'succeeded')
    throw new CliError(
      exits.failed,
      'plan_failed',
      'the plan did not succeed, so nothing was applied',
      'Mend what it names; or apply what can be applied with --yes.',
    );
  if (!hasChanges(plan)) return false;
  const removals = removalsOf(plan).length;
  const warning = removals === 0 ? '' : out.noteColor.red(` It removes ${counted(removals, 'resource')}.`);
  if (!(await prompt.confirm(`Apply this on ${name}?${warning}`)))
    throw new CliError(exits.failed, 'cancelled', 'cancelled; nothing was changed');
  return true;
}

/** Asks for an apply that waits for its agent, and does not wait itself. */
async function handOver(
  call: Client,
  agent: Agent,
  { modules, ttl, bound }: { modules: string[]; ttl: number | undefined; bound: string | undefined },
): Promise<Operation> {
  return await call(applyAgent, {
    params: { node_id: agent.node_id },
    body: { modules, ...(ttl === undefined ? {} : { ttl }), ...(bound === undefined ? {} : { plan_id: bound }) },
    respondAsync: true,
  }).catch((error) => workRefused(call, agentLabel(agent), modules, error));
}
