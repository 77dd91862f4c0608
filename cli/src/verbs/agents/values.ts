import { type AgentValue, listValues, type ValueLayer } from '@muster/protocol/http';
import type { Command } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import { agentNaming, chooseAgent } from '../../execution/choose-agents.ts';
import { type Exit, exits } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import type { Colors } from '../../text/style.ts';

/** Registers `muster agents values`. */
export function registerValues(command: Command, act: Act): void {
  command
    .command('values')
    .description('Show the values of parameters with their origin')
    .argument('<agent>', agentNaming)
    .option('-m, --module <name>', 'Only the parameters of this module')
    .addHelpText(
      'after',
      '\nShows the modules that assignments enforce now. The exit code is 1 if a value has an error.\n\nExamples:\n  $ muster agents values web-1\n  $ muster agents values web-1 -m nginx --json',
    )
    .action(act(values));
}

async function values(context: Context, named: string, { module }: { module?: string }): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const agent = await chooseAgent(call, named);
  const found = await call(listValues, {
    params: { node_id: agent.node_id },
    query: module === undefined ? {} : { module },
    all: true,
  });
  if (out.json) out.data(found);
  else if (found.length === 0) out.note('No module of the agent has parameters.');
  else for (const line of valueLines(found, out.style.color)) out.print(line);
  return found.some(({ faults }) => faults.length > 0) ? exits.failed : exits.done;
}

/** Formats values by module, each followed by its layers. */
function valueLines(values: readonly AgentValue[], color: Colors): string[] {
  return [...Map.groupBy(values, ({ module }) => module)].flatMap(([module, ofModule], index) => [
    ...(index === 0 ? [] : ['']),
    color.bold(sanitiseLine(module)),
    ...ofModule.flatMap((value) => [
      ...parameterLines(value, color),
      ...value.overrode.map((layer) => color.dim(`    overrode ${layerText(layer)}`)),
      ...value.faults.map((fault) => color.red(`    ${sanitiseLine(fault)}`)),
    ]),
  ]);
}

function parameterLines({ parameter, value, merge, layers, faults }: AgentValue, color: Colors): string[] {
  const name = sanitiseLine(parameter);
  const [only, ...others] = layers;
  if (faults.length > 0)
    return [`  ${name}  ${color.red('error')}`, ...layers.map((layer) => `    ${layerText(layer)}`)];
  if (only === undefined) return [`  ${name}  ${color.dim('no value')}`];
  if (others.length === 0) return [`  ${name}: ${valueText(value)}  ${color.dim(originText(only))}`];
  // Assignments with the same precedence may set the same value.
  if (merge === 'replace') return [`  ${name}: ${valueText(value)}  ${color.dim(layers.map(originText).join(', '))}`];
  return [
    `  ${name}: ${valueText(value)}  ${color.dim(`merged (${merge}) from`)}`,
    ...layers.map((layer) => `    ${layerText(layer)}`),
  ];
}

const layerText = (layer: ValueLayer): string => `${valueText(layer.value)}  ${originText(layer)}`;

const valueText = (value: unknown): string => sanitiseLine(JSON.stringify(value));

function originText({ from, name, precedence }: ValueLayer): string {
  const shown = sanitiseLine(name ?? '');
  if (from === 'assignment') return `assignment ${shown}${precedence === 0 ? '' : `, precedence ${precedence}`}`;
  return from === 'requires' ? `required by module ${shown}` : from;
}
