import { TextDecoder } from 'node:util';
import { type ModuleOrder, orderModules, validateModule } from '@muster/protocol/http';
import type { Command } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import { chooseAgent } from '../../execution/choose-agents.ts';
import { eachOf } from '../../execution/each.ts';
import { type Exit, exits, usageError } from '../../exit.ts';
import { agentLabel } from '../../text/agent-label.ts';
import { codeFrame } from '../../text/code-frame.ts';
import { faultLine } from '../../text/fault-text.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { type Colors, counted } from '../../text/style.ts';
import { parseTag } from '../../text/values.ts';
import { onlyOneStdin, readSource } from './modules-source.ts';

const collect = (text: string, before: string[] | undefined) => [...(before ?? []), text];

/** Registers the `muster modules` commands that check or resolve modules. */
export function registerChecks(command: Command, act: Act): void {
  command
    .command('check')
    .description('check modules on the orchestrator, and show the position of each fault')
    .argument('<files...>', 'YAML files; - is standard input')
    .addHelpText(
      'after',
      '\nStores nothing. To check without an orchestrator, with output for editors: muster modules validate.\n\nExample:\n  $ muster modules check motd.yml',
    )
    .action(act(check));
  command
    .command('deps')
    .description('show the order of modules’ resources, and their dependencies')
    .argument('<names...>')
    .option('--agent <agent>', 'resolve for this agent')
    .option('--attribute <name=value>', 'resolve for an agent with this attribute; may be repeated', collect)
    .option('--tag <key=value>', 'resolve for an agent with this tag; may be repeated', collect)
    .addHelpText('after', '\nExample:\n  $ muster modules deps base nginx --agent web-1')
    .action(act(deps));
}

async function check(context: Context, files: string[]): Promise<Exit> {
  const { out } = context;
  const { color } = out.style;
  onlyOneStdin(files);
  const { call } = await context.connect();
  const results: unknown[] = [];
  let faulty = 0;
  let shownCount = 0;
  const exit = await eachOf(
    context,
    files,
    (file) => file,
    async (name) => {
      const { file, bytes } = await readSource(context, name);
      const content = new TextDecoder().decode(bytes);
      const { valid, faults, warnings } = await call(validateModule, { body: { content } });
      results.push({ file, valid, faults, warnings });
      if (!valid) faulty++;
      for (const [one, isWarning] of [
        ...faults.map((each) => [each, false] as const),
        ...warnings.map((each) => [each, true] as const),
      ]) {
        // With `exactOptionalPropertyTypes`, an absent field must be omitted.
        const fault = {
          path: one.path,
          message: one.message,
          ...(one.line ? { line: one.line } : {}),
          ...(one.column ? { column: one.column } : {}),
        };
        const frame = codeFrame(content, fault, out.style);
        if (shownCount > 0) out.print('');
        shownCount++;
        out.print(`${faultLine(file, fault, color, isWarning)}${frame === '' ? '' : `\n${frame}`}`);
      }
    },
  );
  if (out.json) out.data({ valid: faulty === 0 && exit === exits.done, files: results });
  else if (faulty > 0) out.note(`${faulty} of ${counted(files.length, 'module')} with faults`);
  else if (exit === exits.done) out.note(`${counted(files.length, 'module')}: no faults`);
  return exit === exits.done && faulty > 0 ? exits.failed : exit;
}

const pairs = (typed: string[] | undefined): Record<string, string> | undefined =>
  typed === undefined
    ? undefined
    : Object.fromEntries(typed.map(parseTag).map(({ key, value }) => [key, value] as const));

async function deps(
  context: Context,
  names: string[],
  options: { agent?: string; attribute?: string[]; tag?: string[] },
): Promise<undefined> {
  const { out } = context;
  const { color } = out.style;
  const attributes = pairs(options.attribute);
  const tags = pairs(options.tag);
  if (options.agent !== undefined && (attributes !== undefined || tags !== undefined))
    throw usageError(
      '--agent cannot be combined with --attribute or --tag',
      'Specify an agent, or describe one with --attribute and --tag.',
    );
  const { call } = await context.connect();
  const agent = options.agent === undefined ? undefined : await chooseAgent(call, options.agent);
  const order = await call(orderModules, {
    body: {
      modules: names,
      ...(agent === undefined ? {} : { agent: agent.node_id }),
      ...(attributes === undefined ? {} : { attributes }),
      ...(tags === undefined ? {} : { tags }),
    },
  });
  if (out.json) {
    out.data(order);
    return undefined;
  }
  const of = agent === undefined ? '' : color.dim(` on ${sanitiseLine(agentLabel(agent))}`);
  out.print(`${color.bold(counted(order.resources.length, 'resource'))}${of}, in the order of execution`);
  out.print(orderLines(order, color).join('\n'));
  return undefined;
}

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
    const kinds: readonly [string, readonly number[]][] = [
      ['reloads on', reload_on],
      ['restarts on', restart_on],
      ['runs again on', rerun_on],
    ];
    const triggers = new Set([...reload_on, ...restart_on, ...rerun_on]);
    const after = depends_on.filter((index) => !triggers.has(index));
    const relations = [['after', after] as const, ...kinds].filter(([, indexes]) => indexes.length > 0);
    return [
      head.trimEnd(),
      ...relations.map(([word, indexes], no) => {
        const branch = no === relations.length - 1 ? '└' : '├';
        const list = indexes.map((index) => names[index] ?? String(index + 1)).join(', ');
        return `${' '.repeat(width + 2)}${color.dim(`${branch} ${word}`)} ${list}`;
      }),
    ];
  });
}
