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
import { agreeToPlans, changingIn, showOutcome, showPlans } from '../../execution/fleet.ts';
import { printRun, removedIn, runChanges } from '../../execution/run-text.ts';
import { exitOfRun, seeRunThrough } from '../../execution/run-through.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { agentLabel } from '../../text/agent-label.ts';
import { nearest } from '../../text/nearest.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted } from '../../text/style.ts';
import { parseChoice } from '../../text/values.ts';
import { type FanOutOptions, fanOutOf, fanOutOptions, waitOf } from '../operations/fan-out.ts';
import { findRun } from '../operations/find-run.ts';
import { moduleOption } from '../operations/plan.ts';
import { isMissing, suggestModule } from './modules-source.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List assignments')
    .addHelpText('after', '\nExample:\n  $ muster assignments list')
    .action(act(list));
  command
    .command('show')
    .description('Show an assignment and the agents that it matches now')
    .argument('<name>')
    .addHelpText('after', '\nExample:\n  $ muster assignments show base')
    .action(act(show));
  command
    .command('create')
    .description('Assign modules to the agents that a selector matches; does not change any machine by itself')
    .argument('<name>')
    .addOption(moduleOption('Module; may be repeated; without it, gives only values'))
    .requiredOption('--selector <selector>', 'Agents that match, e.g. role=web; empty: none')
    .option('--audit', 'Only check for drift, never apply')
    .option('--window-only', 'Apply only in maintenance windows')
    .option('--parameters <file>', 'JSON file: {"module": {"parameter": value}}')
    .option('--precedence <number>', 'Precedence of the parameters; default: 0')
    .option('--description <text>', 'Description')
    .addHelpText(
      'after',
      '\nWithout -m, the assignment only gives values to modules that other assignments assign to these agents.\n\nExamples:\n  $ muster assignments create base -m motd --selector role=web\n  $ muster assignments create paris --selector site=paris --parameters paris.json --precedence 10',
    )
    .action(act(create));
  command
    .command('update')
    .description('Change an assignment; does not change any machine by itself')
    .argument('<name>')
    .addOption(moduleOption('Module; may be repeated; replaces all earlier ones'))
    .option('--values-only', 'Remove all modules, and keep only the values')
    .option('-l, --selector <selector>', 'Agents')
    .option('--audit', 'Only check for drift, never apply')
    .option('--enforce', 'Check and apply; reverts --audit')
    .option('--window-only', 'Apply only in maintenance windows')
    .option('--any-time', 'Apply at any time; reverts --window-only')
    .option('--parameters <file>', 'All parameters, as a JSON file; - is standard input')
    .option('--precedence <number>', 'Precedence of the parameters')
    .option('--description <text>', 'Description; "" removes it')
    .addHelpText(
      'after',
      '\nProperties that you do not specify stay unchanged.\n\nExample:\n  $ muster assignments update base --selector "role in (web,proxy)"',
    )
    .action(act(update));
  command
    .command('remove')
    .description('Remove assignments; their resources stay on machines until the next apply there')
    .argument('<names...>')
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText('after', '\nExample:\n  $ muster assignments remove base')
    .action(act(remove));
  command
    .command('plan')
    .description('Show what an apply would do on every matching agent')
    .argument('<name>')
    .option('--exit-code', 'Exit with 3 when an apply would change something')
    .addHelpText('after', '\nExample:\n  $ muster assignments plan base')
    .action(act(plan));
  fanOutOptions(command.command('apply'))
    .description('Show the plan, ask, and apply on every matching agent')
    .argument('<name>')
    .option('-y, --yes', 'Apply immediately, without showing the plan or asking')
    .option('--remove', 'With --yes: allow removals')
    .option('--offline <how>', 'For offline agents: report or queue')
    .option('--queue', 'Same as --offline queue')
    .option('--ttl <duration>', 'With --queue: how long to wait, e.g. 12h')
    .option('--plan-run <run>', 'Apply exactly this plan of the assignment, or fail')
    .addHelpText(
      'after',
      '\nShows the plan, asks, and applies exactly that plan; if anything has changed since, nothing is applied.\nWithout a terminal it cannot ask and needs --yes, and --remove if something would be removed.\n\nExamples:\n  $ muster assignments apply base --canary 2 --batch 25% --max-failures 3\n  $ muster assignments apply base --yes',
    )
    .action(act(apply));
};

/** Throws the error, with the most similar known name as a suggestion. */
const suggest =
  (call: Client, assignmentName: string) =>
  async (error: unknown): Promise<never> => {
    if (!(error instanceof ApiError) || error.problem.code !== 'assignment_not_found') throw error;
    const near = nearest(
      assignmentName,
      (await call(listAssignments, { all: true })).map(({ name }) => name),
    );
    throw new CliError(
      exits.failed,
      'assignment_not_found',
      `there is no assignment ${JSON.stringify(assignmentName)}`,
      `${near === null ? '' : `Did you mean ${near}? `}List the assignments: muster assignments list`,
      { cause: error },
    );
  };

/** Throws the error, and suggests the known name that is most similar to the first unknown module. */
const missingModule =
  (call: Client, moduleNames: readonly string[]) =>
  async (error: unknown): Promise<never> => {
    if (!(error instanceof ApiError) || !isMissing.has(error.problem.code)) throw error;
    const known = new Set((await call(listModules, { all: true })).map(({ name }) => name));
    return suggestModule(call, moduleNames.find((name) => !known.has(name)) ?? '', error);
  };

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const assignments = await call(listAssignments, { all: true });
  if (out.json) return out.data(assignments);
  if (assignments.length === 0)
    return out.note(
      'There are no assignments yet. Create one: muster assignments create NAME -m MODULE --selector SELECTOR',
    );
  out.table(
    [
      { heading: 'NAME', text: ({ name }) => name, flexible: true, paint: (text, _, { color }) => color.bold(text) },
      { heading: 'MODE', text: ({ mode }) => mode },
      { heading: 'SELECTOR', text: ({ selector }) => selector || 'matches none', flexible: true },
      { heading: 'MODULES', text: modulesText, flexible: true },
    ],
    assignments,
  );
}

const modulesText = ({ modules, parameters }: Pick<Assignment, 'modules' | 'parameters'>): string =>
  modules.length === 0 ? `values for ${Object.keys(parameters).join(', ')}` : modules.join(', ');

async function show(context: Context, name: string): Promise<undefined> {
  const { out } = context;
  const { color } = out.style;
  const { call } = await context.connect();
  const found = await call(getAssignment, { params: { name } }).catch(suggest(call, name));
  if (out.json) return out.data(found);
  const { mode, selector, modules, matches, description, parameters, window_only } = found;
  const agents = await call(listAgents, { query: { status: 'approved' } });
  const names = new Map(agents.map((agent) => [agent.node_id, agentLabel(agent)]));
  out.print(`${color.bold(sanitiseLine(found.name))}${description === null ? '' : `: ${sanitiseLine(description)}`}`);
  out.print(`mode        ${mode}${window_only ? ', only in maintenance windows' : ''}`);
  out.print(`selector    ${sanitiseLine(selector) || 'empty; matches no agent'}`);
  out.print(`modules     ${sanitiseLine(modulesText({ modules, parameters }))}`);
  for (const [module, values] of Object.entries(parameters))
    out.print(`parameters  ${sanitiseLine(`${module}: ${JSON.stringify(values)}`)}`);
  if (found.precedence !== 0) out.print(`precedence  ${found.precedence}`);
  const matched = matches.map((id) => sanitiseLine(names.get(id) ?? id)).sort();
  out.print(`matches     ${matched.length === 0 ? 'currently matches no agent' : matched.join(', ')}`);
}

interface CreateOptions {
  module?: string[];
  selector: string;
  audit?: boolean;
  windowOnly?: boolean;
  parameters?: string;
  precedence?: string;
  description?: string;
}

async function create(context: Context, name: string, options: CreateOptions): Promise<undefined> {
  const { out } = context;
  const { module: modules = [], selector, description } = options;
  if (modules.length === 0 && options.parameters === undefined)
    throw usageError(
      'an assignment needs a module, or values for modules of other assignments',
      'To assign a module: -m MODULE. To only give values: --parameters FILE',
    );
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
      ...precedenceOf(options),
      ...(description === undefined ? {} : { description }),
    },
  }).catch(missingModule(call, namedIn(modules, parameters)));
  if (out.json) out.data(made);
  out.print(`Created ${out.style.color.bold(sanitiseLine(made.name))}. No machine was changed.`);
  out.note(`To see its effect: muster assignments plan ${sanitiseLine(made.name)}`);
}

/** @throws CliError if the value is not a whole number */
function precedenceOf({ precedence }: Pick<CreateOptions, 'precedence'>): { precedence?: number } {
  if (precedence === undefined) return {};
  if (!/^-?\d{1,7}$/.test(precedence)) throw usageError('--precedence must be a whole number, such as 10 or -5');
  return { precedence: Number(precedence) };
}

interface UpdateOptions extends Partial<CreateOptions> {
  enforce?: boolean;
  anyTime?: boolean;
  valuesOnly?: boolean;
}

/** Returns the modules that an assignment assigns or sets values for. */
const namedIn = (modules: readonly string[], parameters: unknown): readonly string[] =>
  modules.length === 0 && typeof parameters === 'object' && parameters !== null ? Object.keys(parameters) : modules;

async function update(context: Context, name: string, options: UpdateOptions): Promise<undefined> {
  const { out } = context;
  const { selector, description, audit, enforce, windowOnly, anyTime, valuesOnly } = options;
  if (valuesOnly && options.module !== undefined) throw usageError('--values-only cannot be combined with -m');
  const modules = valuesOnly ? [] : options.module;
  if (audit && enforce) throw usageError('--audit cannot be combined with --enforce');
  if (windowOnly && anyTime) throw usageError('--window-only cannot be combined with --any-time');
  const parameters = options.parameters === undefined ? undefined : await readParameters(context, options.parameters);
  const body = {
    ...(modules === undefined ? {} : { modules }),
    ...(selector === undefined ? {} : { selector }),
    ...(audit || enforce ? { mode: audit ? ('audit' as const) : ('enforce' as const) } : {}),
    ...(windowOnly || anyTime ? { window_only: windowOnly === true } : {}),
    ...(parameters === undefined ? {} : { parameters }),
    ...precedenceOf(options),
    ...(description === undefined ? {} : { description }),
  };
  if (Object.keys(body).length === 0)
    throw usageError('no change was specified', 'To see the options: muster assignments update --help');
  const { call } = await context.connect();
  const made = await call(updateAssignment, { params: { name }, body })
    .catch(missingModule(call, namedIn(modules ?? [], parameters)))
    .catch(suggest(call, name));
  if (out.json) out.data(made);
  out.print(`Changed ${out.style.color.bold(sanitiseLine(made.name))}. No machine was changed.`);
  out.note(`To see its effect: muster assignments plan ${sanitiseLine(made.name)}`);
}

/**
 * Reads parameters. Checks only the JSON syntax; the orchestrator checks the values.
 * @throws CliError
 */
async function readParameters(context: Context, file: string): Promise<Assignment['parameters']> {
  const text =
    file === '-'
      ? await context.stdin()
      : await readFile(file, 'utf8').catch((error: Error) => {
          throw new CliError(exits.failed, 'file_unreadable', `cannot read ${file}: ${error.message}`);
        });
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(
      `${file} is not JSON: ${(error as Error).message}`,
      'The format is {"module": {"parameter": value}}.',
    );
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
  const run = await planAssignmentThrough(context, call, name);
  if (out.json) out.data(run);
  else await showPlans(context, call, run);
  out.note(out.noteColor.dim(`To see it again: muster runs show ${sanitiseLine(run.run_id)}`));
  const exit = exitOfRun(run);
  if (exit === exits.done && options.exitCode && runChanges(run)) return exits.pending;
  return exit;
}

/** Plans on every matching agent and waits until the plans have finished. */
const planAssignmentThrough = (context: Context, call: Client, name: string): Promise<Run> =>
  seeRunThrough(context, call, {
    doing: `Planning ${sanitiseLine(name)}:`,
    begin: () => call(planAssignment, { params: { name }, body: {}, respondAsync: true }).catch(suggest(call, name)),
  });

interface ApplyOptions extends FanOutOptions {
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
      'the plan needs confirmation, but there is no terminal to ask on',
      'To apply without asking: --yes. To see the plan first: muster assignments plan',
    );
  const how =
    options.offline === undefined ? undefined : parseChoice('--offline', options.offline, ['report', 'queue']);
  if (how === 'report' && options.queue) throw usageError('--offline report cannot be combined with --queue');
  const queue = options.queue === true || how === 'queue';
  const fanOut = fanOutOf(options);
  const body = { ...fanOut, ...waitOf(options, queue) };
  const { call } = await context.connect();
  const plan = await planToFollow(context, call, name, options);
  if (!options.yes && plan !== null) {
    await showPlans(context, call, plan);
    const agents = counted(changingIn(plan).length, 'agent');
    // Offline agents have no plan yet, but the apply includes them.
    if (!queue && !(await agreeToPlans(context, plan, `${sanitiseLine(name)} on ${agents}`))) return exitOfRun(plan);
    if (queue && !(await prompt.confirm(`Apply ${sanitiseLine(name)} on offline agents too?`)))
      throw new CliError(exits.failed, 'cancelled', 'canceled; nothing was changed');
  } else if (plan !== null && options.planRun === undefined) refuseRemovals(plan, name);
  const bound = plan !== null && (await isBound(call, name, options, queue)) ? plan.run_id : undefined;
  const begin = () =>
    call(applyAssignment, {
      params: { name },
      body: { ...body, ...(bound === undefined ? {} : { plan_run_id: bound }) },
      respondAsync: true,
    }).catch(suggest(call, name));
  const run = queue
    ? await begin()
    : await seeRunThrough(context, call, { doing: `Applying ${sanitiseLine(name)}:`, fanOut, begin });
  if (out.json) out.data(run);
  else if (queue) printRun(run, out);
  else await showOutcome(context, call, run);
  if (queue) out.note(`To see the progress: muster runs show ${run.run_id}`);
  return queue ? exits.done : exitOfRun(run);
}

/**
 * Reports whether the apply must match the plan that was shown or checked for removals, because the desired state may
 * change after the plan. False with --queue, because offline agents have no plan. False for window-only assignments
 * without a shown plan, because their plan is for the next window.
 */
async function isBound(call: Client, name: string, options: ApplyOptions, queue: boolean): Promise<boolean> {
  if (options.planRun !== undefined) return true;
  if (queue || !options.yes) return !queue;
  return !(await call(getAssignment, { params: { name } }).catch(suggest(call, name))).window_only;
}

/** Returns the plan to show, check for removals, or apply; null if none is needed. */
async function planToFollow(context: Context, call: Client, name: string, options: ApplyOptions): Promise<Run | null> {
  if (options.planRun !== undefined) return call(getRun, { params: { run_id: await findRun(call, options.planRun) } });
  if (options.yes && options.remove) return null;
  return planAssignmentThrough(context, call, name);
}

/** Refuses to remove resources if the operator has not seen the plan. */
function refuseRemovals(plan: Run, name: string): void {
  const removed = removedIn(plan);
  if (removed === 0) return;
  const agents = plan.results.filter(({ summary }) => (summary?.removed ?? 0) > 0).length;
  throw new CliError(
    exits.failed,
    'removal_not_agreed',
    `this would remove ${counted(removed, 'resource')} on ${counted(agents, 'agent')}; nothing was changed`,
    `To see which: muster runs show ${plan.run_id}\nTo remove them, add --remove, or confirm the plan: muster assignments apply ${sanitiseLine(name)}`,
  );
}
