import type { Json } from '@muster/protocol/module';
import {
  type Explained,
  type ExplainedResource,
  explainDesiredSet,
  type Place,
  tryExpression,
} from '@muster/protocol/module-trial';
import { type Command, Option } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { sanitise, sanitiseLine } from '../../text/sanitize.ts';
import { type Colors, counted } from '../../text/style.ts';
import { fromOrchestrator, isLocal, readModules, withRequiredModules } from './trial-modules.ts';
import { type AgentChoice, readAgent, readGiven, type TriedModule, unresolved, withGiven } from './trial-sources.ts';

const agentOption = (): Option => new Option('--agent <agent>', 'An agent of the orchestrator');
const factsOption = (): Option => new Option('--facts <file>', 'File with attributes and tags; needs no orchestrator');

/** Registers `muster modules eval` and `muster modules resolve`. */
export function registerTrials(command: Command, act: Act): void {
  command
    .command('eval')
    .description('Evaluate an expression for an agent; changes nothing')
    .argument('<expression>', 'An expression without ${{ }}, or text that contains ${{ }} expressions')
    .addOption(agentOption())
    .addOption(factsOption())
    .option('--module <module>', 'Module with the parameters: file, folder, or name')
    .option('--parameters <file>', 'File with values by parameter')
    .option('--each <json>', 'Value of each, as JSON')
    .addHelpText(
      'after',
      '\nSecrets are shown as expressions, because their values are inserted at dispatch.\n\nExamples:\n  $ muster modules eval \'attr.distro == "debian"\' --agent web-1\n  $ muster modules eval \'param.hosts | join(", ")\' --facts web.yml --module nginx.yml',
    )
    .action(act(evaluate));
  command
    .command('resolve')
    .description('Show what an agent would get, with origins')
    .argument('<modules...>', 'YAML files, folders with module.yml, or names of modules')
    .addOption(agentOption())
    .addOption(factsOption())
    .option('--parameters <file>', 'File with values by parameter, or by module')
    .addHelpText(
      'after',
      '\nChanges nothing. Shows the position from which each value comes. With --agent, parameters have the values\nthat assignments set for it; --parameters overrides them. Otherwise they have their defaults. Secrets are\nshown as expressions. A file or folder is a word that ends with .yml or .yaml, contains a slash, or is - or\nthe current directory (.). Required modules that are not named come from the orchestrator; if you specify\nonly --facts and files, specify their files as well.\n\nExamples:\n  $ muster modules resolve nginx.yml --agent web-1\n  $ muster modules resolve nginx.yml --facts web.yml --parameters values.yml',
    )
    .action(act(resolve));
}

interface EvaluateOptions extends AgentChoice {
  module?: string;
  parameters?: string;
  each?: string;
}

async function evaluate(context: Context, expression: string, options: EvaluateOptions): Promise<Exit> {
  const { out } = context;
  const each = options.each === undefined ? undefined : parseEach(options.each);
  const modules = options.module === undefined ? [] : await readModules(context, [options.module]);
  const module = modules[0]?.module;
  const { agent, lookups, assigned } = await readAgent(context, options, module === undefined ? [] : [module]);
  const given = await readGiven(context, options.parameters, module === undefined ? [] : [module]);
  const { result, from } = tryExpression(expression, {
    agent,
    module,
    parameters: given as Record<string, Json>,
    layers: module === undefined ? undefined : (withGiven(assigned, given)[module.name] ?? {}),
    lookups: lookups[module?.name ?? ''] ?? {},
    each,
  });
  if (result.kind === 'fault')
    throw new CliError(exits.failed, 'expression_failed', result.message, null, {
      faults: [{ path: '', message: result.message }],
    });
  if (out.json) {
    const value = result.kind === 'value' ? result.value : null;
    out.data({ kind: result.kind, value, text: result.kind === 'secret' ? result.text : null, from });
    return exits.done;
  }
  if (result.kind === 'omitted') out.note('The expression yields omit: the field is left out.');
  else if (result.kind === 'secret') out.print(sanitise(result.text));
  else out.print(sanitise(typeof result.value === 'string' ? result.value : JSON.stringify(result.value, null, 2)));
  return exits.done;
}

function parseEach(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw usageError(`--each is not JSON: ${(error as Error).message}`, 'For example: --each \'{"name": "alice"}\'.');
  }
}

async function resolve(
  context: Context,
  words: string[],
  options: AgentChoice & { parameters?: string },
): Promise<Exit> {
  const { out } = context;
  const named = await readModules(context, words);
  // The command needs no orchestrator if only --facts and files are specified.
  const isConnected = options.agent !== undefined || !words.every(isLocal);
  const modules = isConnected ? await withRequiredModules(named, fromOrchestrator(context)) : named;
  const documents = modules.map(({ module }) => module);
  const { agent, lookups, assigned } = await readAgent(context, options, documents);
  const layers = withGiven(assigned, await readGiven(context, options.parameters, documents));
  const resolved = explainDesiredSet({ modules: documents, agent, layers, lookups });
  if (!resolved.ok) throw unresolved(context, resolved.code, resolved.faults, modules);
  const { ok: _, ...explained } = resolved;
  if (out.json) out.data(explained);
  else for (const line of explainedLines(explained, modules, out.style.color)) out.print(line);
  return exits.done;
}

/** Formats resolved resources in execution order, with the position of each value at the end of its line. */
function explainedLines(explained: Explained, modules: readonly TriedModule[], color: Colors): string[] {
  const fileOf = new Map(modules.map(({ module, source }) => [module.name, source]));
  const at = (place: Place | null): string =>
    place === null
      ? ''
      : sanitiseLine(`${fileOf.get(place.module) ?? place.module}:${place.line ?? 1}:${place.column ?? 1}`);
  const { resources, verify, secrets } = explained;
  const lines = [color.bold(`${counted(resources.length, 'resource')} in the order of execution`)];
  for (const resource of resources) lines.push('', ...resourceLines(resource, explained, at, color));
  for (const { module, type, body } of verify)
    lines.push('', `${color.bold(`verify ${type}`)}  ${sanitiseLine(module)}`, ...bodyLines(body));
  if (secrets.length > 0) lines.push('', `secrets: ${secrets.map(sanitiseLine).join(', ')}`);
  return lines;
}

function resourceLines(
  resource: ExplainedResource,
  { parameters }: Explained,
  at: (place: Place | null) => string,
  color: Colors,
): string[] {
  const { module, id, type, identity, places, fields } = resource;
  const label = sanitiseLine(id === null ? module : `${module}:${id}`);
  const head = `${color.bold(`${type} ${sanitiseLine(identity)}`)}  ${label}  ${color.dim(places.map(at).join(', '))}`;
  const originOf = (name: string): string => {
    const parameter = name.startsWith('param.') ? parameters[module]?.[name.slice('param.'.length)] : undefined;
    return sanitiseLine(parameter === undefined ? name : `${name} (${originText(parameter)})`);
  };
  const lines = Object.entries(fields).flatMap(([name, { value, hidden, place, from }]) => {
    const sources = from.length === 0 ? '' : ` from ${from.map(originOf).join(', ')}`;
    const note = place === null ? '' : color.dim(`  # ${at(place)}${sources}`);
    return hidden ? [`  ${name}: (hidden)${note}`] : fieldLines(name, value, note);
  });
  const lists = (['depends_on', 'reload_on', 'restart_on', 'rerun_on'] as const).flatMap((name) =>
    resource[name].length === 0 ? [] : [`  ${name}: ${resource[name].map(sanitiseLine).join(', ')}`],
  );
  const onlyIf = resource.only_if === null ? [] : [`  only_if: ${sanitiseLine(JSON.stringify(resource.only_if))}`];
  return [head, ...lines, ...lists, ...onlyIf];
}

/** Returns where a parameter's value comes from, such as `assignment web` or `default`. */
function originText({ from, name }: Explained['parameters'][string][string]): string {
  if (from === 'requires') return `required by module ${name}`;
  return name === null ? from : `${from} ${name}`;
}

const bodyLines = (body: Readonly<Record<string, Json>>): string[] =>
  Object.entries(body).flatMap(([name, value]) => fieldLines(name, value, ''));

/** Reports whether text can be shown without quotes: it is not empty, and not a number, true, false, or null. */
const isPlain = (value: Json): value is string =>
  typeof value === 'string' && !/^([\d.+-]|$|(true|false|null|~)$)/.test(value);

/** Formats a field. Multi-line text becomes an indented block. */
function fieldLines(name: string, value: Json, note: string): string[] {
  if (typeof value !== 'string' || !value.includes('\n'))
    return [`  ${name}: ${sanitiseLine(isPlain(value) ? value : JSON.stringify(value))}${note}`];
  const text = value.endsWith('\n') ? value.slice(0, -1) : value;
  return [`  ${name}: |${note}`, ...text.split('\n').map((line) => `    ${sanitiseLine(line)}`.trimEnd())];
}
