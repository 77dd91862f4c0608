import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Fault } from '@muster/protocol';
import { type ModuleOrder, orderModules } from '@muster/protocol/http';
import {
  declaredOrder,
  type ModuleDocument,
  moduleFileName,
  requiresOf,
  resolveDesiredSet,
  resolvedOrder,
  withRequired,
} from '@muster/protocol/module';
import type { Command } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import { chooseAgent } from '../../execution/choose-agents.ts';
import { CliError, exits, usageError } from '../../exit.ts';
import { agentLabel } from '../../text/agent-label.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { type Colors, counted } from '../../text/style.ts';
import { parsePair, parseTag } from '../../text/values.ts';
import { checkedFiles, printFaults } from './modules-check.ts';
import { isFile, suggestModule } from './modules-source.ts';
import { fromFiles, withRequiredModules } from './trial-modules.ts';

const collect = (text: string, before: string[] | undefined) => [...(before ?? []), text];

/** Registers `muster modules deps`. */
export function registerDeps(command: Command, act: Act): void {
  command
    .command('deps')
    .description('Show the resources of modules in order')
    .argument('<modules...>', 'Names of modules; or YAML files, which need no orchestrator')
    .option('--agent <agent>', 'Resolve for this agent')
    .option('--attribute <name=value>', 'Attribute of the agent; may be repeated', collect)
    .option('--tag <key=value>', 'Tag of the agent; may be repeated', collect)
    .option('--dot', 'Print a graph for Graphviz')
    .addHelpText(
      'after',
      '\nWithout an agent, attributes, and tags, the modules are shown as written. A file is a word that ends with .yml or .yaml,\ncontains a slash, or is -.\n\nExamples:\n  $ muster modules deps base nginx --agent web-1\n  $ muster modules deps nginx.yml --dot > nginx.dot',
    )
    .action(act(deps));
}

interface Options {
  agent?: string;
  attribute?: string[];
  tag?: string[];
  dot?: boolean;
}

/** The facts of an agent for which modules are resolved; undefined fields were not specified. */
interface Facts {
  attributes: Record<string, string> | undefined;
  tags: Record<string, string> | undefined;
}

const pairs = (
  typed: string[] | undefined,
  parse: (text: string) => { key: string; value: string },
): Record<string, string> | undefined =>
  typed === undefined ? undefined : Object.fromEntries(typed.map(parse).map(({ key, value }) => [key, value] as const));

async function deps(context: Context, words: string[], options: Options): Promise<undefined> {
  const { out } = context;
  const { color } = out.style;
  const facts: Facts = { attributes: pairs(options.attribute, parsePair), tags: pairs(options.tag, parseTag) };
  if (options.agent !== undefined && (facts.attributes !== undefined || facts.tags !== undefined))
    throw usageError(
      '--agent cannot be combined with --attribute or --tag',
      'Specify an agent, or describe one with --attribute and --tag.',
    );
  if (options.dot && out.json) throw usageError('--dot cannot be combined with --json');
  const files = words.filter(isFile);
  if (files.length > 0 && files.length < words.length)
    throw usageError('module names cannot be combined with files', 'Specify only names, or only files.');
  if (files.length > 0 && options.agent !== undefined)
    throw usageError(
      '--agent cannot be combined with files',
      'Describe the agent with --attribute and --tag, such as --attribute distro=debian.',
    );
  const { order, label } =
    files.length > 0
      ? { order: await localOrder(context, files, facts), label: null }
      : await storedOrder(context, words, options.agent, facts);
  if (out.json) return out.data(order);
  if (options.dot) {
    out.print(graphText(order));
    return undefined;
  }
  const of = label === null ? '' : color.dim(` on ${sanitiseLine(label)}`);
  out.print(`${color.bold(counted(order.resources.length, 'resource'))}${of}, in the order of execution`);
  out.print(orderLines(order, color).join('\n'));
}

/** Orders modules that are stored on the orchestrator. */
async function storedOrder(
  context: Context,
  modules: string[],
  agentName: string | undefined,
  { attributes, tags }: Facts,
): Promise<{ order: ModuleOrder; label: string | null }> {
  const { call } = await context.connect();
  const agent = agentName === undefined ? undefined : await chooseAgent(call, agentName);
  const order = await call(orderModules, {
    body: {
      modules,
      ...(agent === undefined ? {} : { agent: agent.node_id }),
      ...(attributes === undefined ? {} : { attributes }),
      ...(tags === undefined ? {} : { tags }),
    },
  }).catch((error: Error) => {
    const missing = modules.find((name) => error.message.includes(JSON.stringify(name)));
    if (missing === undefined) throw error;
    return suggestModule(call, missing, error);
  });
  return { order, label: agent === undefined ? null : agentLabel(agent) };
}

/** Orders the modules in files, without an orchestrator. @throws CliError if a file has errors */
async function localOrder(context: Context, words: readonly string[], facts: Facts): Promise<ModuleOrder> {
  const { out } = context;
  const { files, exit } = await checkedFiles(context, words);
  const parsed: ModuleDocument[] = files.flatMap(({ module }) => module ?? []);
  if (exit !== exits.done || parsed.length < files.length) {
    printFaults(out, files, true);
    const faulty = files.filter(({ module }) => module === null);
    throw new CliError(
      exits.failed,
      'module_invalid',
      `${counted(faulty.length, 'module')} with errors`,
      'Fix the errors at the positions above.',
      // The text output above already shows the errors at their positions.
      out.json ? { faults: faulty.flatMap(({ faults }) => faults) } : {},
    );
  }
  const { attributes, tags } = facts;
  const named = files.flatMap(({ file, content, module }) =>
    module === null ? [] : [{ module, source: file, content }],
  );
  const found = await withRequiredModules(
    named,
    fromFiles(context, () => filesBeside(files.map(({ file }) => file))),
  );
  const all = found.map(({ module }) => module);
  const names = withRequired(
    all.map(({ name }) => name),
    requiresOf(all),
  );
  const modules = names.flatMap((name) => all.findLast((module) => module.name === name) ?? []);
  const missing = names.filter((name) => !modules.some((module) => module.name === name));
  if (missing.length > 0)
    out.note(
      `The order lacks required modules that are not next to the files: ${missing.map(sanitiseLine).join(', ')}`,
    );
  if (attributes === undefined && tags === undefined) {
    const declared = declaredOrder(modules);
    if (declared.ok) return declared.order;
    throw unresolved('module_unresolved', declared.faults, 'Remove one of these dependencies.');
  }
  const agent = { name: null, node_id: '', attributes: attributes ?? {}, tags: tags ?? {} };
  const resolved = resolveDesiredSet({ modules, agent });
  if (resolved.ok) return resolvedOrder(modules, resolved.resources);
  throw unresolved(resolved.code, resolved.faults, 'Describe the agent with --attribute and --tag.');
}

/** Returns the modules in the directories that contain the given files: YAML files and module folders. */
async function filesBeside(files: readonly string[]): Promise<string[]> {
  const directories = new Set(
    files
      .filter((file) => file !== '-')
      .map((file) => dirname(basename(file) === moduleFileName ? dirname(file) : file)),
  );
  const found: string[] = [];
  for (const directory of directories)
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name, ...(entry.isDirectory() ? [moduleFileName] : []));
      if (/\.ya?ml$/.test(path) && (await stat(path).catch(() => null))?.isFile() === true) found.push(path);
    }
  return found;
}

const unresolved = (code: string, faults: Fault[], remedy: string): CliError =>
  new CliError(exits.failed, code, faults[0]?.message ?? 'the modules cannot be resolved', remedy, { faults });

/** Returns a graph in the DOT language. An edge leads from a resource to one that is applied after it. */
function graphText({ modules, resources }: ModuleOrder): string {
  const quote = (text: string) => `"${sanitiseLine(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
  const clusters = modules.map((module, number) =>
    [
      `  subgraph cluster_${number} {`,
      `    label=${quote(module)};`,
      ...resources.flatMap((resource, at) =>
        resource.module === module ? [`    n${at} [label=${quote(nodeLabel(resource, at))}];`] : [],
      ),
      '  }',
    ].join('\n'),
  );
  const edges = resources.flatMap((resource, at) =>
    resource.depends_on.map((before) => {
      const word = relations.find(([, field]) => resource[field].includes(before))?.[0];
      return `  n${before} -> n${at}${word === undefined ? '' : ` [label=${quote(word)}]`};`;
    }),
  );
  return ['digraph modules {', '  node [shape=box];', ...clusters, ...edges, '}'].join('\n');
}

const nodeLabel = (resource: Resource, at: number): string =>
  [labelOf(resource, at), [resource.type, resource.identity].filter(Boolean).join(' ')].filter(Boolean).join(': ');

const relations = [
  ['reloads on', 'reload_on'],
  ['restarts on', 'restart_on'],
  ['runs again on', 'rerun_on'],
] as const;

type Resource = ModuleOrder['resources'][number];

/** Returns the label that refers to a resource in other lines. */
const labelOf = ({ module, id }: Resource, at: number): string =>
  id === null ? `${module} #${at + 1}` : `${module}/${id}`;

/** Returns a line for each resource, with its dependencies and triggers below. */
function orderLines({ resources }: ModuleOrder, color: Colors): string[] {
  const width = String(resources.length).length;
  const names = resources.map((resource, at) => sanitiseLine(labelOf(resource, at)));
  const longest = Math.min(32, Math.max(0, ...names.map((name) => name.length)));
  return resources.flatMap((resource, at) => {
    const { type, identity, depends_on, reload_on, restart_on, rerun_on } = resource;
    const head = `${color.dim(String(at + 1).padStart(width))}  ${color.bold((names[at] ?? '').padEnd(longest))}  ${sanitiseLine([type ?? 'depends on machine', identity].filter(Boolean).join(' '))}`;
    const kinds = relations.map(([word, field]) => [word, resource[field]] as const);
    const triggers = new Set([...reload_on, ...restart_on, ...rerun_on]);
    const after = depends_on.filter((index) => !triggers.has(index));
    const shown = [['after', after] as const, ...kinds].filter(([, indexes]) => indexes.length > 0);
    return [
      head.trimEnd(),
      ...shown.map(([word, indexes], no) => {
        const branch = no === shown.length - 1 ? '└' : '├';
        const list = indexes.map((index) => names[index] ?? String(index + 1)).join(', ');
        return `${' '.repeat(width + 2)}${color.dim(`${branch} ${word}`)} ${list}`;
      }),
    ];
  });
}
