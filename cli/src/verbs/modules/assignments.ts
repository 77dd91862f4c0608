import { readFile } from 'node:fs/promises';
import { ApiError, type Client } from '@muster/protocol/client';
import {
  type Assignment,
  applyAssignment,
  createAssignment,
  getAssignment,
  getRun,
  listAgents,
  listAssignments,
  listModules,
  planAssignment,
  type Run,
  removeAssignment,
  updateAssignment,
} from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { removeEach } from '../../execution/each.ts';
import { agentLabel } from '../../execution/find-agent.ts';
import { agreeToPlans, changingIn, showOutcome, showPlans } from '../../execution/fleet.ts';
import { printRun, removedIn, runChanges } from '../../execution/run-text.ts';
import { exitOfRun, seeRunThrough } from '../../execution/run-through.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { nearest } from '../../text/nearest.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted } from '../../text/style.ts';
import { parseChoice } from '../../text/values.ts';
import { type PaceOptions, paceOf, paceOptions, waitOf } from '../operations/pace.ts';
import { moduleOption } from '../operations/plan.ts';
import { findRun } from '../operations/runs.ts';
import { isMissing, suggestModule } from './modules-source.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('list assignments')
    .addHelpText('after', '\nExample:\n  $ muster assignments list')
    .action(act(list));
  command
    .command('show')
    .description('show an assignment with the agents it matches now')
    .argument('<name>')
    .addHelpText('after', '\nExample:\n  $ muster assignments show base')
    .action(act(show));
  command
    .command('create')
    .description('bind modules to the agents that a selector matches; changes no machine by itself')
    .argument('<name>')
    .addOption(moduleOption('a module; may be repeated').makeOptionMandatory())
    .requiredOption(
      '--selector <selector>',
      'which agents, e.g. "role=web site in (paris,rome)"; an empty one matches none',
    )
    .option('--audit', 'only look for drift, never apply')
    .option('--window-only', 'applied only within maintenance windows')
    .option('--parameters <file>', 'JSON: {"module": {"parameter": value}}; - is standard input')
    .option('--description <text>', 'for people')
    .addHelpText('after', '\nExample:\n  $ muster assignments create base -m motd --selector role=web')
    .action(act(create));
  command
    .command('update')
    .description('change an assignment; changes no machine by itself')
    .argument('<name>')
    .addOption(moduleOption('a module; may be repeated, and then these take the place of all there were'))
    .option('--selector <selector>', 'which agents')
    .option('--audit', 'only look for drift, never apply')
    .option('--enforce', 'apply, after --audit')
    .option('--window-only', 'applied only within maintenance windows')
    .option('--any-time', 'applied whenever it is asked for, after --window-only')
    .option('--parameters <file>', 'JSON: {"module": {"parameter": value}}, all of them; - is standard input')
    .option('--description <text>', 'for people; "" takes it away')
    .addHelpText(
      'after',
      '\nWhat is not named stays as it is.\n\nExample:\n  $ muster assignments update base --selector "role in (web,proxy)"',
    )
    .action(act(update));
  command
    .command('remove')
    .description('remove assignments; what they put on machines stays until the next apply there')
    .argument('<names...>')
    .option('-y, --yes', 'do not ask')
    .addHelpText('after', '\nExample:\n  $ muster assignments remove base')
    .action(act(remove));
  command
    .command('plan')
    .description('see what an apply would do on every agent it matches')
    .argument('<name>')
    .option('--exit-code', 'exit with 3 when an apply would change something')
    .addHelpText('after', '\nExample:\n  $ muster assignments plan base')
    .action(act(plan));
  paceOptions(command.command('apply'))
    .description('apply on every agent it matches, after showing the plan and asking')
    .argument('<name>')
    .option('-y, --yes', 'apply at once, without showing the plan and asking')
    .option('--remove', 'with --yes: what is no longer wanted may be removed')
    .option('--offline <how>', 'agents that are not connected: report (the default) or queue')
    .option('--queue', 'the same as --offline queue: they get it when they come back')
    .option('--ttl <duration>', 'how long it may wait for them, e.g. 12h; with --queue')
    .option('--plan-run <run>', 'do exactly what this plan of the assignment says, or nothing')
    .addHelpText(
      'after',
      '\nShows the plan and asks; what is applied then is that plan, and where something has changed since, nothing.\nWithout a terminal there is nobody to ask: it needs --yes, and --remove if something would be removed.\n\nExamples:\n  $ muster assignments apply base --canary 2 --batch 25% --max-failures 3\n  $ muster assignments apply base --yes',
    )
    .action(act(apply));
};

/** Says which assignment was probably meant. */
const suggest =
  (call: Client, wanted: string) =>
  async (error: unknown): Promise<never> => {
    if (!(error instanceof ApiError) || error.problem.code !== 'assignment_not_found') throw error;
    const near = nearest(
      wanted,
      (await call(listAssignments, { all: true })).map(({ name }) => name),
    );
    throw new CliError(
      exits.failed,
      'assignment_not_found',
      `there is no assignment ${JSON.stringify(wanted)}`,
      `${near === null ? '' : `Did you mean ${near}? `}See those there are: muster assignments list`,
      { cause: error },
    );
  };

/** Of several modules, says which one was probably meant. */
const missingModule =
  (call: Client, wanted: readonly string[]) =>
  async (error: unknown): Promise<never> => {
    if (!(error instanceof ApiError) || !isMissing.has(error.problem.code)) throw error;
    const known = new Set((await call(listModules, { all: true })).map(({ name }) => name));
    return suggestModule(call, wanted.find((name) => !known.has(name)) ?? '', error);
  };

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const assignments = await call(listAssignments, { all: true });
  if (out.json) {
    out.data(assignments);
    return undefined;
  }
  if (assignments.length === 0) {
    out.note('There is no assignment yet: muster assignments create NAME -m MODULE --selector SELECTOR');
    return undefined;
  }
  out.table(
    [
      { heading: 'NAME', text: ({ name }) => name, flexible: true, paint: (text, _, { color }) => color.bold(text) },
      { heading: 'MODE', text: ({ mode }) => mode },
      { heading: 'SELECTOR', text: ({ selector }) => selector || 'matches none', flexible: true },
      { heading: 'MODULES', text: ({ modules }) => modules.join(', '), flexible: true },
    ],
    assignments,
  );
  return undefined;
}

async function show(context: Context, name: string): Promise<undefined> {
  const { out } = context;
  const { color } = out.style;
  const { call } = await context.connect();
  const found = await call(getAssignment, { params: { name } }).catch(suggest(call, name));
  if (out.json) {
    out.data(found);
    return undefined;
  }
  const { mode, selector, modules, matches, description, parameters, window_only } = found;
  const agents = await call(listAgents, { query: { status: 'approved' } });
  const names = new Map(agents.map((agent) => [agent.node_id, agentLabel(agent)]));
  out.print(`${color.bold(sanitiseLine(found.name))}${description === null ? '' : `: ${sanitiseLine(description)}`}`);
  out.print(`mode        ${mode}${window_only ? ', within maintenance windows only' : ''}`);
  out.print(`selector    ${sanitiseLine(selector) || 'empty: it matches no agent'}`);
  out.print(`modules     ${modules.map(sanitiseLine).join(', ')}`);
  for (const [module, values] of Object.entries(parameters))
    out.print(`parameters  ${sanitiseLine(`${module}: ${JSON.stringify(values)}`)}`);
  const matched = matches.map((id) => sanitiseLine(names.get(id) ?? id)).sort();
  out.print(`matches     ${matched.length === 0 ? 'no agent now' : matched.join(', ')}`);
  return undefined;
}

interface CreateOptions {
  module: string[];
  selector: string;
  audit?: boolean;
  windowOnly?: boolean;
  parameters?: string;
  description?: string;
}

async function create(context: Context, name: string, options: CreateOptions): Promise<undefined> {
  const { out } = context;
  const { module: modules, selector, description } = options;
  const parameters = options.parameters === undefined ? undefined : await readParameters(context, options.parameters);
  const { call } = await context.connect();
  const made = await call(createAssignment, {
    body: {
      name,
      modules,
      selector,
      ...(options.audit ? { mode: 'audit' as const } : {}),
      ...(options.windowOnly ? { window_only: true } : {}),
      ...(parameters === undefined ? {} : { parameters }),
      ...(description === undefined ? {} : { description }),
    },
  }).catch(missingModule(call, modules));
  if (out.json) out.data(made);
  out.print(`Created ${out.style.color.bold(sanitiseLine(made.name))}. No machine has changed.`);
  out.note(`See what it would do: muster assignments plan ${sanitiseLine(made.name)}`);
  return undefined;
}

interface UpdateOptions extends Partial<CreateOptions> {
  enforce?: boolean;
  anyTime?: boolean;
}

async function update(context: Context, name: string, options: UpdateOptions): Promise<undefined> {
  const { out } = context;
  const { module: modules, selector, description, audit, enforce, windowOnly, anyTime } = options;
  if (audit && enforce) throw usageError('--audit and --enforce exclude each other');
  if (windowOnly && anyTime) throw usageError('--window-only and --any-time exclude each other');
  const parameters = options.parameters === undefined ? undefined : await readParameters(context, options.parameters);
  const body = {
    ...(modules === undefined ? {} : { modules }),
    ...(selector === undefined ? {} : { selector }),
    ...(audit || enforce ? { mode: audit ? ('audit' as const) : ('enforce' as const) } : {}),
    ...(windowOnly || anyTime ? { window_only: windowOnly === true } : {}),
    ...(parameters === undefined ? {} : { parameters }),
    ...(description === undefined ? {} : { description }),
  };
  if (Object.keys(body).length === 0)
    throw usageError('nothing to change was named', 'Say what: muster assignments update --help');
  const { call } = await context.connect();
  const made = await call(updateAssignment, { params: { name }, body })
    .catch(missingModule(call, modules ?? []))
    .catch(suggest(call, name));
  if (out.json) out.data(made);
  out.print(`Changed ${out.style.color.bold(sanitiseLine(made.name))}. No machine has changed.`);
  out.note(`See what it would do: muster assignments plan ${sanitiseLine(made.name)}`);
  return undefined;
}

/** @throws CliError for what is not JSON; what is in it is the orchestrator's to judge */
async function readParameters(context: Context, file: string): Promise<Assignment['parameters']> {
  const text =
    file === '-'
      ? await context.stdin()
      : await readFile(file, 'utf8').catch((error: Error) => {
          throw new CliError(exits.failed, 'file_unreadable', `${file} cannot be read: ${error.message}`);
        });
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${file} is not JSON: ${(error as Error).message}`, 'Write {"module": {"parameter": value}}.');
  }
}

async function remove(context: Context, names: string[], { yes }: { yes?: boolean }): Promise<Exit> {
  const { call } = await context.connect();
  return removeEach(context, names, { yes, noun: 'assignment' }, (name) =>
    call(removeAssignment, { params: { name } }).catch(suggest(call, name)),
  );
}

async function plan(context: Context, name: string, options: { exitCode?: boolean }): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const run = await planThrough(context, call, name);
  if (out.json) out.data(run);
  else await showPlans(context, call, run);
  out.note(out.noteColor.dim(`See it again: muster runs show ${sanitiseLine(run.run_id)}`));
  const exit = exitOfRun(run);
  if (exit === exits.done && options.exitCode && runChanges(run)) return exits.pending;
  return exit;
}

/** Plans on every agent it matches, and waits for that. */
const planThrough = (context: Context, call: Client, name: string): Promise<Run> =>
  seeRunThrough(context, call, {
    doing: `Planning ${sanitiseLine(name)}:`,
    begin: () => call(planAssignment, { params: { name }, body: {}, respondAsync: true }).catch(suggest(call, name)),
  });

interface ApplyOptions extends PaceOptions {
  yes?: boolean;
  remove?: boolean;
  offline?: string;
  queue?: boolean;
  planRun?: string;
}

async function apply(context: Context, name: string, options: ApplyOptions): Promise<Exit> {
  const { out, prompt } = context;
  if (!options.yes && (!prompt.interactive || out.json))
    throw usageError(
      'there is nobody to agree to the plan',
      'Say that it may be applied at once: --yes. To see the plan first: muster assignments plan',
    );
  const how =
    options.offline === undefined ? undefined : parseChoice('--offline', options.offline, ['report', 'queue']);
  if (how === 'report' && options.queue) throw usageError('--offline report and --queue say different things');
  const queue = options.queue === true || how === 'queue';
  const pace = paceOf(options);
  const body = { ...pace, ...waitOf(options, queue) };
  const { call } = await context.connect();
  const plan = await planToFollow(context, call, name, options);
  if (!options.yes && plan !== null) {
    await showPlans(context, call, plan);
    const agents = counted(changingIn(plan).length, 'agent');
    // Who is away has no plan yet, and gets it all the same.
    if (!queue && !(await agreeToPlans(context, plan, `${sanitiseLine(name)} on ${agents}`))) return exitOfRun(plan);
    if (queue && !(await prompt.confirm(`Apply ${sanitiseLine(name)} also on those that are away?`)))
      throw new CliError(exits.failed, 'cancelled', 'cancelled; nothing was changed');
  } else if (plan !== null && options.planRun === undefined) refuseRemovals(plan, name);
  const bound = plan !== null && (await isBound(call, name, options, queue)) ? plan.run_id : undefined;
  const begin = () =>
    call(applyAssignment, {
      params: { name },
      body: { ...body, ...(bound === undefined ? {} : { plan_run_id: bound }) },
      respondAsync: true,
    }).catch(suggest(call, name));
  // Whoever queues for agents that are away does not wait for them.
  const run = queue
    ? await begin()
    : await seeRunThrough(context, call, { doing: `Applying ${sanitiseLine(name)}:`, pace, begin });
  if (out.json) out.data(run);
  else if (queue) printRun(run, out);
  else await showOutcome(context, call, run);
  if (queue) out.note(`See what becomes of it: muster runs show ${run.run_id}`);
  return queue ? exits.done : exitOfRun(run);
}

/**
 * What was shown, or found to remove nothing, is what is done, since what is wanted may change in between. Not so where who
 * is away was shown nothing; nor, unless it was shown, what is for maintenance windows: a plan is of the next one.
 */
async function isBound(call: Client, name: string, options: ApplyOptions, queue: boolean): Promise<boolean> {
  if (options.planRun !== undefined) return true;
  if (queue || !options.yes) return !queue;
  return !(await call(getAssignment, { params: { name } }).catch(suggest(call, name))).window_only;
}

/** The plan that is shown, checked for removals or followed; null when none is needed. */
async function planToFollow(context: Context, call: Client, name: string, options: ApplyOptions): Promise<Run | null> {
  if (options.planRun !== undefined) return call(getRun, { params: { run_id: await findRun(call, options.planRun) } });
  if (options.yes && options.remove) return null;
  return planThrough(context, call, name);
}

/** Refuses what takes something away from machines without anybody having seen it. */
function refuseRemovals(plan: Run, name: string): void {
  const removed = removedIn(plan);
  if (removed === 0) return;
  const agents = plan.results.filter(({ summary }) => (summary?.removed ?? 0) > 0).length;
  throw new CliError(
    exits.failed,
    'removal_not_agreed',
    `this would remove ${counted(removed, 'resource')} on ${counted(agents, 'agent')}; nothing was changed`,
    `See which: muster runs show ${plan.run_id}\nTo remove them: muster assignments apply ${sanitiseLine(name)} --yes --remove`,
  );
}
